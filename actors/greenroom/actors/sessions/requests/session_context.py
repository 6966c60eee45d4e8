"""Requests about the work context of a session: files, searches, decisions, where the work stands."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types
from greenroom.actors.core.replies.replies import Continued, Reply, ToolCall, UnlistedCall
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Message

MOST_GIVEN = 100
"""The most entries of each kind in one request."""
ToolName = Annotated[str, Meta(min_length=1, max_length=100)]
ToolId = Annotated[ToolName, Meta(description="such as cursor or zed; default this client")]
WorkspacePath = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="folder of the project; tells the project")
]

Line = Annotated[str, Meta(min_length=1, max_length=500)]
Paragraph = Annotated[str, Meta(min_length=1, max_length=2_000)]
WorkStatus = Literal["active", "blocked", "done"]
MigrationOutcome = Literal["started", "handed_over", "resumed", "exported", "restored", "reopened"]


class FileUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that was read or changed.

    Without ``importance``, the number of uses determines how important the file is.
    """

    path: Annotated[str, Meta(min_length=1, max_length=1_024)]
    importance: Annotated[memory_types.Fraction | None, Meta(description="0-1")] = None
    note: Line | None = None


class DecisionMade(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision and its reason."""

    what: Paragraph
    why: Paragraph | None = None


class WorkflowState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of the work: task, current step, next steps, blockers."""

    task: Line
    step: Line | None = None
    status: WorkStatus = "active"
    next: Annotated[list[Line], Meta(max_length=50)] = []
    blockers: Annotated[list[Line], Meta(max_length=50)] = []


Files = Annotated[list[FileUse], Meta(max_length=MOST_GIVEN, description="files you read or changed")]
Searches = Annotated[list[Line], Meta(max_length=MOST_GIVEN, description="made outside of this server")]
Decisions = Annotated[list[DecisionMade], Meta(max_length=MOST_GIVEN, description="what was chosen, and why")]


# -- the context; the same limits hold for passports and requests -------------

MOST_FILES = 200
"""The most entries of each kind in a context."""
MOST_SEARCHES = 100
MOST_MEMORIES = 500
MOST_DECISIONS = 200
MOST_MIGRATIONS = 200
_Path = Annotated[str, Meta(max_length=1_024)]
_Short = Annotated[str, Meta(max_length=100)]
_Named = Annotated[str, Meta(max_length=1_024)]
_Uses = Annotated[int, Meta(ge=0, le=1_000_000_000)]


_Former = Annotated[int | UnsetType, Meta(extra_json_schema=types.UNLISTED)]
_OLDER_NAMES = {
    "files": "files_accessed",
    "searches": "recent_searches",
    "workflow": "workflow_state",
}


def _move_renamed_fields(struct: msgspec.Struct) -> None:
    """Move the values of renamed fields: older passports and stored replies have the older names."""
    for before, today in _OLDER_NAMES.items():
        value = getattr(struct, before, UNSET)
        if value is not UNSET:
            msgspec.structs.force_setattr(struct, today, value)
            msgspec.structs.force_setattr(struct, before, UNSET)


class FileView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a context, with the number of its uses."""

    path: _Path
    importance: memory_types.Fraction
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


SUMMARY_REASON: Final = "the session ended with this summary"
"""The reason (``why``) in the decision that has the summary of `EndSession`."""


class DecisionView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision of a context, and which agent recorded it."""

    what: Paragraph
    why: Paragraph | None
    at: types.Instant
    by: _Short


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of the work, with the agent and time of the last change."""

    task: Line
    step: Line | None
    status: WorkStatus
    next: Annotated[list[Line], Meta(max_length=50)]
    blockers: Annotated[list[Line], Meta(max_length=50)]
    at: types.Instant
    by: _Short


_FilesSeen = Annotated[list[FileView], Meta(max_length=MOST_FILES)]
_SearchesSeen = Annotated[list[SearchView], Meta(max_length=MOST_SEARCHES)]


class SessionContext(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The work context of a session: files, searches, memories, decisions, state of the work.

    Files are ordered by importance, everything else newest first.

    Attributes:
        files_accessed: Files of the reader's user only; so are ``recent_searches`` and ``memories``.
        decisions: Decisions of the whole session; ``workflow_state`` belongs to the whole session, too.
        files: The older name of ``files_accessed``, which is read but never written. ``searches`` and
            ``workflow`` are older names, too.
    """

    files_accessed: _FilesSeen = []
    recent_searches: _SearchesSeen = []
    memories: Annotated[list[MemoryUse], Meta(max_length=MOST_MEMORIES)] = []
    decisions: Annotated[list[DecisionView], Meta(max_length=MOST_DECISIONS)] = []
    workflow_state: WorkflowView | None = None
    files: Annotated[_FilesSeen | UnsetType, Meta(extra_json_schema=types.UNLISTED)] = UNSET
    searches: Annotated[_SearchesSeen | UnsetType, Meta(extra_json_schema=types.UNLISTED)] = UNSET
    workflow: Annotated[WorkflowView | UnsetType | None, Meta(extra_json_schema=types.UNLISTED)] = UNSET

    def __post_init__(self) -> None:
        """Move the values of renamed fields."""
        _move_renamed_fields(self)


class Migration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A migration of a session between tools; ``server`` names its origin, if another server."""

    from_tool: _Short | None
    to_tool: _Short | None
    at: types.Instant
    outcome: MigrationOutcome
    by: _Short
    session_id: _Named
    server: _Short | None = None
    note: Line | None = None


BriefContext = Annotated[SessionContext, Meta(extra_json_schema=types.BRIEF)]
"""A context whose schema is listed without its members."""
BriefMigration = Annotated[Migration, Meta(extra_json_schema=types.BRIEF)]


class TalkView(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages that the reader may see, and the calls that read them.

    Attributes:
        rest: The call that reads the newest message in full, if the briefing truncates it.
        earlier: The call that reads the messages of the session that this one continues.
    """

    messages: int = 0
    last_at: datetime | None = None
    read: ToolCall | None = None
    rest: UnlistedCall = UNSET
    earlier: UnlistedCall = UNSET


BriefTalk = Annotated[TalkView, Meta(extra_json_schema=types.BRIEF)]


class ContextRecorded(Reply, frozen=True, kw_only=True):
    """Answers `RecordContext`: the number of entries of each kind in the caller's context."""

    session_id: str
    files_accessed: int = 0
    recent_searches: int = 0
    decisions: int
    recorded_at: datetime
    files: _Former = UNSET
    searches: _Former = UNSET

    def __post_init__(self) -> None:
        """Move the values of renamed fields."""
        _move_renamed_fields(self)


@operation(
    "record_context",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="Record context",
        description="Keep on the session's record, for the next agent or whoever follows you, "
        "which files you opened, touched or changed, what you searched for, what you "
        "chose and why, how far you got, what is done and what remains. Save it often, "
        "as handover notes: you may be cut off.",
    ),
    after_notes=True,
)
class RecordContext(Message[ContextRecorded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Record files, searches, decisions and the state of the work."""

    session_id: types.OrCurrent | None = None
    files_accessed: Files = msgspec.field(default_factory=list)
    recent_searches: Searches = msgspec.field(default_factory=list)
    decisions: Decisions = msgspec.field(default_factory=list)
    workflow_state: Annotated[WorkflowState | None, Meta(description="the step and progress")] = None
    idempotency_key: types.IdempotencyKey | None = None


class ContextRead(Reply, frozen=True, kw_only=True):
    """Answers `GetSessionContext`.

    Attributes:
        briefing: The context and the conversation as text for the caller's tool; data, not instructions.
        tool: The tool that the session is in; None if no tool started it.
    """

    purpose: str
    briefing: str
    talk: BriefTalk = TalkView()
    session_id: str
    continues: Continued = UNSET
    status: types.SessionStatus
    project_id: str | None
    workspace_path: str | None
    tool: str | None
    original_tool: str | None
    started_at: datetime
    context: BriefContext
    migrations: list[BriefMigration]


@operation(
    "get_session_context",
    scope="sessions:read",
    route="session",
    tool=ToolText(
        title="Get session context",
        description="Look at what a session keeps of the work: files, searches, decisions, "
        "workflow state, and its way between tools.",
        weight=1,
    ),
    after_notes=True,
)
class GetSessionContext(Message[ContextRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read the work context of a session."""

    session_id: types.OrCurrent | None = None
    tool_id: ToolId | None = None


class SessionEnded(Reply, frozen=True, kw_only=True):
    """Answers `EndSession`."""

    session_id: str
    status: types.SessionStatus
    ended_at: datetime
    files_accessed: int = 0
    recent_searches: int = 0
    decisions: int
    files: _Former = UNSET
    searches: _Former = UNSET

    def __post_init__(self) -> None:
        """Move the values of renamed fields."""
        _move_renamed_fields(self)


@operation(
    "end_session",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="End session",
        description="Close the session when all is done: finish, close it down, shut it, wrap the "
        "work up, say what the result is. It stays readable.",
        overwrites=True,
        repeatable=True,
    ),
    after_notes=True,
)
class EndSession(Message[SessionEnded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Terminate a session; it stays readable and can still be exported."""

    session_id: types.OrCurrent | None = None
    summary: Annotated[Paragraph | None, Meta(description="the result")] = None
    idempotency_key: types.IdempotencyKey | None = None


class ListDecisions(Message[list[DecisionView]], frozen=True, kw_only=True):
    """List the decisions of a session, newest first."""


class NotedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read, and the number of reads."""

    path: str
    uses: int = 1


class NotedSearch(msgspec.Struct, frozen=True, array_like=True):
    """A search; if ``is_private``, only this agent sees it, not other agents of the user."""

    query: str
    tool: str
    is_private: bool = False


class NotedMemory(msgspec.Struct, frozen=True, array_like=True):
    """A memory that was stored."""

    memory_id: str
    key: str
    namespace: str


class NoteContext(Message[None], frozen=True, kw_only=True):
    """Report the files, searches and memories that the server observed.

    A closed or hidden session ignores the report.

    Attributes:
        files: In the order of last use; ``searches`` and ``memories`` are in the same order.
        search: Older processes send one search, or one memory, instead of the lists.
    """

    files: list[NotedFile] = msgspec.field(default_factory=list)
    searches: list[NotedSearch] = msgspec.field(default_factory=list)
    memories: list[NotedMemory] = msgspec.field(default_factory=list)
    search: str | None = None
    tool: str = ""
    memory_id: str | None = None
    key: str = ""
    namespace: str = ""
