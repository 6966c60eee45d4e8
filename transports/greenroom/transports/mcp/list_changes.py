"""Telling clients that the list of prompts has changed, in both eras.

In the handshake era everybody is told who may be served prompts; in that of 2026-07-28, who asks for it on a
listen stream (`subscriptions`). A client that does not read is told once, however often it changes.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

from greenroom.actors.core.auth.scopes import contexts_of
from greenroom.transports.mcp.client_identity import ClientIdentity
from greenroom.transports.mcp.domain_requests import Spawn
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.response_sink import ResponseSink

METHOD: Final = "notifications/prompts/list_changed"
_LINE: Final = b'{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}\n'


class Told(Protocol):
    """A client, as far as it is told.

    Attributes:
        identity: Who it is.
        sink: Where what belongs to no request goes.
        spawn: Starts a task that ends with the client.
    """

    identity: ClientIdentity
    sink: ResponseSink
    spawn: Spawn


class ListChanges:
    """The changes of the list of prompts, where it may change."""

    def __init__(self) -> None:
        self._clients: set[Told] = set()
        self._waiting: set[Told] = set()
        self._changed = trio.Event()

    def add(self, client: Told) -> None:
        """Tell a client from now on."""
        self._clients.add(client)

    def discard(self, client: Told) -> None:
        """Tell a client no more: it is gone."""
        self._clients.discard(client)
        self._waiting.discard(client)

    async def next(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def announce(self) -> None:
        """Tell everybody that the list has changed."""
        self._changed.set()
        self._changed = trio.Event()
        for client in self._clients - self._waiting:
            who = client.identity
            if who.era is Era.HANDSHAKE and who.is_introduced and contexts_of(who.scopes):
                self._waiting.add(client)
                client.spawn(self._tell, client)

    async def _tell(self, client: Told) -> None:
        await client.sink.room_for_notice()
        self._waiting.discard(client)
        client.sink.send(_LINE)
