"""Messages between the actors that keep what hooks tell. None of them is a tool."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.memories.requests.replies import KnownMemory
from greenroom.actors.sessions.requests.hook_events import HookName, Short, Turn
from greenroom.actors.sessions.requests.session_context import Offer, SessionContext
from greenroom.runtime import Message

KIND = "hooks"
KEPT_DAYS = 90
"""How long the ledger knows what was given, and which events were taken."""
MOST_GIVEN = 5_000
"""Most rows of a user's ledger."""
MOST_SESSIONS = 1_000
"""Most sessions of clients of which is known what they have."""
MOST_FINDINGS = 10_000
"""Most findings that are known to be stored."""
MOST_HAD = 500
"""Most memories, and most other lines, that are known to be in one session; the oldest are forgotten."""

MOST_WAITING = 200
"""Recalls of a user that wait to be written together; with one more they are written at once."""

Beginning = Annotated[str, Meta(max_length=400)]
Giver = Literal[HookName, "recall"]
"""What gave something to an agent: a hook of its client, or an answer to `RecallContext`."""


class ClientSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a client: the client's name, its own id of the session, and the project of its folder."""

    client: str
    session: str
    project: str


class GivenMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was put into a session's context.

    Attributes:
        version: The version that was given.
        score: Its chance of being an answer, 0 to 1; None where nothing was ranked.
        signals: What made the score, by name.
        marks: Digests of words that tell it from others, by which a use of it is seen.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None = None
    signals: dict[str, float] = msgspec.field(default_factory=dict)
    marks: list[int] = msgspec.field(default_factory=list)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a hook gave.

    Attributes:
        query: How the prompt begins that it was for, without secrets; empty where there was none.
        lines: Digests of the lines that are no memories.
        tokens: What it cost, about.
        partial: Whether words alone decided.
        least: The least chance, or relevance, that a memory had to have; None where none was asked for.
        left_out: How many memories that were found were not given, by the reason.
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


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier session of a client.

    Attributes:
        began: When it was first heard of.
        last: When it was last heard of.
        ended: When it ended, if it said so.
        reason: Why it ended, in the client's word.
        request: How the person's last request begins, without secrets.
    """

    client: str
    session: str
    began: datetime
    last: datetime
    ended: datetime | None
    reason: str
    request: str


class HookState(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `LookUpSession`.

    Attributes:
        taken: Whether the event that was asked about is taken.
        memories: The versions of the memories that the session has, by their ids.
        lines: Digests of the other lines that it has.
        open: What was given to it of which no use was seen, by the number of its row.
        earlier: The project's sessions before it, the newest first.
        findings: Those of the findings that were asked about that are not stored yet.
        carried: What of the session's turns before matters for those to come.
    """

    taken: bool = False
    memories: dict[str, int] = msgspec.field(default_factory=dict)
    lines: list[int] = msgspec.field(default_factory=list)
    open: list[tuple[int, datetime, GivenMemory]] = msgspec.field(default_factory=list)
    earlier: list[Earlier] = msgspec.field(default_factory=list)
    findings: list[str] = msgspec.field(default_factory=list)
    carried: list[Turn] = msgspec.field(default_factory=list)


class LookUpSession(Message[HookState], frozen=True, kw_only=True):
    """Ask what a client's session has, and what else is known before an event of it is worked on.

    Attributes:
        findings: Keys of memories that the event would make.
    """

    of: ClientSession
    event_id: str = ""
    findings: list[str] = msgspec.field(default_factory=list)


class LastSessions(Message[list[Earlier]], frozen=True, kw_only=True):
    """Ask which sessions of a project were heard of last, those with a request and the newest first."""

    project: str


class NoteGiven(Message[None], frozen=True, kw_only=True):
    """Note that something was given to a session; without a memory or a line only that it asked.

    Attributes:
        fresh: Whether the session has nothing of what it was given before.
    """

    of: ClientSession
    at: datetime
    given: Given
    fresh: bool = False


class NoteRecalled(Message[None], frozen=True, kw_only=True):
    """Note that a recall was answered; it is written later, with others, and a crash until then loses it.

    Attributes:
        task: How the task begins that it was for; secrets in it are left out when it is kept.
    """

    task: Beginning
    memories: list[GivenMemory]
    tokens: int
    partial: bool
    left_out: dict[str, int]


