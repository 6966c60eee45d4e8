"""One-time links to passports: the one path that gives contents to who shows no key.

Invariants:

- Whatever a link is not, unknown, used, expired, of a revoked key, its answer is the same.
- Nothing here says or logs what stands in the path.
- Only a GET that somebody means uses a link up: no HEAD, and nothing that a browser fetches beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from greenroom.actors.orchestrations.passport_link import DEED, LINK_PATH, OpenedLink
from greenroom.runtime import GreenroomError
from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.responses import JSON, Header, Response

OpenLink = Callable[[str, str | None], Awaitable[OpenedLink | None]]
"""Uses up the link with a token for somebody at an address; None: there is no such link."""

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

    Args:
        exchange: The request.
        caller: The address that it comes from.
        authenticator: Counts who comes in vain.
        open_link: Opens links; None where there are none.

    Raises:
        HttpRefusedError: there is no such link, or it cannot be opened now or in this way.
        ClientGoneError: the client hung up.
    """
    head = exchange.head
    exchange.extra = [*exchange.extra, *PRIVATE]
    if head.method != "GET":
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "a link is opened with GET", Allow="GET")
    if any(_BEFOREHAND.search(head.headers.get(name, b"")) for name in _PURPOSES):
        sentence = "a link works once, and is not fetched before somebody opens it"
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
        authenticator.count_wrong(address, DEED)
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is no such link, or it was used, or has expired")
    name = f'attachment; filename="{opened.session_id}.passport.json"'
    headers = [JSON, (b"content-disposition", name.encode())]
    await exchange.reply(Response(HTTPStatus.OK, headers, opened.text.encode()))
