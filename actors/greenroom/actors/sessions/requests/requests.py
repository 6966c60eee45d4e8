"""Requests to a session.

Each field of a tool's request is a parameter of the tool: name, type, limit and default.

Requests of the session service, from `AppendEvent` on, are not tools, so `REQUESTS` does not list them.
"""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.auth.policy import Visibility, VisibilityFilter
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import replies
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.core.replies.results_explained import ResultsOfMode, WhyThatResult
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.runtime import Message

EventType = Literal["message", "action", "tool_call", "reflection"]
EventId = Annotated[str, Meta(min_length=1, max_length=255)]
EventActor = Annotated[
    str,
    Meta(
        pattern=r"^(user|system|agent:[A-Za-z0-9_.-]{1,100})(?!\n)$",
        extra={"takes": "user, system, or agent: and an agent's id"},
    ),
]


@operation(
    "create_session",
    scope="sessions:write",
    route="session",
    makes_id=True,
    tool=ToolText(
        title="Create session",
        description="Make a shared session under an id of your choice. To begin or take over work: "
        "start_session.",
    ),
)
class CreateSession(Message[replies.SessionCreated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Make a session; the caller becomes ``created_by``."""

    purpose: types.Purpose
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    session_id: Annotated[types.SessionId | None, Meta(description="an id of yours")] = None
    app_name: Annotated[types.Name | None, Meta(description="the program it belongs to")] = None
    user_id: types.UserId | None = None
    project_id: types.ProjectId | None = None
    initial_state: Annotated[types.GivenObject, Meta(description="its first state")] = msgspec.field(
        default_factory=types.no_fields
    )
    idempotency_key: types.IdempotencyKey | None = None


@operation(
    "get_session",
    scope="sessions:read",
    route="session",
    tool=ToolText(
        title="Get session",
        description="Look at one session: its purpose and status, who takes part, is it still "
        "open, how many messages it holds, when it was last used.",
        weight=4,
    ),
)
class GetSession(Message[replies.SessionRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a session with its newest visible messages."""

    only_reads: ClassVar[bool] = True

    session_id: types.OrCurrent | None = None


@operation(
    "update_session",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="Update session",
        description="Change a session's status, metadata or state, for example to pause or terminate it.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
    after_notes=True,
)
class UpdateSession(Message[replies.SessionUpdated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Change the status; merge top-level keys into metadata and state."""

    session_id: types.SessionId
    status: types.NewStatus | None = None
    metadata: types.Changes = msgspec.field(default_factory=types.no_fields)
    state: types.Changes = msgspec.field(default_factory=types.no_fields)
    idempotency_key: types.IdempotencyKey | None = None


class SessionRenamed(replies.Reply, frozen=True, kw_only=True):
    """Answers `RenameSession`."""

    session_id: str
    purpose: str


@operation(
    "rename_session",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="Rename session",
        description="Give a session another name: say anew what it is for.",
        overwrites=True,
        repeatable=True,
    ),
)
class RenameSession(Message[SessionRenamed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Replace a session's purpose; messages do not rename it afterwards."""

    session_id: types.SessionId
    purpose: types.Purpose
    idempotency_key: types.IdempotencyKey | None = None


@operation(
    "add_message",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="Add message",
        description="Tell the other agents who work with you, such as a planner, tester or "
        "reviewer: let them know, warn, ask or answer a question, reply, pass on, "
        "report or post results for everybody here.",
    ),
)
class AddMessage(Message[replies.MessageAdded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Append a message."""

    session_id: types.OrCurrent | None = None
    content: types.Content
    visibility: types.SentVisibility = "public"
    message_type: types.MessageType = "agent_response"
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    parent_message_id: Annotated[types.MessageId, Meta(description="the one it answers")] | None = None
    idempotency_key: types.IdempotencyKey | None = None


@operation(
    "get_messages",
    scope="sessions:read",
    route="session",
    tool=ToolText(
        title="Get messages",
        description="Read what was said in a session, the whole conversation in order: from the "
        "start, the latest replies, or with since_id the new ones: what has come in, "
        "who has answered, what others have written since you last looked.",
        weight=4,
    ),
)
class GetMessages(Message[replies.MessagePage], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read visible messages, oldest first, in pages."""

    only_reads: ClassVar[bool] = True

    session_id: types.OrCurrent | None = None
    limit: types.Limit1000 = 50
    cursor: types.Cursor | None = None
    offset: types.Offset | None = None
    visibility_filter: Annotated[VisibilityFilter, Meta(description="of what visibility")] = "all"
    since_id: types.SinceId | None = None
    max_tokens: types.Budget | None = None


@operation(
    "search_context",
    scope="sessions:read",
    tool=ToolText(
        title="Search session",
        description="Find the place in a conversation or chat where something was said: who said, "
        "mentioned, discussed, proposed or talked about it, brought it up, or what you "
        "saw in this session earlier. For all that is known: memory_search.",
        weight=4,
    ),
)
class SearchContext(Message[replies.SearchResults], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find messages by words, tolerating typing errors, and by meaning."""

    session_id: types.OrCurrent | None = None
    query: types.SearchText
    fuzzy_threshold: types.Score = 60
    limit: types.Limit100 = 10
    search_metadata: Annotated[bool, Meta(description="in metadata, too")] = True
    search_scope: Annotated[Literal["all", "public", "private"], Meta(description="of what visibility")] = (
        "all"
    )
    recent_hours: types.Hours | None = 24
    max_rows_scanned: types.Rows | None = 1000
    max_tokens: types.Budget | None = None


class FindMessages(Message[replies.SearchResults], frozen=True, kw_only=True):
    """Run a search with its interpreted query; not a tool.

    ``text`` is the query without the times that it names; None means the whole query.
    """

    audit_action: ClassVar[str] = "search_context"
    asked: SearchContext
    text: str | None = None
    times: tuple[TimeSpan, ...] = ()
    vectors: QueryVectors | None = None
    absence: str | None = None


class ExplainMessages(Message["MessagesExplained"], frozen=True, kw_only=True):
    """Run a search and explain its results; `ExplainSessionSearch` sends it."""

    asked: FindMessages
    about: int | None = None


class MessagesExplained(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExplainMessages`."""

    damaged: Damaged | UnsetType = UNSET

    mode: ResultsOfMode
    about: WhyThatResult | None


@operation(
    "search_by_sender",
    scope="sessions:read",
    route="session",
    tool=ToolText(
        title="Search by sender",
        description="Read what one agent wrote in a session, newest first.",
        weight=4,
    ),
)
class SearchBySender(Message[replies.SenderMessages], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read one sender's visible messages, newest first."""

    only_reads: ClassVar[bool] = True

    session_id: types.OrCurrent | None = None
    sender: types.Sender
    limit: types.Limit100 = 20
    max_tokens: types.Budget | None = None


@operation(
    "search_by_timerange",
    scope="sessions:read",
    route="session",
    tool=ToolText(
        title="Search by time",
        description="Read what was written in a session between two times, oldest first.",
        weight=4,
    ),
)
class SearchByTimerange(
    Message[replies.TimeRangeMessages], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Read the visible messages between two times, both included, oldest first."""

    only_reads: ClassVar[bool] = True

    session_id: types.OrCurrent | None = None
    start_time: types.Start
    end_time: types.LastTime
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a reader gets it; ``content`` is the JSON object that was sent."""

    event_id: str
    timestamp: datetime
    event_type: EventType
    actor: str
    content: msgspec.Raw
    is_final_response: bool
    visibility: Visibility


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A session at one moment; ``newest_id`` is its newest event, or 0 without events.

    The last event is the last one that is not a message of a tool.
    """

    damaged: Damaged | UnsetType = UNSET

    session: replies.SessionView
    newest_id: int
    last_event_id: str | None = None
    last_event_at: datetime | None = None


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events in the requested order; ``last_id`` continues it, None at the end."""

    damaged: Damaged | UnsetType = UNSET

    events: list[EventView]
    last_id: int | None


class StateValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of one key of the state; ``found`` says whether the key exists."""

    found: bool
    value: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class AppendEvent(Message[EventView], frozen=True, kw_only=True):
    """Append an event and merge its changes of state atomically; a repeat changes nothing.

    ``whole`` is the JSON of a content that is too large for a message, and empty for any other content. If it
    is set, agents see the text in ``content`` instead.
    """

    session_id: types.SessionId
    event_id: EventId
    event_type: EventType
    actor: EventActor
    content: types.JsonObject
    timestamp: types.Instant | None = None
    is_final_response: bool = False
    visibility: types.SentVisibility = "public"
    state_delta: types.Changes = msgspec.field(default_factory=types.no_fields)
    whole: bytes = b""


class SharedChange(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of shared state, which another session holds; the first change creates that session.

    ``user_id`` is the user who owns the state; None if it belongs to all users.
    """

    session_id: types.SessionId
    app_name: types.Name
    user_id: types.Name | None
    project_id: types.ProjectId | None
    changes: msgspec.Raw


class CreateSharing(Message[replies.SessionCreated], frozen=True, kw_only=True):
    """Create a session and change its shared state atomically."""

    audit_action: ClassVar[str] = "create_session"
    session: CreateSession
    shared: list[SharedChange]


class EventAppended(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `AppendSharing`: whether the event is new."""

    is_new: bool


class AppendSharing(Message[EventAppended], frozen=True, kw_only=True):
    """Append an event and change the session's shared state atomically.

    ``after_event`` is the id of the expected last visible event, not counting messages of tools; empty if no
    event is expected. If another event is the last one, this is a conflict.
    """

    audit_action: ClassVar[str] = "append_event"
    event: AppendEvent
    shared: list[SharedChange]
    after_event: str


class ChangeShared(Message[None], frozen=True, kw_only=True):
    """Report a change, and its agent, to the session that holds the shared state."""

    change: SharedChange
    by: str


class CheckShared(Message[None], frozen=True, kw_only=True):
    """Check that the session that holds the shared state accepts a change."""

    change: SharedChange


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `DeleteSession`."""


class DeleteSession(Message[Deleted], frozen=True, kw_only=True):
    """Delete a session with all its contents."""

    session_id: types.SessionId


class TakeSnapshot(Message[Snapshot], frozen=True, kw_only=True):
    """Read a session without its events."""

    session_id: types.SessionId


class GetEvents(Message[EventPage], frozen=True, kw_only=True):
    """Read the events after one id up to another."""

    session_id: types.SessionId
    after_id: types.MessageId
    up_to_id: types.MessageId


class AppendEvents(Message[None], frozen=True, kw_only=True):
    """Append several events atomically; events that exist are skipped."""

    session_id: types.SessionId
    events: tuple[AppendEvent, ...]


class GetNewestEvents(Message[EventPage], frozen=True, kw_only=True):
    """Read the newest events before an id, newest first, at most ``limit``."""

    session_id: types.SessionId
    before_id: types.MessageId | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    id_prefix: str = ""


class EventsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The number of removed events, and the newest of them."""

    count: int
    newest: EventView | None


class RemoveEvents(Message[EventsRemoved], frozen=True, kw_only=True):
    """Remove the newest events that the caller may see; without a limit, all of them."""

    session_id: types.SessionId
    limit: Annotated[int, Meta(ge=1)] | None = None
    id_prefix: str = ""


class GetState(Message[StateValue], frozen=True, kw_only=True):
    """Read one key of the state."""

    session_id: types.SessionId
    key: str


class MeasureSession(Message[int], frozen=True, kw_only=True):
    """Return the bytes of the contents of all visible messages; not a tool."""
