"""HTTP in front, a transport of lines or of messages behind: the suite tests by URL only.

The bridge knows HTTP's side of the protocol and nothing else: what the client posts goes
to the server behind it as it is, and so does the answer. Every session of the handshake
era has a connection of its own behind it. All requests of 2026-07-28 share one, on which
they have ids of the bridge.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

Message = dict[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

DISCOVER: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bridge", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
"""What a connection of the later era begins with, since its first request decides the era."""
NOTHING: Mapping[str, str] = {}
NO_STATUSES: Mapping[int, int] = {}
BACKLOG = 10_000  # messages that a stream holds for a client that does not read them


class Line(Protocol):
    """One connection to the server behind the bridge."""

    async def send(self, message: bytes) -> None:
        """Send a message."""

    async def receive(self) -> bytes | None:
        """Return the next message; None at the end."""


Open = Callable[[], AbstractAsyncContextManager[Line]]


class _Connection:
    """One connection behind, and who waits for which of its messages.

    Attributes:
        done: Set it to close the connection.
    """

    def __init__(self, line: Line) -> None:
        self.done = trio.Event()
        self._line = line
        self._sending = trio.Lock()
        self._waiting: dict[int | str, trio.MemorySendChannel[Message]] = {}
        self._shown: dict[int | str, int | str] = {}
        self._tokens: dict[int | str | None, int | str] = {}
        self._others: trio.MemorySendChannel[Message] | None = None

    async def pump(self) -> None:
        """Take the server's messages to those who wait for them, until there are no more."""
        while (received := await self._line.receive()) is not None:
            message = json.loads(received)
            stream = self._stream_for(message)
            if stream is not None:
                stream.send_nowait(self._renamed(message))

    def _stream_for(self, message: Message) -> trio.MemorySendChannel[Message] | None:
        if "method" not in message:
            return self._waiting.get(message["id"])
        params = message.get("params") or {}
        listening = params.get("_meta", {}).get(SUBSCRIPTION_ID_META_KEY)
        request = self._tokens.get(params.get("progressToken"), listening)
        if request is not None:
            return self._waiting.get(request)
        # Nothing says which request it belongs to, and the suite has one open at a time.
        return next(reversed(self._waiting.values()), self._others)

    def _renamed(self, message: Message) -> Message:
        """Put the ids that clients know where those of the bridge are."""
        if "method" not in message:
            message["id"] = self._shown.get(message["id"], message["id"])
        meta = (message.get("params") or message.get("result") or {}).get("_meta") or {}
        if SUBSCRIPTION_ID_META_KEY in meta:
            number = meta[SUBSCRIPTION_ID_META_KEY]
            meta[SUBSCRIPTION_ID_META_KEY] = self._shown.get(number, number)
        return message

    async def send(self, message: Message) -> None:
        """Send a message."""
        async with self._sending:
            await self._line.send(json.dumps(message).encode())

    @asynccontextmanager
    async def asked(
        self, request: Message, *, shown_as: int | str | None = None
    ) -> AsyncIterator[trio.MemoryReceiveChannel[Message]]:
        """Send a request; give the messages that belong to it, the last of which is its answer.

        Args:
            request: The request.
            shown_as: The id that it has in the messages, if that is not its own.
        """
        number, token = request["id"], ((request.get("params") or {}).get("_meta") or {}).get("progressToken")
        sender, receiver = trio.open_memory_channel[Message](BACKLOG)
        self._waiting[number] = sender
        if shown_as is not None:
            self._shown[number] = shown_as
        if token is not None:
            self._tokens[token] = number
        await self.send(request)
        try:
            yield receiver
        finally:
            del self._waiting[number]
            self._shown.pop(number, None)
            self._tokens.pop(token, None)

    @asynccontextmanager
    async def others(self) -> AsyncIterator[trio.MemoryReceiveChannel[Message]]:
        """Give the messages that belong to no request."""
        self._others, receiver = trio.open_memory_channel[Message](BACKLOG)
        try:
            yield receiver
        finally:
            self._others = None


