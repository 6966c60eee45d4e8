"""The payload of a passport, and messages of sessions that export and import it.

An import is atomic: pieces of messages are *staged* where no reader sees them, and one commit creates the
session from them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.policy import Visibility
from greenroom.actors.core.validation import types
from greenroom.actors.memories.requests import transfer
from greenroom.actors.sessions.requests import requests, session_context
from greenroom.runtime import Address, Message

PIECE_BYTES = 262_144
"""The approximate size of a piece of messages, which one turn of the actor reads or writes."""

AgentType = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}(?!\n)$")]
Attempt = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]


class PayloadEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The event part of a message of the session service.

    ``is_json`` says whether the content of the message is the event's JSON.
    """

    event_id: requests.EventId
    at: types.Instant
    event_type: requests.EventType
    actor: requests.EventActor
    is_final_response: bool
    is_json: bool


class PayloadMessage(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A message as the exporter sees it.

    Attributes:
        message_id: An import does not change it: ids ascend within a session and fit their times.
        agent_type: The type of agents that may read an ``agent_only`` message; an import adds no readers.
        parent_message_id: The message that it answers, if the exporter may see that message, too.
    """

    message_id: types.MessageId
    timestamp: types.Instant
    sender: types.Sender
    content: Annotated[str, Meta(min_length=1, max_length=1_048_576)]
    message_type: types.MessageType = "agent_response"
    visibility: Visibility = "public"
    agent_type: AgentType | None = None
    parent_message_id: types.MessageId | None = None
    metadata: types.JsonObject = msgspec.field(default_factory=types.no_fields)
    event: PayloadEvent | None = None


class PayloadSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session without its messages."""

    session_id: types.SessionId
    purpose: types.Purpose
    status: types.SessionStatus
    created_at: types.Instant
    created_by: types.Sender
    updated_at: types.Instant
    app_name: types.Name | None
    project_id: types.ProjectId | None
    workspace_path: session_context.WorkspacePath | None
    tool: session_context.ToolId | None
    original_tool: session_context.ToolId | None
    metadata: types.JsonObject
    state: types.JsonObject


class PayloadHead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportHead`; messages are those that the exporter may see."""

    at: datetime
    session: PayloadSession
    context: session_context.SessionContext
    migrations: list[session_context.Migration]
    newest_id: int
    messages: int
    briefing: str = ""


class ExportHead(Message[PayloadHead], frozen=True, kw_only=True):
    """Read everything but the messages, and log the export."""

    audit_action: ClassVar[str] = "export_session"

    to_tool: str | None = None


class PayloadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportMessages`: JSON of `PayloadMessage`, oldest first; ``last_id`` continues it."""

    lines: list[msgspec.Raw]
    last_id: int | None


class ExportMessages(Message[PayloadPage], frozen=True, kw_only=True):
    """Read a page of the messages that the caller may see."""

    after_id: int
    up_to_id: int


class StageMessages(Message[None], frozen=True, kw_only=True):
    """Stage a piece of messages (checked JSON of `PayloadMessage`) until the session is created."""

    attempt: Attempt
    number: int
    lines: list[msgspec.Raw]


class DropStaged(Message[None], frozen=True, kw_only=True):
    """Timer: drop staged messages from which no session was created."""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `MakeRestored`; ``importing`` is the attempt of the memory import that it decided."""

    read: session_context.ContextRead
    restored_at: datetime
    original_tool: str | None
    messages: int
    importing: str | None = None


class MakeRestored(Message[Restored], frozen=True, kw_only=True):
    """Create the session from its staged pieces in one commit; a repeat changes nothing.

    This also decides the import of its staged memories.
    """

    audit_action: ClassVar[str] = "restore_session"

    attempt: Attempt
    pieces: int
    session: PayloadSession
    context: session_context.SessionContext
    migrations: list[session_context.Migration]
    tool: str
    project_id: str | None
    server: str | None = None
    memories: transfer.ReleaseImport | None = None

    def precheck(self) -> tuple[Address, Message[transfer.ImportProgress | None]] | None:
        """Check that the staged memories still exist."""
        return None if self.memories is None else transfer.staged_query(self.memories)


class FindExported(Message[bool], frozen=True, kw_only=True):
    """Check that the session exists as exported or newer, and is writable for the caller."""

    created_at: datetime
    updated_at: datetime
    newest_id: int


Place = Literal["free", "made", "taken"]
"""What an attempt finds at an address: no session, the attempt's own session, or another session."""


class FindAttempt(Message[Place], frozen=True, kw_only=True):
    """Check whether an attempt may create its session at an address, or has done so."""

    attempt: Attempt
