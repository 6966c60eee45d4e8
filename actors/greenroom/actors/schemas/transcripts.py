"""What the console reads of a session: a page of what was said, and who said how much."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Message


class AnsweredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that one of a page answers, and that is not on it itself; ``line`` is how it begins."""

    message_id: int
    sender: str
    line: str


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has written in a session, how many messages the reader sees, and when the last was."""

    sender: str
    messages: int
    last_at: datetime


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """A time at which a client had its model's context made shorter.

    Attributes:
        at: When.
        by: The agent whose client it was.
        client: The client's name in the table of clients.
        reason: Why, in the client's word, such as ``auto``; empty where it told none.
    """

    at: datetime
    by: str
    client: str
    reason: str


class Transcript(replies.Reply, frozen=True, kw_only=True):
    """Answers `ReadTranscript`, oldest message first.

    Attributes:
        answered: What messages of this page answer.
        writers: Who has written in the session, the last one first.
        compactions: When a client's hooks told that its context was made shorter, oldest first.
        has_older: Whether there are messages before these.
        has_newer: Whether there are messages after these.
    """

    session: replies.SessionView
    statistics: replies.SessionStatistics
    messages: list[replies.MessageView]
    answered: list[AnsweredMessage]
    writers: list[Writer]
    compactions: list[Compaction] = msgspec.field(default_factory=list)
    has_older: bool
    has_newer: bool


class ReadTranscript(Message[Transcript], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a session with visible messages: the newest, those before one, or those from one on."""

    session_id: types.SessionId
    before: Annotated[types.MessageId, Meta(description="only those before this one")] | None = None
    start: Annotated[types.MessageId, Meta(description="those from this one on")] | None = None
    limit: types.Limit1000 = 100
