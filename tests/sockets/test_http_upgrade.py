"""WebSockets at the address of HTTP: taken over with the checks and limits of their own server."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from harness import PATIENCE
from support.programs import Program, running
from support.websocket_programs import answer, connected

from greenroom.transports import WebSocketRefusedError

pytestmark = [pytest.mark.slow, pytest.mark.promise("http.websocket")]
HEAD = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Protocol: mcp\r\n\r\n"
)


@asynccontextmanager
async def serving(home: Path) -> AsyncIterator[tuple[Program, int]]:
    command = ("serve", "--data", str(home / "store"), "--http", "127.0.0.1:0")
    async with running(home, *command) as program:
        found = re.search(r":([0-9]+)/mcp", await program.line_with("listening on http://"))
        assert found is not None
        yield program, int(found[1])


async def said(port: int, *parts: bytes, expected: bytes) -> None:
    """Send parts of requests; check that what comes back has this."""
    with trio.fail_after(PATIENCE):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            for part in parts:
                await stream.send_all(part)
            received = b""
            while expected not in received:
                data = await stream.receive_some()
                assert data, received
                received += data


@pytest.mark.quick
async def test_clients_of_both_kinds_share_an_address(tmp_path: Path) -> None:
    async with serving(tmp_path) as (program, port):
        async with connected(f"ws://127.0.0.1:{port}/mcp", agent="ann") as client:
            session = await answer(client, "create_session", purpose="one address")
            assert session["created_by"] == "ann"
        with pytest.raises(WebSocketRefusedError, match="403"):
            async with connected(f"ws://127.0.0.1:{port}/", headers={"Origin": "https://evil.example"}):
                raise AssertionError
        with pytest.raises(WebSocketRefusedError, match="404"):
            async with connected(f"ws://127.0.0.1:{port}/api/v1/"):
                raise AssertionError
        head = HEAD.format(path="/mcp", port=port).encode()
        await said(port, head[:40], head[40:], expected=b"101 ")
        plain = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        await said(port, plain, expected=b"200 ")
        other = head.replace(b"Upgrade: websocket", b"Upgrade: h2c").replace(b"/mcp", b"/healthz")
        await said(port, other, expected=b"200 ")
        async with connected(f"ws://127.0.0.1:{port}/mcp", reconnect=False) as client:
            await client.list_tools()
            program.process.send_signal(signal.SIGTERM)
            assert await program.end() == 0
        assert "Traceback" not in program.printed
