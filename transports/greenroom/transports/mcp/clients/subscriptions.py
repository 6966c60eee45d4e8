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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import trio

from greenroom.actors.core.auth.scopes import contexts_of
from greenroom.runtime import RuntimeClosedError
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import INVALID_REQUEST, RequestError
from greenroom.transports.mcp.frames.versions import SUBSCRIPTION_ID_KEY
from greenroom.transports.mcp.list_changes import METHOD, ListChanges
from greenroom.transports.mcp.response_sink import ResponseSink

SLICE = 500  # resources of one listen request that are subscribed to before other tasks run


class Wanted(NamedTuple):
    """What a client wants to hear of on a listen stream.

    Attributes:
        uris: Resources.
        prompts: Whether changes of the list of prompts.
    """

    uris: Sequence[str]
    prompts: bool


class Subscriptions:
    """Subscribes clients to resources, and notifies them of changes.

    Args:
        window: Seconds within which changes of one resource become one notification.
        lists: The changes of the list of prompts; None where that does not change.
    """

    def __init__(self, window: float, lists: ListChanges | None = None) -> None:
        self._window = window
        self._lists = lists

    def subscribe(self, client: ClientPort, uri: str) -> None:
        """Subscribe a client of the handshake era to a resource, be it unknown or forbidden.

        Raises:
            RequestError: it has too many subscriptions.
            Refusal: no resource has such a URI, or as `ResourceSubscriber.add`.
            RuntimeClosedError: the runtime is closed.
        """
        subscriber = client.subscriber
        if subscriber is None:
            subscriber = client.subscriber = client.identity.agent.subscriber(self._window)
            client.spawn(_send_changes, client.sink, subscriber, updated_line)
        limit = client.limits.subscriptions
        if len(subscriber) >= limit:
            raise RequestError(INVALID_REQUEST, f"one connection may subscribe to {limit:,} resources")
        subscriber.add(uri)

    def unsubscribe(self, client: ClientPort, uri: str) -> None:
        """Unsubscribe a client of the handshake era from a resource."""
        if client.subscriber is not None:
            client.subscriber.remove(uri)

    async def listen(self, client: ClientPort, call: Call, wanted: Wanted) -> None:
        """Notify a client on a stream of its own, until it ends or cancels the request.

        Raises:
            RequestError: it has too many streams, or hears of too many resources.
            Refusal: as `subscribe`.
            RuntimeClosedError: the runtime is closed.
        """
        limits, uris = client.limits, wanted.uris
        hears_prompts = (
            wanted.prompts and self._lists is not None and bool(contexts_of(client.identity.scopes))
        )
        if not client.streams.has_room(call, len(uris)):
            sentence = (
                f"one connection may have {limits.streams:,} streams of {limits.subscriptions:,} resources"
            )
            raise RequestError(INVALID_REQUEST, sentence)
        with (
            client.streams.stream(call, weight=len(uris)),
            client.identity.agent.subscriber(self._window) as subscriber,
        ):
            for number, uri in enumerate(uris, 1):
                subscriber.add(uri)
                if number % SLICE == 0:
                    await trio.lowlevel.checkpoint()
            call.sink.send(acknowledged_line(call.id, uris, hears_prompts=hears_prompts))
            client.queue.leave(call)
            updated = functools.partial(stream_updated_line, call.id)
            if not hears_prompts or self._lists is None:
                await _send_changes(call.sink, subscriber, updated)
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_list_changes, call.sink, self._lists, call.id)
                await _send_changes(call.sink, subscriber, updated)
                nursery.cancel_scope.cancel()


async def _send_changes(
    sink: ResponseSink, subscriber: SubscriberPort, line_for: Callable[[str], bytes]
) -> None:
    """Send a notification of each change while the client reads, until the subscriber is closed."""
    with subscriber, suppress(RuntimeClosedError):
        while True:
            await sink.room_for_notice()
            sink.send(line_for(await subscriber.next()))


async def _send_list_changes(sink: ResponseSink, lists: ListChanges, stream_id: bytes) -> None:
    """Send a notification of each change of the list of prompts while the client reads."""
    while True:
        await lists.next()
        await sink.room_for_notice()
        sink.send(_on_stream(METHOD, stream_id))


@functools.lru_cache(maxsize=4_096)
def updated_line(uri: str) -> bytes:
    """Return the line that says that a resource changed, the same object for every subscriber."""
    return b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%b}}\n' % _json(uri)


def stream_updated_line(stream_id: bytes, uri: str) -> bytes:
    """Return the line that says on a listen stream that a resource changed."""
    return _on_stream("notifications/resources/updated", stream_id, b'"uri":' + _json(uri))


def acknowledged_line(stream_id: bytes, uris: Sequence[str], *, hears_prompts: bool = False) -> bytes:
    """Return the first line of a listen stream: of what it will hear.

    Other lists do not change while a client could notice, so nothing else is acknowledged.
    """
    wanted: dict[str, Any] = {"resourceSubscriptions": uris} if uris else {}
    if hears_prompts:
        wanted["promptsListChanged"] = True
    honoured = b'"notifications":' + msgspec.json.encode(wanted)
    return _on_stream("notifications/subscriptions/acknowledged", stream_id, honoured)


def _on_stream(method: str, stream_id: bytes, params: bytes = b"") -> bytes:
    meta = _json(SUBSCRIPTION_ID_KEY)
    return b'{"jsonrpc":"2.0","method":%b,"params":{"_meta":{%b:%b}%b%b}}\n' % (
        _json(method), meta, stream_id, b"," if params else b"", params,
    )  # fmt: skip


_json = functools.lru_cache(maxsize=4_096)(msgspec.json.encode)
