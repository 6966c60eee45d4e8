"""Shared state: keys that one session changes and several sessions read.

Another session holds these keys in its state. The changing session sends it the change in the commit unit of
the event. So the change arrives exactly once if the event exists, and else never. It arrives before the
event's sender gets the reply, unless very many messages wait for the holding session.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.sessions.handlers import events, lifecycle, writes
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import fields
from greenroom.actors.sessions.storage.records import STATE, Header
from greenroom.runtime import Address, Context, Slices


def create_sharing(
    session: Session, request: requests.CreateSharing, context: Context
) -> Slices[replies.SessionCreated]:
    """Create the session, unless its id is taken, and change its shared state."""
    created = yield from lifecycle.create(session, request.session, context)
    _tell_changes(request.shared, context)
    return created


def append_sharing(
    session: Session, request: requests.AppendSharing, context: Context
) -> Slices[requests.EventAppended]:
    """Append an event and change the shared state, if no other event came in between."""
    event = request.event
    session.require_visible(context)
    is_new = events.find(context, event.event_id) is None
    if is_new:
        last = yield from events.find_last(context)
        last_id = "" if last is None else last.event_id
        if last_id != request.after_event:
            raise auth_errors.session_moved_on(event.session_id, last_id)
    yield from writes.append_event(session, event, context)
    if is_new:
        _tell_changes(request.shared, context)
    return requests.EventAppended(is_new=is_new)


def check_shared(session: Session, request: requests.CheckShared, context: Context) -> Slices[None]:
    """Refuse a change that is too large, or meant for a session of another owner."""
    change, header = request.change, session.header
    if header is not None and not _is_for(change, header):
        raise auth_errors.permission_denied(
            "session_id",
            f"session_id: the session {change.session_id!r} belongs to another user; delete that one first",
        )
    state = yield from fields.load(context, STATE)
    yield from fields.merge("state", state, change.changes)


def change_shared(session: Session, request: requests.ChangeShared, context: Context) -> Slices[None]:
    """Apply a change to the state; the sender's rights were checked."""
    change, header = request.change, session.header
    if header is None:
        header = Header(
            purpose=f"state of {change.app_name}",
            status="created",
            created_at=context.now,
            created_by=request.by,
            updated_at=context.now,
            terminated_at=None,
            app_name=change.app_name,
            user_id=change.user_id,
            project_id=change.project_id,
            ahead=0,
        )
    elif not _is_for(change, header):
        audit_record.record(context, "change_shared", change.session_id, by=request.by, taken=False)
        return
    state = yield from fields.load(context, STATE)
    changes = yield from fields.merge_any_size(state, change.changes)
    yield from fields.put(context, STATE, changes)
    audit_record.record(context, "change_shared", change.session_id, by=request.by, state_keys=len(changes))
    later = max(context.now, header.updated_at)
    session.put_header(context, msgspec.structs.replace(header, updated_at=later))


def _is_for(change: requests.SharedChange, header: Header) -> bool:
    return (header.user_id, header.project_id) == (change.user_id, change.project_id)


def _tell_changes(shared: Sequence[requests.SharedChange], context: Context) -> None:
    """Stage the messages to the sessions that hold the shared state."""
    principal: Principal = context.principal
    for change in shared:
        policy.check_new_session(principal, change.session_id, change.user_id, change.project_id)
        report = requests.ChangeShared(change=change, by=principal.agent_id)
        context.tell(Address("session", change.session_id), report)
