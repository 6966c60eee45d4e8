"""Contents of events that are too large to be messages.

Such a content, a photo in base64 for example, is stored in parts of 256 KB and read back whole. Agents see
and search only a short text that stands for it, the event's message. The parts are staged together with the
message, so either all of them are stored or none.
"""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.sessions.storage.records import PARTS, Entry, partition_prefix
from greenroom.runtime import Context

PART_BYTES: Final = 262_144


class EventPart(msgspec.Struct, frozen=True, array_like=True):
    """A part of the JSON of an event's content."""

    data: bytes


def put_parts(context: Context, partition: Partition, message_id: int, whole: bytes) -> None:
    """Stage the content of an event in parts; an empty one has none."""
    prefix = _prefix(partition, message_id)
    for number, start in enumerate(range(0, len(whole), PART_BYTES)):
        context.put(prefix + number.to_bytes(2), EventPart(whole[start : start + PART_BYTES]))


def whole_content(context: Context, entry: Entry) -> bytes | None:
    """Return the content of an event that is kept in parts; None where its message has it."""
    event = entry.message.event
    if event is None or not event.whole_bytes:
        return None
    prefix = _prefix(entry.partition, entry.message_id)
    return b"".join(part.data for _, part in context.scan(EventPart, prefix=prefix))


def drop_parts(context: Context, partition: Partition, message_id: int, whole_bytes: int) -> None:
    """Stage that the parts of an event's content are no more."""
    prefix = _prefix(partition, message_id)
    for number in range(-(-whole_bytes // PART_BYTES)):
        context.delete(prefix + number.to_bytes(2))


def _prefix(partition: Partition, message_id: int) -> bytes:
    return PARTS + partition_prefix(partition) + message_id.to_bytes(8)
