"""Who works with a store: users, their agents, and who is logged in."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.core.replies.replies import Reply


class AgentSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was seen.

    Attributes:
        agent: Its id.
        last_seen: When it did last what the audit log still tells; null where that is longer ago.
    """

    agent: str
    last_seen: datetime | None


class PersonSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A user, or what is known of agents that work for nobody.

    Attributes:
        user: The user; null for agents without one.
        agents: The agents that worked for them, those first that were seen last.
        more_agents: How many more there are.
        last_seen: When the last of them was seen.
        sessions: The sessions that were made for them, as far as they were counted.
        keys: Their API keys that open something.
        has_memories: Whether there are, or were, memories of theirs.
        is_erased: Whether they were erased, and are named in the audit log until `greenroom erase --finish`.
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
    """Answers `ListPeople`, those first that were seen last.

    Attributes:
        people: Who was seen.
        browsers: The browsers that are logged in, at whichever process.
        left_out: How many more people there are.
        is_whole: Whether every session and audit record was looked at, and not the first of very many.
    """

    people: list[PersonSeen]
    browsers: list[ConnectedClient]
    left_out: int
    is_whole: bool
