"""Hand-over of a session between clients: start, offer, resume, hold, continue, reopen, sweep.

Records name the holders of a session, but not whether they still work in it. A connected holder is subscribed
to its own topic (`Holder.topic`) while it works, and the bus knows the subscribers of all processes. A holder
without a connection cannot subscribe. It holds the session for a minute after it resumed the session, or
after the last activity in the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.policy import PUBLIC
from greenroom.actors.core.resources.resource_uris import client_topic, session_uri
from greenroom.actors.core.validation.times import HOUR, SECOND, to_datetime
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.sessions.handlers import lifecycle, passport
from greenroom.actors.sessions.handlers.session_naming import MOST_NAMING, default_name
from greenroom.actors.sessions.handlers.work_context import context_read
from greenroom.actors.sessions.requests import handover, requests, session_context
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import directory, migrations, work_context
from greenroom.actors.sessions.storage.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.storage.records import HAS_DEPENDENTS, HEADER, METADATA, STATE, Header, Naming
from greenroom.actors.sessions.summary.retained_messages import is_kept_by_hooks, is_of_same_user
from greenroom.runtime import Context, Slices

SWEPT_AFTER: Final = HOUR
HELD_FOR: Final = 60 * SECOND
"""How long a holder without a connection holds an inactive session."""
MOST_HOLDERS: Final = 16
"""A session remembers at most this many holders: the latest ones."""
_CONTENTS: Final = (STATE, METADATA, HAS_DEPENDENTS, work_context.CONTEXT)


def start(session: Session, request: handover.StartHere, context: Context) -> Slices[handover.Started]:
    """Start a session here, resume this one, or return the offers."""
    started = yield from _start(session, request, context)
    return msgspec.structs.replace(started, kept=request.kept)


def _start(session: Session, request: handover.StartHere, context: Context) -> Slices[handover.Started]:
    header, session_id = session.header, context.address.key
    others = [offer for offer in request.offered if offer.session_id != session_id]
    if request.how == "begin":
        header = yield from _begin(session, request, context)
        return handover.Started(
            session_id=session_id,
            project_id=request.project_id,
            created_at=to_datetime(header.created_at),
            at=to_datetime(context.now),
            offered=others,
        )
    if header is None or not _is_open(header, context):  # it was closed after it was found
        return _answer_nothing(others, context)
    if request.how == "take_up" and _is_held(session, context, request.holder.token):
        held = [
            msgspec.structs.replace(offer, held=offer.held or offer.session_id == session_id)
            for offer in request.offered
        ]
        return _answer_nothing(held, context)
    return (yield from _resume(session, header, request, others, context))


def look_at_work(session: Session, request: handover.LookAtWork, context: Context) -> handover.Offer | None:
    """Describe the session as an offer for the caller."""
    header = session.header
    if header is None or not _is_open(header, context):
        return None
    contents = ", ".join(_contents(session, header, context))
    if not contents:
        return None
    others = list(_holders(session, context, request.token))
    return handover.Offer(
        session_id=context.address.key,
        purpose=header.purpose,
        status=session.status(header, context),
        tool=migrations.find_tool(context, header.created_by),
        last_used=to_datetime(_last_used(session, context)),
        held=bool(others),
        held_by=sorted({each.agent for each in others if each.agent}),
        contents=contents,
        has_words=_has_words(session, header, context),
        call=handover.call_to_restore(context.address.key),
    )


def move(session: Session, request: handover.Move, context: Context) -> Slices[session_context.ContextRead]:
    """Log a migration; resuming changes the session's tool."""
    header = session.require_writable(context)
    if request.outcome == "resumed" and is_kept_by_hooks(header):  # a new session must continue it
        raise auth_errors.session_closed(context.address.key, header.status)
    passport.release(request.memories, context)
    work = context.get(migrations.TOOL_STATE, ToolState)
    came_from = None if work is None else work.tool
    migrations.log_migration(context, request.outcome, came_from, request.to_tool, request.note)
    if request.outcome == "resumed":
        _put_work(context, header, request.to_tool)
    audit_record.record(
        context, "migrate_session", context.address.key, outcome=request.outcome, tool=request.to_tool
    )
    return (yield from context_read(session, header, request.to_tool, context))


def continue_session(
    session: Session, request: handover.ContinueSession, context: Context
) -> Slices[session_context.ContextRead]:
    """Create the session that continues an ended one, with its purpose and context."""
    there: handover.ToContinue = context.precheck_answer
    old = there.read
    made = requests.CreateSession(
        session_id=context.address.key, purpose=old.purpose, project_id=old.project_id
    )
    header = yield from lifecycle.make(session, made, context)
    naming = Naming(0, there.named_by) if there.named_by else None
    header = msgspec.structs.replace(header, continues=request.continues, naming=naming)
    first = old.original_tool or request.tool
    holders = _add_holder([], request.holder, context.now)
    work = ToolState(request.tool, first, old.workspace_path, context.now, holders=holders)
    context.put(migrations.TOOL_STATE, work)
    own, common = session.work_context.own(context), session.work_context.common(context)
    users = passport.Users(there.decided_for, there.work_for)
    passport.put_context(own, common, old.context, context, users)
    session.put_header(context, header)
    agent = context.principal.agent_id
    step = StoredMigration(
        old.tool, request.tool, context.now, "resumed", agent, request.continues, None, None
    )
    migrations.put_migration(context, step)
    audit_record.record(
        context, "restore_session", context.address.key, continues=request.continues, tool=request.tool
    )
    return msgspec.structs.replace(
        old,
        session_id=context.address.key,
        status=header.status,
        tool=request.tool,
        original_tool=first,
        started_at=to_datetime(header.created_at),
        migrations=migrations.migrations(context),
    )


