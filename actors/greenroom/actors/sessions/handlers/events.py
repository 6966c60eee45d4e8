"""Events of the session service: stored in the message log, and read from it.

An event is a stored message with further fields. Its content is a JSON object, but tools show texts:

- ``{"text": …}``, alone or followed by a ``metadata`` object, is a message with this text
  and this metadata, and vice versa;
- any other content is shown as its JSON;
- a content that is too large, such as a photo in base64, is stored in parts of 256 KB and read back whole;
  the message has a short text instead.

An event id is looked up only in the partitions that its sender may read. So a conflict does not reveal a
hidden event with the same id.
"""

from __future__ import annotations

import datetime as dt
import re
from hashlib import blake2b

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import PUBLIC, Partition, may_see_message
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.damage import damaged_entry, missing_record, read_undamaged
from greenroom.actors.core.validation.strict_json import canonicalize
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import message_log
from greenroom.actors.sessions.storage.records import (
    PARTS,
    Entry,
    StoredEvent,
    StoredMessage,
    partition_prefix,
)
from greenroom.runtime import Context, RecordDamagedError, Slices

EVENT_IDS = b"e"
PAGE = 500
PART_BYTES = 262_144
USUAL_MESSAGE_TYPE = "agent_response"

_DERIVED = re.compile(r"message_[0-9]+", re.ASCII)
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class EventPart(msgspec.Struct, frozen=True, array_like=True):
    """A part of the JSON of an event's content."""

    data: bytes


def event_key(partition: Partition, event_id: str) -> bytes:
    """Return the record key of an event's message id."""
    return EVENT_IDS + partition_prefix(partition) + blake2b(event_id.encode(), digest_size=16).digest()


def find(context: Context, event_id: str) -> Entry | None:
    """Return the event that the sender sees under this id.

    Refuses an id that has the form of a message's id, if no message has it.
    """
    partitions = policy.partitions(context.principal)
    if _DERIVED.fullmatch(event_id) is not None:
        return _find_message(context, partitions, event_id)
    for partition in partitions:
        message_id = context.get(event_key(partition, event_id), int)
        if message_id is not None:
            return message_log.find(context, (partition,), message_id)
    return None


def _find_message(context: Context, partitions: tuple[Partition, ...], event_id: str) -> Entry | None:
    message_id = int(event_id.partition("_")[2])
    if message_id <= message_log.HIGHEST_ID:
        entry = message_log.find(context, partitions, message_id)
        if entry is not None and id_of(entry) == event_id:
            return entry
    raise auth_errors.invalid(
        "event_id", f"event_id: {event_id!r} has the form of a message's id; choose another id"
    )


def find_last(context: Context) -> Slices[StoredEvent | None]:
    """Return the last visible event; messages of tools do not count."""
    for entry in message_log.walk(context, policy.partitions(context.principal), reverse=True):
        if entry.message.event is not None:
            return entry.message.event
        yield
    return None


def check_repeat(request: requests.AppendEvent, earlier: Entry, context: Context) -> requests.EventView:
    """Check that an event repeats the stored event, ignoring its time; return the stored event."""
    there = view(earlier, context)
    given = (request.event_type, request.actor, request.is_final_response, request.visibility)
    is_same = given == (there.event_type, there.actor, there.is_final_response, there.visibility)
    content, kept = request.whole or bytes(request.content), bytes(there.content)
    if not is_same or (content != kept and canonicalize(content) != canonicalize(kept)):
        raise auth_errors.event_conflict(request.session_id, request.event_id)
    return there


def to_message(request: requests.AppendEvent, now: int) -> StoredMessage:
    """Return the stored form of an event at ``now`` (microseconds since 1970)."""
    content = bytes(request.content)
    text = _text(content)
    shown, metadata = (content.decode(), b"{}") if text is None else text
    at = now if request.timestamp is None else _microseconds(request.timestamp)
    return StoredMessage(
        sender=request.actor.removeprefix("agent:"),
        timestamp=now,
        message_type=request.event_type,
        parent=None,
        metadata=metadata,
        content=shown,
        event=StoredEvent(
            request.event_id,
            at,
            request.event_type,
            request.actor,
            request.is_final_response,
            text is None,
            len(request.whole),
        ),
    )


def get_events(session: Session, request: requests.GetEvents, context: Context) -> Slices[requests.EventPage]:
    """Return a page of visible events, oldest first."""
    session.require_visible(context)
    entries = message_log.walk(
        context,
        policy.partitions(context.principal),
        lowest=request.after_id + 1,
        highest=request.up_to_id,
    )
    found, has_more = yield from message_log.take_page(entries, PAGE, whole=True)
    return (yield from _page(found, context, has_more=has_more))


