"""What sessions share: keys of state that one session changes and all of them read.

A further session holds them in its state. A change is told to it by the session that made it, in the commit
of the event that it came with, so it is there if the event is, and once. It arrives before the event's sender
has the answer, unless very many messages wait for the holder.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.sessions.explain import ExplainedSession
from greenroom.actors.sessions.handlers import events as session_events
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.storage import fields
from greenroom.actors.sessions.storage.records import STATE, Header
from greenroom.runtime import Address, Context, Slices, handles


class SharingSession(ExplainedSession):
    """A session that shares state with others, or holds what others share."""

    @handles(requests.CreateSharing)
    def create_sharing(
        self, request: requests.CreateSharing, context: Context
    ) -> Slices[replies.SessionCreated]:
        """Make the session, unless its id is taken, and change what it shares."""
        created = yield from self._create(request.session, context)
        _tell_changes(request.shared, context)
        return created

    @handles(requests.AppendSharing)
    def append_sharing(
        self, request: requests.AppendSharing, context: Context
    ) -> Slices[requests.EventAppended]:
        """Append an event and change what the session shares, if nobody has appended one meanwhile."""
        event = request.event
        self._visible(context)
        is_new = session_events.find(context, event.event_id) is None
        if is_new:
            last = yield from session_events.last(context)
            last_id = "" if last is None else last.event_id
            if last_id != request.after_event:
                raise auth_errors.session_moved_on(event.session_id, last_id)
        yield from self._append_with_state(event, context)
        if is_new:
            _tell_changes(request.shared, context)
        return requests.EventAppended(is_new=is_new)

    @handles(requests.CheckShared)
    def check_shared(self, request: requests.CheckShared, context: Context) -> Slices[None]:
        """Refuse a change with which the state would get too large, or that another's session would get."""
        change, header = request.change, self._header
        if header is not None and not _is_for(change, header):
            raise auth_errors.permission_denied(
                "session_id",
                f"session_id: the session {change.session_id!r} is another's; delete that one first",
            )
        state = yield from fields.load(context, STATE)
        yield from fields.merged(context, "state", state, change.changes)

    @handles(requests.ChangeShared)
    def change_shared(self, request: requests.ChangeShared, context: Context) -> Slices[None]:
        """Take a change over into the state; who made it had leave to."""
        change, header = request.change, self._header
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
        changes = yield from fields.replaced(context, state, change.changes)
        yield from fields.put(context, STATE, changes)
        audit_record.record(
            context, "change_shared", change.session_id, by=request.by, state_keys=len(changes)
        )
        self._change(context, msgspec.structs.replace(header, updated_at=max(context.now, header.updated_at)))


def _is_for(change: requests.SharedChange, header: Header) -> bool:
    """Return whether a session is the one that a change is meant for, and none that has its id by chance."""
    return (header.user_id, header.project_id) == (change.user_id, change.project_id)


def _tell_changes(shared: Sequence[requests.SharedChange], context: Context) -> None:
    """Stage what is told to the sessions that hold it.

    Raises:
        Refusal: one of them is not the caller's to change.
    """
    principal: Principal = context.principal
    for change in shared:
        policy.check_new_session(principal, change.session_id, change.user_id, change.project_id)
        told = requests.ChangeShared(change=change, by=principal.agent_id)
        context.tell(Address("session", change.session_id), told)
