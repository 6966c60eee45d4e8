"""Servers in processes of their own that listen for WebSocket clients, and the SDK's client for them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from harness import PATIENCE
from mcp import Client
from mcp_types import Implementation
from support.programs import Program, running

from greenroom.transports import websocket_client


@asynccontextmanager
async def connected(url: str, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    info = Implementation(name="sdk client", version="1")
    more = {name: options.pop(name) for name in ("message_handler",) if name in options}
    with trio.fail_after(PATIENCE):
        async with Client(websocket_client(url, **options), mode=mode, client_info=info, **more) as client:
            yield client


@asynccontextmanager
async def server(home: Path, *flags: str, port: int = 0) -> AsyncIterator[tuple[Program, int]]:
    """Run a server process; give its port."""
    address = f"127.0.0.1:{port}"
    async with running(home, "serve", "--data", str(home / "store"), "--ws", address, *flags) as program:
        yield program, port_in(await program.line_with("listening on"))


def port_in(line: str) -> int:
    found = re.search(r":([0-9]+)/$", line)
    assert found is not None, line
    return int(found[1])


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process brings about, without taking its processor away."""
    while not condition():  # noqa: ASYNC110  (no event of ours stands for it)
        await trio.sleep(0.001)
