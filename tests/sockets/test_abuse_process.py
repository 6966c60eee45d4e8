"""Clients that mean harm to a server process that serves all transports, while another one works with it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import ServerProcess, server_process
from mcp import Client as SdkClient
from sockets.test_websocket_process import resident
from support.https import HEADERS
from support.websocket_programs import answer, connected
from support.websockets import TEXT, Peer, frame

from greenroom.testing import McpClient

ENOUGH = 4_000  # requests, whose answers are a gigabyte
GROWTH = 48 * 1024  # KB: what a client may cost that does not read, buffers of all kinds included
WRITTEN = 25  # messages of 10,000 characters

READ_ALL = {"name": "get_messages", "arguments": {"session_id": "s"}}
Flood = Callable[[bytes], Awaitable[None]]


@asynccontextmanager
async def everywhere(home: Path) -> AsyncIterator[tuple[ServerProcess, SdkClient, int, int]]:
    """Run a server; give it, a client that works with it, and its ports of WebSocket and HTTP."""
    flags = ("--stdio", "--ws", "127.0.0.1:0", "--http", "127.0.0.1:0", "--durability", "process")
    async with server_process(home, *flags) as here:
        await here.client.initialize("villain")  # then it is listening, too
        ws, http = (re.search(rf"{scheme}://127.0.0.1:(\d+)/", here.errors()) for scheme in ("ws", "http"))
        assert ws is not None
        assert http is not None
        async with connected(f"{ws[0]}?agent=neighbour") as neighbour:
            await answer(neighbour, "create_session", purpose="to be read", session_id="s")
            for _ in range(WRITTEN):
                await answer(neighbour, "add_message", session_id="s", content="x" * 10_000)
            yield here, neighbour, int(ws[1]), int(http[1])


@asynccontextmanager
async def flooding(transport: str, client: McpClient, ws: int, http: int) -> AsyncIterator[Flood]:
    """Give what sends a message and never reads."""
    if transport == "pipe":

        async def line(message: bytes) -> None:
            await client.send_bytes(message + b"\n")

        yield line
        return
    async with await trio.open_tcp_stream("127.0.0.1", ws if transport == "websocket" else http) as stream:
        if transport == "websocket":
            await (await Peer(stream).open()).initialize()

            async def text(message: bytes) -> None:
                await stream.send_all(frame(TEXT, message))

            yield text
            return
        named = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
        head = "".join(
            f"{name}: {value}\r\n" for name, value in {**named, "mcp-name": "get_messages"}.items()
        )

        async def post(message: bytes) -> None:
            request = f"POST /mcp HTTP/1.1\r\n{head}content-length: {len(message)}\r\n\r\n"
            await stream.send_all(request.encode() + message)

        yield post


@pytest.mark.promise("mcp.abuse", "mcp.slow-reader")
@pytest.mark.parametrize("transport", ["pipe", "websocket", "http"])
async def test_who_never_reads_is_not_read_from_and_costs_little(tmp_path: Path, transport: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: dict[str, Any] = {**READ_ALL, "_meta": meta} if transport == "http" else READ_ALL
    sent = 0

    async def flood(send: Flood) -> None:
        nonlocal sent
        with suppress(trio.BrokenResourceError):  # where the calls below take long, the server has hung up
            for number in range(ENOUGH):
                message = {"jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": params}
                await send(json.dumps(message).encode())
                sent += 1

    async with everywhere(tmp_path) as (here, neighbour, ws, http):
        for _ in range(3):
            await answer(neighbour, "get_messages", session_id="s")
        before = resident(here.process.pid)
        async with flooding(transport, here.client, ws, http) as send, trio.open_nursery() as nursery:
            nursery.start_soon(flood, send)
            seen, most = -1, before
            while sent != seen:  # the server has stopped reading when nothing goes out during many calls
                seen = sent
                for _ in range(50):
                    await answer(neighbour, "list_memory")
                most = max(most, resident(here.process.pid))
            assert sent < ENOUGH
            assert most - before < GROWTH
            assert (await answer(neighbour, "get_messages", session_id="s"))["total"] == WRITTEN
            nursery.cancel_scope.cancel()
        await answer(neighbour, "list_memory")


@pytest.mark.promise("mcp.abuse", "websocket.slow")
@pytest.mark.parametrize("transport", ["pipe", "websocket"])
async def test_a_request_that_comes_byte_by_byte_costs_only_its_sender(
    tmp_path: Path, transport: str
) -> None:
    message = b'{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"list_memory"}}'
    async with (
        everywhere(tmp_path) as (here, neighbour, ws, _),
        await trio.open_tcp_stream("127.0.0.1", ws) as tcp,
    ):
        villain: McpClient | Peer = here.client
        if transport == "websocket":
            villain = await (await Peer(tcp).open()).initialize()
        sink = tcp if isinstance(villain, Peer) else None
        for byte in frame(TEXT, message) if sink else message + b"\n":
            await (sink.send_all if sink else here.client.send_bytes)(bytes([byte]))
            await answer(neighbour, "list_memory")
        assert (await villain.receive())["id"] == "slow"
