"""Export of a session into a passport, and its restoring from one."""

from __future__ import annotations

from typing import Final

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import HOUR, to_datetime, to_microseconds, with_microseconds
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.sessions.handlers import passport_payload
from greenroom.actors.sessions.handlers.work_context import context_read, publish_decisions
from greenroom.actors.sessions.requests import payloads
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import message_log, migrations, work_context
from greenroom.actors.sessions.storage.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.storage.records import Header
from greenroom.actors.sessions.summary.briefing import read_newest_talk, write_briefing
from greenroom.actors.sessions.summary.retained_messages import is_kept_by_hooks
from greenroom.runtime import Context, Slices

STAGED_TIMER: Final = "staged"
STAGED_FOR: Final = HOUR
"""How long staged messages are kept without their session."""


def export_head(
    session: Session, request: payloads.ExportHead, context: Context
) -> Slices[payloads.PayloadHead]:
    """Return everything but the messages."""
    header = session.require_visible(context)
    state = context.get(migrations.TOOL_STATE, ToolState)
    partitions = policy.partitions(context.principal)
    came = yield from passport_payload.session_of(context, header, state, session.status(header, context))
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
    return passport_payload.page(request, context)


def find_attempt(session: Session, request: payloads.FindAttempt, context: Context) -> payloads.Place:
    """Return whether the attempt may create the session here, or has done so."""
    if session.header is None:
        return "free"
    state = context.get(migrations.TOOL_STATE, ToolState)
    return "made" if state is not None and state.attempt == request.attempt else "taken"


def find_exported(session: Session, request: payloads.FindExported, context: Context) -> bool:
    """Return whether this is the exported session, and open to the caller.

    A restored backup may have an older state of it, or another session of the same id.
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
        passport_payload.stage(context, request, session.content_limit)
        context.set_timer(STAGED_TIMER, context.now + STAGED_FOR, payloads.DropStaged())


def drop_staged(_: Session, __: payloads.DropStaged, context: Context) -> Slices[None]:
    """Drop staged messages without a session."""
    context.use_reserve()
    return passport_payload.drop(context)


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
    passport_payload.release(request.memories, context)
    header = yield from passport_payload.make(session.counters, request, context, session.content_limit)
    for earlier in request.migrations:
        migrations.put_migration(context, with_microseconds(StoredMigration, earlier))
    own, common = session.work_context.own(context), session.work_context.common(context)
    passport_payload.put_context(own, common, request.context, context)
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
    session.activity = passport_payload.list_activities(context, header, session.counters)
    session.header = header
    audit_record.record(
        context, "restore_session", context.address.key, messages=made.messages, pieces=request.pieces
    )
    for audience in session.activity:
        session.publish(context, audience)
    publish_decisions(context, header)
    return (yield from _answer_restored(session, header, made, request.tool, context))


def _answer_restored(
    session: Session, header: Header, made: ToolState, tool: str, context: Context
) -> Slices[payloads.Restored]:
    return payloads.Restored(
        read=(yield from context_read(session, header, tool, context)),
        restored_at=to_datetime(made.at),
        original_tool=made.original_tool,
        messages=made.messages,
        importing=made.importing,
    )