class _Exchange:
    """One request of HTTP and the response to it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def body(self) -> bytes:
        """Return the whole body of the request."""
        body, more = b"", True
        while more:
            event = await self._receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        return body

    async def finish(
        self, status: int, content: Message | None, headers: Mapping[str, str] = NOTHING
    ) -> None:
        """Respond with JSON, or with nothing but a status."""
        body = b"" if content is None else json.dumps(content).encode()
        await self._start(status, "application/json", headers)
        await self._send({"type": "http.response.body", "body": body})

    async def answer(
        self,
        messages: trio.MemoryReceiveChannel[Message],
        *,
        headers: Mapping[str, str] = NOTHING,
        statuses: Mapping[int, int] = NO_STATUSES,
    ) -> bool:
        """Respond with messages up to an answer; return whether the client stayed until then.

        An answer that comes first is JSON with its error's status, everything else a stream.
        """
        async with self._while_there() as there:
            first = await messages.receive()
            if "method" not in first:
                await self.finish(statuses.get(first.get("error", {}).get("code"), 200), first, headers)
                return True
            await self._start(200, "text/event-stream", headers)
            await self._event(first)
            async for message in messages:
                await self._event(message)
                if "method" not in message:
                    await self._send({"type": "http.response.body", "body": b""})
                    return True
        assert there.cancelled_caught
        return False

    async def stream(self, messages: trio.MemoryReceiveChannel[Message]) -> None:
        """Respond with messages for as long as the client stays."""
        async with self._while_there():
            await self._start(200, "text/event-stream")
            async for message in messages:
                await self._event(message)

    @asynccontextmanager
    async def _while_there(self) -> AsyncIterator[trio.CancelScope]:
        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            yield nursery.cancel_scope
            nursery.cancel_scope.cancel()

    async def _start(self, status: int, content_type: str, headers: Mapping[str, str] = NOTHING) -> None:
        named = {"content-type": content_type, **headers}
        raw = [(name.encode(), value.encode()) for name, value in named.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _event(self, message: Message) -> None:
        body = f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


class Bridge:
    """The HTTP server's application.

    Args:
        open: Opens a connection behind the bridge.
        nursery: Where connections live; it ends when they are closed.
    """

    def __init__(self, open: Open, nursery: trio.Nursery) -> None:
        self._open = open
        self._nursery = nursery
        self._sessions: dict[str, _Connection] = {}
        self._modern: _Connection | None = None
        self._opening = trio.Lock()
        self._numbers = itertools.count(1)
        self._to_ready, self._ready = trio.open_memory_channel[_Connection](0)

    async def keep_one_ready(self) -> None:
        """Open the next connection while others are used: a process takes its time to start."""
        while True:
            connection: _Connection = await self._nursery.start(self._connected)
            try:
                await self._to_ready.send(connection)
            except trio.Cancelled:
                connection.done.set()
                raise

    def close(self) -> None:
        """Close all connections behind the bridge, as clients do that have what they wanted."""
        for connection in (*self._sessions.values(), *filter(None, [self._modern])):
            connection.done.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] == "lifespan":
            while True:
                event = await receive()
                await send({"type": f"{event['type']}.complete"})
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        exchange = _Exchange(receive, send)
        version = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._modern_post(exchange)
        elif scope["method"] == "POST":
            await self._post(exchange, headers)
        else:
            await self._get_or_delete(scope["method"], exchange, headers)

    async def _post(self, exchange: _Exchange, headers: Mapping[str, str]) -> None:
        message = json.loads(await exchange.body())
        session = headers.get("mcp-session-id", "")
        if not session and message.get("method") == "initialize":
            session = f"session-{next(self._numbers)}"
            self._sessions[session] = await self._ready.receive()
        connection = self._sessions.get(session)
        if connection is None:
            await exchange.finish(404, None)
        elif "method" in message and "id" in message:
            async with connection.asked(message) as answers:
                await exchange.answer(answers, headers={"mcp-session-id": session})
        else:
            await connection.send(message)
            await exchange.finish(202, None)

    async def _modern_post(self, exchange: _Exchange) -> None:
        message = json.loads(await exchange.body())
        connection = await self._modern_connection()
        if "id" not in message:
            await connection.send(message)
            await exchange.finish(202, None)
            return
        number = next(self._numbers)
        async with connection.asked({**message, "id": number}, shown_as=message["id"]) as answers:
            if not await exchange.answer(answers, statuses=ERROR_CODE_HTTP_STATUS):
                gone = {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": number},
                }
                await connection.send(gone)

    async def _get_or_delete(self, method: str, exchange: _Exchange, headers: Mapping[str, str]) -> None:
        session = headers.get("mcp-session-id", "")
        connection = self._sessions.get(session)
        if connection is None:
            await exchange.finish(404, None)
        elif method == "GET":
            async with connection.others() as messages:
                await exchange.stream(messages)
        else:
            self._sessions.pop(session).done.set()
            await exchange.finish(200, None)

    async def _modern_connection(self) -> _Connection:
        async with self._opening:
            if self._modern is None:
                connection = await self._ready.receive()
                async with connection.asked(DISCOVER) as answers:
                    await answers.receive()
                self._modern = connection
            return self._modern

    async def _connected(self, *, task_status: trio.TaskStatus[_Connection]) -> None:
        async with self._open() as line, trio.open_nursery() as nursery:
            connection = _Connection(line)
            nursery.start_soon(connection.pump)
            task_status.started(connection)
            await connection.done.wait()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def bridged(open: Open) -> AsyncIterator[str]:
    """Serve a bridge to what `open` opens; give its URL.

    At the end every connection is closed, and whatever is behind it must end well.
    """
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    async with trio.open_nursery() as connections, trio.open_nursery() as front:
        bridge = Bridge(open, connections)
        front.start_soon(bridge.keep_one_ready)
        (bound,) = await front.start(serve, bridge, config)
        yield f"{bound}/mcp"
        front.cancel_scope.cancel()
        bridge.close()