def read_to_continue(
    session: Session, request: handover.ReadToContinue, context: Context
) -> Slices[handover.ToContinue]:
    """Return what a continuing session takes over."""
    header = session.require_visible(context)
    read = yield from context_read(session, header, request.tool, context)
    common = session.work_context.common(context)
    decided = common.newest_decisions()
    if is_kept_by_hooks(header) and is_of_same_user(header, context.principal):
        decided = [made for made in decided if work_context.is_own(made, context.principal)]
    return handover.ToContinue(
        read=read,
        named_by="" if header.naming is None else header.naming.by,
        decided_for=[made.user for made in decided],
        work_for=None if common.workflow is None else common.workflow.user,
    )


def hold(session: Session, request: handover.HoldSession, context: Context) -> None:
    """Record a holder, and publish a change of the client's current session."""
    context.publish(
        client_topic(request.holder.token),
        policy.ChangeLabel(policy.own_audience(context.principal.agent_id)),
    )
    work = context.get(migrations.TOOL_STATE, ToolState)
    if session.header is None or not _is_open(session.header, context) or work is None:
        return
    if all(holder.token != request.holder.token for holder in work.holders):
        holders = _add_holder(work.holders, request.holder)
        context.put(migrations.TOOL_STATE, msgspec.structs.replace(work, holders=holders))


def reopen(session: Session, _: handover.ReopenSession, context: Context) -> handover.SessionReopened:
    """Reopen the session."""
    header = session.require_visible(context)
    if header.status != "terminated":
        raise auth_errors.not_terminated(context.address.key, header.status)
    ended_at = header.updated_at if header.terminated_at is None else header.terminated_at
    tool = migrations.find_tool(context, header.created_by)
    migrations.log_migration(context, "reopened", tool, tool)
    _put_work(context, header, tool, [])  # the holders' work ended with the session
    audit_record.record(context, "reopen_session", context.address.key)
    later = max(context.now, header.updated_at)
    session.put_header(
        context, msgspec.structs.replace(header, status="active", terminated_at=None, updated_at=later)
    )
    return handover.SessionReopened(
        session_id=context.address.key,
        status="active",
        reopened_at=to_datetime(context.now),
        ended_at=to_datetime(ended_at),
    )


def sweep(session: Session, _: handover.SweepSession, context: Context) -> Slices[None]:
    """Remove an empty session; retry later if a client still works in it."""
    if not _is_empty(session, context):
        return
    context.use_reserve()
    if context.has_subscribers(session_uri(context.address.key)) or _is_held(session, context, None):
        context.set_timer(lifecycle.SWEEP_TIMER, context.now + SWEPT_AFTER, handover.SweepSession())
        return
    yield from _sweep(session, context)


def leave(session: Session, request: handover.LeaveSession, context: Context) -> Slices[None]:
    """Remove an empty session when the agent that started it leaves, unless a client stays."""
    header = session.header
    if header is None or not _is_empty(session, context):
        return
    way = migrations.migrations(context)
    if (
        is_of_same_user(header, context.principal)
        and way[:1]
        and (way[0].outcome, way[0].by) == ("started", context.principal.agent_id)
        and all(move.outcome != "exported" for move in way)
        and not context.has_subscribers(session_uri(context.address.key))
        and not _is_held(session, context, request.token)
    ):
        yield from _sweep(session, context)


# -- parts -------------------------------------------------------------------


def _is_open(header: Header, context: Context) -> bool:
    return header.status not in CLOSED and policy.may_see_session(context.principal, header.project_id)


def _is_held(session: Session, context: Context, besides: str | None) -> bool:
    return any(True for _ in _holders(session, context, besides))


def _holders(session: Session, context: Context, besides: str | None) -> Iterator[handover.Holder]:
    work = context.get(migrations.TOOL_STATE, ToolState)
    newest = session.activity[PUBLIC].at
    for holder in () if work is None else work.holders:
        if holder.token != besides and (
            context.has_subscribers(holder.topic(context.address.key))
            if holder.is_connected
            else context.now < max(holder.at, newest) + HELD_FOR
        ):
            yield holder


def _add_holder(
    holders: list[handover.Holder], holder: handover.Holder, now: int | None = None
) -> list[handover.Holder]:
    latest = holder if now is None else msgspec.structs.replace(holder, at=now)
    return [*(each for each in holders if each.token != holder.token), latest][-MOST_HOLDERS:]


