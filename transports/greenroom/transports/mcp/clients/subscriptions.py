"""Subscriptions in both protocol eras.

In the handshake era a client subscribes to URIs and is notified on the connection itself. In the 2026-07-28
era each ``subscriptions/listen`` request is a stream. The acknowledgement comes first, every notification
carries the request's id, and the result ends the stream when the connection ends.

A notification is taken from the bus only while the client reads. Until then a change is one flag per
resource, so a client that does not read costs other clients nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
import trio

from greenroom.actors.core.auth.scopes import contexts_of
from greenroom.runtime import RuntimeClosedError
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call, ResponseSink
from greenroom.transports.mcp.frames.frames import INVALID_REQUEST, RequestError
from greenroom.transports.mcp.frames.versions import SUBSCRIPTION_ID_KEY, Era, Wanted

METHOD: Final = "notifications/prompts/list_changed"
_LINE: Final = b'{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}\n'


class ListChanges:
    """The changes of the list of prompts, if it can change."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._waiting: set[Client] = set()
        self._changed = trio.Event()

    def add(self, client: Client) -> None:
        """Notify a client from now on."""
        self._clients.add(client)

    def discard(self, client: Client) -> None:
        """Stop notifying a client that has disconnected."""
        self._clients.discard(client)
        self._waiting.discard(client)

    async def next(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def announce(self) -> None:
        """Notify all clients that the list has changed."""
        self._changed.set()
        self._changed = trio.Event()
        for client in self._clients - self._waiting:
            who = client.identity
            if who.era is Era.HANDSHAKE and who.is_introduced and contexts_of(who.scopes):
                self._waiting.add(client)
                client.spawn(self._tell, client)

    async def _tell(self, client: Client) -> None:
        await client.sink.room_for_notice()
        self._waiting.discard(client)
        client.sink.send(_LINE)


SLICE = 500  # subscriptions of one listen request before other tasks run


class Subscriptions:
    """Subscribes clients to resources, and notifies them of changes."""

    def __init__(self, window: float, lists: ListChanges | None = None) -> None:
        self._window = window
        self._lists = lists

    def subscribe(self, client: Client, uri: str) -> SubscriberPort:
        """Subscribe a client of the handshake era to a resource, even to an unknown resource."""
        subscriber = client.subscriber
        if subscriber is None:
            subscriber = client.subscriber = client.identity.agent.subscriber(self._window)
            client.spawn(_send_changes, client.sink, subscriber, updated_line)
        limit = client.limits.subscriptions
        if len(subscriber) >= limit:
            raise RequestError(INVALID_REQUEST, f"one connection may subscribe to {limit:,} resources")
        subscriber.add(uri)
        return subscriber

    def unsubscribe(self, client: Client, uri: str) -> None:
        """Unsubscribe a client of the handshake era from a resource."""
        if client.subscriber is not None:
            client.subscriber.remove(uri)

    async def listen(self, client: Client, call: Call, wanted: Wanted) -> None:
        """Notify a client on a stream until the stream ends or is cancelled."""
        limits, uris = client.limits, wanted.resourceSubscriptions or []
        hears_prompts = (
            wanted.promptsListChanged is True
            and self._lists is not None
            and bool(contexts_of(client.identity.scopes))
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
            await subscriber.wait_heard()
            call.sink.send(acknowledged_line(call.id, uris, hears_prompts=hears_prompts))
            client.queue.leave(call)
            updated = functools.partial(_updated_on_stream, call.id)
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
    """Return the notification of a changed resource, one object for all subscribers."""
    return b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%b}}\n' % _json(uri)


def _updated_on_stream(stream_id: bytes, uri: str) -> bytes:
    return _on_stream("notifications/resources/updated", stream_id, b'"uri":' + _json(uri))


def acknowledged_line(stream_id: bytes, uris: Sequence[str], *, hears_prompts: bool = False) -> bytes:
    """Return the first line of a listen stream: its accepted subscriptions.

    Other lists do not change while a client is connected, so they are not acknowledged.
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
