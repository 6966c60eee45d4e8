"""Records of a session and their keys.

No record grows with the session, so the cost of a write is constant.

    h                       the header
    d ordinal, s ordinal    one top-level key of the metadata, of the state
    m partition NUL id          one message
    p partition NUL id part     a part of an event's content that is too large for its message
    e partition NUL event id    the id of the message that is this event
    t partition NUL sender      the counter of one sender in one partition
    v ...                       vectors of messages, see `message_vectors`
    k time digest               a compaction of a client's context, by its time and its hook event

New fields come last and have a default, so that older stores can be read. Every reader of the session sees
the compactions, but a passport does not contain them.

Keys have at most 200 bytes. A partition needs up to 107 of them, so senders and event ids are hashed.

Message ids ascend and have 53 bits: 47 bits of time, in units of 16 microseconds since 2020, and 6 random
bits. A gap between two ids reveals no hidden message, since each id comes from the clock and not from the id
before it. Only if the clock has not passed the last id (it stands still, or jumped back) does the next id
build on the last one. Then a random step is added. Its distribution has a heavy tail, so any gap can be one
step. From there the ids run ahead of the clock by a constant until the clock has passed them.

If a clock jumps decades ahead, ids stop following time at `LAST_UNIT`. They then use random steps for the
remaining eighth of the 53 bits.
"""

from __future__ import annotations

import functools
import random
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.policy import PUBLIC, Partition, Visibility, may_see_message
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.times import to_datetime, with_datetime
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests.session_views import Compaction
from greenroom.runtime import Context, pass_over

HEADER = b"h"
MESSAGES = b"m"
METADATA = b"d"
STATE = b"s"
COUNTERS = b"t"
PARTS = b"p"
HAS_DEPENDENTS = b"u"
"""The key of the mark that memories or checkpoints belong to the session."""
_WITH_IDS = frozenset({b"m", PARTS})
_OF_OWNERS = frozenset({b"c", b"l"})  # records of `work_context` and `migrations`
_OWNER_BYTES = 8
_WITH_DIGESTS = frozenset({b"f", b"m"})
_DIGEST_BYTES = 16
_COMPACTION_DIGEST_BYTES = 8
_LETTERS: dict[str, bytes] = {"public": b"p", "private": b"v", "agent_only": b"o"}
_VISIBILITIES: dict[bytes, Visibility] = {b"p": "public", b"v": "private", b"o": "agent_only"}
OPEN: tuple[SessionStatus, ...] = ("active", "paused", "terminated")
STEPS: dict[SessionStatus, tuple[SessionStatus, ...]] = {
    "created": OPEN,
    "active": OPEN,
    "paused": OPEN,
    "terminated": ("archived",),
    "archived": (),
}

BY_PERSON = "human_input"
"""The type of messages by a person."""
EPOCH = 1_577_836_800_000_000  # 2020-01-01 UTC in microseconds since 1970
UNIT_SHIFT = 4
RANDOM_BITS = 6
LAST_UNIT = (1 << 47) - (1 << 44)  # the year 2082
LONGEST_STEP = 1 << 20


class Naming(msgspec.Struct, frozen=True, array_like=True):
    """The state of naming a session by its messages.

    ``left`` more messages may name it; ``by`` is the sender of the message that named it, or empty.
    """

    left: int
    by: str = ""
    by_person: bool = False


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The header record of a session.

    ``status`` ignores messages: an unchanged session stays ``created`` here, and readers who see a message in
    it get ``active``. Otherwise the status would reveal a hidden first message. ``ahead`` is an upper bound
    of how far message ids ran ahead of the clock. ``continues`` is the ended session that this one continues.
    ``naming`` is set if the caller gave no purpose.
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

    ``at`` is the event's own time (microseconds since 1970); the log is in the order of appending. If
    ``is_json``, the content of the message is the event's JSON, else the event's text. ``whole_bytes`` is the
    size of a content that is stored in parts, see `events`; 0 if the message has the content.
    """

    event_id: str
    at: int
    event_type: requests.EventType
    actor: str
    is_final_response: bool
    is_json: bool
    whole_bytes: int = 0


class StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message; its key has the id, audience and visibility.

    ``metadata`` is JSON as received. ``parent`` includes the parent's audience, because not every reader of
    the reply may see the parent. ``words`` is the part of a hook's turn that other agents of the user may
    read; only hooks write it. ``of_another`` says that the sender's user is not the session's user.
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
        """Whether this is a message and no other event; only messages make a session active."""
        return self.event is None or self.event.event_type == "message"


def is_by_person(message: StoredMessage) -> bool:
    """Return whether a person wrote the message, according to an agent of the session's user."""
    if message.of_another:
        return False
    return message.message_type == BY_PERSON or (message.event is not None and message.event.actor == "user")


class CountedMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message decoded without its fields, for counting."""


class SenderCounter(msgspec.Struct, frozen=True, array_like=True):
    """The counter of one sender in one partition.

    ``last_at`` is the time of the latest message (microseconds since 1970). ``count`` includes ``others``
    events that are not messages.
    """

    audience: str
    visibility: Visibility
    sender: str
    count: int
    last_id: int
    last_at: int
    others: int = 0


class Entry(NamedTuple):
    """A stored message with its id and partition, from its key."""

    message_id: int
    partition: Partition
    message: StoredMessage


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of names and digests in a key: audience, sender, event, owner, path."""
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
    """Return the prefix of the keys of a partition's messages."""
    return MESSAGES + _LETTERS[partition.visibility] + partition.audience.encode() + b"\0"


def partition_in(key: bytes) -> Partition:
    """Return the partition in the record key of a message."""
    return Partition(key[2 : key.index(0)].decode(), _VISIBILITIES[key[1:2]])


def message_key(partition: Partition, message_id: int) -> bytes:
    """Return the record key of a message."""
    return partition_prefix(partition) + message_id.to_bytes(8)


@functools.lru_cache(maxsize=1_024)
def counter_key(partition: Partition, sender: str) -> bytes:
    """Return the record key of the counter of a sender in a partition."""
    return (
        COUNTERS + partition_prefix(partition) + blake2b(sender.encode(), digest_size=_DIGEST_BYTES).digest()
    )


def view(entry: Entry, reader: Principal) -> replies.MessageView:
    """Return a message as ``reader`` gets it, without a hidden parent."""
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


def identify(message: replies.MessageView) -> dict[str, int]:
    """Return the fields that identify a message."""
    return {"message_id": message.message_id}


def check_step(old: SessionStatus, new: SessionStatus) -> None:
    """Refuse a change from ``old`` to ``new`` that is not allowed."""
    allowed = STEPS[old]
    if new not in {old, *allowed}:
        choices = ", ".join(allowed) or "nothing more"
        raise invalid(
            "status",
            f"status: a session that is {old} cannot become {new}; it can become: {choices}",
            **{"from": old, "to": new, "allowed": list(allowed)},
        )


def visible_status(status: SessionStatus, visible_messages: int) -> SessionStatus:
    """Return the status for a reader: a visible message makes a session active."""
    return "active" if status == "created" and visible_messages else status


class NextId(NamedTuple):
    """An id, and the units by which ids now run ahead of the clock."""

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
    """Return the lower bound of message ids from ``time`` (microseconds since 1970) on."""
    return min(_units(time), LAST_UNIT) << RANDOM_BITS


def highest_id(time: int, ahead: int) -> int:
    """Return the upper bound of message ids up to a time.

    ``ahead`` is the most units by which ids ever ran ahead of the clock.
    """
    unit = _units(time) + ahead
    return (1 << 53) - 1 if unit >= LAST_UNIT else (unit + 1 << RANDOM_BITS) - 1


def ahead_of(message_id: int, time: int) -> int:
    """Return the units by which an id runs ahead of its message's time."""
    return (message_id >> RANDOM_BITS) - min(_units(time), LAST_UNIT)


def _units(time: int) -> int:
    return max(0, time - EPOCH) >> UNIT_SHIFT


def _step(random: random.Random) -> int:
    """Return a heavy-tailed random number of at least 1.

    The sum of two steps looks like one step, so a gap does not reveal the number of messages in it.
    """
    return min(int(max(random.random(), 1e-9) ** -2), LONGEST_STEP)


COMPACTIONS: Final = b"k"
MOST_COMPACTIONS: Final = 200
"""The most compactions of a session; the oldest are deleted."""


class StoredCompaction(msgspec.Struct, frozen=True, array_like=True):
    """A stored `Compaction`."""

    at: int
    by: str
    client: str
    reason: str


def read_compactions(context: Context) -> list[Compaction]:
    """Return the session's compactions, oldest first."""
    return [
        with_datetime(Compaction, each)
        for _, each in context.scan(StoredCompaction, prefix=COMPACTIONS, on_damage=pass_over)
    ]


def put_compaction(context: Context, event_id: str, made: StoredCompaction) -> None:
    """Stage a compaction; a repeat of the event changes nothing."""
    digest = blake2b(event_id.encode(), digest_size=_COMPACTION_DIGEST_BYTES).digest()
    key = COMPACTIONS + max(0, made.at).to_bytes(8) + digest
    keys = set(context.keys(COMPACTIONS))
    context.put(key, made)
    for oldest in sorted(keys | {key})[:-MOST_COMPACTIONS]:
        context.delete(oldest)
