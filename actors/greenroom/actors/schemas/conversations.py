"""What was said in a session, in tiers, and the session that a client works in, as resources."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.core.replies import replies
from greenroom.actors.schemas.resource_info import ResourceInfo
from greenroom.actors.sessions.requests.session_context import ContextRead


class TierCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages are in each tier, and how many that the reader may see there are in all."""

    recent: int
    compressed: int
    lines: int
    total: int


class CompressedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of which the most telling sentences are left.

    ``characters``: how many the whole one has; `GetMessages` has it.
    """

    message_id: int
    sender: str
    timestamp: datetime
    text: str
    characters: int


class MessageLine(msgspec.Struct, frozen=True, kw_only=True):
    """How a message begins, in one line."""

    message_id: int
    sender: str
    timestamp: datetime
    line: str


class ConversationResource(msgspec.Struct, frozen=True, kw_only=True):
    """What was said in a session as far as the reader may see it, in each tier the oldest first.

    Attributes:
        lines: The oldest ones.
        compressed: Those after them.
        recent: The newest ones, as they are.
        characters: How many the contents of all these messages have, and ``shown`` how many of that is here.
        has_more: Whether there are older ones.
        cursor: Leads `GetMessages` to those, newest first.
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


class CurrentSessionResource(msgspec.Struct, frozen=True, kw_only=True):
    """The session that the client works in: what is known of the work, and where the rest is.

    Attributes:
        session: The session.
        statistics: What there is in it for the reader.
        work: What `GetSessionContext` answers.
        conversation: The URI of what was said in it.
    """

    session: replies.SessionView
    statistics: replies.SessionStatistics
    work: ContextRead
    conversation: str
    resource_info: ResourceInfo
