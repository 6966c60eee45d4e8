"""Headers of everything that is answered to browsers: whatever stands in it, none of it does harm."""

from __future__ import annotations

from typing import Final

from greenroom.transports.sockets.http.responses import Header

_SOURCES: Final = (
    "default-src 'none'",
    "connect-src 'self'",
    "img-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
NOT_KEPT: Final[Header] = (b"cache-control", b"no-store")
SAFE: Final[tuple[Header, ...]] = (
    (b"content-security-policy", "; ".join(_SOURCES).encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),  # so of forms here a browser says `Origin: null`
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
