"""Handover of a session between clients: start, look, take up, hold, reopen, sweep.

Who works in a session is in its records, and whether it still does is not: it is subscribed to a topic of
its own for as long as it does (`Holder.topic`), and the bus knows that, of attached processes, too. Who has
no connection cannot be subscribed, and holds a session for a minute after it took it up, or after somebody
was last active in it.
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
from greenroom.actors.schemas import session_continuation as continuation
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.client_tools import client_tool
from greenroom.actors.sessions.handlers import passport_payload
from greenroom.actors.sessions.handlers.session_naming import MOST_NAMING
from greenroom.actors.sessions.kept_words import is_kept, is_of
from greenroom.actors.sessions.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.portable_actor import STAGED_TIMER, PortableSession, slices
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.storage import directory, work_context
from greenroom.actors.sessions.storage.records import (
    CLOSED,
    HEADER,
    KEPT_FOR_IT,
    METADATA,
    STATE,
    Header,
    Naming,
    seen_status,
)
from greenroom.runtime import Context, Restate, Slices, handles

TIMER: Final = "sweep"
SWEPT_AFTER: Final = HOUR
HELD_FOR: Final = 60 * SECOND
"""How long who has no connection holds a session in which nothing happens."""
MOST_HOLDERS: Final = 16
"""So many who began to work in a session are known to it, the latest."""


class HandoverSession(PortableSession):
    """A session as it is started, found and taken up."""

    @handles(travel.StartHere)
    def start(self, request: travel.StartHere, context: Context) -> Slices[travel.Started]:
        """Begin here, take this session up, or answer what else there is."""
        started = yield from self._started(request, context)
        return msgspec.structs.replace(started, kept=request.kept)

    def _started(self, request: travel.StartHere, context: Context) -> Slices[travel.Started]:
        header = self._header
        others = [offer for offer in request.offered if offer.session_id != context.address.key]
        if request.how == "begin":
            yield from self._begin(request, context)
        elif header is None or not self._is_open(header, context):  # it was when it was found
            return _nothing(others, context)
        elif request.how == "take_up" and self._is_held(context, request.holder.token):
            mine = context.address.key
            held = [
                msgspec.structs.replace(offer, held=offer.held or offer.session_id == mine)
                for offer in request.offered
            ]
            return _nothing(held, context)
        else:
            return (yield from self._taken_up(header, request, others, context))
        assert self._header is not None, "it was begun"
        return travel.Started(
            session_id=context.address.key,
            project_id=request.project_id,
            created_at=to_datetime(self._header.created_at),
            at=to_datetime(context.now),
            offered=others,
        )

    @handles(travel.LookAtWork)
    def look(self, request: travel.LookAtWork, context: Context) -> travel.Offer | None:
        """Answer what the asker would find here."""
        header = self._header
        if header is None or not self._is_open(header, context):
            return None
        contents = ", ".join(self._contents(context))
        if not contents:
            return None
        return travel.Offer(
            session_id=context.address.key,
            purpose=header.purpose,
            status=seen_status(header.status, self._counters.talk(policy.partitions(context.principal))),
            tool=self._tool(header, context),
            last_used=to_datetime(self._last_used(context)),
            held=self._is_held(context, request.token),
            held_by=sorted({each.agent for each in self._holders(context, request.token) if each.agent}),
            contents=contents,
            has_words=self._has_words(context),
            call=travel.call_to_restore(context.address.key),
        )

    @handles(continuation.ContinueSession)
    def go_on(self, request: continuation.ContinueSession, context: Context) -> Slices[travel.ContextRead]:
        """Begin here what continues a session that has ended, with its purpose and its context."""
        there: continuation.ToContinue = context.precheck_answer
        old = there.read
        made = requests.CreateSession(
            session_id=context.address.key, purpose=old.purpose, project_id=old.project_id
        )
        yield from slices(self.create(made, context))
        assert self._header is not None, "it was made"
        naming = Naming(0, there.named_by) if there.named_by else None
        header = msgspec.structs.replace(self._header, continues=request.continues, naming=naming)
        holders = [msgspec.structs.replace(request.holder, at=context.now)]
        first = old.original_tool or request.tool
        work = ToolState(request.tool, first, old.workspace_path, context.now, holders=holders)
        context.put(migrations.WORK, work)
        own, common = self._own(context), self._common(context)
        users = passport_payload.Users(there.decided_for, there.work_for)
        passport_payload.put_context(own, common, old.context, context, users)
        self._change(context, header)
        agent = context.principal.agent_id
        move = StoredMigration(
            old.tool, request.tool, context.now, "resumed", agent, request.continues, None, None
        )
        migrations.put_migration(context, move)
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

    @handles(continuation.ReadToContinue)
    def read_to_continue(
        self, request: continuation.ReadToContinue, context: Context
    ) -> Slices[continuation.ToContinue]:
        """Answer what a session that continues this one goes on with."""
        header = self._visible(context)
        read = yield from self._context_read(context, header, request.tool)
        common = self._common(context)
        decided = common.newest_decisions()
        if is_kept(header) and is_of(header, context.principal):
            decided = [made for made in decided if work_context.is_own(made, context.principal)]
        return continuation.ToContinue(
            read=read,
            named_by="" if header.naming is None else header.naming.by,
            decided_for=[made.user for made in decided],
            work_for=None if common.workflow is None else common.workflow.user,
        )

    @handles(travel.HoldSession)
    def hold(self, told: travel.HoldSession, context: Context) -> None:
        """Record a client that works here, and tell what it has open of its session."""
        context.publish(
            client_topic(told.holder.token),
            policy.ChangeLabel(policy.own_audience(context.principal.agent_id)),
        )
        work = context.get(migrations.WORK, ToolState)
        if self._header is None or not self._is_open(self._header, context) or work is None:
            return
        if all(holder.token != told.holder.token for holder in work.holders):
            holders = _with(work.holders, told.holder)
            context.put(migrations.WORK, msgspec.structs.replace(work, holders=holders))

    @handles(travel.ReopenSession)
    def reopen(self, _: travel.ReopenSession, context: Context) -> travel.SessionReopened:
        """Open the session again."""
        header = self._visible(context)
        if header.status != "terminated":
            raise auth_errors.not_terminated(context.address.key, header.status)
        ended_at = header.updated_at if header.terminated_at is None else header.terminated_at
        tool = self._tool(header, context)
        self._log(context, "reopened", tool, tool)
        self._put_work(context, header, tool, [])  # who worked in it has ended that
        audit_record.record(context, "reopen_session", context.address.key)
        later = max(context.now, header.updated_at)
        self._change(
            context,
            msgspec.structs.replace(header, status="active", terminated_at=None, updated_at=later),
        )
        return travel.SessionReopened(
            session_id=context.address.key,
            status="active",
            reopened_at=to_datetime(context.now),
            ended_at=to_datetime(ended_at),
        )

    @handles(travel.SweepSession)
    def sweep(self, _: travel.SweepSession, context: Context) -> Slices[None]:
        """Remove the session if nothing came of it; later, if a client still works in it."""
        header = self._header
        if header is None or header.status in CLOSED or not self._is_blank(context):
            return
        context.use_reserve()
        if context.has_subscribers(session_uri(context.address.key)) or self._is_held(context, None):
            context.set_timer(TIMER, context.now + SWEPT_AFTER, travel.SweepSession())
            return
        yield from self._sweep(header, context)

    @handles(travel.LeaveSession)
    def leave(self, request: travel.LeaveSession, context: Context) -> Slices[None]:
        """Remove the session, begun by the agent that leaves it, if nothing came of it and nobody stays."""
        header = self._header
        if header is None or header.status in CLOSED or not self._is_blank(context):
            return
        way = migrations.migrations(context)
        if (
            is_of(header, context.principal)
            and way[:1]
            and (way[0].outcome, way[0].by) == ("started", context.principal.agent_id)
            and all(move.outcome != "exported" for move in way)
            and not context.has_subscribers(session_uri(context.address.key))
            and not self._is_held(context, request.token)
        ):
            yield from self._sweep(header, context)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the rows again by which listings, and whoever may go on with it, find the session."""
        header = self._header
        if header is None:
            return
        context.use_reserve()
        directory.put_base(context, header)
        for audience, activity in self._activity.items():
            directory.move(context, audience, None, activity)
        migrations.list_again(context, header.project_id, self._tool(header, context))
        self._finder.vectors.list_again(context)

    # -- parts -------------------------------------------------------------

    def _sweep(self, header: Header, context: Context) -> Slices[None]:
        yield from self._end(header, context)
        audit_record.record(context, "sweep_session", context.address.key)
        self.activate(context)

    def _end(self, header: Header, context: Context) -> Slices[None]:
        """Stage that there never was such a session."""
        directory.remove(context, self._activity)
        migrations.remove_all_recent(context, header.project_id)
        self._finder.vectors.unlist(context)
        for timer in (TIMER, STAGED_TIMER):
            context.cancel_timer(timer)
        for key, _record in list(context.scan(msgspec.Raw)):
            context.delete(key)
            if context.should_yield():
                yield

    def _begin(self, request: travel.StartHere, context: Context) -> Slices[None]:
        purpose = request.purpose or unnamed(request.tool)
        made = requests.CreateSession(
            session_id=context.address.key, purpose=purpose, project_id=request.project_id
        )
        yield from slices(self.create(made, context))
        holders = [msgspec.structs.replace(request.holder, at=context.now)]
        work = ToolState(request.tool, request.tool, request.workspace_path, context.now, holders=holders)
        context.put(migrations.WORK, work)
        assert self._header is not None, "it was made"
        if request.purpose is None:
            self._header = msgspec.structs.replace(self._header, naming=Naming(MOST_NAMING))
            context.put(HEADER, self._header)
        directory.put_base(context, self._header)
        self._log(context, "started", None, request.tool)
        if request.purpose is None:
            context.set_timer(TIMER, context.now + SWEPT_AFTER, travel.SweepSession())

    def _taken_up(
        self, header: Header, request: travel.StartHere, others: list[travel.Offer], context: Context
    ) -> Slices[travel.Started]:
        work = context.get(migrations.WORK, ToolState)
        came = travel.TakenUp(
            from_tool=self._tool(header, context), last_used=to_datetime(self._last_used(context))
        )
        self._log(context, "resumed", None if work is None else work.tool, request.tool)
        holders = _with([] if work is None else work.holders, request.holder, context.now)
        self._put_work(context, header, request.tool, holders)
        audit_record.record(
            context, "migrate_session", context.address.key, outcome="resumed", tool=request.tool
        )
        return travel.Started(
            session_id=context.address.key,
            project_id=header.project_id,
            created_at=to_datetime(header.created_at),
            at=to_datetime(context.now),
            offered=others,
            read=(yield from self._context_read(context, header, request.tool)),
            taken_up=came,
        )

    def _is_open(self, header: Header, context: Context) -> bool:
        return header.status not in CLOSED and policy.may_see_session(context.principal, header.project_id)

    def _is_held(self, context: Context, besides: str | None) -> bool:
        """Return whether a client with another token works here."""
        return any(True for _ in self._holders(context, besides))

    def _holders(self, context: Context, besides: str | None) -> Iterator[travel.Holder]:
        """Yield the clients with other tokens that work here."""
        work = context.get(migrations.WORK, ToolState)
        newest = self._activity[PUBLIC].at
        for holder in () if work is None else work.holders:
            if holder.token != besides and (
                context.has_subscribers(holder.topic(context.address.key))
                if holder.is_connected
                else context.now < max(holder.at, newest) + HELD_FOR
            ):
                yield holder

    def _tool(self, header: Header, context: Context) -> str:
        work = context.get(migrations.WORK, ToolState)
        return header.created_by if work is None else work.tool

    def _last_used(self, context: Context) -> int:
        """Return when the asker last took it up, or something last happened that it may see."""
        seen = [
            self._activity[audience].at
            for audience in policy.audiences(context.principal)
            if audience in self._activity
        ]
        return max(*seen, migrations.listed_at(context, user_namespace(context.principal)))

    def _contents(self, context: Context) -> Iterator[str]:
        """Yield in words what of the work done here the asker may see."""
        own, common = self._own(context), self._common(context)
        for count, name, names in (
            (self._counters.count(policy.partitions(context.principal)), "message", "messages"),
            (len(common.decisions), "decision", "decisions"),
            (len(own.files), "file", "files"),
            (len(own.searches), "search", "searches"),
            (len(own.seen_memories(context.principal)), "memory", "memories"),
        ):
            if count:
                yield f"{count} {name if count == 1 else names}"
        for prefix, name in ((STATE, "state"), (METADATA, "metadata")):
            if any(context.scan(msgspec.Raw, prefix=prefix)):
                yield name
        if common.workflow is not None:
            yield f"task: {common.workflow.task}"
        last = self._handed_over(context)
        if last is not None:
            yield "handed over" if last.note is None else f"handed over: {last.note}"
        if self._header is not None and self._header.continues is not None:
            yield f"continues {self._header.continues}"

    def _has_words(self, context: Context) -> bool:
        """Return whether the asker can read what somebody said here, or noted down of the work."""
        common = self._common(context)
        return bool(
            self._counters.talk(policy.partitions(context.principal))
            or common.decisions
            or common.workflow is not None
            or self._handed_over(context) is not None
            or (self._header is not None and self._header.continues is not None)
        )

    @staticmethod
    def _handed_over(context: Context) -> travel.Migration | None:
        """Return the last step of the session's way, if that handed it over."""
        last = migrations.migrations(context)[-1:]
        return last[0] if last and last[0].outcome == "handed_over" else None

    def _is_blank(self, context: Context) -> bool:
        """Return whether the session is empty: nothing was left in it by any client."""
        return (
            (self._header is None or self._header.continues is None)
            and not self._counters.all_partitions()
            and not any(any(context.scan(msgspec.Raw, prefix=prefix)) for prefix in _WORK)
            and all(move.outcome != "handed_over" for move in migrations.migrations(context))
        )


_WORK: Final = (STATE, METADATA, KEPT_FOR_IT, work_context.CONTEXT)


def unnamed(tool: str) -> str:
    """Return what a session is called in which nothing was said yet."""
    return f"Work in {client_tool(tool).title}"


def _nothing(offered: list[travel.Offer], context: Context) -> travel.Started:
    return travel.Started(
        session_id=None, project_id=None, created_at=None, at=to_datetime(context.now), offered=offered
    )


def _with(holders: list[travel.Holder], holder: travel.Holder, now: int | None = None) -> list[travel.Holder]:
    """Return the latest holders, this one last."""
    latest = holder if now is None else msgspec.structs.replace(holder, at=now)
    return [*(each for each in holders if each.token != holder.token), latest][-MOST_HOLDERS:]
