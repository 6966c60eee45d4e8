"""A client of MCP servers on pipes that costs next to nothing, so that the server is what is measured."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bench.harness import check

if TYPE_CHECKING:
    from pathlib import Path

PROTOCOL_VERSION = "2025-11-25"
GRACE_SECONDS = 30.0
ECHO = (sys.executable, "-m", "bench.echo_server")


def greenroom(data: Path) -> tuple[str, ...]:
    """Return the command that serves a folder."""
    return (sys.executable, "-m", "greenroom.transports.cli", "serve", "--data", str(data))


class ToolCall(NamedTuple):
    """A call of a tool, and what its answer must hold."""

    tool: str
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]


class Load(NamedTuple):
    """How many calls are kept in flight, and for how many seconds unless they run out before."""

    in_flight: int
    seconds: float


class Client:
    """One server of one's own, spoken to in lines."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the server and wait for nothing."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GREENROOM_")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._ids = itertools.count(1)

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its id."""
        number = next(self._ids)
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def receive(self) -> bytes:
        """Return the next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        check(line, "the server ended before it had answered")
        return line

    def handshake(self) -> dict[str, Any]:
        """Do the handshake and return its result."""
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        number = self.send("initialize", params)
        answer = _decoded(self.receive(), number)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, call: ToolCall) -> None:
        """Call a tool and check the answer."""
        number = self.send("tools/call", {"name": call.tool, "arguments": call.arguments})
        _check(call, _decoded(self.receive(), number))

    def drive(self, calls: Iterator[ToolCall], load: Load) -> float:
        """Keep the server under a load; return the calls a second, once all answers are checked."""
        sent: dict[int, ToolCall] = {}
        lines: list[bytes] = []

        def send() -> None:
            call = next(calls, None)
            if call is not None:
                sent[self.send("tools/call", {"name": call.tool, "arguments": call.arguments})] = call

        began = time.perf_counter()
        for _ in range(load.in_flight):
            send()
        while len(lines) < len(sent):
            lines.append(self.receive())
            if time.perf_counter() - began < load.seconds:
                send()
        elapsed = time.perf_counter() - began
        for line in lines:
            answer = msgspec.json.decode(line)
            call = sent.pop(answer.get("id"), None)
            check(call is not None, f"an answer to nothing that was asked: {answer}")
            assert call is not None
            _check(call, answer.get("result", {}))
        return len(lines) / elapsed

    def close(self) -> None:
        """End the input and wait for the server to end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(GRACE_SECONDS)
        self.process.stdout.close()
        check(code == 0, f"the server ended with code {code}")

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(message) + b"\n")
        self.process.stdin.flush()


@contextmanager
def serving(command: Sequence[str]) -> Iterator[Client]:
    """Start a server, do the handshake, and end the server afterwards."""
    client = Client(command)
    try:
        client.handshake()
        yield client
        client.close()
    finally:
        client.process.kill()


def _decoded(line: bytes, number: int) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(line)
    check(answer.get("id") == number, f"the answer is not the one to request {number}: {answer}")
    result: dict[str, Any] = answer.get("result", {})
    return result


def _check(call: ToolCall, result: Mapping[str, Any]) -> None:
    found = result.get("structuredContent") or {}
    right = not result.get("isError") and all(
        found.get(name) == value for name, value in call.expected.items()
    )
    check(right, f"{call.tool} answered {result}, without {call.expected}")
