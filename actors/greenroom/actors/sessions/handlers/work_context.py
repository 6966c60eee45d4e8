"""Handlers of the work context: record it, and read it with a briefing."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import segment, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import SESSIONS
from greenroom.actors.core.resources.resource_uris import project_topic, work_topic
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.sessions.handlers import reads
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import migrations
from greenroom.actors.sessions.storage.migrations import ToolState
from greenroom.actors.sessions.storage.records import Header
from greenroom.actors.sessions.storage.work_context import StoredDecision, StoredMemoryUse, StoredWorkflow
from greenroom.actors.sessions.summary.briefing import (
    TimedUtterance,
    read_newest_talk,
    write_briefing,
    write_earlier_talk,
)
from greenroom.actors.sessions.summary.retained_messages import (
    is_kept_by_hooks,
    is_of_same_user,
    may_read_retained,
    read_retained,
)
from greenroom.runtime import Context, Slices


def record(
    session: Session, request: session_context.RecordContext, context: Context
) -> session_context.ContextRecorded:
    """Record files, searches, decisions and the state of the work."""
    header = session.require_writable(context)
    entries = (request.files_accessed, request.recent_searches, request.decisions, request.workflow_state)
    if not any(entries):
        raise auth_errors.nothing_recorded()
    own, common = session.work_context.own(context), session.work_context.common(context)
    for use in request.files_accessed:
        own.record_file(context, use)
    for query in request.recent_searches:
        own.record_search(context, query, "record_context")
    for made in request.decisions:
        common.put_decision(context, make_decision(made.what, made.why, context))
    if request.workflow_state is not None:
        common.put_workflow(context, _stored_workflow(request.workflow_state, context))
    audit_record.record(
        context,
        "record_context",
        context.address.key,
        files=len(request.files_accessed),
        searches=len(request.recent_searches),
        decisions=len(request.decisions),
    )
    publish_work(context)
    if request.decisions:
        publish_decisions(context, header)
    if request.decisions or request.workflow_state is not None:  # others see these, too
        later = max(context.now, header.updated_at)
        session.put_header(context, msgspec.structs.replace(header, updated_at=later))
    return session_context.ContextRecorded(
        session_id=context.address.key,
        files_accessed=len(own.files),
        recent_searches=len(session.work_context.view(context).recent_searches),
        decisions=len(common.decisions),
        recorded_at=to_datetime(context.now),
    )


def note(session: Session, request: session_context.NoteContext, context: Context) -> Slices[None]:
    """Record what the server observed of the agent's work."""
    header = session.header
    if header is None or header.status in CLOSED or context.principal is None:
        return
    if not policy.may_see_session(context.principal, header.project_id):
        return
    searches, memories = request.searches, request.memories
    if request.search is not None:
        searches = [session_context.NotedSearch(request.search, request.tool)]
    if request.memory_id is not None:
        memories = [session_context.NotedMemory(request.memory_id, request.key, request.namespace)]
    own, private = session.work_context.own(context), session.work_context.private(context)
    for file in request.files:
        own.record_file(context, session_context.FileUse(path=file.path), file.uses)
        yield
    for search in searches:
        part = private if search.is_private else own
        part.record_search(context, search.query, search.tool)
        yield
    for memory in memories:
        own.put_memory(context, StoredMemoryUse(memory.memory_id, memory.key, memory.namespace, context.now))
    publish_work(context)


def read(
    session: Session, request: session_context.GetSessionContext, context: Context
) -> Slices[session_context.ContextRead]:
    """Return the visible work context."""
    return context_read(session, session.require_visible(context), request.tool_id, context)


def write_earlier(
    session: Session, request: handover.TellEarlier, context: Context
) -> Slices[handover.EarlierTalk]:
    """Return an extract of the messages for a session that continues this one."""
    header = session.require_visible(context)
    text = ""
    if request.asked or not is_kept_by_hooks(header):
        talk, messages = yield from _read_talk(session, header, context)
        session_id = context.address.key if session.count_readable(context) else None
        text = yield from write_earlier_talk(talk, messages, request.most_bytes, session_id)
    return handover.EarlierTalk(text=text, continues=UNSET if header.continues is None else header.continues)


def list_decisions(
    session: Session, _: session_context.ListDecisions, context: Context
) -> list[session_context.DecisionView]:
    """Return the decisions."""
    session.require_visible(context)
    return session.work_context.view(context).decisions


def context_read(
    session: Session, header: Header, tool: str | None, context: Context
) -> Slices[session_context.ContextRead]:
    """Return the visible work context with a briefing for the tool."""
    work = context.get(migrations.TOOL_STATE, ToolState)
    if is_kept_by_hooks(header) and is_of_same_user(
        header, context.principal
    ):  # without entries of other users
        seen = session.work_context.view_of_user(context)
    else:
        seen = session.work_context.view(context)
    talk, messages = yield from _read_talk(session, header, context)
    briefing = yield from write_briefing(talk, seen, header.purpose, tool, messages)
    session_id = context.address.key
    return session_context.ContextRead(
        purpose=header.purpose,
        briefing=briefing.text,
        talk=session_context.TalkView(
            messages=messages,
            last_at=optional_datetime(briefing.last_at),
            read=reads.call_for_newest(session_id) if session.count_readable(context) else None,
            rest=UNSET if briefing.cut is None else reads.call_for_one(session_id, briefing.cut),
            earlier=reads.call_for_newest(header.continues) if header.continues else UNSET,
        ),
        session_id=session_id,
        continues=header.continues or UNSET,
        status=session.status(header, context),
        project_id=header.project_id,
        workspace_path=None if work is None else work.workspace_path,
        tool=None if work is None else work.tool,
        original_tool=None if work is None else work.original_tool,
        started_at=to_datetime(header.created_at),
        context=seen,
        migrations=migrations.migrations(context),
    )


def _read_talk(
    session: Session, header: Header, context: Context
) -> Slices[tuple[list[TimedUtterance], int]]:
    if is_kept_by_hooks(header):
        if not is_of_same_user(header, context.principal):
            return [], 0
        words: list[TimedUtterance] = []
        if may_read_retained(header, context.principal):
            words = yield from read_retained(context, session.counters.all_partitions())
        if words:
            return words, len(words)
        # Sessions of older versions and of passports have no shared part: the agent reads its own messages.
        partitions = policy.partitions(context.principal, "private")
    else:
        partitions = policy.partitions(context.principal)
    return (yield from read_newest_talk(context, partitions)), session.counters.count(partitions)


def publish_work(context: Context) -> None:
    """Publish a change of the user's work context to that user only."""
    label = policy.label_of_owner(user_namespace(context.principal))
    context.publish(work_topic(context.address.key), label)


def publish_decisions(context: Context, header: Header) -> None:
    """Publish a change of decisions to the members of the session's project."""
    if header.project_id is not None:
        topic = project_topic(segment(header.project_id), SESSIONS)
        context.publish(topic, policy.ChangeLabel(policy.PUBLIC, header.project_id))


def make_decision(what: str, why: str | None, context: Context) -> StoredDecision:
    """Return a decision of the sender at this time."""
    who: Principal = context.principal
    return StoredDecision(what, why, context.now, who.agent_id, who.user or "")


def _stored_workflow(state: session_context.WorkflowState, context: Context) -> StoredWorkflow:
    by, user = context.principal.agent_id, context.principal.user or ""
    steps, blockers = list(state.next), list(state.blockers)
    return StoredWorkflow(state.task, state.step, state.status, steps, blockers, context.now, by, user)
