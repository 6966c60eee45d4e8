"""Requests to a session. A field of a tool's request is its parameter: name, type, limit and default.

Those of the session service, from `AppendEvent` on, are no tools, so none of them is in `REQUESTS`.
"""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.policy import Visibility, VisibilityFilter
from greenroom.actors.core.replies import replies
from greenroom.actors.core.replies.memory_types import QueryVectors, TimeSpan
from greenroom.actors.core.replies.results_explained import ResultsOfMode, WhyThatResult
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
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


class GetSession(Message[replies.SessionRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a session with its newest visible messages."""

    session_id: types.OrCurrent | None = None


class UpdateSession(Message[replies.SessionUpdated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Change the status; merge top-level keys into metadata and state."""

    session_id: types.SessionId
    status: types.NewStatus | None = None
    metadata: types.Changes = msgspec.field(default_factory=types.no_fields)
    state: types.Changes = msgspec.field(default_factory=types.no_fields)
    idempotency_key: types.IdempotencyKey | None = None


class AddMessage(Message[replies.MessageAdded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Append a message."""

    session_id: types.OrCurrent | None = None
    content: types.Content
    visibility: types.SentVisibility = "public"
    message_type: types.MessageType = "agent_response"
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    parent_message_id: Annotated[types.MessageId, Meta(description="the one it answers")] | None = None
    idempotency_key: types.IdempotencyKey | None = None


class GetMessages(Message[replies.MessagePage], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read visible messages, oldest first, in pages."""

    session_id: types.OrCurrent | None = None
    limit: types.Limit1000 = 50
    cursor: types.Cursor | None = None
    offset: types.Offset | None = None
    visibility_filter: Annotated[VisibilityFilter, Meta(description="of what visibility")] = "all"
    since_id: types.SinceId | None = None
    max_tokens: types.Budget | None = None


class SearchContext(Message[replies.SearchResults], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find messages by words, typing errors forgiven, and by what they mean."""

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
    """Carry out a search with what its query means. Not a tool.

    Attributes:
        asked: The search.
        text: Its query without the times that it names in its own words; None: as it is.
        times: These times.
        vectors: The query's; None to go by words alone.
        absence: Why there are none, where another time there would be.
    """

    deed: ClassVar[str] = "search_context"
    asked: SearchContext
    text: str | None = None
    times: tuple[TimeSpan, ...] = ()
    vectors: QueryVectors | None = None
    absence: str | None = None


class ExplainMessages(Message["MessagesExplained"], frozen=True, kw_only=True):
    """Carry out a search and say why it finds what it finds. Not a tool: `ExplainSessionSearch` asks it.

    Attributes:
        asked: The search, with what its query means.
        about: A message to tell of, too; None for none.
    """

    asked: FindMessages
    about: int | None = None


class MessagesExplained(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExplainMessages`."""

    mode: ResultsOfMode
    about: WhyThatResult | None


class SearchBySender(Message[replies.SenderMessages], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read one sender's visible messages, newest first."""

    session_id: types.OrCurrent | None = None
    sender: types.Sender
    limit: types.Limit100 = 20
    max_tokens: types.Budget | None = None


class SearchByTimerange(
    Message[replies.TimeRangeMessages], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Read the visible messages between two times, both included, oldest first."""

    session_id: types.OrCurrent | None = None
    start_time: types.Start
    end_time: types.LastTime
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None


class StatusOfSession(Message[types.SessionStatus | None], frozen=True, kw_only=True):
    """Ask a session for its status, None where the sender sees none; other requests depend on it."""


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a reader that may see it gets it; ``content`` is the JSON object that was given."""

    event_id: str
    timestamp: datetime
    event_type: EventType
    actor: str
    content: msgspec.Raw
    is_final_response: bool
    visibility: Visibility


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A session at one moment; the events of that moment are those with ids up to ``newest_id``.

    Attributes:
        session: The session.
        newest_id: Which message or event is the newest that the caller may see; 0 for none.
        last_event_id: Which event is, messages of tools not counted; None for none.
        last_event_at: When that one happened.
    """

    session: replies.SessionView
    newest_id: int
    last_event_id: str | None = None
    last_event_at: datetime | None = None


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, oldest first; ``last_id`` is where the next page goes on, None at the end."""

    events: list[EventView]
    last_id: int | None


class StateValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a key of the state, or that there is none."""

    found: bool
    value: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class AppendEvent(Message[EventView], frozen=True, kw_only=True):
    """Append an event and merge the state's changes, or neither; a repeat of an event changes nothing.

    Attributes:
        whole: The JSON of the content where that is too large for a message; then ``content`` is what agents
            see in its place. Empty otherwise.
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
    """Changes of what sessions share: the state of one more session, which the first change makes.

    Attributes:
        session_id: The session that holds what is shared.
        app_name: The program that it belongs to.
        user_id: The user whose it is; None: everybody's.
        project_id: The project that it is in.
        changes: Keys and values that replace those of its state.
    """

    session_id: types.SessionId
    app_name: types.Name
    user_id: types.Name | None
    project_id: types.ProjectId | None
    changes: msgspec.Raw


class CreateSharing(Message[replies.SessionCreated], frozen=True, kw_only=True):
    """Make a session, and change with it what it shares with others: both or neither."""

    deed: ClassVar[str] = "create_session"
    session: CreateSession
    shared: list[SharedChange]


class EventAppended(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `AppendSharing`: whether the event is new, or was there."""

    is_new: bool


class AppendSharing(Message[EventAppended], frozen=True, kw_only=True):
    """Append an event, and change with it what the session shares with others: both or neither.

    Attributes:
        event: What is appended.
        shared: What follows with it; a repeat of an event changes nothing.
        after_event: The event that is to be the session's last one, as far as the caller sees, messages of
            tools not counted; empty where it is to have none. Otherwise it is a conflict.
    """

    deed: ClassVar[str] = "append_event"
    event: AppendEvent
    shared: list[SharedChange]
    after_event: str


class ChangeShared(Message[None], frozen=True, kw_only=True):
    """Tell the session that holds what others share of a change, and by which agent it is."""

    change: SharedChange
    by: str


class CheckShared(Message[None], frozen=True, kw_only=True):
    """Ask the session that holds what others share whether it takes a change, or would get too large."""

    change: SharedChange


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `DeleteSession`."""


class DeleteSession(Message[Deleted], frozen=True, kw_only=True):
    """Delete a session with all that is in it."""

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
    """Append all of some events or none; those that the session has already are passed over.

    Attributes:
        events: Of this session, without changes of its state.
    """

    session_id: types.SessionId
    events: tuple[AppendEvent, ...]


class GetNewestEvents(Message[EventPage], frozen=True, kw_only=True):
    """Read the newest events before an id, newest first.

    Attributes:
        before_id: None: from the end of the log.
        limit: How many are wanted, of which a page may have fewer; None: all.
        id_prefix: With what the ids of the events begin that count.
    """

    session_id: types.SessionId
    before_id: types.MessageId | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    id_prefix: str = ""


class EventsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """How many events were removed, and the newest of them."""

    count: int
    newest: EventView | None


class RemoveEvents(Message[EventsRemoved], frozen=True, kw_only=True):
    """Remove the newest events that the caller may see.

    Attributes:
        limit: How many; None: all.
        id_prefix: With what the ids of the events begin that count.
    """

    session_id: types.SessionId
    limit: Annotated[int, Meta(ge=1)] | None = None
    id_prefix: str = ""


class GetState(Message[StateValue], frozen=True, kw_only=True):
    """Read one key of the state."""

    session_id: types.SessionId
    key: str


class MeasureSession(Message[int], frozen=True, kw_only=True):
    """Ask how many bytes the contents of the messages have that the caller may see; not a tool."""
