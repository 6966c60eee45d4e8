"""Requests of the session service to a session. None of these is a tool, so none is in `REQUESTS`."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.auth.policy import Visibility
from greenroom.actors.schemas import replies, types
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
    """A session at one moment; the events of that moment are those with ids up to ``newest_id``."""

    session: replies.SessionView
    newest_id: int


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, oldest first; ``last_id`` is where the next page goes on, None at the end."""

    events: list[EventView]
    last_id: int | None


class StateValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a key of the state, or that there is none."""

    found: bool
    value: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class AppendEvent(Message[EventView], frozen=True, kw_only=True):
    """Append an event and merge the state's changes, or neither; a repeat of an event changes nothing."""

    session_id: types.SessionId
    event_id: EventId
    event_type: EventType
    actor: EventActor
    content: types.JsonObject
    timestamp: types.Instant | None = None
    is_final_response: bool = False
    visibility: types.SentVisibility = "public"
    state_delta: types.Changes = msgspec.field(default_factory=types.no_fields)


class TakeSnapshot(Message[Snapshot], frozen=True, kw_only=True):
    """Read a session without its events."""

    session_id: types.SessionId


class GetEvents(Message[EventPage], frozen=True, kw_only=True):
    """Read the events after one id up to another."""

    session_id: types.SessionId
    after_id: types.MessageId
    up_to_id: types.MessageId


class GetState(Message[StateValue], frozen=True, kw_only=True):
    """Read one key of the state."""

    session_id: types.SessionId
    key: str
