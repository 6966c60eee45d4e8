"""Lifecycle of a session: create, change, end, delete."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.core.validation.types import CLOSED, SessionStatus, StatusOfSession
from greenroom.actors.sessions.handlers import reads, work_context
from greenroom.actors.sessions.handlers.passport import STAGED_TIMER
from greenroom.actors.sessions.requests import requests, session_context
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import directory, fields, migrations
from greenroom.actors.sessions.storage.records import (
    HAS_DEPENDENTS,
    METADATA,
    STATE,
    Header,
    Naming,
    check_step,
)
from greenroom.runtime import Context, Restate, Slices

SWEEP_TIMER: Final = "sweep"


def create(
    session: Session, request: requests.CreateSession, context: Context
) -> Slices[replies.SessionCreated]:
    """Create the session, unless its id is taken."""
    header = yield from make(session, request, context)
    return replies.SessionCreated(
        session_id=context.address.key,
        created_at=to_datetime(header.created_at),
        created_by=header.created_by,
    )


def make(session: Session, request: requests.CreateSession, context: Context) -> Slices[Header]:
    """Stage the session, unless its id is taken; return its header."""
    principal: Principal = context.principal
    session_id = context.address.key
    policy.check_new_session(principal, session_id, request.user_id, request.project_id)
    if session.header is not None:
        # Ids are global, so the refusal reveals that this one is taken; see docs/security.md.
        is_hidden = not policy.may_see_session(principal, session.header.project_id)
        refusal = auth_errors.session_exists(session_id)
        raise auth_errors.denial(refusal) if is_hidden else refusal
    metadata = yield from fields.merge("metadata", {}, request.metadata)
    state = yield from fields.merge("initial_state", {}, request.initial_state)
    now = context.now
    header = Header(
        purpose=request.purpose,
        status="created",
        created_at=now,
        created_by=principal.agent_id,
        updated_at=now,
        terminated_at=None,
        app_name=request.app_name,
        user_id=request.user_id if request.user_id is not None else principal.user,
        project_id=request.project_id,
        ahead=0,
    )
    yield from fields.put(context, METADATA, metadata)
    yield from fields.put(context, STATE, state)
    audit_record.record(context, "create_session", session_id, project_id=request.project_id)
    session.put_header(context, header)
    if header.user_id == principal.user:  # another user has not resumed the session
        owner = user_namespace(principal)
        migrations.put_recent(context, owner, header.project_id, principal.agent_id)
    return header


def update(
    session: Session, request: requests.UpdateSession, context: Context
) -> Slices[replies.SessionUpdated]:
    """Change the status, merge metadata and state; ending the session deletes ``temp:`` keys.

    Setting the status that the session already has changes nothing.
    """
    header = session.require_visible(context)
    stored = yield from fields.load(context, METADATA)
    metadata = yield from fields.merge("metadata", stored, request.metadata)
    stored = yield from fields.load(context, STATE)
    state = yield from fields.merge("state", stored, request.state)
    if not metadata and not state and request.status is None:
        raise auth_errors.invalid(
            "status", "status: give a status, metadata or state; there is nothing to change"
        )
    if request.status is not None:
        check_step(session.status(header, context), request.status)
    if header.status in CLOSED and (metadata or state):
        raise auth_errors.session_closed(request.session_id, header.status)
    status = header.status if request.status is None else request.status
    if status == header.status and not metadata and not state:
        return replies.SessionUpdated(session=(yield from reads.session_view(session, header, context)))
    now = context.now
    ends = status in CLOSED and header.status not in CLOSED
    changed = msgspec.structs.replace(
        header,
        status=status,
        updated_at=max(now, header.updated_at),  # `activate` derives the place in the directory from it
        terminated_at=now if ends else header.terminated_at,
    )
    yield from fields.put(context, METADATA, metadata)
    yield from fields.put(context, STATE, state)
    if ends:
        yield from fields.drop(context, STATE, lambda key: key.startswith("temp:"))
    audit_record.record(
        context,
        "update_session",
        request.session_id,
        old_status=header.status,
        status=status,
        metadata_keys=len(metadata),
        state_keys=len(state),
    )
    view = yield from reads.session_view(session, changed, context)
    session.put_header(context, changed)
    return replies.SessionUpdated(session=view)


def rename(session: Session, request: requests.RenameSession, context: Context) -> requests.SessionRenamed:
    """Replace the purpose; messages do not rename the session afterwards."""
    header = session.require_writable(context)
    audit_record.record(context, "rename_session", request.session_id, characters=len(request.purpose))
    named = msgspec.structs.replace(
        header,
        purpose=request.purpose,
        naming=Naming(0, context.principal.agent_id),
        updated_at=max(context.now, header.updated_at),
    )
    session.put_header(context, named)
    context.cancel_timer(SWEEP_TIMER)  # a named session is not swept
    return requests.SessionRenamed(session_id=request.session_id, purpose=request.purpose)


def status(session: Session, _: StatusOfSession, context: Context) -> SessionStatus | None:
    """Return the status to a sender that stores data for this session."""
    header = session.header
    if header is None:
        return None
    if not policy.may_see_session(context.principal, header.project_id):
        audit_record.record_read(
            context, context.principal, "see_session", context.address.key, outcome="denied"
        )
        return None
    if header.status not in CLOSED and next(context.keys(HAS_DEPENDENTS), None) is None:
        context.put(HAS_DEPENDENTS, b"")
    return header.status


def end(
    session: Session, request: session_context.EndSession, context: Context
) -> Slices[session_context.SessionEnded]:
    """Terminate the session."""
    session.require_writable(context)
    own, common = session.work_context.own(context), session.work_context.common(context)
    if request.summary is not None:
        common.put_decision(
            context, work_context.make_decision(request.summary, session_context.SUMMARY_REASON, context)
        )
        work_context.publish_decisions(context, session.require_visible(context))
    ending = requests.UpdateSession(session_id=context.address.key, status="terminated")
    yield from update(session, ending, context)
    header = session.require_visible(context)
    migrations.remove_recent(context, user_namespace(context.principal), header.project_id)
    return session_context.SessionEnded(
        session_id=context.address.key,
        status=header.status,
        ended_at=to_datetime(context.now),
        files_accessed=len(own.files),
        recent_searches=len(session.work_context.view(context).recent_searches),
        decisions=len(common.decisions),
    )


def delete(session: Session, request: requests.DeleteSession, context: Context) -> Slices[requests.Deleted]:
    """Delete the session with the data of all agents; its id becomes free."""
    header = session.require_visible(context)
    policy.check_deletes_session(context.principal, header.user_id, header.created_by)
    context.use_reserve()
    for audience in session.activity:
        session.publish(context, audience)
    work_context.publish_decisions(context, header)
    yield from remove(session, context)
    audit_record.record(context, "delete_session", request.session_id)
    session.activate(context)
    return requests.Deleted()


def restate(session: Session, _: Restate, context: Context) -> None:
    """Write the index rows of the session again."""
    header = session.header
    if header is None:
        return
    context.use_reserve()
    directory.put_base(context, header)
    for audience, activity in session.activity.items():
        directory.move(context, audience, None, activity)
    migrations.list_again(context, header.project_id, migrations.find_tool(context, header.created_by))
    session.message_search.vectors.list_again(context)


def remove(session: Session, context: Context) -> Slices[None]:
    """Stage the removal of all records; the caller must activate the session again."""
    directory.remove(context, session.activity)
    assert session.header is not None, "it is there"
    migrations.remove_all_recent(context, session.header.project_id)
    session.message_search.vectors.unlist(context)
    for timer in (SWEEP_TIMER, STAGED_TIMER):
        context.cancel_timer(timer)
    for key, _record in list(context.scan(msgspec.Raw)):
        context.delete(key)
        yield
