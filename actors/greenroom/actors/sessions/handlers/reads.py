"""Reads of a session: its fields, messages and events, in the reader's partitions."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.damage import damaged_entry
from greenroom.actors.core.resources.resources import ReadResource
from greenroom.actors.core.validation.times import optional_datetime, to_datetime, to_microseconds
from greenroom.actors.sessions.handlers import events
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import fields, message_log, records
from greenroom.actors.sessions.storage.records import METADATA, STATE, Entry, Header, identify, view
from greenroom.runtime import Context, RecordDamagedError, Slices

NEWEST_MESSAGES = 100

_BACKWARD, _FORWARD = b"<", b">"
_POSITION_BYTES = 9  # a direction and a message's id


class Span(NamedTuple):
    """The range of ids of a page, and its direction."""

    lowest: int
    highest: int
    backward: bool


def session_view(session: Session, header: Header, context: Context) -> Slices[replies.SessionView]:
    """Return the fields of the session for the sender."""
    return replies.SessionView(
        session_id=context.address.key,
        purpose=header.purpose,
        status=session.status(header, context),
        created_at=to_datetime(header.created_at),
        created_by=header.created_by,
        updated_at=to_datetime(header.updated_at),
        terminated_at=optional_datetime(header.terminated_at),
        app_name=header.app_name,
        user_id=header.user_id,
        project_id=header.project_id,
        metadata=(yield from fields.load_json(context, METADATA)),
        state=(yield from fields.load_json(context, STATE)),
    )


def cursor_before(entry: Entry, session_id: str) -> str:
    """Return a cursor that pages backwards from a message."""
    return _next_cursor(entry, _BACKWARD, _binding(session_id, "all"))


def call_for_newest(session_id: str) -> replies.ToolCall:
    """Return the call that reads the newest messages and pages backwards."""
    cursor = paging.encode(_BACKWARD + message_log.HIGHEST_ID.to_bytes(8), _binding(session_id, "all"))
    return replies.ToolCall(tool="get_messages", arguments={"session_id": session_id, "cursor": cursor})


def call_for_one(session_id: str, message_id: int) -> replies.ToolCall:
    """Return the call that reads a message and those after it."""
    return replies.ToolCall(
        tool="get_messages", arguments={"session_id": session_id, "since_id": message_id - 1}
    )


# -- handlers --------------------------------------------------------------


def read(
    session: Session, _: requests.GetSession | ReadResource, context: Context
) -> Slices[replies.SessionRead]:
    """Return the session with its newest visible messages."""
    header = session.require_visible(context)
    entries = message_log.walk(context, policy.partitions(context.principal), reverse=True)
    newest, has_more = yield from message_log.take_page(entries, NEWEST_MESSAGES)
    return replies.SessionRead(
        session=(yield from session_view(session, header, context)),
        messages=[view(entry, context.principal) for entry in reversed(newest)],
        statistics=statistics(session, context),
        has_more=has_more,
        cursor=cursor_before(newest[-1], context.address.key) if has_more else None,
    )


def statistics(session: Session, context: Context) -> replies.SessionStatistics:
    """Return the counts of a session for the caller."""
    partitions = policy.partitions(context.principal)
    return replies.SessionStatistics(
        message_count=session.counters.count(partitions),
        unique_agents=session.counters.count_senders(partitions),
        last_activity=to_datetime(session.last_activity(context.principal)),
    )


def get_messages(
    session: Session, request: requests.GetMessages, context: Context
) -> Slices[replies.MessagePage]:
    """Return a page of visible messages, oldest first; a cursor from `read` pages backwards."""
    before, counters = session.require_visible(context).continues, session.counters
    if request.cursor is not None and request.offset is not None:
        raise auth_errors.invalid("offset", "offset: give a cursor or an offset, not both")
    partitions = policy.partitions(context.principal, request.visibility_filter)
    binding = _binding(context.address.key, request.visibility_filter)
    first = 0 if request.since_id is None else request.since_id + 1
    span = Span(first, message_log.HIGHEST_ID, backward=False)
    if request.cursor is not None:
        span = _span_from(paging.decode(request.cursor, binding, _POSITION_BYTES), first)
    elif request.offset:
        past_all = request.offset >= counters.count(partitions)
        start = (
            message_log.HIGHEST_ID + 1
            if past_all
            else (yield from message_log.skip(context, partitions, first, request.offset))
        )
        span = span._replace(lowest=start)
    entries = message_log.walk(
        context, partitions, lowest=span.lowest, highest=span.highest, reverse=span.backward
    )
    found, has_more = yield from message_log.take_page(entries, request.limit)
    views = [view(entry, context.principal) for entry in found]
    kept = paging.fit_to_budget(views, request.max_tokens, identify)
    direction = _BACKWARD if span.backward else _FORWARD
    next_cursor = None
    if has_more or kept.passed < len(found):
        next_cursor = _next_cursor(found[kept.passed - 1], direction, binding)
    views = kept.kept[::-1] if span.backward else kept.kept
    total = counters.count(partitions)
    if request.since_id is not None:
        total = (
            (yield from message_log.count(context, partitions, first))
            if first <= counters.newest_id(partitions)
            else 0
        )
    page = replies.MessagePage(
        messages=views,
        count=len(views),
        total=total,
        next_cursor=next_cursor,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )
    if before and not session.count_readable(context):
        return msgspec.structs.replace(page, continues=before, earlier=call_for_newest(before))
    return page


def search_by_sender(
    session: Session, request: requests.SearchBySender, context: Context
) -> Slices[replies.SenderMessages]:
    """Return the newest messages of one sender, and write an audit record."""
    session.require_visible(context)
    partitions = policy.partitions(context.principal)
    there = session.counters.count(partitions, request.sender)
    found: list[Entry] = []
    if there:
        entries = message_log.walk(context, partitions, reverse=True)
        found, _ = yield from message_log.take_page(
            entries, request.limit, lambda entry: entry.message.sender == request.sender, there
        )
    views = [view(entry, context.principal) for entry in found]
    kept = paging.fit_to_budget(views, request.max_tokens, identify)
    count = len(kept.kept)
    sender = {"sender": request.sender} if count else {}  # the name of an unknown sender may be any text
    record_search(context, "search_by_sender", count, **sender)
    return replies.SenderMessages(
        messages=kept.kept,
        sender=request.sender,
        count=count,
        truncated=count < there,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def search_by_timerange(
    session: Session, request: requests.SearchByTimerange, context: Context
) -> Slices[replies.TimeRangeMessages]:
    """Return the messages between two times, and write an audit record."""
    header = session.require_visible(context)
    start, end = to_microseconds(request.start_time), to_microseconds(request.end_time)
    entries = message_log.walk(
        context,
        policy.partitions(context.principal),
        lowest=records.lowest_id(start),
        highest=records.highest_id(end, header.ahead),
    )
    found, has_more = yield from message_log.take_page(
        entries, request.limit, lambda entry: start <= entry.message.timestamp <= end
    )
    views = [view(entry, context.principal) for entry in found]
    kept = paging.fit_to_budget(views, request.max_tokens, identify)
    timerange = replies.TimeRange(start=to_datetime(start), end=to_datetime(end))
    record_search(context, "search_by_timerange", len(kept.kept), timerange=timerange)
    return replies.TimeRangeMessages(
        messages=kept.kept,
        timerange=timerange,
        count=len(kept.kept),
        truncated=has_more or len(kept.kept) < len(views),
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def record_search(context: Context, action: str, found: int, **details: Any) -> None:
    """Buffer the audit record of a search."""
    audit_record.record_read(context, context.principal, action, context.address.key, found=found, **details)


def measure(session: Session, _: requests.MeasureSession, context: Context) -> Slices[int]:
    """Return the bytes of the visible messages."""
    session.require_visible(context)
    return message_log.content_bytes(context, policy.partitions(context.principal))


def snapshot(session: Session, _: requests.TakeSnapshot, context: Context) -> Slices[requests.Snapshot]:
    """Return the session, and the id of its newest visible event."""
    header, partitions = session.require_visible(context), policy.partitions(context.principal)
    seen = yield from session_view(session, header, context)
    last = yield from events.find_last(context)
    return requests.Snapshot(
        session=seen,
        newest_id=session.counters.newest_id(partitions),
        last_event_id=None if last is None else last.event_id,
        last_event_at=None if last is None else to_datetime(last.at),
    )


def get_state(session: Session, request: requests.GetState, context: Context) -> Slices[requests.StateValue]:
    """Return the value of one key of the state."""
    session.require_visible(context)
    met: list[RecordDamagedError] = []
    state = yield from fields.load(context, STATE, met.append)
    if request.key not in state and met:
        raise damaged_entry(met[0], "perhaps the field", key=request.key)
    if request.key not in state:
        return requests.StateValue(found=False)
    return requests.StateValue(found=True, value=msgspec.Raw(state[request.key].field.value))


# -- parts -------------------------------------------------------------------


def _binding(session_id: str, visibility_filter: str) -> str:
    return f"messages {session_id} {visibility_filter}"


def _next_cursor(last: Entry, direction: bytes, binding: str) -> str:
    return paging.encode(direction + last.message_id.to_bytes(8), binding)


def _span_from(position: bytes, first: int) -> Span:
    place = min(max(int.from_bytes(position[1:]), 1), message_log.HIGHEST_ID)
    if position[:1] == _BACKWARD:
        return Span(first, place - 1, backward=True)
    return Span(max(first, place + 1), message_log.HIGHEST_ID, backward=False)
