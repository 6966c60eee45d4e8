"""Sessions that move between tools: requests, and the context of the work done in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.replies import Continued, Reply, ToolCall, UnlistedCall
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import transfer
from greenroom.runtime import Address, Message

MOST_GIVEN = 100
"""How much of each kind one request may record."""

ToolName = Annotated[str, Meta(min_length=1, max_length=100)]
ToolId = Annotated[ToolName, Meta(description="such as cursor or zed; default this client")]
WorkspacePath = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="folder of the project; tells the project")
]
SessionHere = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,128}(?!\n)$",
        extra={"takes": "1 to 128 characters of A-Z, a-z, 0-9, _ . -"},
    ),
]
Line = Annotated[str, Meta(min_length=1, max_length=500)]
Paragraph = Annotated[str, Meta(min_length=1, max_length=2_000)]
WorkStatus = Literal["active", "blocked", "done"]
MigrationOutcome = Literal["started", "handed_over", "resumed", "exported", "restored", "reopened"]


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


Files = Annotated[list[FileUse], Meta(max_length=MOST_GIVEN, description="files you read or changed")]
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


_Former = Annotated[int | UnsetType, Meta(extra_json_schema=types.UNLISTED)]
_CALLED_BEFORE = {
    "files": "files_accessed",
    "searches": "recent_searches",
    "workflow": "workflow_state",
}


def _call_anew(struct: msgspec.Struct) -> None:
    """Move what came by the names of older programs, in passports and answers that are kept."""
    for before, today in _CALLED_BEFORE.items():
        value = getattr(struct, before, UNSET)
        if value is not UNSET:
            msgspec.structs.force_setattr(struct, today, value)
            msgspec.structs.force_setattr(struct, before, UNSET)


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


AT_THE_END: Final = "the session ended with this summary"
"""The reason of a decision that is the summary of `EndSession`."""


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


_FilesSeen = Annotated[list[FileView], Meta(max_length=MOST_FILES)]
_SearchesSeen = Annotated[list[SearchView], Meta(max_length=MOST_SEARCHES)]


class SessionContext(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was worked with in a session: most important files first, newest of everything else first.

    Attributes:
        files_accessed: Of the reader's user alone, as are ``recent_searches`` and ``memories``.
        decisions: Of everybody who may see the session, as is ``workflow_state``.
        files: What older programs called ``files_accessed``; read and never written, as are ``searches`` and
            ``workflow``.
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
        """Call by today's names what came by those of before."""
        _call_anew(self)


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


class TalkView(msgspec.Struct, frozen=True, kw_only=True):
    """How much was said in a session, as far as the reader may see it, and how that is read.

    Attributes:
        messages: How many messages there are.
        last_at: When the newest was sent.
        read: The call that reads the newest of them, and leads further back; None where there are none.
        rest: The call that reads the newest whole, where it is so long that a briefing has its beginning.
        earlier: The call that reads the session that this one continues.
    """

    messages: int = 0
    last_at: datetime | None = None
    read: ToolCall | None = None
    rest: UnlistedCall = UNSET
    earlier: UnlistedCall = UNSET


BriefTalk = Annotated[TalkView, Meta(extra_json_schema=types.BRIEF)]


# -- messages to a session ---------------------------------------------


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the same user and project that can be taken up with `RestoreSession`.

    Attributes:
        tool: The one that it is in; who created it, where no tool started it.
        held: Whether another client works in it now.
        held_by: The agents of those clients.
        contents: What is in it, in words.
        has_words: Whether anything was said or noted down in it, besides what the server saw of the work.
        call: The call that goes on with it; for one that hooks keep, the call that gives its briefing.
    """

    session_id: str
    purpose: str
    status: types.SessionStatus
    tool: str
    last_used: datetime
    held: bool
    held_by: list[str] = []
    contents: str
    has_words: bool = True
    call: ToolCall | UnsetType = UNSET


def call_to_restore(session_id: str) -> ToolCall:
    """Return the call that goes on with a session, or gives its briefing."""
    return ToolCall(tool="start_session", arguments={"restore_from": session_id})


class TakenUp(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session comes from that was taken up."""

    from_tool: str
    last_used: datetime


BriefOffer = Annotated[Offer, Meta(extra_json_schema=types.BRIEF)]
BriefTakenUp = Annotated[TakenUp | None, Meta(extra_json_schema=types.BRIEF)]


class ContextRecorded(Reply, frozen=True, kw_only=True):
    """Answers `RecordContext`: how much of each kind the caller's context has now."""

    session_id: str
    files_accessed: int = 0
    recent_searches: int = 0
    decisions: int
    recorded_at: datetime
    files: _Former = UNSET
    searches: _Former = UNSET

    def __post_init__(self) -> None:
        """Call by today's names what an answer that was kept calls otherwise."""
        _call_anew(self)


