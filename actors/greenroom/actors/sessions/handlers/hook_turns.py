"""Sessions stored by hooks: turns, files and compactions of a client session.

Only the client's own agent reads the turns: they are private, not shared in the project. `retained_messages`
has the part that other agents of the same user may read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.sessions.handlers import events, lifecycle, work_context, writes
from greenroom.actors.sessions.requests import handover, hook_messages, requests, session_context
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import migrations
from greenroom.actors.sessions.storage.records import Header, StoredCompaction, put_compaction, visible_status
from greenroom.actors.sessions.summary.retained_messages import (
    HOOKS_APP,
    has_retained,
    is_kept_by_hooks,
    is_of_same_user,
    may_read_retained,
)
from greenroom.runtime import Context, Slices

MOST_TURNS: Final = 5_000
"""The most turns of a session; later ones are left out."""
_LONGEST_PATH: Final = 1_024
_LONGEST_REASON: Final = 100


def keep_turns(session: Session, request: hook_messages.KeepTurns, context: Context) -> Slices[None]:
    """Store turns; create the session if needed, and reopen an ended one."""
    header = session.header
    if header is None:
        header = yield from _make(session, request, context)
    elif not is_kept_by_hooks(header) or not is_of_same_user(header, context.principal):
        raise auth_errors.session_exists(context.address.key)
    kept = 0
    is_repeat = bool(request.turns) and events.find(context, _event_id(request, 0)) is not None
    if not is_repeat:  # one commit stores all turns of an event
        for number, turn in enumerate(request.turns):
            if session.count_readable(context) >= MOST_TURNS:
                break
            _keep(session, request, number, turn, context)
            kept += 1
            yield
        own = session.work_context.own(context)
        for path, uses in request.files:
            own.record_file(context, session_context.FileUse(path=path[:_LONGEST_PATH]), uses)
        if request.files:
            work_context.publish_work(context)
        if request.compacted is not None:
            _note_compaction(request, request.compacted, context)
        _set_status(session, context, ends=request.ends)
    audit_record.record(
        context, "keep_turns", context.address.key, turns=kept, left_out=len(request.turns) - kept
    )


def read_own_work(
    session: Session, _: hook_messages.ReadOwnWork, context: Context
) -> session_context.SessionContext | None:
    """Return the work of the sender's user here."""
    header, principal = session.header, context.principal
    if (
        header is None
        or not is_of_same_user(header, principal)
        or not policy.may_see_session(principal, header.project_id)
    ):
        return None
    audit_record.record_read(context, principal, "read_own_work", context.address.key)
    return session.work_context.view_of_user(context)


def look_at_kept(
    session: Session, request: hook_messages.LookAtKept, context: Context
) -> Slices[handover.Offer | None]:
    """Describe the session for an agent of the same user, in numbers only."""
    header, session_id = session.header, context.address.key
    if (
        header is None
        or not may_read_retained(header, context.principal)
        or header.project_id != request.project_id
    ):
        return None
    partitions = session.counters.all_partitions()
    has_words = yield from has_retained(context, partitions)
    files = len(session.work_context.own(context).files)
    messages = session.counters.count(each for each in partitions if each.visibility == "private")
    if not has_words and not files:
        return None
    return handover.Offer(
        session_id=session_id,
        purpose=header.purpose,
        status=visible_status(header.status, has_words),
        tool=header.created_by,
        last_used=to_datetime(header.updated_at),
        held=False,
        contents=f"kept by hooks: {_format_count(messages, 'message')}, {_format_count(files, 'file')}",
        has_words=has_words,
        call=handover.call_to_restore(session_id),
    )


def _make(session: Session, request: hook_messages.KeepTurns, context: Context) -> Slices[Header]:
    """Stage the session, without offers to resume it: it belongs to another program."""
    project = request.of.project or None
    made = requests.CreateSession(
        session_id=context.address.key,
        purpose=request.purpose,
        app_name=HOOKS_APP,
        project_id=project,
        metadata=msgspec.Raw(
            msgspec.json.encode(
                {
                    "client": request.of.client,
                    "client_session": request.of.session,
                    **request.revision.as_member(),
                }
            )
        ),
    )
    header = yield from lifecycle.make(session, made, context)
    migrations.remove_recent(context, user_namespace(context.principal), project)
    return header


def _keep(
    session: Session,
    request: hook_messages.KeepTurns,
    number: int,
    turn: hook_messages.KeptTurn,
    context: Context,
) -> None:
    principal: Principal = context.principal
    text = truncate_middle(turn.text, session.content_limit)
    event = requests.AppendEvent(
        session_id=context.address.key,
        event_id=_event_id(request, number),
        event_type="tool_call" if turn.role == "tool" else "message",
        actor="user" if turn.role == "user" else f"agent:{principal.agent_id}",
        content=msgspec.Raw(msgspec.json.encode({"text": text})),
        timestamp=turn.at,
        visibility="private",
    )
    message = msgspec.structs.replace(events.to_message(event, context.now), words=turn.words)
    writes.put_event(session, context, policy.partition_of(principal, event.visibility), event, message)


def _note_compaction(request: hook_messages.KeepTurns, compacted: datetime, context: Context) -> None:
    at, agent = min(to_microseconds(compacted), context.now), context.principal.agent_id
    made = StoredCompaction(at, agent, request.of.client, request.reason[:_LONGEST_REASON])
    put_compaction(context, request.event_id, made)


def _set_status(session: Session, context: Context, *, ends: bool) -> None:
    header = session.header
    assert header is not None, "it is there"
    later = max(context.now, header.updated_at)
    if ends:
        changed = msgspec.structs.replace(header, status="terminated", terminated_at=later, updated_at=later)
    else:
        status = "active" if header.status in CLOSED else header.status
        changed = msgspec.structs.replace(header, status=status, terminated_at=None, updated_at=later)
    session.put_header(context, changed)


def _format_count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _event_id(request: hook_messages.KeepTurns, number: int) -> str:
    return f"{request.event_id}-{number}"