def newest_events(
    session: Session, request: requests.GetNewestEvents, context: Context
) -> Slices[requests.EventPage]:
    """Return a page of visible events, newest first."""
    session.require_visible(context)
    highest = message_log.HIGHEST_ID if request.before_id is None else request.before_id - 1
    entries = message_log.walk(context, policy.partitions(context.principal), highest=highest, reverse=True)
    limit = PAGE if request.limit is None else min(request.limit, PAGE)
    found, has_more = yield from message_log.take_page(
        entries,
        limit,
        lambda entry: id_of(entry).startswith(request.id_prefix),
        there=limit if limit == request.limit else None,
        whole=True,
    )
    return (yield from _page(found, context, has_more=has_more))


def _page(found: list[Entry], context: Context, *, has_more: bool) -> Slices[requests.EventPage]:
    views: list[requests.EventView] = []
    for entry in found:
        seen = read_undamaged(context, view, entry, context)
        views += [] if seen is None else [seen]
        yield
    return requests.EventPage(events=views, last_id=found[-1].message_id if has_more else None)


def view(entry: Entry, context: Context) -> requests.EventView:
    """Return a stored message as an event for the caller."""
    message = entry.message
    event = message.event
    return requests.EventView(
        event_id=id_of(entry),
        timestamp=to_datetime(message.timestamp if event is None else event.at),
        event_type="message" if event is None else event.event_type,
        actor=f"agent:{message.sender}" if event is None else event.actor,
        content=msgspec.Raw(_whole_content(context, entry) or _content(entry, context.principal)),
        is_final_response=event is not None and event.is_final_response,
        visibility=entry.partition.visibility,
    )


def _microseconds(timestamp: dt.datetime) -> int:
    try:
        return to_microseconds(timestamp.astimezone(dt.UTC))
    except OverflowError:
        raise auth_errors.invalid(
            "timestamp", "timestamp: in UTC it lies outside of the years 1 to 9999"
        ) from None


def id_of(entry: Entry) -> str:
    """Return the id of an event; for a message it derives from the message id."""
    event = entry.message.event
    return f"message_{entry.message_id}" if event is None else event.event_id


def _content(entry: Entry, reader: Principal) -> bytes:
    """Return the content as a JSON object: as received, or made from a message's fields."""
    message = entry.message
    if message.event is not None and message.event.is_json:
        return message.content.encode()
    pairs = [b'"text":' + msgspec.json.encode(message.content)]
    if message.metadata != b"{}":
        pairs.append(b'"metadata":' + message.metadata)
    if message.event is None:
        if message.message_type != USUAL_MESSAGE_TYPE:
            pairs.append(b'"message_type":' + msgspec.json.encode(message.message_type))
        parent, audience = message.parent or (None, PUBLIC)
        if parent is not None and may_see_message(reader, audience):
            pairs.append(b'"parent_message_id":%d' % parent)
    return b"{" + b",".join(pairs) + b"}"


def _text(content: bytes) -> tuple[str, bytes] | None:
    """Return text and metadata if `_content` restores the same object from them, else None."""
    parts = _split(content)
    if list(parts) not in (["text"], ["text", "metadata"]) or not bytes(parts["text"]).startswith(b'"'):
        return None
    metadata = bytes(parts.get("metadata", b"{}"))
    if "metadata" in parts and (not metadata.startswith(b"{") or not _split(metadata)):
        return None
    text = msgspec.json.decode(parts["text"], type=str)
    return (text, metadata) if text else None


def put_parts(context: Context, partition: Partition, message_id: int, whole: bytes) -> None:
    """Stage the content of an event in parts."""
    prefix = _parts_prefix(partition, message_id)
    for number, start in enumerate(range(0, len(whole), PART_BYTES)):
        context.put(prefix + number.to_bytes(2), EventPart(whole[start : start + PART_BYTES]))


def _whole_content(context: Context, entry: Entry) -> bytes | None:
    """Return the content of an event if it is stored in parts; else None."""
    event = entry.message.event
    if event is None or not event.whole_bytes:
        return None
    prefix = _parts_prefix(entry.partition, entry.message_id)
    try:
        whole = b"".join(part.data for _, part in context.scan(EventPart, prefix=prefix))
    except RecordDamagedError as error:
        raise damaged_entry(error, "the message", message_id=str(entry.message_id)) from error
    if len(whole) != event.whole_bytes:
        raise damaged_entry(
            missing_record("an event", prefix), "the message", message_id=str(entry.message_id)
        )
    return whole


def part_keys(partition: Partition, message_id: int, whole_bytes: int) -> list[bytes]:
    """Return the record keys of the parts of an event's content."""
    prefix = _parts_prefix(partition, message_id)
    return [prefix + number.to_bytes(2) for number in range(-(-whole_bytes // PART_BYTES))]


def _parts_prefix(partition: Partition, message_id: int) -> bytes:
    return PARTS + partition_prefix(partition) + message_id.to_bytes(8)