class RecordContext(Message[ContextRecorded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Record what was worked with, what was decided, and where the work stands."""

    session_id: types.OrCurrent | None = None
    files_accessed: Files = msgspec.field(default_factory=list)
    recent_searches: Searches = msgspec.field(default_factory=list)
    decisions: Decisions = msgspec.field(default_factory=list)
    workflow_state: Annotated[WorkflowState | None, Meta(description="the step and progress")] = None
    idempotency_key: types.IdempotencyKey | None = None


class ContextRead(Reply, frozen=True, kw_only=True):
    """Answers `GetSessionContext`.

    Attributes:
        briefing: The context and the conversation in words, for the caller's tool, as data.
        talk: How much was said, and how that is read.
        continues: The session that had ended and that this one continues.
        tool: The tool that the session is in; None for one that no tool started.
        original_tool: The tool that it was started in.
        migrations: Its way between tools and servers, oldest first.
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


class GetSessionContext(Message[ContextRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read what a session keeps of the work done in it."""

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
        """Call by today's names what an answer that was kept calls otherwise."""
        _call_anew(self)


class SessionReopened(Reply, frozen=True, kw_only=True):
    """Answers `ReopenSession`; ``ended_at`` is when it had ended."""

    session_id: str
    status: types.SessionStatus
    reopened_at: datetime
    ended_at: datetime


class ReopenSession(Message[SessionReopened], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Open a session again that was terminated; what is in it is as it was, but for ``temp:`` state."""

    session_id: Annotated[SessionHere, Meta(description="a terminated one")]
    idempotency_key: types.IdempotencyKey | None = None


class EndSession(Message[SessionEnded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Terminate a session; what is in it stays readable, and it can still be exported."""

    session_id: types.OrCurrent | None = None
    summary: Annotated[Paragraph | None, Meta(description="the result")] = None
    idempotency_key: types.IdempotencyKey | None = None


# -- internal ----------------------------------------------------------


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A client that works in a session.

    Attributes:
        token: Tells it from others.
        at: When it began to (microseconds since 1970).
        is_connected: Whether it has a connection, which says how long it does.
        agent: Who it is; empty where an older program recorded it.
    """

    token: str
    at: int
    is_connected: bool
    agent: str = ""

    def topic(self, session_id: str) -> str:
        """Return the topic to which it is subscribed as long as it works there."""
        return f"held/{session_id}/{self.token}"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `StartHere`; without a ``session_id`` it could not be taken up.

    Attributes:
        at: When this was.
        offered: What else there is to be taken up.
        kept: What hooks keep besides.
        read: What is in the session, if it was taken up.
        taken_up: Where it comes from, then.
    """

    session_id: str | None
    project_id: str | None
    created_at: datetime | None
    at: datetime | None = None
    offered: list[Offer] = []
    kept: list[Offer] = []
    read: ContextRead | None = None
    taken_up: TakenUp | None = None


class StartHere(Message[Started], frozen=True, kw_only=True):
    """Begin a session here, or take this one up.

    Attributes:
        how: ``take_up`` leaves a session alone that somebody else holds or that has ended; ``resume`` one
            that has ended.
        purpose: None for one that nobody named.
        holder: Who starts.
        offered: What was found that can be taken up, this one included.
        kept: What was found that hooks keep.
    """

    deed: ClassVar[str] = "start_session"

    how: Literal["begin", "take_up", "resume"]
    tool: str
    holder: Holder
    purpose: types.Purpose | None = None
    project_id: str | None = None
    workspace_path: str | None = None
    offered: list[Offer] = msgspec.field(default_factory=list)
    kept: list[Offer] = msgspec.field(default_factory=list)


class ListDecisions(Message[list[DecisionView]], frozen=True, kw_only=True):
    """List what was decided in a session, newest first."""


class LookAtWork(Message[Offer | None], frozen=True, kw_only=True):
    """Find out what the asker would find in a session; None for one that is closed or has no work in it."""

    token: str


class HoldSession(Message[None], frozen=True, kw_only=True):
    """Word that a client works in a session from now on."""

    holder: Holder


class SweepSession(Message[None], frozen=True, kw_only=True):
    """The session's word to itself: an hour ago it was begun without a name."""


class LeaveSession(Message[None], frozen=True, kw_only=True):
    """Word that a client moved from this session to another one."""

    token: str


class NotedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read, and how often."""

    path: str
    uses: int = 1


class NotedSearch(msgspec.Struct, frozen=True, array_like=True):
    """A search; ``is_private``: for the agent alone, and not for others of its user."""

    query: str
    tool: str
    is_private: bool = False


class NotedMemory(msgspec.Struct, frozen=True, array_like=True):
    """A memory that was stored."""

    memory_id: str
    key: str
    namespace: str


class NoteContext(Message[None], frozen=True, kw_only=True):
    """Word of what an agent did through the server; a session that is closed or hidden passes it over.

    Attributes:
        files: In the order of their last use, as are ``searches`` and ``memories`` in theirs.
        search: What an older process says in the place of the lists: one search, or one memory.
    """

    files: list[NotedFile] = msgspec.field(default_factory=list)
    searches: list[NotedSearch] = msgspec.field(default_factory=list)
    memories: list[NotedMemory] = msgspec.field(default_factory=list)
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
        memories: Decides the import of memories that came along and are staged.
    """

    deed: ClassVar[str] = "migrate_session"

    to_tool: str
    outcome: MigrationOutcome
    note: str | None = None
    memories: transfer.ReleaseImport | None = None

    def precheck(self) -> tuple[Address, Message[transfer.ImportProgress | None]] | None:
        """Ask whether the memories are still there to be decided about."""
        return None if self.memories is None else transfer.staged_question(self.memories)
