"""What tells a browser's own page from a page of somebody else's: cookies and origins. No I/O."""

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
"""What a browser says of its own page's requests, and of what somebody typed or opened from elsewhere."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MARK: Final = 16
_PORT: Final = re.compile(r":([0-9]{1,5})$")


class SessionCookie:
    """The cookie of a browser's session.

    A browser sends it to every port of a host, and takes one of its name from every port. So in the clear it
    is for a path that no other port knows, and a digest of the path stands in its name: no other port sets
    one that is taken for it. The port stands there as well, for servers of one store share the path.

    Args:
        path: The path for which it is; None where browsers come over TLS, and it is sent over nothing else.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._mark = "" if path is None else sha256(path.encode()).hexdigest()[:_MARK]

    def read(self, head: RequestHead) -> str | None:
        """Return the value that a request shows; None without one, or where it is not clear which."""
        name = self._name(head)
        parts = [part.strip() for line in header_values(head.lines, _COOKIE) for part in line.split(";")]
        values = [value for given, _, value in (part.partition("=") for part in parts) if given == name]
        return values[0] if len(values) == 1 and is_token(values[0]) else None

    def setting(self, head: RequestHead, value: str) -> Header:
        """Return the header that has a browser keep it until it is closed."""
        return self._header(head, value)

    def clearing(self, head: RequestHead) -> Header:
        """Return the header that has a browser forget it."""
        return self._header(head, "", "Max-Age=0")

    def _header(self, head: RequestHead, value: str, *more: str) -> Header:
        secure = ("Secure",) if self._path is None else ()
        path = f"Path={self._path or '/'}"
        parts = [f"{self._name(head)}={value}", path, "HttpOnly", "SameSite=Strict", *secure, *more]
        return b"set-cookie", "; ".join(parts).encode()

    def _name(self, head: RequestHead) -> str:
        if self._path is None:
            return "__Host-greenroom"
        port = _PORT.search(head.text(b"host") or "")
        return f"greenroom-{port[1] if port else 80}-{self._mark}"


def is_token(text: str) -> bool:
    """Return whether a text looks like a cookie's value, or like what stands at the end of a link."""
    return _TOKEN.fullmatch(text) is not None


def is_own_page(head: RequestHead, own_origin: str | None) -> bool:
    """Return whether a page of this server sent a request, or no page at all.

    Args:
        head: The request's.
        own_origin: The origin by which browsers reach the server, where that is known.
    """
    site = head.text(_SITE)
    if site is not None and site.lower() not in _OWN_SITES:
        return False
    origin = head.text(ORIGIN)
    if origin is None or head.is_form_of_own_page():
        return True
    authority = origin.lower().partition("://")[2]
    return authority == (head.text(b"host") or "").lower() or origin.lower() == own_origin


def comes_from_page(head: RequestHead) -> bool:
    """Return whether a browser says where a request comes from."""
    return ORIGIN in head.headers or _SITE in head.headers
