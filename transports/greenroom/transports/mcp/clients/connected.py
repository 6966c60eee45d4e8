"""The connected clients, as people see them: name, identity, time of connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors import Agent
from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.transports.mcp.clients.client import Client

RECENT_SECONDS: Final = 300.0
"""Seconds for which a client without a connection counts as connected after its last request."""
MOST_RECENT: Final = 256
LONGEST: Final = 200
"""The characters of a client's own name that are shown."""


class _Came(NamedTuple):
    transport: str
    since: float


class ConnectedClients:
    """The clients of one server: those connected now, and recent ones without a connection."""

    def __init__(self) -> None:
        self._clients: dict[Client, _Came] = {}
        self._recent: dict[tuple[object, ...], tuple[float, ConnectedClient]] = {}

    def add(self, client: Client, transport: str) -> None:
        """Record a client that has connected."""
        self._clients[client] = _Came(transport, trio.current_time())

    def remove(self, client: Client, *, may_come_back: bool) -> None:
        """Record a client that has disconnected; idempotent.

        Args:
            client: The client.
            may_come_back: Whether it made one request, and its next request will look like a new client.
        """
        came = self._clients.pop(client, None)
        if came is None or not may_come_back:
            return
        now = trio.current_time()
        seen = _view(client, came, now)
        which = seen.name, seen.agent, seen.agent_type, seen.user, seen.key_id, seen.address
        since = self._recent.pop(which, (now, seen))[1].since
        self._recent[which] = now, msgspec.structs.replace(seen, since=since, open_requests=0)
        while len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def list_clients(self) -> Iterator[ConnectedClient]:
        """Yield each client, those with a connection first."""
        now = trio.current_time()
        for client, came in self._clients.items():
            yield _view(client, came, now)
        for last, seen in self._recent.values():
            if now - last < RECENT_SECONDS:
                yield seen


def _view(client: Client, came: _Came, now: float) -> ConnectedClient:
    name, agent = client.identity.name, client.identity.known_agent
    principal = agent.principal if isinstance(agent, Agent) else None
    # A client's own name may hold a lone surrogate, which cannot be encoded.
    name_shown = None if name is None else name[:LONGEST].encode("utf-8", "replace").decode()
    return ConnectedClient(
        name=name_shown,
        tool=client_tool(name).tool_id[:LONGEST] if name_shown is not None else None,
        agent=None if principal is None else principal.agent_id,
        agent_type=None if principal is None else principal.agent_type,
        user=None if principal is None else principal.user,
        transport=came.transport,
        since=datetime.fromtimestamp(time.time() - (now - came.since), UTC),
        open_requests=client.open_requests,
        key_id=None if principal is None else principal.key_id,
        address=None if principal is None else principal.address,
    )
