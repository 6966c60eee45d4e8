"""Messages that hand a session over between clients: start, hold, leave, move, continue.

A new session continues a session that has ended. It begins with the purpose and work context of that session.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.git.git_files import NO_REVISION, Revision
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.replies import Reply, ToolCall
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import transfer
from greenroom.actors.sessions.requests.session_context import ContextRead, MigrationOutcome
from greenroom.runtime import Address, Message

SessionHere = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,128}(?!\n)$",
        extra={"takes": "1 to 128 characters of A-Z, a-z, 0-9, _ . -"},
    ),
]


# -- messages to a session ---------------------------------------------


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the same user and project that `RestoreSession` can resume.

    Attributes:
        tool: The client tool that it is in; its creator, if no tool started it.
        has_words: Whether it has messages or recorded work, besides what the server observed.
        call: The call that resumes it; for a session stored by hooks, the call that reads its briefing.
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
    """Return the call that resumes a session, or reads its briefing."""
    return ToolCall(tool="start_session", arguments={"restore_from": session_id})


class TakenUp(msgspec.Struct, frozen=True, kw_only=True):
    """The previous tool of a resumed session."""

    from_tool: str
    last_used: datetime


BriefOffer = Annotated[Offer, Meta(extra_json_schema=types.BRIEF)]
BriefTakenUp = Annotated[TakenUp | None, Meta(extra_json_schema=types.BRIEF)]


class SessionReopened(Reply, frozen=True, kw_only=True):
    """Answers `ReopenSession`; ``ended_at`` is when the session had ended."""

    session_id: str
    status: types.SessionStatus
    reopened_at: datetime
    ended_at: datetime


@operation(
    "reopen_session",
    scope="sessions:write",
    route="session",
    tool=ToolText(
        title="Reopen session", description="Open a terminated session again, so that work in it can go on."
    ),
    after_notes=True,
)
class ReopenSession(Message[SessionReopened], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Reopen a terminated session, with everything in it except ``temp:`` state."""

    session_id: Annotated[SessionHere, Meta(description="a terminated one")]
    idempotency_key: types.IdempotencyKey | None = None


# -- internal ----------------------------------------------------------


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A client that holds a session, because it works in the session.

    A connected client holds it as long as it subscribes to `topic`. Older records have no agent.
    """

    token: str
    at: int
    is_connected: bool
    agent: str = ""

    def topic(self, session_id: str) -> str:
        """Return the topic that the client subscribes to while it works in the session."""
        return f"held/{session_id}/{self.token}"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `StartHere`; without a ``session_id`` the session could not be resumed."""

    session_id: str | None
    project_id: str | None
    created_at: datetime | None
    at: datetime | None = None
    offered: list[Offer] = []
    kept: list[Offer] = []
    read: ContextRead | None = None
    taken_up: TakenUp | None = None


class StartHere(Message[Started], frozen=True, kw_only=True):
    """Create a session here, or resume this one.

    Attributes:
        how: ``take_up`` fails if another client holds the session, or if the session has ended. ``resume``
            fails only if the session has ended.
        revision: What is checked out in the folder; a new session notes it.
        offered: Sessions that can be resumed, this one included.
    """

    audit_action: ClassVar[str] = "start_session"

    how: Literal["begin", "take_up", "resume"]
    tool: str
    holder: Holder
    purpose: types.Purpose | None = None
    project_id: str | None = None
    workspace_path: str | None = None
    revision: Revision = NO_REVISION
    offered: list[Offer] = msgspec.field(default_factory=list)
    kept: list[Offer] = msgspec.field(default_factory=list)


class LookAtWork(Message[Offer | None], frozen=True, kw_only=True):
    """Summarize a session as an offer; None if it is closed or empty."""

    token: str


class HoldSession(Message[None], frozen=True, kw_only=True):
    """Report that a client begins to work in a session."""

    holder: Holder


class SweepSession(Message[None], frozen=True, kw_only=True):
    """Timer: remove an empty session, an hour after it started without a name."""


class LeaveSession(Message[None], frozen=True, kw_only=True):
    """Report that a client moved from this session to another one."""

    token: str


class Move(Message[ContextRead], frozen=True, kw_only=True):
    """Hand a session over to another tool, or resume it there.

    ``outcome`` is the step to log; ``resumed`` makes ``to_tool`` the session's tool.
    """

    audit_action: ClassVar[str] = "migrate_session"

    to_tool: str
    outcome: MigrationOutcome
    note: str | None = None
    memories: transfer.ReleaseImport | None = None

    def precheck(self) -> tuple[Address, Message[transfer.ImportProgress | None]] | None:
        """Check that the staged memories still exist."""
        return None if self.memories is None else transfer.staged_query(self.memories)


class ContinueSession(Message[ContextRead], frozen=True, kw_only=True):
    """Create a session that continues an ended one; replies with its work context."""

    audit_action: ClassVar[str] = "restore_session"

    continues: str
    tool: str
    holder: Holder

    def precheck(self) -> tuple[Address, Message[ToContinue]] | None:
        """Read the ended session first."""
        return Address("session", self.continues), ReadToContinue(tool=self.tool)


class ToContinue(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadToContinue`.

    Attributes:
        named_by: The sender of the message that named the session; empty if a caller chose the name.
        decided_for: The user of each decision, in the order of the decisions; None if unknown.
    """

    read: ContextRead
    named_by: str
    decided_for: list[str | None]
    work_for: str | None


class ReadToContinue(Message[ToContinue], frozen=True, kw_only=True):
    """Read what a session needs to continue this one; changes nothing."""

    tool: str


class EarlierTalk(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `TellEarlier`: an extract of the messages, empty if there are none.

    ``continues`` is the session that this one continues.
    """

    text: str
    continues: str | UnsetType = UNSET


class TellEarlier(Message[EarlierTalk], frozen=True, kw_only=True):
    """Read an extract of the messages of a continued session.

    The reader gets messages that hooks stored only if it named that session.
    """

    most_bytes: int
    asked: bool = True
