"""CORS: the headers by which a browser lets a page of another origin speak with the server.

The origin passed `RequestHead.check_caller` before: it is of this machine, or `--allow-origin` names it.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.transports.http.request_head import ORIGIN, RequestHead
from greenroom.transports.http.responses import Header, Response

_ASKED_METHOD: Final = b"access-control-request-method"
_ASKED_HEADERS: Final = b"access-control-request-headers"
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
_KEPT_SECONDS: Final = 600


def headers_for(head: RequestHead) -> list[Header]:
    """Return the headers of every answer that let a page read it; none where no page asks."""
    origin = head.headers.get(ORIGIN)
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After"),
        (b"vary", b"Origin"),
    ]


def preflight(head: RequestHead) -> Response | None:
    """Return the answer to a browser that asks what it may send; None when this is not such a request."""
    if head.method != "OPTIONS" or ORIGIN not in head.headers or _ASKED_METHOD not in head.headers:
        return None
    asked = head.headers.get(_ASKED_HEADERS, b"")
    headers: list[Header] = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-max-age", b"%d" % _KEPT_SECONDS),
    ]
    if _NAMES.fullmatch(asked):
        headers.append((b"access-control-allow-headers", asked))
    return Response(204, headers, b"")
