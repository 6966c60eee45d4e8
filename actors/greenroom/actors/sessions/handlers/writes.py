"""Writes to the message log: append messages and events, remove events."""

from __future__ import annotations

from collections import Counter

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.auth.policy import PUBLIC, Partition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.handlers import events, session_naming
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import directory, fields, message_log, records
from greenroom.actors.sessions.storage.records import HEADER, STATE, Entry, StoredMessage, message_key
from greenroom.runtime import Context, RecordDamagedError, Slices

AHEAD_AT_LEAST = 1 << 16  # about a second: the header's first bound when ids run ahead
MOST_UTF8_BYTES = 4  # the most bytes of one character


def add_message(session: Session, request: requests.AddMessage, context: Context) -> replies.MessageAdded:
    """Append a message."""
    header = session.require_writable(context)
    principal: Principal = context.principal
    _check_content(session, request.content)
    message = StoredMessage(
        sender=principal.agent_id,
        timestamp=context.now,
        message_type=request.message_type,
        parent=_parent(session, request.parent_message_id, context),
        metadata=bytes(request.metadata),
        content=request.content,
        of_another=None not in (principal.user, header.user_id) and principal.user != header.user_id,
    )
    message_id = _append(session, context, policy.partition_of(principal, request.visibility), message)
    audit_record.record(
        context,
        "add_message",
        context.address.key,
        message_id=message_id,
        visibility=request.visibility,
        message_type=request.message_type,
        characters=len(request.content),
    )
    return replies.MessageAdded(message_id=message_id, timestamp=to_datetime(context.now))


def append_event(
    session: Session, request: requests.AppendEvent, context: Context
) -> Slices[requests.EventView]:
    """Append an event and merge its changes of state; a repeat changes nothing."""
    header = session.require_visible(context)
    earlier = events.find(context, request.event_id)
    if earlier is not None:
        return events.check_repeat(request, earlier, context)
    session.require_writable(context)
    message = _to_message(session, request, context)
    changes: list[fields.NumberedField] = []
    if bytes(request.state_delta) != b"{}":
        state = yield from fields.load(context, STATE)
        changes = yield from fields.merge("state_delta", state, request.state_delta)
    if changes:
        yield from fields.put(context, STATE, changes)
        session.put_header(context, msgspec.structs.replace(header, updated_at=context.now))
    partition = policy.partition_of(context.principal, request.visibility)
    message_id = put_event(session, context, partition, request, message)
    audit_record.record(
        context,
        "append_event",
        request.session_id,
        message_id=message_id,
        visibility=request.visibility,
        event_type=request.event_type,
        actor=request.actor,
        characters=len(message.content),
        state_keys=len(changes),
    )
    return events.view(Entry(message_id, partition, message), context)


def append_events(session: Session, request: requests.AppendEvents, context: Context) -> Slices[None]:
    """Append the events that are new."""
    session.require_visible(context)
    new = yield from _find_new(session, request, context)
    if not new:
        return
    session.require_writable(context)
    for event, message in new:
        partition = policy.partition_of(context.principal, event.visibility)
        put_event(session, context, partition, event, message)
        yield
    in_parts = sum(len(event.whole) for event, _ in new)
    audit_record.record(
        context,
        "append_events",
        request.session_id,
        events=len(new),
        characters=sum(len(message.content) for _, message in new),
        **({"bytes_in_parts": in_parts} if in_parts else {}),
    )


def remove_events(
    session: Session, request: requests.RemoveEvents, context: Context
) -> Slices[requests.EventsRemoved]:
    """Remove events with everything derived from them."""
    session.require_writable(context)
    context.use_reserve()
    newest: requests.EventView | None = None
    removed: list[int] = []
    counts: Counter[tuple[Partition, str, bool]] = Counter()
    for entry in message_log.walk(context, policy.partitions(context.principal), reverse=True):
        if events.id_of(entry).startswith(request.id_prefix):
            newest = newest or events.view(entry, context)
            removed.append(entry.message_id)
            counts[entry.partition, entry.message.sender, entry.message.is_talk] += 1
            drop_message(context, entry)
            if len(removed) == request.limit:
                break
        yield
    if newest is None:
        return requests.EventsRemoved(count=0, newest=None)
    yield from session.message_search.forget(context, removed)
    _uncount(session, context, counts)
    audit_record.record(context, "remove_events", request.session_id, events=len(removed))
    return requests.EventsRemoved(count=len(removed), newest=newest)


