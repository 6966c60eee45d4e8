"""One-time links to passports: the only path with content for callers without a key.

Invariants:

- All invalid links get the same answer: unknown, used or expired links, and links of a revoked key.
- The token in the path is never repeated or logged.
- Only a deliberate GET redeems a link: not HEAD, and no prefetch of a browser.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from greenroom.actors.app.client.open_link import ACTION, OpenedLink
from greenroom.actors.sessions.passports.claims import LINK_PATH
from greenroom.runtime import GreenroomError
from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.responses import JSON, Header, Response

OpenLink = Callable[[str, str | None], Awaitable[OpenedLink | None]]
"""Redeems the link with a token, for a caller at an address; None if there is no such link."""

PRIVATE: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_PURPOSES: Final = (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz")
_BEFOREHAND: Final = re.compile(rb"prefetch|prerender|preview", re.IGNORECASE)


async def serve_link(
    exchange: Exchange, caller: Caller, authenticator: Authenticator, open_link: OpenLink | None
) -> None:
    """Answer a request for a link.

    Raises:
        HttpRefusedError: There is no such link, or it cannot be opened now or in this way.
        ClientGoneError: The client disconnected.
    """
    head = exchange.head
    exchange.extra = [*exchange.extra, *PRIVATE]
    if head.method != "GET":
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "a link is opened with GET", Allow="GET")
    if any(_BEFOREHAND.search(head.headers.get(name, b"")) for name in _PURPOSES):
        sentence = "a link works once, and must not be prefetched"
        raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
    address = authenticator.address_of(caller, head.lines)
    await exchange.discard()
    token = head.path.removeprefix(LINK_PATH)
    try:
        opened = await open_link(token, address) if open_link and _TOKEN.fullmatch(token) else None
    except GreenroomError:
        sentence = "the link cannot be opened now"
        raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, sentence) from None
    if opened is None:
        authenticator.count_wrong(address, ACTION)
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is no such link, or it was used, or has expired")
    name = f'attachment; filename="{opened.session_id}.passport.json"'
    headers = [JSON, (b"content-disposition", name.encode())]
    await exchange.reply(Response(HTTPStatus.OK, headers, opened.text.encode()))
