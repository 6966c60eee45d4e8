"""A client of MCP servers over WebSocket on trio-websocket alone, and the servers' processes."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import trio
from trio_websocket import WebSocketConnection, open_websocket_url

from bench.harness import WrongAnswerError, check
from bench.stdio_client import GRACE_SECONDS, PROTOCOL_VERSION, ToolCall

SUBPROTOCOL = "mcp"
QUEUE = 64
T = TypeVar("T")
ECHO = (sys.executable, "-m", "bench.echo_websocket")

_ADDRESS = re.compile(rb"listening on (ws://127\.0\.0\.1:[0-9]+/)")


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


class Listening(NamedTuple):
    """A server process that listens."""

    url: str
    pid: int


def greenroom(data: Path) -> tuple[str, ...]:
    """Return the command that serves a folder over WebSocket at any free port."""
    program = (sys.executable, "-m", "greenroom.transports.cli", "serve")
    return (*program, "--data", str(data), "--ws", "127.0.0.1:0")


@contextmanager
def listening(command: Sequence[str]) -> Iterator[Listening]:
    """Start a server, wait until it says where it listens, and end it afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GREENROOM_")}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = _ADDRESS.search(line)
        check(found, f"the server says no address but {line!r}")
        assert found is not None
        yield Listening(found[1].decode(), process.pid)
        process.terminate()
        process.wait(GRACE_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


class Talk:
    """One WebSocket to one server."""

    def __init__(self, websocket: WebSocketConnection) -> None:
        self._websocket = websocket
        self._ids = itertools.count(1)

    async def send(self, text: str) -> None:
        """Send a message."""
        await self._websocket.send_message(text)

    async def receive(self) -> str:
        """Return the next message."""
        message = await self._websocket.get_message()
        return message if isinstance(message, str) else message.decode()

    def request(self, method: str, params: Mapping[str, Any]) -> tuple[int, str]:
        """Return a new request, its id and its text."""
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return number, msgspec.json.encode(message).decode()

    def call(self, call: ToolCall) -> tuple[int, str]:
        """Return the request for a tool call, its id and its text."""
        return self.request("tools/call", {"name": call.tool, "arguments": call.arguments})

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a request while no other is open and nothing else is told."""
        number, text = self.request(method, params)
        await self.send(text)
        answer = msgspec.json.decode(await self.receive())
        check(answer.get("id") == number and "result" in answer, f"{method} was answered with {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    async def tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a tool answers."""
        return content(await self.ask("tools/call", {"name": name, "arguments": arguments}))

    async def handshake(self) -> None:
        """Do MCP's handshake."""
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        await self.ask("initialize", params)
        await self.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')


@asynccontextmanager
async def talking(url: str) -> AsyncIterator[Talk]:
    """Connect to a server and hang up afterwards."""
    opened = open_websocket_url(url, subprotocols=[SUBPROTOCOL], message_queue_size=QUEUE)
    async with opened as websocket:
        yield Talk(websocket)


@asynccontextmanager
async def talking_many(url: str, count: int) -> AsyncIterator[list[Talk]]:
    """Connect so many times and hang up all at once afterwards."""
    talks: list[Talk] = []
    async with trio.open_nursery() as nursery:

        async def stay(*, task_status: trio.TaskStatus[None]) -> None:
            async with talking(url) as talk:
                talks.append(talk)
                task_status.started()
                await trio.sleep_forever()

        for _ in range(count):
            await nursery.start(stay)
        yield talks
        nursery.cancel_scope.cancel()


def content(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool answered.

    Raises:
        WrongAnswerError: it failed.
    """
    found: dict[str, Any] = result.get("structuredContent") or {}
    check(found and not result.get("isError"), f"a tool answered {result}")
    return found
