"""The head of an HTTP request, the checks that need no body, and CORS.

Protocol errors have the statuses and sentences of the SDK's server.
"""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from greenroom.transports.auth.caller import (
    IDENTITY_HEADERS,
    NOBODY,
    Caller,
    caller_of,
    header_values,
    refuse_secrets,
)
from greenroom.transports.auth.origin_check import check_host, check_origin
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.frames.frames import INVALID_REQUEST
from greenroom.transports.sockets.http.responses import Header, Response, RpcRefusedError

ACCEPT: Final = b"accept"
CONTENT_LENGTH: Final = b"content-length"
CONTENT_TYPE: Final = b"content-type"
LAST_EVENT_ID: Final = b"last-event-id"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
ORIGIN: Final = b"origin"
SESSION_ID: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"

_SITE: Final = b"sec-fetch-site"
_ONCE: Final = (b"authorization", CONTENT_TYPE, LAST_EVENT_ID, SESSION_ID)
_REMEMBERED: Final = 256
_ASKED_METHOD: Final = b"access-control-request-method"
_ASKED_HEADERS: Final = b"access-control-request-headers"
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
_KEPT_SECONDS: Final = 600


class RequestHead:
    """A request's head.

    Attributes:
        headers: The headers by name; of equal names, only the first header.
    """

    __slots__ = ("headers", "lines", "method", "path", "query")

    def __init__(self, scope: dict[str, Any]) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.lines: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers = dict(reversed(self.lines))
        self.query: str = scope["query_string"].decode("latin-1")

    def text(self, name: bytes) -> str | None:
        """Return the value of a header; None if it is missing."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def repeats(self, name: bytes) -> bool:
        """Return whether a header occurs more than once."""
        return len(self.headers) < len(self.lines) and sum(each == name for each, _ in self.lines) > 1

    def length(self) -> int | None:
        """Return the length of the body, if the head states it."""
        value = self.headers.get(CONTENT_LENGTH)
        return int(value) if value is not None and value.isdigit() else None

    def check_source(self, allowed_origins: frozenset[str], *, any_host: bool = False) -> None:
        """Refuse a request to a host, or from an origin, that is not allowed."""
        if not any_host:
            check_host(self.text(b"host") or "", HTTPStatus.MISDIRECTED_REQUEST)
        if ORIGIN in self.headers and not self.is_form_of_own_page():
            for value in header_values(self.lines, ORIGIN):
                check_origin(value, allowed_origins)

    def caller(self, *, in_query: bool = True) -> Caller:
        """Return the caller that a request claims.

        Args:
            in_query: Whether the query names the caller, too; else it is only checked for secrets.

        Raises:
            HttpRefusedError: It claims an invalid caller, or two callers.
        """
        headers = self.headers
        if b"transfer-encoding" in headers and CONTENT_LENGTH in headers:
            # A proxy may have used the other length (request smuggling).
            sentence = "the length of the body is given twice, by Content-Length and by Transfer-Encoding"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence, Connection="close")
        for name in _ONCE:
            if self.repeats(name):
                sentence = f"the header {name.decode()} occurs more than once"
                raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        query = self.query
        if not in_query:
            refuse_secrets(query)
            query = ""
        if not query and IDENTITY_HEADERS.isdisjoint(headers):
            return NOBODY
        return caller_of(query, self.lines)

    def is_form_of_own_page(self) -> bool:
        """Return whether the browser says that a page of this origin sent a form.

        For a form on a page without referrers a browser sends ``Origin: null``. It sends the same for a
        sandboxed page, but then calls the site cross-site.
        """
        return self.text(ORIGIN) == "null" and self.text(_SITE) == "same-origin" and not self.repeats(ORIGIN)

    def check_content_type(self) -> None:
        """Refuse a body that is not declared as JSON."""
        if not _is_json(self.headers.get(CONTENT_TYPE, b"")):
            raise HttpRefusedError(
                HTTPStatus.BAD_REQUEST, "Invalid Content-Type header: it must be application/json"
            )

    def check_accept(self, *, json: bool) -> None:
        """Refuse a client that does not accept event streams, or JSON if needed."""
        takes_json, takes_events = _accepted(self.headers.get(ACCEPT, b""))
        if takes_events and (takes_json or not json):
            return
        wanted = "both application/json and text/event-stream" if json else "text/event-stream"
        sentence = f"Not Acceptable: Client must accept {wanted}"
        raise RpcRefusedError(HTTPStatus.NOT_ACCEPTABLE, INVALID_REQUEST, sentence)


def cors_headers(head: RequestHead) -> list[Header]:
    """Return the headers that let a page read the response; none without such a page.

    The origin has passed `RequestHead.check_source`: it is of this machine, or `--allow-origin` names it.
    """
    origin = head.headers.get(ORIGIN)
    if origin is None or head.is_form_of_own_page():
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After"),
        (b"vary", b"Origin"),
    ]


def cors_preflight(head: RequestHead) -> Response | None:
    """Return the answer to a CORS preflight; None for any other request."""
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


@lru_cache(_REMEMBERED)
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


@lru_cache(_REMEMBERED)
def _accepted(accept: bytes) -> tuple[bool, bool]:
    """Return whether an ``Accept`` header accepts JSON, and event streams."""
    types = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return (
        not types.isdisjoint((b"application/json", b"application/*", b"*/*")),
        not types.isdisjoint((b"text/event-stream", b"text/*", b"*/*")),
    )
