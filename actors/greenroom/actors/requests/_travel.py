"""Sessions that travel between tools: what is asked of them, and what they keep of the work done in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.requests import _memory_types as kinds
from greenroom.actors.requests import _types as types
from greenroom.actors.requests._replies import Reply
from greenroom.runtime import Message

MOST_GIVEN = 100
"""How much of each kind one request may record."""

ToolId = Annotated[
    str, Meta(min_length=1, max_length=100, description="such as cursor or zed; default this client")
]
WorkspacePath = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="folder of the project; tells the project")
]
ContextSession = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,128}(?!\n)$",
        description="default the one started here",
        extra={"takes": "1 to 128 characters of A-Z, a-z, 0-9, _ . -"},
    ),
]
Line = Annotated[str, Meta(min_length=1, max_length=500)]
Paragraph = Annotated[str, Meta(min_length=1, max_length=2_000)]
WorkStatus = Literal["active", "blocked", "done"]
MigrationOutcome = Literal["started", "handed_over", "resumed", "exported", "restored"]


class FileUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that was read or changed; without ``importance`` it follows from how often that was."""

    path: Annotated[str, Meta(min_length=1, max_length=1_024)]
    importance: Annotated[kinds.Fraction | None, Meta(description="0-1")] = None
    note: Line | None = None


class DecisionMade(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was decided, and why."""

    what: Paragraph
    why: Paragraph | None = None


class WorkflowState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the work stands: the task, the step it is at, what comes next, what it waits for."""

    task: Line
    step: Line | None = None
    status: WorkStatus = "active"
    next: Annotated[list[Line], Meta(max_length=50)] = []
    blockers: Annotated[list[Line], Meta(max_length=50)] = []


Files = Annotated[list[FileUse], Meta(max_length=MOST_GIVEN, description="read or changed")]
Searches = Annotated[list[Line], Meta(max_length=MOST_GIVEN, description="made outside of this server")]
Decisions = Annotated[list[DecisionMade], Meta(max_length=MOST_GIVEN, description="what was chosen, and why")]


# -- the context: its limits are those of what may be recorded, and bind what passports bring ------

MOST_FILES = 200
"""How much of each kind a context keeps."""
MOST_SEARCHES = 100
MOST_MEMORIES = 500
MOST_DECISIONS = 200
MOST_MIGRATIONS = 200

_Path = Annotated[str, Meta(max_length=1_024)]
_Short = Annotated[str, Meta(max_length=100)]
_Named = Annotated[str, Meta(max_length=1_024)]
_Uses = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class FileView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a context, with how often it was used."""

    path: _Path
    importance: kinds.Fraction
    uses: _Uses
    last_used: types.Instant
    note: Line | None = None


class SearchView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search of a context."""

    query: Line
    tool: _Short
    at: types.Instant


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory that was stored in the session."""

    memory_id: _Short
    key: _Named
    namespace: _Named
    at: types.Instant


class DecisionView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision of a context, and which agent recorded it."""

    what: Paragraph
    why: Paragraph | None
    at: types.Instant
    by: _Short


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the work stands, who said so last, and when."""

    task: Line
    step: Line | None
    status: WorkStatus
    next: Annotated[list[Line], Meta(max_length=50)]
    blockers: Annotated[list[Line], Meta(max_length=50)]
    at: types.Instant
    by: _Short


class SessionContext(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was worked with in a session: most important files first, newest of everything else first.

    Attributes:
        files: Of the reader's user alone, as are ``searches`` and ``memories``.
        decisions: Of everybody who may see the session, as is ``workflow``.
    """

    files: Annotated[list[FileView], Meta(max_length=MOST_FILES)] = []
    searches: Annotated[list[SearchView], Meta(max_length=MOST_SEARCHES)] = []
    memories: Annotated[list[MemoryUse], Meta(max_length=MOST_MEMORIES)] = []
    decisions: Annotated[list[DecisionView], Meta(max_length=MOST_DECISIONS)] = []
    workflow: WorkflowView | None = None


class Migration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step on a session's way between tools; ``server`` is where it came from, if not from here."""

    from_tool: _Short | None
    to_tool: _Short | None
    at: types.Instant
    outcome: MigrationOutcome
    by: _Short
    session_id: _Named
    server: _Short | None = None
    note: Line | None = None


BriefContext = Annotated[SessionContext, Meta(extra_json_schema=types.BRIEF)]
"""A context in an answer, which is listed without its insides."""
BriefMigration = Annotated[Migration, Meta(extra_json_schema=types.BRIEF)]


# -- messages to a session ---------------------------------------------


class ContextRecorded(Reply, frozen=True, kw_only=True):
    """Answers `RecordContext`: how much of each kind the caller's context has now."""

    session_id: str
    files: int
    searches: int
    decisions: int
    recorded_at: datetime


class RecordContext(Message[ContextRecorded], frozen=True, kw_only=True):
    """Record what was worked with, what was decided, and where the work stands."""

    session_id: ContextSession | None = None
    files: Files = msgspec.field(default_factory=list)
    searches: Searches = msgspec.field(default_factory=list)
    decisions: Decisions = msgspec.field(default_factory=list)
    workflow: Annotated[WorkflowState | None, Meta(description="where the work stands")] = None
    idempotency_key: types.IdempotencyKey | None = None


class ContextRead(Reply, frozen=True, kw_only=True):
    """Answers `GetSessionContext`.

    Attributes:
        tool: The tool that the session is in; None for one that no tool started.
        original_tool: The tool that it was started in.
        migrations: Its way between tools and servers, oldest first.
        briefing: The context in words, for the caller's tool.
    """

    session_id: str
    purpose: str
    status: types.SessionStatus
    project_id: str | None
    workspace_path: str | None
    tool: str | None
    original_tool: str | None
    started_at: datetime
    context: BriefContext
    migrations: list[BriefMigration]
    briefing: str


class GetSessionContext(Message[ContextRead], frozen=True, kw_only=True):
    """Read what a session keeps of the work done in it."""

    session_id: ContextSession | None = None
    tool_id: ToolId | None = None


class SessionEnded(Reply, frozen=True, kw_only=True):
    """Answers `EndSession`."""

    session_id: str
    status: types.SessionStatus
    ended_at: datetime
    files: int
    searches: int
    decisions: int


class EndSession(Message[SessionEnded], frozen=True, kw_only=True):
    """Terminate a session; what is in it stays readable, and it can still be exported."""

    session_id: ContextSession | None = None
    summary: Annotated[Paragraph | None, Meta(description="what came out")] = None
    idempotency_key: types.IdempotencyKey | None = None


# -- internal ----------------------------------------------------------


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `BeginSession`."""

    session_id: str
    project_id: str | None
    created_at: datetime


class BeginSession(Message[Begun], frozen=True, kw_only=True):
    """Make a session that a tool works in."""

    deed: ClassVar[str] = "start_session"

    purpose: types.Purpose
    tool: str
    project_id: str | None
    workspace_path: str | None


class NoteContext(Message[None], frozen=True, kw_only=True):
    """Word of what an agent did through the server; a session that is closed or hidden passes it over."""

    search: str | None = None
    tool: str = ""
    memory_id: str | None = None
    key: str = ""
    namespace: str = ""


class Move(Message[ContextRead], frozen=True, kw_only=True):
    """Hand a session over to another tool, or take it up there.

    Attributes:
        to_tool: Where it goes.
        outcome: What is logged; ``resumed`` makes ``to_tool`` the session's tool.
    """

    deed: ClassVar[str] = "migrate_session"

    to_tool: str
    outcome: MigrationOutcome
    note: str | None = None
