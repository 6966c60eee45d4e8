"""Servers in processes of their own, and connections to them: over pipes, or over a WebSocket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio
import trio_websocket
from harness import PATIENCE
from support.forking import forked_program

TESTS = Path(__file__).parent.parent


def command(module: str, *flags: str) -> list[str]:
    """Return what runs one of the servers here, in the folder `TESTS`."""
    return [*forked_program(f"conformance.{module}"), *flags]


@asynccontextmanager
async def listening(module: str, *flags: str) -> AsyncIterator[str]:
    """Run a server that listens and prints its URL, which is given; kill it at the end."""
    process = await trio.lowlevel.open_process(command(module, *flags), stdout=subprocess.PIPE, cwd=TESTS)
    assert process.stdout is not None
    printed = b""
    try:
        with trio.fail_after(PATIENCE):
            while not printed.endswith(b"\n"):
                part = await process.stdout.receive_some()
                assert part, "it ended before it listened"
                printed += part
        yield json.loads(printed)["url"]
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


class _Pipes:
    def __init__(self, output: trio.abc.ReceiveStream, input: trio.abc.SendStream) -> None:
        self._output = output
        self._input = input
        self._received = b""

    async def send(self, message: bytes) -> None:
        await self._input.send_all(message + b"\n")

    async def receive(self) -> bytes | None:
        while b"\n" not in self._received:
            chunk = await self._output.receive_some()
            if not chunk:
                assert not self._received, f"the output ends within a line: {self._received[-200:]!r}"
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line


@asynccontextmanager
async def process(module: str, *flags: str) -> AsyncIterator[_Pipes]:
    """Start a server and speak to it over its pipes; at the end its input is closed, and it must end well."""
    process = await trio.lowlevel.open_process(
        command(module, *flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TESTS
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with process.stdout, process.stdin:
            yield _Pipes(process.stdout, process.stdin)
            await process.stdin.aclose()
            with trio.fail_after(PATIENCE):
                assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


Fork = Callable[[], AbstractAsyncContextManager[_Pipes]]


@asynccontextmanager
async def forking() -> AsyncIterator[Fork]:
    """Give what starts a fixture at pipes as `process` does, without the time to import it."""
    # A suite starts dozens. What they run is measured where one process serves them all.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = await trio.lowlevel.open_process(
                command("forks", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                cwd=TESTS,
                env=unmeasured,
                start_new_session=True,
            )
        try:
            yield partial(_forked, ours)
            ours.close()
            with trio.fail_after(PATIENCE):
                assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and servers that have not ended
            with trio.CancelScope(shield=True):
                await process.wait()


@asynccontextmanager
async def _forked(asked: socket.socket) -> AsyncIterator[_Pipes]:
    (source, to_source), (from_sink, sink), (from_end, end) = (os.pipe() for _ in range(3))
    socket.send_fds(asked, [b"."], [source, sink, end])
    for each in (source, sink, end):
        os.close(each)
    written, read, ended = map(trio.lowlevel.FdStream, (to_source, from_sink, from_end))
    async with written, read, ended:
        yield _Pipes(read, written)
        await written.aclose()
        with trio.fail_after(PATIENCE):
            assert await ended.receive_some() == b"\0"


class _WebSocket:
    def __init__(self, connection: trio_websocket.WebSocketConnection) -> None:
        self._connection = connection

    async def send(self, message: bytes) -> None:
        await self._connection.send_message(message.decode())

    async def receive(self) -> bytes | None:
        try:
            message: str | bytes = await self._connection.get_message()
        except trio_websocket.ConnectionClosed:
            return None
        return message.encode() if isinstance(message, str) else message


@asynccontextmanager
async def websocket(url: str) -> AsyncIterator[_WebSocket]:
    """Speak to a server over a WebSocket of its own."""
    async with trio_websocket.open_websocket_url(url, subprotocols=["mcp"]) as connection:
        yield _WebSocket(connection)
