"""The clients that are connected, as people want to see them: who, what, since when."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

import msgspec
import trio

from greenroom.actors import Agent
from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.sessions.client_tools import client_tool
from greenroom.transports.mcp.client_identity import ClientIdentity

RECENT_SECONDS: Final = 300.0
"""How long a client without a connection of its own counts as connected after its last request."""
MOST_RECENT: Final = 256
LONGEST: Final = 200
"""Characters of a client's name for itself."""


class ClientSeen(Protocol):
    """What is seen of a client."""

    @property
    def identity(self) -> ClientIdentity:
        """Who it is."""

    @property
    def open_requests(self) -> int:
        """How many requests are not settled, streams included."""


class _Came(NamedTuple):
    transport: str
    since: float


class ConnectedClients:
    """The clients of one server that are connected now, and who asked lately without a connection."""

    def __init__(self) -> None:
        self._clients: dict[ClientSeen, _Came] = {}
        self._recent: dict[tuple[object, ...], tuple[float, ConnectedClient]] = {}

    def add(self, client: ClientSeen, transport: str) -> None:
        """Take note of a client that has come."""
        self._clients[client] = _Came(transport, trio.current_time())

    def remove(self, client: ClientSeen, *, may_come_back: bool) -> None:
        """Take note of a client that has gone; a second time does nothing.

        Args:
            client: The client.
            may_come_back: Whether it was one request, and its next one is another client to us.
        """
        came = self._clients.pop(client, None)
        if came is None or not may_come_back:
            return
        now = trio.current_time()
        seen = _shown(client, came, now)
        which = seen.name, seen.agent, seen.agent_type, seen.user, seen.key_id, seen.address
        since = self._recent.pop(which, (now, seen))[1].since
        self._recent[which] = now, msgspec.structs.replace(seen, since=since, open_requests=0)
        while len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def seen(self) -> Iterator[ConnectedClient]:
        """Yield each client, those with a connection first."""
        now = trio.current_time()
        for client, came in self._clients.items():
            yield _shown(client, came, now)
        for last, seen in self._recent.values():
            if now - last < RECENT_SECONDS:
                yield seen


def _shown(client: ClientSeen, came: _Came, now: float) -> ConnectedClient:
    name, agent = client.identity.name, client.identity.known_agent
    principal = agent.principal if isinstance(agent, Agent) else None
    # What a client calls itself may hold half a character, which nobody can encode.
    told = None if name is None else name[:LONGEST].encode("utf-8", "replace").decode()
    return ConnectedClient(
        name=told,
        tool=client_tool(name).tool_id[:LONGEST] if told is not None else None,
        agent=None if principal is None else principal.agent_id,
        agent_type=None if principal is None else principal.agent_type,
        user=None if principal is None else principal.user,
        transport=came.transport,
        since=datetime.fromtimestamp(time.time() - (now - came.since), UTC),
        open_requests=client.open_requests,
        key_id=None if principal is None else principal.key_id,
        address=None if principal is None else principal.address,
    )
