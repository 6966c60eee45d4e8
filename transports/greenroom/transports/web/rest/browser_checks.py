"""Session cookies, checks of a request's origin, and security headers. No I/O."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from greenroom.transports.auth.caller import header_values
from greenroom.transports.sockets.http.request_head import ORIGIN, RequestHead
from greenroom.transports.sockets.http.responses import Header

_COOKIE: Final = b"cookie"
_SITE: Final = b"sec-fetch-site"
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""Values for a request from this server's own page, or from an address that the user typed or opened."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MARK: Final = 16
_PORT: Final = re.compile(r":([0-9]{1,5})$")


class SessionCookie:
    """The cookie of a browser's session.

    Browsers send a cookie to every port of a host, and accept one from every port. So without TLS the cookie
    is limited to a secret path, and its name contains a digest of this path: no other port can set it. The
    name also contains the port, because all servers of one store share the path.

    Args:
        path: The path of the cookie; None with TLS, because browsers then send the cookie over TLS only.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._mark = "" if path is None else sha256(path.encode()).hexdigest()[:_MARK]

    def read(self, head: RequestHead) -> str | None:
        """Return the cookie's value; None if it is missing or ambiguous."""
        name = self._name(head)
        parts = [part.strip() for line in header_values(head.lines, _COOKIE) for part in line.split(";")]
        values = [value for given, _, value in (part.partition("=") for part in parts) if given == name]
        return values[0] if len(values) == 1 and is_token(values[0]) else None

    def header(self, head: RequestHead, value: str | None) -> Header:
        """Return the header that sets the cookie until the browser closes; None deletes the cookie."""
        more = ("Max-Age=0",) if value is None else ()
        secure = ("Secure",) if self._path is None else ()
        path = f"Path={self._path or '/'}"
        parts = [f"{self._name(head)}={value or ''}", path, "HttpOnly", "SameSite=Strict", *secure, *more]
        return b"set-cookie", "; ".join(parts).encode()

    def _name(self, head: RequestHead) -> str:
        if self._path is None:
            return "__Host-greenroom"
        port = _PORT.search(head.text(b"host") or "")
        return f"greenroom-{port[1] if port else 80}-{self._mark}"


def is_token(text: str) -> bool:
    """Return whether a text has the form of a cookie's value or a link's token."""
    return _TOKEN.fullmatch(text) is not None


def is_own_page(head: RequestHead, own_origin: str | None) -> bool:
    """Return whether a request comes from a page of this server, or from no page."""
    site = head.text(_SITE)
    if site is not None and site.lower() not in _OWN_SITES:
        return False
    origin = head.text(ORIGIN)
    if origin is None or head.is_form_of_own_page():
        return True
    authority = origin.lower().partition("://")[2]
    return authority == (head.text(b"host") or "").lower() or origin.lower() == own_origin


def comes_from_page(head: RequestHead) -> bool:
    """Return whether the browser names the origin of a request."""
    return ORIGIN in head.headers or _SITE in head.headers


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
NO_STORE: Final[Header] = (b"cache-control", b"no-store")
SAFE: Final[tuple[Header, ...]] = (
    (b"content-security-policy", "; ".join(_SOURCES).encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),  # so browsers send `Origin: null` with forms of these pages
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
