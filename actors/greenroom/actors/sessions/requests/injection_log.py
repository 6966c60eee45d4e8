"""Messages to the injection log: what hooks and recalls gave to agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.memories.recall.replies import Beginning, GivenMemory
from greenroom.actors.memories.requests.replies import KnownMemory
from greenroom.actors.sessions.requests.hook_events import HookName, Short
from greenroom.actors.sessions.requests.hook_messages import ClientSession
from greenroom.runtime import Message

KEPT_DAYS = 90
"""How many days the injection log keeps its records, and the ids of stored events."""
MOST_GIVEN = 5_000
"""The most records in the injection log of a user."""
MOST_WAITING = 200
"""At most this many recalls wait to be written together; one more causes the write at once."""
Giver = Literal[HookName, "recall"]
"""What gave memories to an agent: a hook of its client, or a reply to `RecallContext`."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The memories and lines that one run of a hook gave.

    Attributes:
        least: The least probability, or relevance, that a memory needed; None if there was no threshold.
        left_out: The number of matching memories that were left out, by reason.
    """

    hook: HookName
    agent: str
    query: Beginning = ""
    reason: Short = ""
    memories: list[GivenMemory] = msgspec.field(default_factory=list)
    lines: list[int] = msgspec.field(default_factory=list)
    tokens: int = 0
    partial: bool = False
    least: float | None = None
    left_out: dict[str, int] = msgspec.field(default_factory=dict)


class NoteGiven(Message[None], frozen=True, kw_only=True):
    """Record what a session was given; without memories and lines, only the session's request.

    ``fresh`` means that the session's model no longer has what it was given before. ``request`` is what the
    person typed; empty for none.
    """

    of: ClientSession
    at: datetime
    given: Given
    fresh: bool = False
    request: Beginning = ""


class WriteRecalled(Message[None], frozen=True, kw_only=True):
    """Timer: write the recalls that wait."""


class ReadGiven(Message["GivenRead"], frozen=True, kw_only=True):
    """Read the injection log, newest first.

    ``session`` may be the beginning of a client session's id; ``before`` selects records with lower numbers.
    """

    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20
    agent: str = ""
    by: Giver | None = None
    memory_id: str = ""
    number: int | None = None
    before: int | None = None


class MemoryGiven(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in the injection log; ``used`` is when a use of it was observed.

    ``key`` is the memory's current key; empty if the memory is forgotten, or hidden from the reader.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None
    signals: dict[str, float]
    used: datetime | None


class GivenView(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the injection log: recipient, time, giver, reason, memories."""

    number: int = 0
    at: datetime
    client: str
    session: str
    agent: str
    project: str
    hook: Giver
    reason: str
    query: str
    lines: int
    tokens: int
    partial: bool
    memories: list[MemoryGiven]
    least: float | None = None
    left_out: dict[str, int] = msgspec.field(default_factory=dict)


class GivenRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadGiven`; ``total`` is the number of matching records."""

    given: list[GivenView]
    total: int


class ToldMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that an agent was given, as in `MemoryGiven`.

    ``now`` is the memory's current state; null if the memory is forgotten, or hidden from the reader.
    """

    memory_id: str
    version: int
    namespace: str
    score: float | None
    signals: dict[str, float]
    used: datetime | None
    now: KnownMemory | None


class TellingView(msgspec.Struct, frozen=True, kw_only=True):
    """One injection: recipient, giver, reason and memories, as in `GivenView`.

    Attributes:
        source: The hook, or ``recall``, for which no use is observed.
        kept_as: The id of the session that stores the client session; empty if there is none.
    """

    number: int
    at: datetime
    source: Giver
    client: str
    session: str
    kept_as: str
    agent: str
    project: str
    reason: str
    query: str
    lines: int
    tokens: int
    partial: bool
    least: float | None
    left_out: dict[str, int]
    memories: list[ToldMemory]


class MemoriesTold(Reply, frozen=True, kw_only=True):
    """Answers `ListTold`; ``total`` counts all pages."""

    told: list[TellingView]
    total: int
    next_cursor: str | None
