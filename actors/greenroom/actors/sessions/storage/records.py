"""A session's records and keys. No record grows with the session, so a write costs what the first one cost.

    h                       the header
    d ordinal, s ordinal    one top-level key of the metadata, of the state
    m partition NUL id          one message
    p partition NUL id part     a part of an event's content that is too large for its message
    e partition NUL event id    the id of the message that is this event
    t partition NUL sender      how much one sender has written in one partition
    v ...                       vectors of messages, see `message_vectors`
    k time digest               when a client's context was made shorter, see `compactions`

Records end with what came later: fields with a default, so that older stores can be read.

The kernel's keys take 200 bytes: a partition has at most 107, senders and event ids are hashed.

Message ids are 53 bits that grow, of time and random bits, so that gaps tell nothing. An id is 47 bits of
time, in units of 16 microseconds since 2020, and 6 random bits. A hidden message between two visible ones
leaves no trace in them: each id comes from the clock, not from the id before it. Only when the clock has
not passed the last id (it stands still, or jumped back) must the next one be built on the last, by a random
step so heavy-tailed that any gap can be a single one. From there the ids run ahead of the clock by a
constant, on their own again, until the clock has passed them.

When a clock jumps decades ahead the ids leave time behind at `LAST_UNIT` and go on by such
steps through the remaining eighth of the 53 bits.
"""

from __future__ import annotations

import functools
import random
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.policy import PUBLIC, Partition, Visibility, may_see_message
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.sessions.requests import requests as events

HEADER = b"h"
METADATA = b"d"
STATE = b"s"
COUNTERS = b"t"
PARTS = b"p"
KEPT_FOR_IT = b"u"
"""Under it lies whether anything is kept for the session elsewhere: memories, checkpoints."""

_WITH_IDS = frozenset({b"m", PARTS})
_OF_OWNERS = frozenset({b"c", b"l"})  # of `work_context` and `migrations`
_OWNER_BYTES = 8
_WITH_DIGESTS = frozenset({b"f", b"m"})
_DIGEST_BYTES = 16
_LETTERS: dict[str, bytes] = {"public": b"p", "private": b"v", "agent_only": b"o"}
OPEN: tuple[SessionStatus, ...] = ("active", "paused", "terminated")
STEPS: dict[SessionStatus, tuple[SessionStatus, ...]] = {
    "created": OPEN,
    "active": OPEN,
    "paused": OPEN,
    "terminated": ("archived",),
    "archived": (),
}
CLOSED: frozenset[SessionStatus] = frozenset({"terminated", "archived"})
BY_PERSON = "human_input"
"""The type of messages that hold what a person said."""
EPOCH = 1_577_836_800_000_000  # 2020-01-01 UTC in microseconds since 1970
UNIT_SHIFT = 4
RANDOM_BITS = 6
LAST_UNIT = (1 << 47) - (1 << 44)  # the year 2082
LONGEST_STEP = 1 << 20


class Naming(msgspec.Struct, frozen=True, array_like=True):
    """How a session gets its name from what is said in it.

    Attributes:
        left: How many more messages may give it a name.
        by: Who sent the message that gave the one that it has; empty for nobody.
        by_person: Whether a person said that.
    """

    left: int
    by: str = ""
    by_person: bool = False


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The header record of a session: everything but its messages.

    ``status`` does not know of messages: a session that nobody changed stays ``created`` here, and is
    ``active`` for those who see a message in it. Otherwise a hidden first message would show.
    ``ahead`` is an upper bound of how far message ids ran ahead of the clock.
    ``continues`` is the session that had ended and that this one goes on with. ``naming`` is there where the
    purpose was not given.
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
    continues: str | None = None
    naming: Naming | None = None


class StoredEvent(msgspec.Struct, frozen=True, array_like=True):
    """The event part of a message, for the session service.

    ``at`` is the event's own time (microseconds since 1970); its place in the log is when it was
    appended. ``is_json``: the message's content is the event's JSON, else it is its text.
    ``whole_bytes``: how many bytes its content has in parts, see `large_events`; 0 where the message has it.
    """

    event_id: str
    at: int
    event_type: events.EventType
    actor: str
    is_final_response: bool
    is_json: bool
    whole_bytes: int = 0


class StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message; its id, audience and visibility are its key's. ``metadata`` is JSON as received.

    ``parent`` comes with its audience, since not everyone who sees an answer sees what it answers.
    ``words`` is what other agents of the user may be told of a turn that hooks kept; nothing else writes it.
    ``of_another``: whether an agent of another user than the session's sent it.
    """

    sender: str
    timestamp: int
    message_type: str
    parent: tuple[int, str] | None
    metadata: bytes
    content: str
    event: StoredEvent | None = None
    words: str | None = None
    of_another: bool = False

    @property
    def is_talk(self) -> bool:
        """Whether this is talk, which makes a session active, and no event."""
        return self.event is None or self.event.event_type == "message"


def is_by_person(message: StoredMessage) -> bool:
    """Return whether it holds what a person said, as its sender has it: an agent of the session's user."""
    if message.of_another:
        return False
    return message.message_type == BY_PERSON or (message.event is not None and message.event.actor == "user")


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
    start = {b"m": 2, b"e": 3, b"t": 3, PARTS: 3}.get(letter, length)
    if length <= start:
        return ()
    end = key.find(0, start)
    if end < 0:
        return ((start, length + 1),)
    return ((start, end),) if letter in _WITH_IDS else ((start, end + 1 + _DIGEST_BYTES),)


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


def check_step(old: SessionStatus, new: SessionStatus) -> None:
    """Check that a session may go from ``old`` to ``new``, or has that status already.

    Raises:
        Refusal: ``VALIDATION_ERROR`` naming both and the steps that are allowed.
    """
    allowed = STEPS[old]
    if new not in {old, *allowed}:
        choices = ", ".join(allowed) or "nothing more"
        raise invalid(
            "status",
            f"status: a session that is {old} cannot become {new}; it can become: {choices}",
            **{"from": old, "to": new, "allowed": list(allowed)},
        )


def seen_status(status: SessionStatus, visible_messages: int) -> SessionStatus:
    """Return the status as a reader sees it: its first message makes a session active."""
    return "active" if status == "created" and visible_messages else status


class NextId(NamedTuple):
    """An id, and by how many units the ids run ahead of the clock now."""

    message_id: int
    ahead: int


def next_id(last_id: int, ahead: int, now: int, random: random.Random) -> NextId:
    """Return an id above ``last_id`` for a message at ``now`` (microseconds since 1970)."""
    clock = _units(now)
    last_unit = last_id >> RANDOM_BITS
    if clock > last_unit:
        ahead = 0
    elif clock + ahead <= last_unit:
        ahead = last_unit + _step(random) - clock
    unit = clock + ahead
    if unit >= LAST_UNIT:
        return NextId(max(last_id, LAST_UNIT << RANDOM_BITS) + _step(random), ahead)
    return NextId(unit << RANDOM_BITS | random.getrandbits(RANDOM_BITS), ahead)


def lowest_id(time: int) -> int:
    """Return a bound that no id of a message at or after ``time`` (microseconds since 1970) lies below."""
    return min(_units(time), LAST_UNIT) << RANDOM_BITS


def highest_id(time: int, ahead: int) -> int:
    """Return a bound that no id of a message at or before ``time`` (microseconds since 1970) lies above.

    ``ahead`` bounds by how many units ids ever ran ahead of the clock.
    """
    unit = _units(time) + ahead
    return (1 << 53) - 1 if unit >= LAST_UNIT else (unit + 1 << RANDOM_BITS) - 1


def ahead_of(message_id: int, time: int) -> int:
    """Return by how many units an id runs ahead of the time of its message; negative when it lies behind."""
    return (message_id >> RANDOM_BITS) - min(_units(time), LAST_UNIT)


def _units(time: int) -> int:
    return max(0, time - EPOCH) >> UNIT_SHIFT


def _step(random: random.Random) -> int:
    """Return a random number of at least 1 whose tail is so heavy that a sum of two looks like one."""
    return min(int(max(random.random(), 1e-9) ** -2), LONGEST_STEP)
