"""Export of a session into a passport, and restoring of a session from a passport.

Private messages become the importer's private messages. A message for agents of one type stays with that
type; if the importer has another type, only the importer sees the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import passport_errors, policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.policy import PUBLIC, Partition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import (
    HOUR,
    to_datetime,
    to_microseconds,
    with_datetime,
    with_microseconds,
)
from greenroom.actors.core.validation.types import CLOSED, SessionStatus
from greenroom.actors.memories.requests import transfer
from greenroom.actors.sessions.handlers import events
from greenroom.actors.sessions.handlers.work_context import context_read, publish_decisions
from greenroom.actors.sessions.requests import payloads, session_context
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import (
    directory,
    fields,
    message_log,
    migrations,
    records,
    work_context,
)
from greenroom.actors.sessions.storage.directory import ActivityRow
from greenroom.actors.sessions.storage.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.storage.work_context import WorkContext
from greenroom.actors.sessions.summary.briefing import read_newest_talk, write_briefing
from greenroom.actors.sessions.summary.retained_messages import is_kept_by_hooks
from greenroom.runtime import Context, Slices

STAGED_TIMER: Final = "staged"
STAGED_FOR: Final = HOUR
"""How long staged messages are kept without their session."""
_STAGED: Final = b"r"
_TYPE: Final = "type:"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(payloads.PayloadMessage).decode


def export_head(
    session: Session, request: payloads.ExportHead, context: Context
) -> Slices[payloads.PayloadHead]:
    """Return everything but the messages."""
    header = session.require_visible(context)
    state = context.get(migrations.TOOL_STATE, ToolState)
    partitions = policy.partitions(context.principal)
    came = yield from _describe_session(context, header, state, session.status(header, context))
    seen = work_context.view(
        session.work_context.own(context), session.work_context.common(context), context.principal
    )
    messages = session.counters.count(partitions)
    talk = yield from read_newest_talk(context, partitions)
    briefing = yield from write_briefing(talk, seen, header.purpose, request.to_tool, messages)
    head = payloads.PayloadHead(
        at=to_datetime(context.now),
        session=came,
        context=seen,
        migrations=migrations.migrations(context),
        newest_id=session.counters.newest_id(partitions),
        messages=messages,
        briefing=briefing.text,
    )
    migrations.log_migration(context, "exported", None if state is None else state.tool, request.to_tool)
    audit_record.record(context, "export_session", context.address.key, messages=messages)
    return head


def export_messages(
    session: Session, request: payloads.ExportMessages, context: Context
) -> Slices[payloads.PayloadPage]:
    """Return a page of the visible messages."""
    session.require_visible(context)
    partitions = policy.partitions(context.principal)
    entries = message_log.walk(context, partitions, lowest=request.after_id + 1, highest=request.up_to_id)
    lines: list[msgspec.Raw] = []
    size = last_id = 0
    for entry in entries:
        if size >= payloads.PIECE_BYTES:
            return payloads.PayloadPage(lines=lines, last_id=last_id)
        line = _encode(_to_payload(entry, context.principal))
        lines.append(msgspec.Raw(line))
        size += len(line)
        last_id = entry.message_id
        yield
    return payloads.PayloadPage(lines=lines, last_id=None)


def find_attempt(session: Session, request: payloads.FindAttempt, context: Context) -> payloads.Place:
    """Return whether the attempt may create the session here, or has done so."""
    if session.header is None:
        return "free"
    state = context.get(migrations.TOOL_STATE, ToolState)
    return "made" if state is not None and state.attempt == request.attempt else "taken"


def find_exported(session: Session, request: payloads.FindExported, context: Context) -> bool:
    """Return whether this is the exported session, and open to the caller.

    A restored backup may have an older state of the session, or another session with the same id.
    """
    header = session.header
    return (
        header is not None
        and header.status not in CLOSED
        and not is_kept_by_hooks(header)
        and policy.may_see_session(context.principal, header.project_id)
        and header.created_at == to_microseconds(request.created_at)
        and header.updated_at >= to_microseconds(request.updated_at)
        and (
            request.newest_id == 0
            or message_log.find(context, session.counters.all_partitions(), request.newest_id) is not None
        )
    )


def stage(session: Session, request: payloads.StageMessages, context: Context) -> None:
    """Stage a piece of messages."""
    if session.header is None:
        for line in request.lines:
            if len(memoryview(line)) > session.content_limit:  # else its text is within the limit, too
                _check_length(_decode(line), session.content_limit)
        context.put(_piece_key(request.attempt, request.number), [bytes(line) for line in request.lines])
        context.set_timer(STAGED_TIMER, context.now + STAGED_FOR, payloads.DropStaged())


def drop_staged(_: Session, __: payloads.DropStaged, context: Context) -> Slices[None]:
    """Drop staged messages from which no session was created."""
    context.use_reserve()
    for key, _piece in context.scan(msgspec.Raw, prefix=_STAGED):
        context.delete(key)
        yield


def restore(session: Session, request: payloads.MakeRestored, context: Context) -> Slices[payloads.Restored]:
    """Create the session from its staged pieces."""
    principal: Principal = context.principal
    if session.header is not None:
        made = context.get(migrations.TOOL_STATE, ToolState)
        if made is None or made.attempt != request.attempt:
            raise auth_errors.session_exists(context.address.key)
        return (
            yield from _answer_restored(
                session, session.require_visible(context), made, request.tool, context
            )
        )
    policy.check_new_session(principal, context.address.key, None, request.project_id)
    release(request.memories, context)
    header = yield from _make(session, request, context)
    for earlier in request.migrations:
        migrations.put_migration(context, with_microseconds(StoredMigration, earlier))
    own, common = session.work_context.own(context), session.work_context.common(context)
    put_context(own, common, request.context, context)
    came = request.session
    made = ToolState(
        request.tool,
        came.original_tool or came.tool,
        came.workspace_path,
        context.now,
        request.attempt,
        session.counters.count(policy.partitions(principal)),
        None if request.memories is None else request.memories.staging,
    )
    context.put(migrations.TOOL_STATE, made)
    agent, before = principal.agent_id, came.session_id
    step = StoredMigration(
        came.tool, request.tool, context.now, "restored", agent, before, request.server, None
    )
    migrations.put_migration(context, step)
    migrations.put_recent(context, user_namespace(principal), header.project_id, request.tool)
    session.activity = _list_activities(session, header, context)
    session.header = header
    audit_record.record(
        context, "restore_session", context.address.key, messages=made.messages, pieces=request.pieces
    )
    for audience in session.activity:
        session.publish(context, audience)
    publish_decisions(context, header)
    return (yield from _answer_restored(session, header, made, request.tool, context))


def _answer_restored(
    session: Session, header: records.Header, made: ToolState, tool: str, context: Context
) -> Slices[payloads.Restored]:
    return payloads.Restored(
        read=(yield from context_read(session, header, tool, context)),
        restored_at=to_datetime(made.at),
        original_tool=made.original_tool,
        messages=made.messages,
        importing=made.importing,
    )


# -- parts -------------------------------------------------------------------


def _describe_session(
    context: Context, header: records.Header, work: ToolState | None, status: SessionStatus
) -> Slices[payloads.PayloadSession]:
    """Return the session without its messages."""
    return payloads.PayloadSession(
        session_id=context.address.key,
        purpose=header.purpose,
        status=status,
        created_at=to_datetime(header.created_at),
        created_by=header.created_by,
        updated_at=to_datetime(header.updated_at),
        app_name=header.app_name,
        project_id=header.project_id,
        workspace_path=None if work is None else work.workspace_path,
        tool=None if work is None else work.tool,
        original_tool=None if work is None else work.original_tool,
        metadata=(yield from fields.load_json(context, records.METADATA)),
        state=(yield from fields.load_json(context, records.STATE)),
    )


def _to_payload(entry: records.Entry, reader: Principal) -> payloads.PayloadMessage:
    message_id, partition, message = entry
    parent, audience = message.parent or (None, PUBLIC)
    return payloads.PayloadMessage(
        message_id=message_id,
        timestamp=to_datetime(message.timestamp),
        sender=message.sender,
        content=message.content,
        message_type=message.message_type,
        visibility=partition.visibility,
        agent_type=partition.audience.removeprefix(_TYPE) if partition.audience.startswith(_TYPE) else None,
        parent_message_id=parent if policy.may_see_message(reader, audience) else None,
        metadata=msgspec.Raw(message.metadata),
        event=None if message.event is None else with_datetime(payloads.PayloadEvent, message.event),
    )


def _piece_key(attempt: str, number: int) -> bytes:
    return _STAGED + bytes.fromhex(attempt) + number.to_bytes(4)


def release(memories: transfer.ReleaseImport | None, context: Context) -> None:
    """Stage the release of the staged memories, if any; refuse if some are missing."""
    if memories is not None:
        found: transfer.ImportProgress | None = context.precheck_answer
        if found is None or found.staging != memories.staging:
            raise passport_errors.invalid("some of its memories are missing; restore it again")
        context.tell(transfer.import_address(memories.staging), memories)


def _make(session: Session, request: payloads.MakeRestored, context: Context) -> Slices[records.Header]:
    """Stage the imported session; return its header."""
    came = request.session
    ahead = yield from _put_messages(session, request, context)
    metadata = yield from fields.merge("metadata", {}, came.metadata)
    state = yield from fields.merge("state", {}, came.state)
    yield from fields.put(context, records.METADATA, metadata)
    yield from fields.put(context, records.STATE, state)
    header = records.Header(
        purpose=came.purpose,
        status="active" if came.status in CLOSED else came.status,  # an import reopens the session
        created_at=to_microseconds(came.created_at),
        created_by=came.created_by,
        updated_at=to_microseconds(came.updated_at),
        terminated_at=None,
        app_name=came.app_name,
        user_id=context.principal.user,
        project_id=request.project_id,
        ahead=ahead,
    )
    context.put(records.HEADER, header)
    directory.put_base(context, header)
    # A timer drops pieces of other attempts; finding them here would read all pieces again.
    for number in range(request.pieces):
        context.delete(_piece_key(request.attempt, number))
    return header


def _put_messages(session: Session, request: payloads.MakeRestored, context: Context) -> Slices[int]:
    """Stage the messages; return the units by which their ids run ahead of their times."""
    principal: Principal = context.principal
    audiences: dict[int, str] = {}
    last_id = ahead = 0
    for line in _read_staged(context, request):
        message = _decode(line)
        time = to_microseconds(message.timestamp)
        by = records.ahead_of(message.message_id, time)
        if message.message_id <= last_id or by < 0 or time < 0:
            raise passport_errors.invalid(
                f"the message {message.message_id} has an invalid id: ids must ascend and fit their times"
            )
        _check_length(message, session.content_limit)
        partition = _partition(message, principal)
        last_id, ahead = message.message_id, max(ahead, by)
        audiences[last_id] = partition.audience
        stored = _to_stored(message, time, audiences)
        context.put(records.message_key(partition, last_id), stored)
        session.counters.record(context, partition, last_id, stored)
        if message.event is not None:
            context.put(events.event_key(partition, message.event.event_id), last_id)
        yield
    return ahead


def _check_length(message: payloads.PayloadMessage, content_limit: int) -> None:
    if len(message.content) > content_limit and message.event is None:
        raise auth_errors.too_long("content", len(message.content), content_limit)


def _read_staged(context: Context, request: payloads.MakeRestored) -> Iterator[bytes]:
    prefix = _STAGED + bytes.fromhex(request.attempt)
    number = 0
    for key, lines in context.scan(list[bytes], prefix=prefix):
        if key != prefix + number.to_bytes(4):
            break
        number += 1
        yield from lines
    if number != request.pieces:
        raise passport_errors.invalid("some of its messages are missing; restore it again")


def _partition(message: payloads.PayloadMessage, principal: Principal) -> Partition:
    if message.visibility == "agent_only" and message.agent_type != principal.agent_type:
        own = policy.own_audience(principal.agent_id)
        return policy.Partition(own, "agent_only")
    return policy.partition_of(principal, message.visibility)


def _to_stored(
    message: payloads.PayloadMessage, time: int, audiences: dict[int, str]
) -> records.StoredMessage:
    parent = message.parent_message_id
    return records.StoredMessage(
        sender=message.sender,
        timestamp=time,
        message_type=message.message_type,
        parent=(parent, audiences[parent]) if parent is not None and parent in audiences else None,
        metadata=bytes(message.metadata),
        content=message.content,
        event=None if message.event is None else with_microseconds(records.StoredEvent, message.event),
    )


def _list_activities(session: Session, header: records.Header, context: Context) -> dict[str, ActivityRow]:
    """Stage the places of the new session in listings; return the activity by audience."""
    activities = {
        audience: ActivityRow(*activity) for audience, activity in session.counters.audiences().items()
    }
    public = activities.get(PUBLIC, ActivityRow(0, 0))
    activities[PUBLIC] = msgspec.structs.replace(public, at=max(public.at, header.updated_at))
    for audience, activity in activities.items():
        directory.move(context, audience, None, activity)
    return activities


class Users(NamedTuple):
    """Users of the decisions of a context, newest first, and of its workflow state."""

    decided: Sequence[str | None] = ()
    work: str | None = None


def put_context(
    own: WorkContext,
    common: WorkContext,
    came: session_context.SessionContext,
    context: Context,
    users: Users = Users(),  # noqa: B008  immutable
) -> None:
    """Stage an imported context; its files, searches and memories become the importer's."""
    for file in came.files_accessed:
        given = None if file.importance == work_context.importance_of(None, file.uses) else file.importance
        used = to_microseconds(file.last_used)
        own.put_file(context, work_context.StoredFile(file.path, file.uses, used, given, file.note))
    for search in reversed(came.recent_searches):
        own.put_search(context, with_microseconds(work_context.StoredSearch, search))
    for memory in came.memories:
        own.put_memory(context, with_microseconds(work_context.StoredMemoryUse, memory))
    decided = users.decided or [None] * len(came.decisions)
    for made, user in zip(reversed(came.decisions), reversed(decided), strict=True):
        decision = with_microseconds(work_context.StoredDecision, made)
        common.put_decision(context, msgspec.structs.replace(decision, user=user))
    if came.workflow_state is not None:
        workflow = with_microseconds(work_context.StoredWorkflow, came.workflow_state)
        common.put_workflow(context, msgspec.structs.replace(workflow, user=users.work))
