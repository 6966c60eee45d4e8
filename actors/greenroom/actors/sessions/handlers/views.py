"""Views of a session: the transcript in pages, and three resources.

The conversation has the newest messages in full, shortens older messages, and has one line for each of the
oldest. The tiers depend only on the messages, not on a clock, randomness or a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from greenroom.actors.content.text.extract import extract_sentences
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.replies import replies
from greenroom.actors.core.resources.resource_uris import (
    conversation_uri,
    is_of_conversation,
    is_of_current_session,
)
from greenroom.actors.core.resources.resources import ReadResource, ResourceInfo
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.actors.sessions.handlers import reads
from greenroom.actors.sessions.handlers.work_context import context_read
from greenroom.actors.sessions.requests.session_views import (
    AnsweredMessage,
    CompressedMessage,
    ConversationResource,
    CurrentSessionResource,
    MessageLine,
    ReadTranscript,
    SessionResource,
    TierCounts,
    Transcript,
    Writer,
)
from greenroom.actors.sessions.search import preview
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import message_log
from greenroom.actors.sessions.storage.records import Entry, Header, read_compactions, view
from greenroom.runtime import Context, Slices

COMPRESSED_CHARACTERS: Final = 400
LINE_CHARACTERS: Final = 120
RECENT_BYTES: Final = message_log.PAGE_BYTES // 2
"""The most bytes of the recent tier in a reply (`message_log.answer_bytes`); older messages are shortened
instead. The newest message is always included."""


class Tiers(NamedTuple):
    """The tiers, oldest message first in each.

    Attributes:
        characters: The length of all messages in full; ``shown`` is the length of the returned texts.
        cursor: For `GetMessages`, which reads older messages; None if there are none.
    """

    recent: list[replies.MessageView]
    compressed: list[CompressedMessage]
    lines: list[MessageLine]
    characters: int
    shown: int
    cursor: str | None


def read_transcript(session: Session, request: ReadTranscript, context: Context) -> Slices[Transcript]:
    """Return a page of the transcript."""
    header = session.require_visible(context)
    if request.before is not None and request.start is not None:
        raise auth_errors.invalid("start", "start: give before or start, not both")
    partitions = policy.partitions(context.principal)
    entries, has_older, has_newer = yield from _page(request, context, partitions)
    messages = [view(entry, context.principal) for entry in entries]
    return Transcript(
        session=(yield from reads.session_view(session, header, context)),
        statistics=reads.statistics(session, context),
        messages=messages,
        answered=_find_answered(messages, context, partitions),
        writers=_writers(session, partitions),
        compactions=read_compactions(context),
        has_older=has_older,
        has_newer=has_newer,
    )


def read_resource(
    session: Session, request: ReadResource, context: Context
) -> Slices[SessionResource | CurrentSessionResource | ConversationResource]:
    """Return the resource of the URI."""
    header = session.header
    if header is None:
        raise auth_errors.resource_not_found(request.uri)
    if not policy.may_see_session(context.principal, header.project_id):
        raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
    if is_of_conversation(request.uri):
        return _conversation(session, request, context, header)
    if is_of_current_session(request.uri):
        return _current(session, request, context, header)
    return _whole(session, request, context)


def _whole(session: Session, request: ReadResource, context: Context) -> Slices[SessionResource]:
    read = yield from reads.read(session, request, context)
    audit_record.record_resource_read(context, messages=len(read.messages))
    return SessionResource(
        session=read.session,
        messages=read.messages,
        statistics=read.statistics,
        has_more=read.has_more,
        cursor=read.cursor,
        resource_info=_info(request, context, read.statistics.last_activity),
    )


def _conversation(
    session: Session, request: ReadResource, context: Context, header: Header
) -> Slices[ConversationResource]:
    partitions = policy.partitions(context.principal)
    tiers = yield from _tiers(context, partitions, session.tiers, session.shortened)
    session.shortened = {each.message_id: each.text for each in tiers.compressed}
    counts = TierCounts(
        recent=len(tiers.recent),
        compressed=len(tiers.compressed),
        lines=len(tiers.lines),
        total=session.count_readable(context),
    )
    audit_record.record_resource_read(context, messages=counts.recent + counts.compressed + counts.lines)
    return ConversationResource(
        session_id=context.address.key,
        purpose=header.purpose,
        lines=tiers.lines,
        compressed=tiers.compressed,
        recent=tiers.recent,
        counts=counts,
        characters=tiers.characters,
        shown=tiers.shown,
        has_more=tiers.cursor is not None,
        cursor=tiers.cursor,
        resource_info=_info(request, context, reads.statistics(session, context).last_activity),
    )


def _current(
    session: Session, request: ReadResource, context: Context, header: Header
) -> Slices[CurrentSessionResource]:
    seen = yield from reads.session_view(session, header, context)
    statistics = reads.statistics(session, context)
    audit_record.record_resource_read(context, messages=0)
    return CurrentSessionResource(
        session=seen,
        statistics=statistics,
        work=(yield from context_read(session, header, None, context)),
        conversation=conversation_uri(context.address.key),
        resource_info=_info(request, context, statistics.last_activity),
    )


def _info(request: ReadResource, context: Context, last_updated: datetime) -> ResourceInfo:
    return ResourceInfo(uri=request.uri, reader=context.principal.agent_id, last_updated=last_updated)


def _tiers(
    context: Context, partitions: Sequence[Partition], sizes: TierSizes, known: Mapping[int, str]
) -> Slices[Tiers]:
    """Return the newest messages in tiers; shortened texts in ``known`` are reused, to save time."""
    recent: list[replies.MessageView] = []
    compressed: list[CompressedMessage] = []
    lines: list[MessageLine] = []
    characters = shown = size = 0
    last: Entry | None = None
    cursor: str | None = None
    for entry in message_log.walk(context, partitions, reverse=True):
        content = entry.message.content
        if len(recent) < sizes.recent and not compressed and not lines:
            size += message_log.answer_bytes(entry.message)
        else:
            size = RECENT_BYTES + 1
        if not recent or size <= RECENT_BYTES:
            recent.append(view(entry, context.principal))
            shown += len(content)
        elif len(compressed) < sizes.compressed and not lines:
            compressed.append(_compress(entry, known.get(entry.message_id)))
            shown += len(compressed[-1].text)
        elif len(lines) < sizes.lines:
            lines.append(_line(entry))
            shown += len(lines[-1].line)
        else:
            cursor = None if last is None else reads.cursor_before(last, context.address.key)
            break
        characters += len(content)
        last = entry
        yield
    return Tiers(recent[::-1], compressed[::-1], lines[::-1], characters, shown, cursor)


def _compress(entry: Entry, text: str | None) -> CompressedMessage:
    message = entry.message
    return CompressedMessage(
        message_id=entry.message_id,
        sender=message.sender,
        timestamp=to_datetime(message.timestamp),
        text=extract_sentences(message.content, COMPRESSED_CHARACTERS) if text is None else text,
        characters=len(message.content),
    )


def _line(entry: Entry) -> MessageLine:
    message = entry.message
    return MessageLine(
        message_id=entry.message_id,
        sender=message.sender,
        timestamp=to_datetime(message.timestamp),
        line=beginning(message.content),
    )


def beginning(content: str) -> str:
    """Return the beginning of a message, on one line."""
    return preview(" ".join(content[: LINE_CHARACTERS * 4].split()), "", LINE_CHARACTERS).text


def _writers(session: Session, partitions: Sequence[Partition]) -> list[Writer]:
    found = [
        Writer(sender=sender, messages=count, last_at=to_datetime(last_at))
        for sender, (count, last_at) in session.counters.writers(partitions).items()
    ]
    return sorted(found, key=attrgetter("last_at"), reverse=True)


def _page(
    request: ReadTranscript, context: Context, partitions: Sequence[Partition]
) -> Slices[tuple[list[Entry], bool, bool]]:
    if request.start is not None:
        walked = message_log.walk(context, partitions, lowest=request.start)
        entries, has_newer = yield from message_log.take_page(walked, request.limit)
        older = message_log.walk(context, partitions, highest=request.start - 1, reverse=True)
        return entries, next(older, None) is not None, has_newer
    highest = message_log.HIGHEST_ID if request.before is None else request.before - 1
    walked = message_log.walk(context, partitions, highest=highest, reverse=True)
    entries, has_older = yield from message_log.take_page(walked, request.limit)
    newer = (
        iter(()) if request.before is None else message_log.walk(context, partitions, lowest=request.before)
    )
    return entries[::-1], has_older, next(newer, None) is not None


def _find_answered(
    messages: Sequence[replies.MessageView], context: Context, partitions: Sequence[Partition]
) -> list[AnsweredMessage]:
    here = {message.message_id for message in messages}
    wanted = {message.parent_message_id for message in messages} - here - {None}
    found = [message_log.find(context, partitions, each) for each in sorted(filter(None, wanted))]
    return [
        AnsweredMessage(
            message_id=entry.message_id,
            sender=entry.message.sender,
            line=beginning(entry.message.content),
        )
        for entry in found
        if entry is not None
    ]
