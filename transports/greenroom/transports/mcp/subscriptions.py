"""Subscriptions in both protocol eras.

In the handshake era a client subscribes to URIs and hears of them on the connection
itself. In the era of 2026-07-28 each ``subscriptions/listen`` request is a stream: its
acknowledgement comes first, every notification carries the request's id, and its result,
which ends it, comes when the connection winds up.

A notification is taken from the bus only while the client reads. Until then a change is
one flag for each resource, so a client that does not read costs nobody anything.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import trio

from greenroom.runtime import RuntimeClosedError
from greenroom.transports.mcp.frames import INVALID_REQUEST, RequestError
from greenroom.transports.mcp.versions import SUBSCRIPTION_ID_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from greenroom.transports.mcp.agent_port import Notices
    from greenroom.transports.mcp.calls import Call
    from greenroom.transports.mcp.client import Client
    from greenroom.transports.mcp.response_sink import Outlet


AT_ONCE = 500  # resources of one listen request that are taken note of before others have their turn


class Subscriptions:
    """What hears of changes for clients.

    Args:
        window: Seconds within which changes of one resource become one notification.
    """

    def __init__(self, window: float) -> None:
        self._window = window

    def subscribe(self, client: Client, uri: str) -> None:
        """Let a client of the handshake era hear of a resource, be it unknown or forbidden.

        Raises:
            RequestError: it hears of too many.
            Refusal: no resource has such a URI, or as `ResourceSubscriber.add`.
            RuntimeClosedError: the runtime is closed.
        """
        notices = client.notices
        if notices is None:
            notices = client.notices = client.door.subscriber(self._window)
            client.spawn(_tell, client.outlet, notices, updated)
        limit = client.limits.subscriptions
        if len(notices) >= limit:
            raise RequestError(INVALID_REQUEST, f"one connection may subscribe to {limit:,} resources")
        notices.add(uri)

    def unsubscribe(self, client: Client, uri: str) -> None:
        """Let a client of the handshake era hear of a resource no more."""
        if client.notices is not None:
            client.notices.remove(uri)

    async def listen(self, client: Client, call: Call, uris: Sequence[str]) -> None:
        """Tell a client on a stream of its own what changes, until it winds up or takes the request back.

        Raises:
            RequestError: it has too many streams, or hears of too many resources.
            Refusal: as `subscribe`.
            RuntimeClosedError: the runtime is closed.
        """
        limits = client.limits
        if not client.standing.has_room(call, len(uris)):
            sentence = (
                f"one connection may have {limits.streams:,} streams of {limits.subscriptions:,} resources"
            )
            raise RequestError(INVALID_REQUEST, sentence)
        with (
            client.standing.stream(call, weight=len(uris)),
            client.door.subscriber(self._window) as notices,
        ):
            for number, uri in enumerate(uris, 1):
                notices.add(uri)
                if number % AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
            call.outlet.send(acknowledged(call.id, uris))
            client.turns.leave(call)
            await _tell(call.outlet, notices, functools.partial(updated_on, call.id))


async def _tell(outlet: Outlet, notices: Notices, line_for: Callable[[str], bytes]) -> None:
    """Notify of one change after the other while the client reads, until there is nothing more to hear."""
    with notices, suppress(RuntimeClosedError):
        while True:
            await outlet.room_for_notice()
            outlet.send(line_for(await notices.next()))


@functools.lru_cache(maxsize=4_096)
def updated(uri: str) -> bytes:
    """Return the line that says that a resource changed, the same object for every subscriber."""
    return b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%b}}\n' % _json(uri)


def updated_on(stream_id: bytes, uri: str) -> bytes:
    """Return the line that says on a listen stream that a resource changed."""
    return _on_stream("notifications/resources/updated", stream_id, b'"uri":' + _json(uri))


def acknowledged(stream_id: bytes, uris: Sequence[str]) -> bytes:
    """Return the first line of a listen stream: of what it will hear.

    Lists do not change while a client could notice, so nothing else is acknowledged.
    """
    wanted = {"resourceSubscriptions": uris} if uris else {}
    honoured = b'"notifications":' + msgspec.json.encode(wanted)
    return _on_stream("notifications/subscriptions/acknowledged", stream_id, honoured)


def _on_stream(method: str, stream_id: bytes, params: bytes) -> bytes:
    meta = _json(SUBSCRIPTION_ID_KEY)
    return b'{"jsonrpc":"2.0","method":%b,"params":{"_meta":{%b:%b},%b}}\n' % (
        _json(method), meta, stream_id, params,
    )  # fmt: skip


_json = functools.lru_cache(maxsize=4_096)(msgspec.json.encode)
