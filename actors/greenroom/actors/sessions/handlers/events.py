"""Events and messages are one log: how an event lies in it, and how a message reads as an event.

An event is a stored message with a few words more. Its content is a JSON object, and
tools show texts, so:

- ``{"text": …}``, alone or followed by a ``metadata`` object, is a message with this text
  and this metadata, and the other way round;
- any other content is shown as its JSON;
- a content that is too large lies in parts (`large_events`), and the message is what stands for it.

An event id is looked up in the partitions that its sender may read. So a hidden event with
the same id does not show by turning a new one into a repeat.
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
from greenroom.actors.core.validation.strict_json import canonical
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.sessions.large_events import whole_content
from greenroom.actors.sessions.requests import requests as events
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import Entry, StoredEvent, StoredMessage, partition_prefix
from greenroom.runtime import Context, Slices

EVENT_IDS = b"e"
PAGE = 500
USUAL_MESSAGE_TYPE = "agent_response"

_DERIVED = re.compile(r"message_[0-9]+", re.ASCII)
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def event_key(partition: Partition, event_id: str) -> bytes:
    """Return where the message id of an event lies."""
    return EVENT_IDS + partition_prefix(partition) + blake2b(event_id.encode(), digest_size=16).digest()


def find(context: Context, event_id: str) -> Entry | None:
    """Return the event that the sender knows by this id.

    Raises:
        Refusal: ``VALIDATION_ERROR`` for an id that only a message can have, and none has.
    """
    partitions = policy.partitions(context.principal)
    if _DERIVED.fullmatch(event_id) is not None:
        return _named_message(context, partitions, event_id)
    for partition in partitions:
        message_id = context.get(event_key(partition, event_id), int)
        if message_id is not None:
            return log.find(context, (partition,), message_id)
    return None


def _named_message(context: Context, partitions: tuple[Partition, ...], event_id: str) -> Entry | None:
    message_id = int(event_id.partition("_")[2])
    if message_id <= log.HIGHEST_ID:
        entry = log.find(context, partitions, message_id)
        if entry is not None and id_of(entry) == event_id:
            return entry
    raise auth_errors.invalid(
        "event_id", f"event_id: {event_id!r} is the form of a message's id; choose another id"
    )


def last(context: Context) -> Slices[StoredEvent | None]:
    """Return the last event that the caller may see; messages of tools are none."""
    for entry in log.walk(context, policy.partitions(context.principal), reverse=True):
        if entry.message.event is not None:
            return entry.message.event
        if context.should_yield():
            yield
    return None


def repeated(request: events.AppendEvent, earlier: Entry, context: Context) -> events.EventView:
    """Return the event that has the id already.

    What is compared is what was stored but the time, which a program that tries again may have taken anew.

    Raises:
        Refusal: ``IDEMPOTENCY_CONFLICT``: it is another event.
    """
    there = view(earlier, context)
    given = (request.event_type, request.actor, request.is_final_response, request.visibility)
    is_same = given == (there.event_type, there.actor, there.is_final_response, there.visibility)
    content, kept = request.whole or bytes(request.content), bytes(there.content)
    if not is_same or (content != kept and canonical(content) != canonical(kept)):
        raise auth_errors.event_conflict(request.session_id, request.event_id)
    return there


def stored(request: events.AppendEvent, now: int) -> StoredMessage:
    """Return an event as the log keeps it, at ``now`` (microseconds since 1970)."""
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


def page(request: events.GetEvents, context: Context) -> Slices[events.EventPage]:
    """Answer the events that the caller may see, oldest first, and where to go on."""
    entries = log.walk(
        context,
        policy.partitions(context.principal),
        lowest=request.after_id + 1,
        highest=request.up_to_id,
    )
    found, has_more = yield from log.take(context, entries, PAGE, whole=True)
    return (yield from _page(found, context, has_more=has_more))


def newest(request: events.GetNewestEvents, context: Context) -> Slices[events.EventPage]:
    """Answer the newest events that the caller may see, newest first, and where to go on."""
    highest = log.HIGHEST_ID if request.before_id is None else request.before_id - 1
    entries = log.walk(context, policy.partitions(context.principal), highest=highest, reverse=True)
    limit = PAGE if request.limit is None else min(request.limit, PAGE)
    found, has_more = yield from log.take(
        context,
        entries,
        limit,
        lambda entry: id_of(entry).startswith(request.id_prefix),
        there=limit if limit == request.limit else None,
        whole=True,
    )
    return (yield from _page(found, context, has_more=has_more))


def _page(found: list[Entry], context: Context, *, has_more: bool) -> Slices[events.EventPage]:
    views: list[events.EventView] = []
    for entry in found:
        views.append(view(entry, context))
        if context.should_yield():
            yield
    return events.EventPage(events=views, last_id=found[-1].message_id if has_more else None)


def view(entry: Entry, context: Context) -> events.EventView:
    """Return a stored message as the event that it is, as the caller gets it."""
    message = entry.message
    event = message.event
    return events.EventView(
        event_id=id_of(entry),
        timestamp=to_datetime(message.timestamp if event is None else event.at),
        event_type="message" if event is None else event.event_type,
        actor=f"agent:{message.sender}" if event is None else event.actor,
        content=msgspec.Raw(whole_content(context, entry) or _content(entry, context.principal)),
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
    """Return an event's id; that of a message is made of its own."""
    event = entry.message.event
    return f"message_{entry.message_id}" if event is None else event.event_id


def _content(entry: Entry, reader: Principal) -> bytes:
    """Return the JSON object: as it was given, or what a message's fields say that is out of the ordinary."""
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
    """Return text and metadata if `_content` makes the same object of them again, else None."""
    parts = _split(content)
    if list(parts) not in (["text"], ["text", "metadata"]) or not bytes(parts["text"]).startswith(b'"'):
        return None
    metadata = bytes(parts.get("metadata", b"{}"))
    if "metadata" in parts and (not metadata.startswith(b"{") or not _split(metadata)):
        return None
    text = msgspec.json.decode(parts["text"], type=str)
    return (text, metadata) if text else None
