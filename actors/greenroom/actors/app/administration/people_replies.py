"""The users of a store: their agents, and the logged-in browsers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.core.replies.replies import Reply


class AgentSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A known agent.

    Attributes:
        last_seen: When its last action was that the audit log still has; null if longer ago.
    """

    agent: str
    last_seen: datetime | None


class PersonSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A user, or the group of agents without a user.

    Attributes:
        last_seen: When the last of them was seen.
        sessions: The number of their sessions, as far as counted.
        keys: The number of their valid API keys.
        has_memories: Whether they have or had memories.
        is_erased: Whether they were erased; the audit log names them until `greenroom erase --finish`.
    """

    user: str | None
    agents: list[AgentSeen]
    more_agents: int
    last_seen: datetime | None
    sessions: int
    keys: int
    has_memories: bool
    is_erased: bool


class PeopleSeen(Reply, frozen=True, kw_only=True):
    """Answers `ListPeople`, the most recently seen first.

    Attributes:
        left_out: How many more people there are.
        is_whole: Whether every session and audit record was read, not only the first of very many.
    """

    people: list[PersonSeen]
    browsers: list[ConnectedClient]
    left_out: int
    is_whole: bool
