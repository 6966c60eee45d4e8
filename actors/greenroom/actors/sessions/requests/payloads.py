"""The payload of a passport, and the messages by which session actors export and import it.

A session is taken in as a whole: its messages are *staged*, piece by piece, where nobody sees them, and one
commit makes the session of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.policy import Visibility
from greenroom.actors.core.validation import types
from greenroom.actors.memories.requests import transfer
from greenroom.actors.sessions.requests import requests as events
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Address, Message

PIECE_BYTES = 262_144
"""About how large a piece of messages is: it is made or written in one turn of its actor."""

AgentType = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}(?!\n)$")]
Attempt = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]


class PayloadEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes a message an event of the session service; ``is_json``: its content is the event's JSON."""

    event_id: events.EventId
    at: types.Instant
    event_type: events.EventType
    actor: events.EventActor
    is_final_response: bool
    is_json: bool


class PayloadMessage(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A message as the exporter sees it.

    Attributes:
        message_id: Kept: ids ascend within a session, and fit their times.
        agent_type: Of the agents that an ``agent_only`` message is for; it is never widened to others.
        parent_message_id: What it answers, if that may be seen, too.
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
    """A session apart from its messages."""

    session_id: types.SessionId
    purpose: types.Purpose
    status: types.SessionStatus
    created_at: types.Instant
    created_by: types.Sender
    updated_at: types.Instant
    app_name: types.Name | None
    project_id: types.ProjectId | None
    workspace_path: travel.WorkspacePath | None
    tool: travel.ToolId | None
    original_tool: travel.ToolId | None
    metadata: types.JsonObject
    state: types.JsonObject


class PayloadHead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportHead`.

    Attributes:
        newest_id: Of the newest message that the exporter may see; 0 for none.
        messages: How many it may see.
        at: When this was.
        briefing: What was recorded and said, in words, of what the exporter may see.
    """

    at: datetime
    session: PayloadSession
    context: travel.SessionContext
    migrations: list[travel.Migration]
    newest_id: int
    messages: int
    briefing: str = ""


class ExportHead(Message[PayloadHead], frozen=True, kw_only=True):
    """Hand over everything but the messages, and log that somebody exports."""

    deed: ClassVar[str] = "export_session"

    to_tool: str | None = None


class PayloadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportMessages`: JSON of `PayloadMessage`, oldest first, and the id after which to go on."""

    lines: list[msgspec.Raw]
    last_id: int | None


class ExportMessages(Message[PayloadPage], frozen=True, kw_only=True):
    """Hand over the messages that the asker may see, some at a time."""

    after_id: int
    up_to_id: int


class StageMessages(Message[None], frozen=True, kw_only=True):
    """Keep a piece of messages, checked JSON of `PayloadMessage`, until the session is made of them."""

    attempt: Attempt
    number: int
    lines: list[msgspec.Raw]


class DropStaged(Message[None], frozen=True, kw_only=True):
    """The session's word to itself: forget what no session was made of."""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `MakeRestored`; ``importing`` is the attempt at the import that its commit decided."""

    read: travel.ContextRead
    restored_at: datetime
    original_tool: str | None
    messages: int
    importing: str | None = None


class MakeRestored(Message[Restored], frozen=True, kw_only=True):
    """Make the session of what is staged, in one commit; the same attempt again changes nothing.

    Attributes:
        pieces: How many were staged.
        server: Where it was exported, unless that was here.
        memories: Decides the import of its memories, which are staged, too.
    """

    deed: ClassVar[str] = "restore_session"

    attempt: Attempt
    pieces: int
    session: PayloadSession
    context: travel.SessionContext
    migrations: list[travel.Migration]
    tool: str
    project_id: str | None
    server: str | None = None
    memories: transfer.ReleaseImport | None = None

    def precheck(self) -> tuple[Address, Message[transfer.ImportProgress | None]] | None:
        """Ask whether the memories are still there to be decided about."""
        return None if self.memories is None else transfer.staged_question(self.memories)


class FindExported(Message[bool], frozen=True, kw_only=True):
    """Find out whether a session that was exported is there, the asker's to write, and no older than then.

    Attributes:
        newest_id: Of its newest message that was exported; 0 for none.
    """

    created_at: datetime
    updated_at: datetime
    newest_id: int


Place = Literal["free", "made", "taken"]
"""Of an attempt: no session is there, its own is, or another one."""


class FindAttempt(Message[Place], frozen=True, kw_only=True):
    """Find out whether an attempt may make its session at an address, or has."""

    attempt: Attempt
