"""A WebSocket server on streams in memory, and clients that send what they like, byte by byte."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from support.desk import NOTES, Desk
from trio.testing import memory_stream_pair
from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionType
from wsproto.events import CloseConnection, Event, Ping, TextMessage

from greenroom.transports import Caller, Limits, McpServer, WebSocketOptions, WebSocketServer

HEADERS = {
    "Host": "localhost:8765",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
    "Sec-WebSocket-Protocol": "mcp",
}
TEXT, BINARY, CLOSE, PING, PONG = 0x81, 0x82, 0x88, 0x89, 0x8A

Pair = Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]]


def frame(first: int, payload: bytes, length: int | None = None) -> bytes:
    """Return a client's frame, masked with zeros; `length` claims another size than the payload's."""
    size = len(payload) if length is None else length
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 65536:
        head = bytes([first, 0xFE]) + size.to_bytes(2)
    else:
        head = bytes([first, 0xFF]) + size.to_bytes(8)
    return head + bytes(4) + payload


class Listener(trio.abc.Listener[trio.abc.Stream]):
    """Hands out streams that the test opens."""

    def __init__(self) -> None:
        self.arrivals, self._waiting = trio.open_memory_channel[trio.abc.Stream](100)

    async def accept(self) -> trio.abc.Stream:
        return await self._waiting.receive()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Peer:
    """One client's end of a connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._protocol = Protocol(ConnectionType.CLIENT)
        self._last_id = 0

    async def ask(self, target: str = "/", headers: Mapping[str, str | None] | None = None) -> bytes:
        """Send a handshake; return the whole answer's head, or everything up to the end if refused."""
        given = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not None}
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        await self.stream.send_all("\r\n".join(lines).encode("latin-1"))
        return await self.head()

    async def head(self) -> bytes:
        received = b""
        while b"\r\n\r\n" not in received or not received.startswith(b"HTTP/1.1 101"):
            chunk = await self.stream.receive_some()
            if not chunk:
                return received
            received += chunk
        return received

    async def open(self, target: str = "/", **headers: str | None) -> Peer:
        answer = await self.ask(target, headers)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return self

    def take(self, data: bytes) -> None:
        """Take bytes that the test has read itself."""
        self._protocol.receive_data(data)

    async def event(self) -> Event | None:
        """Return the server's next event; None when the connection has ended without one."""
        while True:
            for event in self._protocol.events():
                return event
            try:
                data = await self.stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return None
            if not data:
                return None
            self._protocol.receive_data(bytes(data))

    async def closed(self) -> tuple[int, str]:
        """Read on to the close; return its code and its sentence."""
        while not isinstance(event := await self.event(), CloseConnection):
            assert event is not None, "it hung up without a word"
        return int(event.code), event.reason or ""

    async def receive(self) -> dict[str, Any]:
        """Return the next message; pings are answered."""
        text = ""
        while True:
            event = await self.event()
            if isinstance(event, Ping):
                await self.stream.send_all(frame(PONG, bytes(event.payload)))
                continue
            assert isinstance(event, TextMessage), event
            text += event.data
            if event.message_finished:
                message: dict[str, Any] = json.loads(text)
                return message

    async def send(self, message: Mapping[str, Any], **style: Any) -> None:
        await self.stream.send_all(frame(TEXT, json.dumps({"jsonrpc": "2.0", **message}, **style).encode()))

    async def request(self, method: str, params: Mapping[str, Any] | None = None, **style: Any) -> int:
        self._last_id += 1
        await self.send({"id": self._last_id, "method": method, "params": params or {}}, **style)
        return self._last_id

    async def call(self, tool: str, text: str, **style: Any) -> int:
        return await self.request("tools/call", {"name": tool, "arguments": {"text": text}}, **style)

    async def initialize(self) -> Peer:
        info = {"name": "tester", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        await self.request("initialize", version)
        assert "result" in await self.receive()
        await self.send({"method": "notifications/initialized"})
        return self


class Venue:
    """A server and whoever comes.

    Attributes:
        listener: Where its clients come from.
        callers: Whom the doors were opened for, with the client's own name.
        stop: Set it to end the server gracefully.
    """

    def __init__(self, server: WebSocketServer) -> None:
        self.server = server
        self.callers: list[tuple[Caller, str]] = []
        self.stop = trio.Event()
        self.listener = Listener()

    async def peer(self, pair: Pair = memory_stream_pair) -> Peer:
        ours, theirs = pair()
        await self.listener.arrivals.send(theirs)
        return Peer(ours)

    async def client(self, target: str = "/", **headers: str | None) -> Peer:
        return await (await (await self.peer()).open(target, **headers)).initialize()


@asynccontextmanager
async def venue(desk: Desk, **options: Any) -> AsyncIterator[Venue]:
    """Serve a desk's tools over WebSocket; at the end the server is stopped and must end."""
    listener = Listener()
    async with _served(desk, [listener], options) as place:
        place.listener = listener
        yield place


@asynccontextmanager
async def venue_on_tcp(desk: Desk, **options: Any) -> AsyncIterator[int]:
    """Serve a desk's tools at a port of this machine."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with _served(desk, listeners, options):
        yield listeners[0].socket.getsockname()[1]


@asynccontextmanager
async def _served(desk: Desk, listeners: Sequence[Any], options: dict[str, Any]) -> AsyncIterator[Venue]:
    place: Venue

    def agent_for(caller: Caller, name: str) -> Desk:
        place.callers.append((caller, name))
        return desk.open(name)

    limits = options.pop("limits", Limits())
    mcp = McpServer(NOTES, desk.open)
    server = WebSocketServer(mcp, agent_for, WebSocketOptions(limits=limits, **options))
    place = Venue(server)
    async with mcp.running(), trio.open_nursery() as nursery:
        await nursery.start(server.serve, listeners, place.stop)
        yield place
        desk.released.set()
        place.stop.set()


def told(message: Mapping[str, Any]) -> Any:
    """Return what a tool's answer says."""
    return msgspec.json.decode(message["result"]["content"][0]["text"])