class WriteRecalled(Message[None], frozen=True, kw_only=True):
    """The actor's word to itself: write down the recalls that wait."""


class NoteTaken(Message[None], frozen=True, kw_only=True):
    """Note that an event is taken: all that it tells is stored.

    Attributes:
        ended: Why the session ended; None while it goes on.
        request: How the person's last request begins, if there is one.
        used: Memories whose use was seen: the number of the ledger's row, and the id.
        findings: Keys of the memories that it made.
        carried: As in `HookState`, from now on.
    """

    of: ClientSession
    event_id: str
    at: datetime
    ended: str | None = None
    request: Beginning = ""
    used: list[tuple[int, str]] = msgspec.field(default_factory=list)
    findings: list[str] = msgspec.field(default_factory=list)
    carried: list[Turn] = msgspec.field(default_factory=list)


class ForgetOldHooks(Message[None], frozen=True, kw_only=True):
    """The actor's word to itself: a day went by."""


class ReadGiven(Message["GivenRead"], frozen=True, kw_only=True):
    """Read the ledger, newest first.

    Attributes:
        session: Only what was given to the client's session of this id, or one that begins so.
        agent: Only what was given to this agent.
        by: Only what this gave.
        memory_id: Only what this memory was a part of.
        number: Only this row.
        before: Only older rows than that of this number.
    """

    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20
    agent: str = ""
    by: Giver | None = None
    memory_id: str = ""
    number: int | None = None
    before: int | None = None


class MemoryGiven(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in the ledger; ``used`` is when a use of it was seen.

    Attributes:
        key: As the reader sees it now; empty if it is forgotten, or hidden from the reader.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None
    signals: dict[str, float]
    used: datetime | None


class GivenView(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger: what was given to whom, when and why.

    Attributes:
        number: By which it is found again.
        least: As in `Given`, as ``left_out``.
    """

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
    """Answers `ReadGiven`; ``total`` is how many rows fit."""

    given: list[GivenView]
    total: int


class ToldMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that an agent was told, as in `MemoryGiven`.

    Attributes:
        now: What it is now; null if it is forgotten, or hidden from the reader.
    """

    memory_id: str
    version: int
    namespace: str
    score: float | None
    signals: dict[str, float]
    used: datetime | None
    now: KnownMemory | None


class TellingView(msgspec.Struct, frozen=True, kw_only=True):
    """What was told at one time: to whom, by what, and why, as in `GivenView`.

    Attributes:
        source: The hook, or ``recall``: of that nobody knows whether it was used.
        kept_as: The id under which the client's session is kept, if it is; empty where there is none.
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
    """Answers `ListTold`; ``total`` is how many there are on all pages."""

    told: list[TellingView]
    total: int
    next_cursor: str | None


# -- to a session -------------------------------------------------------


class KeptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as a session keeps it.

    Attributes:
        words: What other agents of the user may be told of it: what the person typed, the model's last words
            of a turn, errors of tools, a line each; None where that is nothing.
    """

    role: str
    text: str
    at: datetime | None = None
    words: str | None = None


class LookAtKept(Message[Offer | None], frozen=True, kw_only=True):
    """Ask what an agent of the same user would be told of a session that hooks keep; None if nothing."""

    project_id: str


class KeepTurns(Message[None], frozen=True, kw_only=True):
    """Keep turns of a client's session, which begins with the first of them; a repeat keeps nothing.

    Attributes:
        files: Files that were worked with, and how often; a written one counts twice.
        ends: Whether the client's session is over.
        compacted: When the client had its model's context made shorter, if this tells of that.
        reason: Why, in the client's word.
    """

    event_id: str
    of: ClientSession
    purpose: str
    turns: list[KeptTurn]
    files: list[tuple[str, int]] = msgspec.field(default_factory=list)
    ends: bool = False
    compacted: datetime | None = None
    reason: str = ""


class ReadOwnWork(Message[SessionContext | None], frozen=True, kw_only=True):
    """Read a session's context as far as the asker's user made it; None if it is hidden or another's."""
