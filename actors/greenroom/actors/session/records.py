"""A session's records and keys. No record grows with the session, so a write costs what the first one cost.

    h                       the header
    d ordinal, s ordinal    one top-level key of the metadata, of the state
    m partition NUL id          one message
    e partition NUL event id    the id of the message that is this event
    t partition NUL sender      how much one sender has written in one partition

Records end with what came later: fields with a default, so that older stores can be read.

The kernel's keys take 200 bytes: a partition has at most 107, senders and event ids are hashed.
"""

from __future__ import annotations

import functools
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from greenroom.actors.auth.policy import PUBLIC, Partition, Visibility, may_see_message
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.times import to_datetime
from greenroom.actors.schemas import replies, types
from greenroom.actors.schemas import session_events as events

HEADER = b"h"
METADATA = b"d"
STATE = b"s"
COUNTERS = b"t"

_OF_MESSAGE = 2
_OF_OWNERS = frozenset({b"c", b"l"})  # of `work_context` and `migrations`
_OWNER_BYTES = 8
_WITH_DIGESTS = frozenset({b"f", b"m"})
_DIGEST_BYTES = 16
_LETTERS: dict[str, bytes] = {"public": b"p", "private": b"v", "agent_only": b"o"}


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The header record of a session: everything but its messages.

    ``status`` does not know of messages: a session that nobody changed stays ``created`` here, and is
    ``active`` for those who see a message in it. Otherwise a hidden first message would show.
    ``ahead`` is an upper bound of how far message ids ran ahead of the clock.
    """

    purpose: str
    status: types.SessionStatus
    created_at: int
    created_by: str
    updated_at: int
    terminated_at: int | None
    app_name: str | None
    user_id: str | None
    project_id: str | None
    ahead: int


class StoredEvent(msgspec.Struct, frozen=True, array_like=True):
    """The event part of a message, for the session service.

    ``at`` is the event's own time (microseconds since 1970); its place in the log is when it was
    appended. ``is_json``: the message's content is the event's JSON, else it is its text.
    """

    event_id: str
    at: int
    event_type: events.EventType
    actor: str
    is_final_response: bool
    is_json: bool


class StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message; its id, audience and visibility are its key's. ``metadata`` is JSON as received.

    ``parent`` comes with its audience, since not everyone who sees an answer sees what it answers.
    """

    sender: str
    timestamp: int
    message_type: str
    parent: tuple[int, str] | None
    metadata: bytes
    content: str
    event: StoredEvent | None = None

    @property
    def is_talk(self) -> bool:
        """Whether this is talk, which makes a session active, and no event."""
        return self.event is None or self.event.event_type == "message"


class CountedMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message that is only counted: nothing of it is decoded."""


class SenderCounter(msgspec.Struct, frozen=True, array_like=True):
    """One sender's messages in one partition, counted; ``last_at`` (microseconds since 1970) is the latest.

    ``others`` of the ``count`` are events that are no messages.
    """

    audience: str
    visibility: Visibility
    sender: str
    count: int
    last_id: int
    last_at: int
    others: int = 0


class Entry(NamedTuple):
    """A stored message with what its key says."""

    message_id: int
    partition: Partition
    message: StoredMessage


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where a key has a partition's audience, and digests of senders, event ids, owners and paths."""
    letter, length = key[:1], len(key)
    if letter in _OF_OWNERS and length > 1:
        owner = (1, 1 + _OWNER_BYTES)
        digest = 2 + _OWNER_BYTES
        has_digest = length > digest and key[digest - 1 : digest] in _WITH_DIGESTS
        return (owner, (digest, digest + _DIGEST_BYTES)) if has_digest else (owner,)
    start = {b"m": 2, b"e": 3, b"t": 3}.get(letter, length)
    if length <= start:
        return ()
    end = key.find(0, start)
    if end < 0:
        return ((start, length + 1),)
    return ((start, end),) if start == _OF_MESSAGE else ((start, end + 1 + _DIGEST_BYTES),)


@functools.lru_cache(maxsize=1_024)
def partition_prefix(partition: Partition) -> bytes:
    """Return the bytes before the ids of a partition's messages."""
    return b"m" + _LETTERS[partition.visibility] + partition.audience.encode() + b"\0"


def message_key(partition: Partition, message_id: int) -> bytes:
    """Return the record key of a message."""
    return partition_prefix(partition) + message_id.to_bytes(8)


@functools.lru_cache(maxsize=1_024)
def counter_key(partition: Partition, sender: str) -> bytes:
    """Return the record key of a sender's counter in a partition."""
    return (
        COUNTERS + partition_prefix(partition) + blake2b(sender.encode(), digest_size=_DIGEST_BYTES).digest()
    )


def view(entry: Entry, reader: Principal) -> replies.MessageView:
    """Return a message as ``reader`` gets it; a parent hidden from it is left out."""
    message_id, partition, message = entry
    parent, audience = message.parent or (None, PUBLIC)
    return replies.MessageView(
        message_id=message_id,
        sender=message.sender,
        content=message.content,
        timestamp=to_datetime(message.timestamp),
        visibility=partition.visibility,
        message_type=message.message_type,
        metadata=msgspec.Raw(message.metadata),
        parent_message_id=parent if may_see_message(reader, audience) else None,
    )


def named(message: replies.MessageView) -> dict[str, int]:
    """Return by what a message is known."""
    return {"message_id": message.message_id}
