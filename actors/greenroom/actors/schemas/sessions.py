"""Requests to a session. A field is a tool's parameter: its name, type, limit and default."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.auth.policy import VisibilityFilter
from greenroom.actors.schemas import replies, types
from greenroom.runtime import Message


class CreateSession(Message[replies.SessionCreated], frozen=True, kw_only=True):
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


class GetSession(Message[replies.SessionRead], frozen=True, kw_only=True):
    """Read a session with its newest visible messages."""

    session_id: types.SessionId


class UpdateSession(Message[replies.SessionUpdated], frozen=True, kw_only=True):
    """Change the status; merge top-level keys into metadata and state."""

    session_id: types.SessionId
    status: types.NewStatus | None = None
    metadata: types.Changes = msgspec.field(default_factory=types.no_fields)
    state: types.Changes = msgspec.field(default_factory=types.no_fields)
    idempotency_key: types.IdempotencyKey | None = None


class AddMessage(Message[replies.MessageAdded], frozen=True, kw_only=True):
    """Append a message."""

    session_id: types.SessionId
    content: types.Content
    visibility: types.SentVisibility = "public"
    message_type: types.MessageType = "agent_response"
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    parent_message_id: Annotated[types.MessageId, Meta(description="the message it replies to")] | None = None
    idempotency_key: types.IdempotencyKey | None = None


class GetMessages(Message[replies.MessagePage], frozen=True, kw_only=True):
    """Read visible messages, oldest first, in pages."""

    session_id: types.SessionId
    limit: types.Limit1000 = 50
    cursor: types.Cursor | None = None
    offset: types.Offset | None = None
    visibility_filter: Annotated[VisibilityFilter, Meta(description="of what visibility")] = "all"
    since_id: types.SinceId | None = None
    max_tokens: types.Budget | None = None


class SearchContext(Message[replies.SearchResults], frozen=True, kw_only=True):
    """Find messages by words, typing errors forgiven."""

    session_id: types.SessionId
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


class SearchBySender(Message[replies.SenderMessages], frozen=True, kw_only=True):
    """Read one sender's visible messages, newest first."""

    session_id: types.SessionId
    sender: types.Sender
    limit: types.Limit100 = 20
    max_tokens: types.Budget | None = None


class SearchByTimerange(Message[replies.TimeRangeMessages], frozen=True, kw_only=True):
    """Read the visible messages between two times, both included, oldest first."""

    session_id: types.SessionId
    start_time: types.Start
    end_time: types.LastTime
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None


class StatusOfSession(Message[types.SessionStatus | None], frozen=True, kw_only=True):
    """Ask a session for its status, None where the sender sees none; other requests depend on it."""
