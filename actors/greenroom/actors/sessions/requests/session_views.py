"""Views of a session: the transcript of the console, and the resources that clients read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import replies
from greenroom.actors.core.resources.resources import Resource, ResourceInfo
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.sessions.requests.session_context import ContextRead
from greenroom.runtime import Message


class AnsweredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A parent message that is on another page; ``line`` is the beginning of its text."""

    message_id: int
    sender: str
    line: str


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """A sender, the number of its visible messages, and the time of the last one."""

    sender: str
    messages: int
    last_at: datetime


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """A client's compaction of its model's context; ``reason`` is the client's word."""

    at: datetime
    by: str
    client: str
    reason: str


class Transcript(replies.Reply, frozen=True, kw_only=True):
    """Answers `ReadTranscript`, oldest message first.

    ``answered`` has the parents of this page's messages, if they are on other pages.
    """

    session: replies.SessionView
    statistics: replies.SessionStatistics
    messages: list[replies.MessageView]
    answered: list[AnsweredMessage]
    writers: list[Writer]
    compactions: list[Compaction] = msgspec.field(default_factory=list)
    has_older: bool
    has_newer: bool


@operation(
    "read_transcript",
    scope="sessions:read",
    route="session",
)
class ReadTranscript(Message[Transcript], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a page of messages: the newest, before one, or from one on."""

    session_id: types.SessionId
    before: Annotated[types.MessageId, Meta(description="only those before this one")] | None = None
    start: Annotated[types.MessageId, Meta(description="those from this one on")] | None = None
    limit: types.Limit1000 = 100


class TierCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages in each tier, and of all messages visible to the reader."""

    recent: int
    compressed: int
    lines: int
    total: int


class CompressedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message reduced to its most informative sentences.

    ``characters`` is the length of the full message, which `GetMessages` returns.
    """

    message_id: int
    sender: str
    timestamp: datetime
    text: str
    characters: int


class MessageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a message, on one line."""

    message_id: int
    sender: str
    timestamp: datetime
    line: str


class ConversationResource(Resource, frozen=True, kw_only=True):
    """The visible messages of a session in tiers, oldest first in each tier.

    Attributes:
        characters: The length of all these messages in full; ``shown`` is the length of the returned texts.
        cursor: A cursor for `GetMessages`, which then reads the older messages.
    """

    session_id: str
    purpose: str
    lines: list[MessageLine]
    compressed: list[CompressedMessage]
    recent: list[replies.MessageView]
    counts: TierCounts
    characters: int
    shown: int
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class CurrentSessionResource(Resource, frozen=True, kw_only=True):
    """The current session of the client, with its work context."""

    session: replies.SessionView
    statistics: replies.SessionStatistics
    work: ContextRead
    conversation: str
    resource_info: ResourceInfo


class SessionResource(Resource, frozen=True, kw_only=True):
    """A session with its newest visible messages, oldest first.

    ``cursor`` is for `GetMessages`, which then reads the older messages.
    """

    session: replies.SessionView
    messages: list[replies.MessageView]
    statistics: replies.SessionStatistics
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo
