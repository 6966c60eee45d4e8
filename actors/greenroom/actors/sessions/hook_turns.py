"""A session that hooks keep: a client's turns, its files, and when its context was made shorter.

Only the agent whose client it is reads the turns: they are what a person said to it, not what a project
shares. What others of the same user may be told of them is in `kept_words`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.base.two_ends import two_ends
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.schemas import hook_work
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.compactions import StoredCompaction, put_compaction
from greenroom.actors.sessions.handlers import events as session_events
from greenroom.actors.sessions.kept_words import APP, has_kept_words, is_kept, is_of, may_be_told
from greenroom.actors.sessions.portable_actor import slices
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.resource import ReadableSession
from greenroom.actors.sessions.storage import work_context
from greenroom.actors.sessions.storage.records import CLOSED, Header, seen_status
from greenroom.runtime import Context, Slices, handles

MOST_TURNS: Final = 5_000
"""Turns that a session keeps of a client's session; what comes then is left out."""
_LONGEST_PATH: Final = 1_024
_LONGEST_REASON: Final = 100


class HookedSession(ReadableSession):
    """A session into which hooks write."""

    @handles(hook_work.KeepTurns)
    def keep_turns(self, request: hook_work.KeepTurns, context: Context) -> Slices[None]:
        """Keep turns, in a session that is made if need be and opened again if it had ended.

        Raises:
            Refusal: ``KEY_EXISTS``: the session is not one of the sender's that hooks made.
        """
        header = self._header
        if header is None:
            header = yield from self._made(request, context)
        elif not is_kept(header) or not is_of(header, context.principal):
            raise auth_errors.session_exists(context.address.key)
        kept = 0
        if not self._is_repeat(request, context):
            for number, turn in enumerate(request.turns):
                if self._counters.count(policy.partitions(context.principal)) >= MOST_TURNS:
                    break
                self._keep(request, number, turn, context)
                kept += 1
                if context.should_yield():
                    yield
            self._use_files(request, context)
            self._note_compaction(request, context)
            self._settle(header, context, ends=request.ends)
        audit_record.record(
            context, "keep_turns", context.address.key, turns=kept, left_out=len(request.turns) - kept
        )

    @handles(hook_work.ReadOwnWork)
    def own_work(self, _: hook_work.ReadOwnWork, context: Context) -> travel.SessionContext | None:
        """Answer what the sender's user did here."""
        header, principal = self._header, context.principal
        if (
            header is None
            or not is_of(header, principal)
            or not policy.may_see_session(principal, header.project_id)
        ):
            return None
        audit_record.record_read(context, principal, "read_own_work", context.address.key)
        return work_context.view_of_user(self._own(context), self._common(context), principal)

    @handles(hook_work.LookAtKept)
    def look_at_kept(self, request: hook_work.LookAtKept, context: Context) -> Slices[travel.Offer | None]:
        """Answer what an agent of the same user would be told, in numbers: nothing of what was said."""
        header, session_id = self._header, context.address.key
        if (
            header is None
            or not may_be_told(header, context.principal)
            or header.project_id != request.project_id
        ):
            return None
        partitions = self._counters.all_partitions()
        has_words = yield from has_kept_words(context, partitions)
        files = len(self._own(context).files)
        messages = self._counters.count(each for each in partitions if each.visibility == "private")
        if not has_words and not files:
            return None
        return travel.Offer(
            session_id=session_id,
            purpose=header.purpose,
            status=seen_status(header.status, has_words),
            tool=header.created_by,
            last_used=to_datetime(header.updated_at),
            held=False,
            contents=f"kept by hooks: {_counted(messages, 'message')}, {_counted(files, 'file')}",
            has_words=has_words,
            call=travel.call_to_restore(session_id),
        )

    def _made(self, request: hook_work.KeepTurns, context: Context) -> Slices[Header]:
        """Stage the session. It is not offered to be taken up: it is another program's own."""
        principal: Principal = context.principal
        project = request.of.project or None
        made = requests.CreateSession(
            session_id=context.address.key,
            purpose=request.purpose,
            app_name=APP,
            project_id=project,
            metadata=msgspec.Raw(
                msgspec.json.encode({"client": request.of.client, "client_session": request.of.session})
            ),
        )
        yield from slices(self.create(made, context))
        migrations.remove_recent(context, user_namespace(principal), project)
        assert self._header is not None, "it was made"
        return self._header

    def _is_repeat(self, request: hook_work.KeepTurns, context: Context) -> bool:
        """Return whether the turns are here: all of them came in one commit."""
        return bool(request.turns) and session_events.find(context, _event_id(request, 0)) is not None

    def _keep(
        self, request: hook_work.KeepTurns, number: int, turn: hook_work.KeptTurn, context: Context
    ) -> None:
        principal: Principal = context.principal
        event = requests.AppendEvent(
            session_id=context.address.key,
            event_id=_event_id(request, number),
            event_type="tool_call" if turn.role == "tool" else "message",
            actor="user" if turn.role == "user" else f"agent:{principal.agent_id}",
            content=msgspec.Raw(msgspec.json.encode({"text": two_ends(turn.text, self.content_limit)})),
            timestamp=turn.at,
            visibility="private",
        )
        partition = policy.partition_of(principal, event.visibility)
        message = session_events.stored(event, context.now)
        told = msgspec.structs.replace(message, words=turn.words)
        self._append_event(context, partition, event, told)

    def _use_files(self, request: hook_work.KeepTurns, context: Context) -> None:
        own = self._own(context)
        for path, uses in request.files:
            own.record_file(context, travel.FileUse(path=path[:_LONGEST_PATH]), uses)
        if request.files:
            self._tell_of_work(context)

    def _note_compaction(self, request: hook_work.KeepTurns, context: Context) -> None:
        if request.compacted is None:
            return
        agent = context.principal.agent_id
        at = min(to_microseconds(request.compacted), context.now)
        made = StoredCompaction(at, agent, request.of.client, request.reason[:_LONGEST_REASON])
        put_compaction(context, request.event_id, made)

    def _settle(self, header: Header, context: Context, *, ends: bool) -> None:
        """Stage that the session goes on, or has ended."""
        later = max(context.now, header.updated_at)
        if ends:
            changed = msgspec.structs.replace(
                header, status="terminated", terminated_at=later, updated_at=later
            )
        else:
            status = "active" if header.status in CLOSED else header.status
            changed = msgspec.structs.replace(header, status=status, terminated_at=None, updated_at=later)
        current = self._header
        assert current is not None, "it is there"
        self._change(context, msgspec.structs.replace(changed, ahead=current.ahead))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _event_id(request: hook_work.KeepTurns, number: int) -> str:
    return f"{request.event_id}-{number}"
