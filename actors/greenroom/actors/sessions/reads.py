"""Reading a session: its fields, and the messages in the reader's partitions by page, sender and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.validation.times import optional_datetime, to_datetime, to_microseconds
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.storage import fields, records
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.records import METADATA, STATE, Entry, Header, named, seen_status, view
from greenroom.runtime import Context, Slices

NEWEST_MESSAGES = 100

_BACKWARD, _FORWARD = b"<", b">"
_POSITION_BYTES = 9  # a direction and a message's id


class Newest(NamedTuple):
    """The newest messages, oldest of them first, and a cursor that leads further back."""

    messages: list[replies.MessageView]
    cursor: str | None


class Span(NamedTuple):
    """The range of ids of a page, and from which end it is taken."""

    lowest: int
    highest: int
    backward: bool


def session(context: Context, header: Header, messages: int) -> Slices[replies.SessionView]:
    """Return the session's fields for a reader that sees this many messages in it."""
    return replies.SessionView(
        session_id=context.address.key,
        purpose=header.purpose,
        status=seen_status(header.status, messages),
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


def newest(context: Context, session_id: str, partitions: Sequence[Partition]) -> Slices[Newest]:
    """Return the newest messages in ``partitions``."""
    entries = log.walk(context, partitions, reverse=True)
    page, has_more = yield from log.take(context, entries, NEWEST_MESSAGES)
    cursor = cursor_before(page[-1], session_id) if has_more else None
    return Newest([view(entry, context.principal) for entry in reversed(page)], cursor)


def cursor_before(entry: Entry, session_id: str) -> str:
    """Return a cursor that leads from a message further back, to all that its reader may see."""
    return _next_cursor(entry, _BACKWARD, _binding(session_id, "all"))


def call_for_newest(session_id: str) -> replies.ToolCall:
    """Return the call that reads the newest messages; its answer leads further back."""
    cursor = paging.encode(_BACKWARD + log.HIGHEST_ID.to_bytes(8), _binding(session_id, "all"))
    return replies.ToolCall(tool="get_messages", arguments={"session_id": session_id, "cursor": cursor})


def call_for_one(session_id: str, message_id: int) -> replies.ToolCall:
    """Return the call that reads a message, and those after it."""
    return replies.ToolCall(
        tool="get_messages", arguments={"session_id": session_id, "since_id": message_id - 1}
    )


def page(
    request: requests.GetMessages, context: Context, counters: SenderCounters
) -> Slices[replies.MessagePage]:
    """Answer a page, oldest first; a cursor from `newest` leads from page to page backwards.

    Raises:
        Refusal: ``VALIDATION_ERROR`` for a cursor of another listing, or with an offset.
    """
    if request.cursor is not None and request.offset is not None:
        raise auth_errors.invalid("offset", "offset: give a cursor or an offset, not both")
    partitions = policy.partitions(context.principal, request.visibility_filter)
    binding = _binding(context.address.key, request.visibility_filter)
    first = 0 if request.since_id is None else request.since_id + 1
    span = Span(first, log.HIGHEST_ID, backward=False)
    if request.cursor is not None:
        span = _continued(paging.decode(request.cursor, binding, _POSITION_BYTES), first)
    elif request.offset:
        past_all = request.offset >= counters.count(partitions)
        start = (
            log.HIGHEST_ID + 1
            if past_all
            else (yield from log.skip(context, partitions, first, request.offset))
        )
        span = span._replace(lowest=start)
    entries = log.walk(context, partitions, lowest=span.lowest, highest=span.highest, reverse=span.backward)
    found, has_more = yield from log.take(context, entries, request.limit)
    views = [view(entry, context.principal) for entry in found]
    kept = paging.take_in_order(views, request.max_tokens, named)
    direction = _BACKWARD if span.backward else _FORWARD
    next_cursor = None
    if has_more or kept.passed < len(found):
        next_cursor = _next_cursor(found[kept.passed - 1], direction, binding)
    views = kept.kept[::-1] if span.backward else kept.kept
    total = counters.count(partitions)
    if request.since_id is not None:
        total = (
            (yield from log.count(context, partitions, first)) if first <= counters.newest(partitions) else 0
        )
    return replies.MessagePage(
        messages=views,
        count=len(views),
        total=total,
        next_cursor=next_cursor,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def by_sender(
    request: requests.SearchBySender, context: Context, counters: SenderCounters
) -> Slices[replies.SenderMessages]:
    """Answer the newest messages of one sender."""
    partitions = policy.partitions(context.principal)
    there = counters.count(partitions, request.sender)
    found: list[Entry] = []
    if there:
        entries = log.walk(context, partitions, reverse=True)
        found, _ = yield from log.take(
            context, entries, request.limit, lambda entry: entry.message.sender == request.sender, there
        )
    views = [view(entry, context.principal) for entry in found]
    kept = paging.take_in_order(views, request.max_tokens, named)
    return replies.SenderMessages(
        messages=kept.kept,
        sender=request.sender,
        count=len(kept.kept),
        truncated=len(kept.kept) < there,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def by_timerange(
    request: requests.SearchByTimerange, context: Context, ahead: int
) -> Slices[replies.TimeRangeMessages]:
    """Answer the messages between two times; ``ahead`` bounds how far ids ran ahead of the clock.

    Raises:
        Refusal: ``VALIDATION_ERROR`` when the end lies before the start.
    """
    start, end = to_microseconds(request.start_time), to_microseconds(request.end_time)
    entries = log.walk(
        context,
        policy.partitions(context.principal),
        lowest=records.lowest_id(start),
        highest=records.highest_id(end, ahead),
    )
    found, has_more = yield from log.take(
        context, entries, request.limit, lambda entry: start <= entry.message.timestamp <= end
    )
    views = [view(entry, context.principal) for entry in found]
    kept = paging.take_in_order(views, request.max_tokens, named)
    return replies.TimeRangeMessages(
        messages=kept.kept,
        timerange=replies.TimeRange(start=to_datetime(start), end=to_datetime(end)),
        count=len(kept.kept),
        truncated=has_more or len(kept.kept) < len(views),
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def _binding(session_id: str, visibility_filter: str) -> str:
    return f"messages {session_id} {visibility_filter}"


def _next_cursor(last: Entry, direction: bytes, binding: str) -> str:
    return paging.encode(direction + last.message_id.to_bytes(8), binding)


def _continued(position: bytes, first: int) -> Span:
    place = min(max(int.from_bytes(position[1:]), 1), log.HIGHEST_ID)
    if position[:1] == _BACKWARD:
        return Span(first, place - 1, backward=True)
    return Span(max(first, place + 1), log.HIGHEST_ID, backward=False)