def put_event(
    session: Session,
    context: Context,
    partition: Partition,
    event: requests.AppendEvent,
    message: StoredMessage,
) -> int:
    """Append an event to the log; return its message id."""
    message_id = _append(session, context, partition, message)
    context.put(events.event_key(partition, event.event_id), message_id)
    events.put_parts(context, partition, message_id, event.whole)
    return message_id


def drop_message(context: Context, entry: Entry) -> None:
    """Stage the removal of a message with its event id and parts."""
    message_id, partition, message = entry
    context.delete(message_key(partition, message_id))
    if message.event is not None:
        context.delete(events.event_key(partition, message.event.event_id))
        for key in events.part_keys(partition, message_id, message.event.whole_bytes):
            context.delete(key)


def _append(session: Session, context: Context, partition: Partition, message: StoredMessage) -> int:
    header = session.header
    assert header is not None, "its existence was checked"
    last_id = session.counters.last_id
    message_id, session.ahead = records.next_id(last_id, session.ahead, context.now, context.random)
    context.put(message_key(partition, message_id), message)
    session.counters.record(context, partition, message_id, message)
    session.message_search.note_added(context)
    session.record_activity(context, partition.audience, messages=1, others=int(not message.is_talk))
    if session.ahead > header.ahead:
        header = msgspec.structs.replace(header, ahead=max(2 * session.ahead, AHEAD_AT_LEAST))
        context.put(HEADER, header)
    if header.naming is not None and header.naming.left and partition.audience == PUBLIC:
        named = session_naming.rename_by_message(header, header.naming, message)
        if named is not None:
            context.put(HEADER, named)
            if named.purpose != header.purpose:
                directory.put_base(context, named)
            header = named
    session.header = header
    return message_id


def _parent(session: Session, message_id: int | None, context: Context) -> tuple[int, str] | None:
    if message_id is None:
        return None
    parent = message_log.find(context, policy.partitions(context.principal), message_id)
    if parent is None:
        refusal = auth_errors.parent_not_found(message_id)
        try:
            is_there = message_log.find(context, session.counters.all_partitions(), message_id) is not None
        except RecordDamagedError:
            is_there = True
        raise auth_errors.denial(refusal) if is_there else refusal
    return message_id, parent.partition.audience


def _check_content(session: Session, content: str) -> None:
    if len(content) > session.content_limit:
        raise auth_errors.too_long("content", len(content), session.content_limit)
    if MOST_UTF8_BYTES * len(content) > MAX_VALUE_BYTES:
        size = len(content.encode())
        if size > MAX_VALUE_BYTES:
            raise auth_errors.too_large("content", size)


def _to_message(session: Session, event: requests.AppendEvent, context: Context) -> StoredMessage:
    message = events.to_message(event, context.now)
    if message.is_talk:
        _check_content(session, message.content)
    return message


def _find_new(
    session: Session, request: requests.AppendEvents, context: Context
) -> Slices[list[tuple[requests.AppendEvent, StoredMessage]]]:
    new: dict[str, tuple[requests.AppendEvent, StoredMessage]] = {}
    for event in request.events:
        earlier = events.find(context, event.event_id)
        if earlier is not None:
            events.check_repeat(event, earlier, context)
        elif event.event_id in new:
            raise auth_errors.event_conflict(request.session_id, event.event_id)
        else:
            new[event.event_id] = event, _to_message(session, event, context)
        yield
    return list(new.values())


def _uncount(session: Session, context: Context, counts: Counter[tuple[Partition, str, bool]]) -> None:
    """Stage the reduced counts; the session keeps its place in listings."""
    for (partition, sender, is_talk), count in counts.items():
        others = 0 if is_talk else count
        session.counters.subtract(context, partition, sender, count, others)
        old = session.activity[partition.audience]
        new = msgspec.structs.replace(old, messages=old.messages - count, others=old.others - others)
        directory.move(context, partition.audience, old, new)
        session.activity[partition.audience] = new
    for audience in {partition.audience for partition, _, _ in counts}:
        session.publish(context, audience)
