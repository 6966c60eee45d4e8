"""What test files share: a client that speaks MCP in lines, to a server process or to one in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from trio.testing import memory_stream_pair

from greenroom.actors import Agent, Principal, open_greenroom
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.connection import Connection, Limits
from greenroom.transports.mcp.line_io import LineSink, LineSource
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.tools import TOOLS, Tool

PROGRAM = [sys.executable, "-m", "greenroom.transports.cli"]
PATIENCE = 300.0  # seconds until a test that waits for what never comes gives up
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """A client of either era that shows every line it gets."""

    def __init__(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        self._source = source
        self._sink = sink
        self._received = b""
        self._last_id = 0
        self.meta: dict[str, Any] = {}

    async def send_bytes(self, data: bytes) -> None:
        await self._sink.send_all(data)

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive_line(self) -> bytes:
        """Return the next line, or nothing at the end of the output."""
        while b"\n" not in self._received:
            chunk = await self._source.receive_some()
            if not chunk:
                assert not self._received, f"the output ends within a line: {self._received[-200:]!r}"
                return b""
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line

    async def receive(self) -> dict[str, Any]:
        line = await self.receive_line()
        assert line, "the output has ended"
        message: dict[str, Any] = json.loads(line)
        return message

    async def rest(self) -> list[dict[str, Any]]:
        """Return everything up to the end of the output."""
        messages = []
        while line := await self.receive_line():
            messages.append(json.loads(line))
        return messages

    async def end_input(self) -> None:
        await self._sink.aclose()

    async def send_request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        self._last_id += 1
        full = {**(params or {})}
        if self.meta or "_meta" in full:
            full["_meta"] = {**self.meta, **full.get("_meta", {})}
        await self.send({"id": self._last_id, "method": method, "params": full})
        return self._last_id

    async def send_call(self, tool: str, arguments: Mapping[str, Any], **meta: Any) -> int:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return await self.send_request("tools/call", params)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to one request when no other is open."""
        number = await self.send_request(method, params)
        answer = await self.receive()
        assert answer["id"] == number
        return answer

    async def initialize(self, name: str = "tester", version: str = "2025-11-25") -> dict[str, Any]:
        """Shake hands as a client of the handshake era."""
        info = {"name": name, "version": "1"}
        answer = await self.request(
            "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        )
        await self.send({"method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers, be it a success or a failure."""
        result = (await self.request("tools/call", {"name": tool, "arguments": arguments}))["result"]
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        return answer


class ServerProcess:
    """A `greenroom serve` of its own and the client at its pipes."""

    def __init__(self, process: trio.Process, errors: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.client = Client(process.stdout, process.stdin)
        self._errors = errors

    def errors(self) -> str:
        """Return what it has written to standard error."""
        return self._errors.read_text(errors="replace")


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which no setting of this user is found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GREENROOM_", "XDG_"))}
    return kept | {"HOME": str(home)} | more


def secrets_of(home: Path) -> Path | None:
    """Return where the programs in an environment with this home keep the secret of their store."""
    return next((key.parent for key in home.rglob("*.key")), None)


@asynccontextmanager
async def server_process(
    home: Path, *flags: str, program: list[str] | None = None
) -> AsyncIterator[ServerProcess]:
    """Run a server on the store in `home`; kill it at the end if it still runs."""
    errors = _errors_file(home)
    with errors.open("wb") as stderr:
        process = await trio.lowlevel.open_process(
            program or [*PROGRAM, "serve", "--data", str(home / "store"), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=clean_environment(home),
        )
    try:
        with trio.fail_after(PATIENCE):
            yield ServerProcess(process, errors)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def _errors_file(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    return home / f"stderr-{len(list(home.glob('stderr-*')))}"


def line_connection(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream, limits: Limits) -> Connection:
    """Return a client's connection whose frames are lines."""
    return Connection(LineSource(source, limits.frame), LineSink(sink), limits)


@asynccontextmanager
async def served(
    agent_for: Callable[[str], AgentPort],
    tools: Mapping[str, Tool],
    *,
    limits: Limits | None = None,
    stop: trio.Event | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Serve any door in this process, over streams in memory; ends when the client's input has ended."""
    server = McpServer(tools, agent_for, **options)
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        connection = line_connection(theirs.receive_stream, theirs.send_stream, limits or Limits())
        await connection.serve(server, stop=stop)
        await theirs.send_stream.aclose()

    async with server.running(), trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        yield Client(ours.receive_stream, ours.send_stream)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def greenroom(folder: Path, agent: str | None = None, **options: Any) -> AsyncIterator[Client]:
    """Serve the real tools on a store in this process."""
    async with open_greenroom(folder) as runtime:

        def agent_for(name: str) -> Agent:
            return Agent(runtime, principal(agent or name))

        async with served(agent_for, TOOLS, **options) as client:
            yield client


def principal(agent_id: str, agent_type: str | None = None) -> Principal:
    """Return a local user's agent."""
    return Principal(agent_id=agent_id, agent_type=agent_type, user="user", projects=None)
