"""Messages by which a session goes on with one that has ended; none is a tool."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Address, Message


class ContinueSession(Message[travel.ContextRead], frozen=True, kw_only=True):
    """Begin a session here that continues one that has ended; answers what that one holds.

    Attributes:
        continues: The one that has ended, in which nothing changes.
        tool: The one in which the work goes on.
        holder: Who goes on.
    """

    deed: ClassVar[str] = "restore_session"

    continues: str
    tool: str
    holder: travel.Holder

    def precheck(self) -> tuple[Address, Message[ToContinue]] | None:
        """Ask the session that has ended what is in it."""
        return Address("session", self.continues), ReadToContinue(tool=self.tool)


class ToContinue(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadToContinue`.

    Attributes:
        read: What the asker may see.
        named_by: Who sent what its name was made of; empty where the name was given.
        decided_for: The user of each decision, in their order; None where that is not known.
        work_for: The user who said where the work stands.
    """

    read: travel.ContextRead
    named_by: str
    decided_for: list[str | None]
    work_for: str | None


class ReadToContinue(Message[ToContinue], frozen=True, kw_only=True):
    """Read what another session goes on with; changes nothing."""

    tool: str


class EarlierTalk(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `TellEarlier`: what was said, empty for nothing, and which session this one continues."""

    text: str
    continues: str | UnsetType = UNSET


class TellEarlier(Message[EarlierTalk], frozen=True, kw_only=True):
    """Tell what was said in a session that another one continues, in at most so many bytes.

    Attributes:
        asked: Whether the reader named the session that continues it. What hooks keep comes to no other.
    """

    most_bytes: int
    asked: bool = True
