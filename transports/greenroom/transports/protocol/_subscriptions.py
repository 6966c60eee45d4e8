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
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INVALID_REQUEST,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from greenroom.runtime import RuntimeClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server.context import ServerRequestContext

    from greenroom.transports.protocol._connection import Call, Connection
    from greenroom.transports.protocol._served import Notices, Served

    Context = ServerRequestContext[Served, Call]


class Subscriptions:
    """The handlers of the methods that subscribe.

    Args:
        window: Seconds within which changes of one resource become one notification.
    """

    def __init__(self, window: float) -> None:
        self._window = window

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Answer ``resources/subscribe``; an unknown or forbidden URI is taken like any other."""
        _, served = await _come(context)
        notices = served.notices
        if notices is None:
            notices = served.notices = served.door.subscriber(self._window)
            served.start(functools.partial(_tell, served.connection, notices, updated))
        limit = served.connection.limits.subscriptions
        if len(notices) >= limit:
            raise MCPError(INVALID_REQUEST, f"one connection may subscribe to {limit:,} resources")
        notices.add(params.uri)
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Answer ``resources/unsubscribe``."""
        _, served = await _come(context)
        if served.notices is not None:
            served.notices.remove(params.uri)
        return EmptyResult()

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Answer ``subscriptions/listen`` when the connection winds up, and what changes until then."""
        call, served = await _come(context)
        assert call.turn is not None, "who has come had a turn"
        assert call.frame.id is not None, "requests have ids"
        connection = served.connection
        uris = params.notifications.resource_subscriptions or []
        stream_id = call.frame.id
        with (
            connection.standing(call, weight=len(uris)),
            served.door.subscriber(self._window) as notices,
        ):
            for uri in uris:
                notices.add(uri)
            connection.notify(acknowledged(stream_id, uris))
            call.turn.leave()
            await _tell(connection, notices, functools.partial(updated_on, stream_id))
        return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: context.request_id})


async def _come(context: Context) -> tuple[Call, Served]:
    """Wait for the request's turn; it ends with the request."""
    call = context.request
    assert call is not None, "every request comes through Connection"
    assert call.turn is not None, "requests of the domain have turns"
    await call.turn.come()
    return call, context.lifespan_context


async def _tell(connection: Connection, notices: Notices, line_for: Callable[[str], bytes]) -> None:
    """Notify of one change after the other while the client reads, until there is nothing more to hear."""
    with notices, suppress(RuntimeClosedError):
        while True:
            await connection.room_for_notice()
            connection.notify(line_for(await notices.next()))


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
    meta = _json(SUBSCRIPTION_ID_META_KEY)
    return b'{"jsonrpc":"2.0","method":%b,"params":{"_meta":{%b:%b},%b}}\n' % (
        _json(method), meta, stream_id, params,
    )  # fmt: skip


_json = functools.lru_cache(maxsize=4_096)(msgspec.json.encode)
