"""The SDK's client at servers in processes of their own, over each transport."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import trio
from conformance import lines
from harness import PATIENCE, clean_environment
from mcp import Client, StdioServerParameters
from mcp_types import Implementation, TextResourceContents
from support.forking import forked_program
from support.programs import running

from greenroom.transports import websocket_client

Transport = Literal["stdio", "ws", "http"]
TRANSPORTS: list[Transport] = ["stdio", "ws", "http"]
Mode = Literal["legacy", "auto", "2026-07-28"]
MODES: list[Mode] = ["legacy", "auto", "2026-07-28"]
ERAS: list[Mode] = ["legacy", "2026-07-28"]

Connect = Callable[..., AbstractAsyncContextManager[Client]]
"""Connects a client: ``connect(mode, name="sdk client", **options)``."""


@asynccontextmanager
async def listening(home: Path, transport: Transport, *flags: str) -> AsyncIterator[str]:
    """Serve a store to whoever connects; give the URL."""
    arguments = ("serve", "--data", str(home / "store"), *flags, f"--{transport}", "127.0.0.1:0")
    async with running(home, *arguments) as program:
        found = re.search(r"(ws|http)://\S+", await program.line_with("listening on"))
        assert found is not None, program.printed
        yield found[0]


@asynccontextmanager
async def served(home: Path, transport: Transport, *flags: str) -> AsyncIterator[Connect]:
    """Serve a store; give what connects clients to it.

    Over stdio every client has a server of its own, so there is one at a time.
    """
    if transport == "stdio":
        command = [*forked_program(), "serve", "--data", str(home / "store"), *flags]
        yield partial(_connected, _over_pipes(home, command))
        return
    async with listening(home, transport, *flags) as url:
        yield partial(_connected, _over_network(url))


@asynccontextmanager
async def fixture_served(home: Path, transport: Transport) -> AsyncIterator[Connect]:
    """Serve the fixture of the conformance suite, as `served` does a store."""
    if transport == "stdio":
        yield fixture_at_pipes(home)
        return
    async with lines.listening("fixture", f"--{transport}") as url:
        yield fixture_at(url)


def fixture_at_pipes(home: Path) -> Connect:
    """Return what connects each client to a fixture of its own over stdio."""
    return partial(_connected, _over_pipes(home, lines.command("fixture", "--stdio")))


def fixture_at(url: str) -> Connect:
    """Return what connects clients to the fixture that listens at a URL."""
    return partial(_connected, _over_network(url))


@contextmanager
def fixture_for_many(transport: Transport) -> Iterator[str]:
    """Run a fixture that listens, for several tests one after the other; give its URL."""
    command = lines.command("fixture", f"--{transport}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=lines.TESTS) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


def _over_pipes(home: Path, command: list[str]) -> Callable[[], Any]:
    return lambda: StdioServerParameters(
        command=command[0], args=command[1:], env=clean_environment(home), cwd=lines.TESTS
    )


def _over_network(url: str) -> Callable[[], Any]:
    return lambda: websocket_client(url) if url.startswith("ws") else url


@asynccontextmanager
async def _connected(
    target: Callable[[], Any], mode: Mode, name: str = "sdk client", **options: Any
) -> AsyncIterator[Client]:
    info = Implementation(name=name, version="1")
    with trio.fail_after(PATIENCE):
        async with Client(target(), mode=mode, client_info=info, **options) as client:
            yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers, which must not be a failure."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


async def read(client: Client, uri: str) -> Any:
    """Return what a resource of JSON holds."""
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert (contents.uri, contents.mime_type) == (uri, "application/json")
    return json.loads(contents.text)
