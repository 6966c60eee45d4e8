"""Clients within the server's process, up to the bytes that would go to each; for `subscriptions`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from bench.client import VERSIONS, read_answer
from bench.harness import WrongAnswerError, check
from greenroom.actors import Agent, Principal, open_greenroom
from greenroom.actors.core.defaults import DEBOUNCE_SECONDS
from greenroom.transports import TOOLS, Limits
from greenroom.transports.mcp.connection import Connection
from greenroom.transports.mcp.server import McpServer

PATIENCE = 60.0  # seconds
T = TypeVar("T")
UPDATED = b"notifications/resources/updated"


def checked_run(function: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Return what an async function returns, as `trio.run` does.

    Raises:
        WrongAnswerError: an answer was wrong, in whichever task that showed.
    """
    wrong: list[BaseException] = []
    try:
        return trio.run(function, *arguments)
    except* WrongAnswerError as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        wrong.append(leaf)
    raise wrong[0]


@asynccontextmanager
async def open_server(data: Path) -> AsyncIterator[McpServer]:
    """Open a folder and give its server."""
    async with open_greenroom(data) as runtime:

        def agent_for(name: str) -> Agent:
            return Agent(runtime, Principal(agent_id=name, user="bench"))

        yield McpServer(TOOLS, agent_for)


class Peer:
    """A client within this process: the frames that it sends, and what it does with those it gets."""

    def __init__(self, server: McpServer, take: Callable[[bytes], None], name: str) -> None:
        self._server = server
        self._take = take
        self._out, self._in = trio.open_memory_channel[list[bytes]](1)
        self._name = name

    async def serve(self) -> None:
        """Serve it until cancelled."""
        await Connection(self, self, Limits()).serve(self._server)

    async def receive(self) -> list[bytes] | None:
        """Be the source of its frames."""
        return await self._in.receive()

    async def send(self, frames: Sequence[bytes]) -> None:
        """Be the sink of the frames to it."""
        await trio.lowlevel.checkpoint()
        for frame in frames:
            self._take(frame)

    def send_now(self, frame: bytes) -> bytes:
        """Take a frame at once."""
        self._take(frame)
        return b""

    async def say(self, *messages: object) -> None:
        """Send messages."""
        await self._out.send([msgspec.json.encode(message) for message in messages])

    async def begin(self, *more: object) -> None:
        """Send MCP's handshake, and more."""
        client = {"name": self._name, "version": "1"}
        params = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}, "clientInfo": client}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        await self.say(begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *more)


class Writer:
    """Writes messages as an MCP client, one after another."""

    def __init__(self, server: McpServer) -> None:
        self._answer = trio.Event()
        self._frame = b""
        self.peer = Peer(server, self._take, "writer")

    def _take(self, frame: bytes) -> None:
        self._frame = frame
        self._answer.set()

    async def begin(self) -> None:
        """Do MCP's handshake."""
        await self.peer.begin()
        await self._answer.wait()

    async def tool(self, name: str, **arguments: str) -> tuple[float, dict[str, object]]:
        """Return the ms until a tool's answer, and the answer."""
        self._answer = trio.Event()
        began = time.perf_counter()
        params = {"name": name, "arguments": arguments}
        await self.peer.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        await self._answer.wait()
        elapsed = (time.perf_counter() - began) * 1e3
        answer = read_answer(self._frame)
        right = answer.result is not None and not answer.result.is_error
        check(right, f"{name} was answered with {self._frame!r}")
        assert answer.result is not None
        told: dict[str, object] = answer.result.told()
        return elapsed, told


class Crowd:
    """What the subscribers of one resource were told: how often, and when last."""

    def __init__(self, count: int, uri: str) -> None:
        self.subscribe = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "resources/subscribe",
            "params": {"uri": uri},
        }
        self.counts = [0] * count
        self.last = [0.0] * count
        self._ready = 0
        self._all_ready = trio.Event()
        self._uri = uri.encode()

    def take(self, number: int, frame: bytes) -> None:
        """Note a frame to a subscriber."""
        if UPDATED in frame:
            check(self._uri in frame, f"a subscriber of {self._uri!r} was told {frame!r}")
            self.counts[number] += 1
            self.last[number] = time.perf_counter()
        else:
            answer = msgspec.json.decode(frame)
            check("result" in answer, f"a subscriber was answered {frame!r}")
            self._ready += answer["id"] == 1
            if self._ready == len(self.counts):
                self._all_ready.set()

    async def subscribed(self) -> None:
        """Wait until all have subscribed."""
        with trio.move_on_after(PATIENCE):
            await self._all_ready.wait()
        check(self._ready == len(self.counts), "not every subscriber was answered")

    async def told(self, written: float, acknowledged: float) -> float:
        """Wait until nobody is told any more.

        Args:
            written: When the last write was sent.
            acknowledged: When it was acknowledged.

        Returns:
            The seconds from the acknowledgement until the last subscriber was told.
        """
        before = -1
        while before != sum(self.counts):
            before = sum(self.counts)
            await trio.sleep(3 * DEBOUNCE_SECONDS)
        check(min(self.last) >= written, "not every subscriber was told of the last write")
        return max(0.0, max(self.last) - acknowledged)

    def check_windows(self, since: float) -> None:
        """Check that all were told since a moment, and nobody twice within a window; then count anew."""
        for count, last in zip(self.counts, self.last, strict=True):
            check_windows(count, last - since)
        self.counts = [0] * len(self.counts)


def check_windows(count: int, seconds: float) -> None:
    """Check that a subscriber was told, and not twice within a window, up to the last time.

    Args:
        count: How often it was told.
        seconds: From the first write to the last time.
    """
    most = 1 + int(seconds / DEBOUNCE_SECONDS)
    check(
        1 <= count <= most, f"a subscriber was told {count} times in {seconds:.3f} s, not 1 to {most} times"
    )