def _put_work(
    context: Context, header: Header, tool: str, holders: list[handover.Holder] | None = None
) -> None:
    work = context.get(migrations.TOOL_STATE, ToolState) or ToolState(tool, None, None, context.now)
    holders = work.holders if holders is None else holders
    context.put(migrations.TOOL_STATE, msgspec.structs.replace(work, tool=tool, holders=holders))
    directory.put_base(context, header)
    migrations.put_recent(context, user_namespace(context.principal), header.project_id, tool)


def _sweep(session: Session, context: Context) -> Slices[None]:
    yield from lifecycle.remove(session, context)
    audit_record.record(context, "sweep_session", context.address.key)
    session.activate(context)


def _is_empty(session: Session, context: Context) -> bool:
    return (
        session.header is not None
        and session.header.status not in CLOSED
        and session.header.continues is None
        and (session.header.naming is None or not session.header.naming.by)
        and not session.counters.all_partitions()
        and not any(any(context.scan(msgspec.Raw, prefix=prefix)) for prefix in _CONTENTS)
        and all(move.outcome != "handed_over" for move in migrations.migrations(context))
    )


def _begin(session: Session, request: handover.StartHere, context: Context) -> Slices[Header]:
    tool = request.tool
    made = requests.CreateSession(
        session_id=context.address.key,
        purpose=request.purpose or default_name(tool),
        project_id=request.project_id,
        metadata=msgspec.Raw(msgspec.json.encode(request.revision.as_member())),
    )
    header = yield from lifecycle.make(session, made, context)
    holders = _add_holder([], request.holder, context.now)
    work = ToolState(tool, tool, request.workspace_path, context.now, holders=holders)
    context.put(migrations.TOOL_STATE, work)
    if request.purpose is None:
        header = session.header = msgspec.structs.replace(header, naming=Naming(MOST_NAMING))
        context.put(HEADER, header)
        context.set_timer(lifecycle.SWEEP_TIMER, context.now + SWEPT_AFTER, handover.SweepSession())
    directory.put_base(context, header)
    migrations.log_migration(context, "started", None, tool)
    return header


def _resume(
    session: Session,
    header: Header,
    request: handover.StartHere,
    others: list[handover.Offer],
    context: Context,
) -> Slices[handover.Started]:
    work = context.get(migrations.TOOL_STATE, ToolState)
    came = handover.TakenUp(
        from_tool=header.created_by if work is None else work.tool,
        last_used=to_datetime(_last_used(session, context)),
    )
    migrations.log_migration(context, "resumed", None if work is None else work.tool, request.tool)
    latest = _add_holder([] if work is None else work.holders, request.holder, context.now)
    _put_work(context, header, request.tool, latest)
    audit_record.record(context, "migrate_session", context.address.key, outcome="resumed", tool=request.tool)
    return handover.Started(
        session_id=context.address.key,
        project_id=header.project_id,
        created_at=to_datetime(header.created_at),
        at=to_datetime(context.now),
        offered=others,
        read=(yield from context_read(session, header, request.tool, context)),
        taken_up=came,
    )


def _last_used(session: Session, context: Context) -> int:
    """Return the latest time at which the caller resumed the session or sees activity."""
    taken_up = migrations.listed_at(context, user_namespace(context.principal))
    return max(session.last_activity(context.principal), taken_up)


def _contents(session: Session, header: Header, context: Context) -> Iterator[str]:
    own, common = session.work_context.own(context), session.work_context.common(context)
    for count, name, names in (
        (session.count_readable(context), "message", "messages"),
        (len(common.decisions), "decision", "decisions"),
        (len(own.files), "file", "files"),
        (len(own.searches), "search", "searches"),
        (len(own.visible_memories(context.principal)), "memory", "memories"),
    ):
        if count:
            yield f"{count} {name if count == 1 else names}"
    for prefix, name in ((STATE, "state"), (METADATA, "metadata")):
        if any(context.scan(msgspec.Raw, prefix=prefix)):
            yield name
    if common.workflow is not None:
        yield f"task: {common.workflow.task}"
    last = _last_handover(context)
    if last is not None:
        yield "handed over" if last.note is None else f"handed over: {last.note}"
    if header.continues is not None:
        yield f"continues {header.continues}"


def _has_words(session: Session, header: Header, context: Context) -> bool:
    """Return whether the caller can read messages or recorded work in the session."""
    common = session.work_context.common(context)
    return bool(
        session.counters.count_talk(policy.partitions(context.principal))
        or common.decisions
        or common.workflow is not None
        or _last_handover(context) is not None
        or header.continues is not None
    )


def _last_handover(context: Context) -> session_context.Migration | None:
    last = migrations.migrations(context)[-1:]
    return last[0] if last and last[0].outcome == "handed_over" else None


def _answer_nothing(offered: list[handover.Offer], context: Context) -> handover.Started:
    return handover.Started(
        session_id=None, project_id=None, created_at=None, at=to_datetime(context.now), offered=offered
    )
