"""One server in this process and clients over each transport, that say what they like and hear everything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio
from support.desk import NOTES, Desk
from support.https import Guest, Place, place
from support.websockets import TEXT, Peer, frame, venue

from greenroom.testing import McpClient, mcp_server
from greenroom.transports import Limits

TRANSPORTS = ("pipe", "websocket", "http")


class Wire(Protocol):
    """A client of the handshake era that has shaken hands."""

    async def send_bytes(self, message: bytes) -> None:
        """Send one message, sound or not."""

    async def receive(self) -> dict[str, Any]:
        """Return the next message of the server."""


class Guy:
    """A client, good or bad.

    Args:
        wire: What it speaks through.
    """

    def __init__(self, wire: Wire) -> None:
        self.receive = wire.receive
        self.send_bytes = wire.send_bytes

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def call(self, tool: str, id: int | str, text: str = "") -> None:
        params = {"name": tool, "arguments": {"text": text}}
        await self.send({"id": id, "method": "tools/call", "params": params})

    async def cancel(self, id: int | str) -> None:
        await self.send({"method": "notifications/cancelled", "params": {"requestId": id}})

    async def is_served(self, id: int | str = "is anybody there") -> None:
        """Make a call and see it answered, as the next thing that is heard."""
        await self.call("echo", id, "yes")
        answer = await self.receive()
        assert answer["id"] == id, answer
        assert json.loads(answer["result"]["content"][0]["text"]) == {"text": "yes"}


class _Lines:
    def __init__(self, client: McpClient) -> None:
        self._client = client
        self.receive = client.receive

    async def send_bytes(self, message: bytes) -> None:
        await self._client.send_bytes(message + b"\n")


class _Frames:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.receive = peer.receive

    async def send_bytes(self, message: bytes) -> None:
        await self._peer.stream.send_all(frame(TEXT, message))


class _Posts:
    """A session of HTTP, in which every message has a connection of its own."""

    def __init__(self, here: Place, session: Guest, nursery: trio.Nursery) -> None:
        self._here = here
        self._session = session
        self._nursery = nursery
        self._heard, self._hears = trio.open_memory_channel[dict[str, Any]](10_000)

    async def send_bytes(self, message: bytes) -> None:
        guest = await self._here.guest(session=self._session)
        await guest.send("POST", "/mcp", self._session.session, message)
        self._nursery.start_soon(self._listen, guest)

    async def _listen(self, guest: Guest) -> None:
        body = (await guest.answer()).body
        events = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")]
        for message in events if body[:1] != b"{" else [body]:
            if message.strip():
                self._heard.send_nowait(json.loads(message))
        await guest.stream.aclose()

    async def receive(self) -> dict[str, Any]:
        return await self._hears.receive()


Come = Callable[[], Awaitable[Guy]]


@asynccontextmanager
async def arena(transport: str, desk: Desk, limits: Limits | None = None) -> AsyncIterator[Come]:
    """Serve a desk's tools over a transport; give what lets another client come."""
    limits = limits or Limits()
    if transport == "websocket":
        async with venue(desk, limits=limits) as there:

            async def peer() -> Guy:
                return Guy(_Frames(await there.client()))

            yield peer
    elif transport == "http":
        async with place(desk, limits=limits) as here, trio.open_nursery() as nursery:

            async def guest() -> Guy:
                return Guy(_Posts(here, await here.client(), nursery))

            yield guest
            desk.released.set()
            nursery.cancel_scope.cancel()
    else:
        async with mcp_server(desk.open, NOTES, limits=limits) as server:

            async def client() -> Guy:
                client = server.connect()
                await client.initialize()
                return Guy(_Lines(client))

            yield client
