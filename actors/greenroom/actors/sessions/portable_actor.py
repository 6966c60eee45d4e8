"""The portable session actor: its work context, export into passports, and restore from them."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import msgspec
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import segment, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import SESSIONS
from greenroom.actors.core.resources.resource_uris import project_topic, work_topic
from greenroom.actors.core.validation.times import (
    optional_datetime,
    to_datetime,
    to_microseconds,
    with_microseconds,
)
from greenroom.actors.memories.requests.transfer import import_address
from greenroom.actors.schemas import session_continuation as continuation
from greenroom.actors.sessions import migrations, reads
from greenroom.actors.sessions.event_batches import EventBatches
from greenroom.actors.sessions.handlers import passport_payload
from greenroom.actors.sessions.kept_words import is_kept, is_of, kept_words, may_be_told
from greenroom.actors.sessions.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.requests import payloads, requests
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.storage import directory, work_context
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import CLOSED, Header, seen_status
from greenroom.actors.sessions.storage.work_context import WorkContext
from greenroom.actors.sessions.summary.briefing import Heard, briefing, newest_talk, said_before
from greenroom.runtime import Context, Slices, handles

R = TypeVar("R")

STAGED_TIMER = "staged"
STAGED_FOR = 3_600_000_000
"""How long staged messages wait for their session, in microseconds."""


class PortableSession(EventBatches):
    """A session with its context."""

    def activate(self, context: Context) -> None:
        """Load the session; the context is loaded when it is wanted."""
        super().activate(context)
        self._work_contexts: dict[tuple[str, str], WorkContext] = {}

    def resident_bytes(self) -> int:
        """Return an estimate that grows with the context, too."""
        return super().resident_bytes() + work_context.ENTRY_BYTES * sum(
            map(len, self._work_contexts.values())
        )

    # -- working in it -----------------------------------------------------

    @handles(travel.RecordContext)
    def record_context(self, request: travel.RecordContext, context: Context) -> travel.ContextRecorded:
        """Take down what the caller says of its work."""
        header = self._open(context)
        said = (request.files_accessed, request.recent_searches, request.decisions, request.workflow_state)
        if not any(said):
            raise auth_errors.nothing_recorded()
        own, common = self._own(context), self._common(context)
        for use in request.files_accessed:
            own.record_file(context, use)
        for query in request.recent_searches:
            own.record_search(context, query, "record_context")
        for made in request.decisions:
            common.put_decision(context, _decision(made.what, made.why, context))
        if request.workflow_state is not None:
            common.put_workflow(context, _workflow(request.workflow_state, context))
        audit_record.record(
            context,
            "record_context",
            context.address.key,
            files=len(request.files_accessed),
            searches=len(request.recent_searches),
            decisions=len(request.decisions),
        )
        self._tell_of_work(context)
        if request.decisions:
            self._tell_of_decisions(context, header)
        if request.decisions or request.workflow_state is not None:  # what others see, too
            later = max(context.now, header.updated_at)
            self._change(context, msgspec.structs.replace(header, updated_at=later))
        return travel.ContextRecorded(
            session_id=context.address.key,
            files_accessed=len(own.files),
            recent_searches=len(self._seen(context).recent_searches),
            decisions=len(common.decisions),
            recorded_at=to_datetime(context.now),
        )

    @handles(travel.NoteContext)
    def note(self, told: travel.NoteContext, context: Context) -> Slices[None]:
        """Take down what the server saw the agent do."""
        header = self._header
        if header is None or header.status in CLOSED or context.principal is None:
            return
        if not policy.may_see_session(context.principal, header.project_id):
            return
        searches, memories = told.searches, told.memories
        if told.search is not None:
            searches = [travel.NotedSearch(told.search, told.tool)]
        if told.memory_id is not None:
            memories = [travel.NotedMemory(told.memory_id, told.key, told.namespace)]
        own, alone = self._own(context), self._alone(context)
        for file in told.files:
            own.record_file(context, travel.FileUse(path=file.path), file.uses)
            if context.should_yield():
                yield
        for search in searches:
            part = alone if search.is_private else own
            part.record_search(context, search.query, search.tool)
            if context.should_yield():
                yield
        for memory in memories:
            use = work_context.StoredMemoryUse(memory.memory_id, memory.key, memory.namespace, context.now)
            own.put_memory(context, use)
        self._tell_of_work(context)

    @handles(travel.GetSessionContext)
    def read_context(self, request: travel.GetSessionContext, context: Context) -> Slices[travel.ContextRead]:
        """Answer what the caller may see of the context."""
        return self._context_read(context, self._visible(context), request.tool_id)

    @handles(continuation.TellEarlier)
    def tell_earlier(
        self, request: continuation.TellEarlier, context: Context
    ) -> Slices[continuation.EarlierTalk]:
        """Answer what was said here, to who works in a session that continues this one."""
        header = self._visible(context)
        text = ""
        if request.asked or not is_kept(header):
            heard, messages = yield from self._heard(context, header)
            readable = self._counters.count(policy.partitions(context.principal))
            session_id = context.address.key if readable else None
            text = yield from said_before(heard, messages, request.most_bytes, session_id)
        return continuation.EarlierTalk(
            text=text, continues=UNSET if header.continues is None else header.continues
        )

    @handles(travel.ListDecisions)
    def decisions(self, _: travel.ListDecisions, context: Context) -> list[travel.DecisionView]:
        """Answer what was decided here."""
        self._visible(context)
        return self._seen(context).decisions

    @handles(requests.MeasureSession)
    def measure(self, _: requests.MeasureSession, context: Context) -> Slices[int]:
        """Answer how much is said in the session, as far as the caller may see it."""
        self._visible(context)
        return log.content_bytes(context, policy.partitions(context.principal))

    @handles(travel.EndSession)
    def end(self, request: travel.EndSession, context: Context) -> Slices[travel.SessionEnded]:
        """Terminate the session."""
        self._open(context)
        own, common = self._own(context), self._common(context)
        if request.summary is not None:
            common.put_decision(context, _decision(request.summary, travel.AT_THE_END, context))
            self._tell_of_decisions(context, self._visible(context))
        ending = requests.UpdateSession(session_id=context.address.key, status="terminated")
        yield from slices(self.update(ending, context))
        header = self._visible(context)
        migrations.remove_recent(context, user_namespace(context.principal), header.project_id)
        return travel.SessionEnded(
            session_id=context.address.key,
            status=header.status,
            ended_at=to_datetime(context.now),
            files_accessed=len(own.files),
            recent_searches=len(self._seen(context).recent_searches),
            decisions=len(common.decisions),
        )

    @handles(travel.Move)
    def move(self, request: travel.Move, context: Context) -> Slices[travel.ContextRead]:
        """Log a step of the session's way; who takes it up makes it its tool's."""
        header = self._open(context)
        if request.outcome == "resumed" and is_kept(header):  # it is another program's: others continue it
            raise auth_errors.session_closed(context.address.key, header.status)
        if request.memories is not None:
            passport_payload.check_staged(request.memories, context.precheck_answer)
            context.tell(import_address(request.memories.staging), request.memories)
        work = context.get(migrations.WORK, ToolState)
        came_from = None if work is None else work.tool
        self._log(context, request.outcome, came_from, request.to_tool, request.note)
        if request.outcome == "resumed":
            self._put_work(context, header, request.to_tool)
        audit_record.record(
            context, "migrate_session", context.address.key, outcome=request.outcome, tool=request.to_tool
        )
        return (yield from self._context_read(context, header, request.to_tool))

    # -- out of here and in again --------------------------------------------

    @handles(payloads.ExportHead)
    def export_head(self, request: payloads.ExportHead, context: Context) -> Slices[payloads.PayloadHead]:
        """Hand over everything but the messages."""
        header = self._visible(context)
        work = context.get(migrations.WORK, ToolState)
        partitions = policy.partitions(context.principal)
        session = yield from passport_payload.session_of(
            context, header, work, self._counters.talk(partitions)
        )
        seen = work_context.view(self._own(context), self._common(context), context.principal)
        messages = self._counters.count(partitions)
        heard = yield from newest_talk(context, partitions)
        told = yield from briefing(heard, seen, header.purpose, request.to_tool, messages)
        head = payloads.PayloadHead(
            at=to_datetime(context.now),
            session=session,
            context=seen,
            migrations=migrations.migrations(context),
            newest_id=self._counters.newest(partitions),
            messages=messages,
            briefing=told.text,
        )
        self._log(context, "exported", None if work is None else work.tool, request.to_tool)
        audit_record.record(context, "export_session", context.address.key, messages=head.messages)
        return head

    @handles(payloads.ExportMessages)
    def export_messages(
        self, request: payloads.ExportMessages, context: Context
    ) -> Slices[payloads.PayloadPage]:
        """Hand over some of the messages that the caller may see."""
        self._visible(context)
        return passport_payload.page(request, context)

    @handles(payloads.FindAttempt)
    def find_attempt(self, request: payloads.FindAttempt, context: Context) -> payloads.Place:
        """Answer whether the attempt may make the session here, or has."""
        if self._header is None:
            return "free"
        work = context.get(migrations.WORK, ToolState)
        return "made" if work is not None and work.attempt == request.attempt else "taken"

    @handles(payloads.FindExported)
    def find_exported(self, request: payloads.FindExported, context: Context) -> bool:
        """Answer whether this is the session that was exported, and the asker may go on in it.

        A store that was put back may have it as it was before, and another one of the same id.
        """
        header = self._header
        return (
            header is not None
            and header.status not in CLOSED
            and not is_kept(header)
            and policy.may_see_session(context.principal, header.project_id)
            and header.created_at == to_microseconds(request.created_at)
            and header.updated_at >= to_microseconds(request.updated_at)
            and (
                request.newest_id == 0
                or log.find(context, self._counters.all_partitions(), request.newest_id) is not None
            )
        )

    @handles(payloads.StageMessages)
    def stage(self, request: payloads.StageMessages, context: Context) -> None:
        """Keep a piece of messages."""
        if self._header is None:
            passport_payload.stage(context, request, self.content_limit)
            context.set_timer(STAGED_TIMER, context.now + STAGED_FOR, payloads.DropStaged())

    @handles(payloads.DropStaged)
    def drop_staged(self, _: payloads.DropStaged, context: Context) -> Slices[None]:
        """Forget what no session was made of."""
        context.use_reserve()
        return passport_payload.drop(context)

    @handles(payloads.MakeRestored)
    def make_restored(self, request: payloads.MakeRestored, context: Context) -> Slices[payloads.Restored]:
        """Make the session of what is staged."""
        principal: Principal = context.principal
        if self._header is not None:
            work = context.get(migrations.WORK, ToolState)
            if work is None or work.attempt != request.attempt:
                raise auth_errors.session_exists(context.address.key)
            return (yield from self._restored(context, self._visible(context), work, request.tool))
        policy.check_new_session(principal, context.address.key, None, request.project_id)
        if request.memories is not None:
            passport_payload.check_staged(request.memories, context.precheck_answer)
            context.tell(import_address(request.memories.staging), request.memories)
        header = yield from passport_payload.make(self._counters, request, context, self.content_limit)
        for earlier in request.migrations:
            migrations.put_migration(context, with_microseconds(StoredMigration, earlier))
        passport_payload.put_context(self._own(context), self._common(context), request.context, context)
        came = request.session
        work = ToolState(
            request.tool,
            came.original_tool or came.tool,
            came.workspace_path,
            context.now,
            request.attempt,
            self._counters.count(policy.partitions(principal)),
            None if request.memories is None else request.memories.staging,
        )
        context.put(migrations.WORK, work)
        move = StoredMigration(
            came.tool,
            request.tool,
            context.now,
            "restored",
            principal.agent_id,
            came.session_id,
            request.server,
            None,
        )
        migrations.put_migration(context, move)
        migrations.put_recent(context, user_namespace(principal), header.project_id, request.tool)
        self._activity = passport_payload.list_activities(context, header, self._counters)
        self._header = header
        audit_record.record(
            context, "restore_session", context.address.key, messages=work.messages, pieces=request.pieces
        )
        for audience in self._activity:
            self._tell_of(context, audience)
        self._tell_of_decisions(context, header)
        return (yield from self._restored(context, header, work, request.tool))

    # -- parts -------------------------------------------------------------

    def _tell_of_work(self, context: Context) -> None:
        """Publish that the sender's user has worked here, which others do not see."""
        label = policy.label_of_owner(user_namespace(context.principal))
        context.publish(work_topic(context.address.key), label)

    @staticmethod
    def _tell_of_decisions(context: Context, header: Header) -> None:
        """Publish to the members of the session's project that there are other decisions."""
        if header.project_id is not None:
            topic = project_topic(segment(header.project_id), SESSIONS)
            context.publish(topic, policy.ChangeLabel(policy.PUBLIC, header.project_id))

    def _put_work(
        self, context: Context, header: Header, tool: str, holders: list[travel.Holder] | None = None
    ) -> None:
        """Stage that the caller has taken the session up in a tool."""
        work = context.get(migrations.WORK, ToolState) or ToolState(tool, None, None, context.now)
        holders = work.holders if holders is None else holders
        context.put(migrations.WORK, msgspec.structs.replace(work, tool=tool, holders=holders))
        directory.put_base(context, header)
        migrations.put_recent(context, user_namespace(context.principal), header.project_id, tool)

    def _restored(
        self, context: Context, header: Header, work: ToolState, tool: str
    ) -> Slices[payloads.Restored]:
        return payloads.Restored(
            read=(yield from self._context_read(context, header, tool)),
            restored_at=to_datetime(work.at),
            original_tool=work.original_tool,
            messages=work.messages,
            importing=work.importing,
        )

    def _open(self, context: Context) -> Header:
        """Return the header of a session that takes writes.

        Raises:
            Refusal: ``SESSION_NOT_FOUND`` or ``SESSION_CLOSED``.
        """
        header = self._visible(context)
        if header.status in CLOSED:
            raise auth_errors.session_closed(context.address.key, header.status)
        return header

    def _own(self, context: Context) -> WorkContext:
        return self._work_context(context, user_namespace(context.principal))

    def _alone(self, context: Context) -> WorkContext:
        """Return what is for the sender alone, and not for other agents of its user."""
        return self._work_context(context, user_namespace(context.principal), context.principal.agent_id)

    def _seen(self, context: Context) -> travel.SessionContext:
        return work_context.view(
            self._own(context), self._common(context), context.principal, self._alone(context)
        )

    def _common(self, context: Context) -> WorkContext:
        return self._work_context(context, work_context.COMMON)

    def _work_context(self, context: Context, owner: str, agent: str = "") -> WorkContext:
        found = self._work_contexts.get((owner, agent))
        if found is None:
            found = self._work_contexts[owner, agent] = work_context.WorkContext(owner, agent)
            found.load(context)
        return found

    def _log(
        self,
        context: Context,
        outcome: travel.MigrationOutcome,
        from_tool: str | None,
        to_tool: str | None,
        note: str | None = None,
    ) -> None:
        agent = context.principal.agent_id
        move = StoredMigration(
            from_tool, to_tool, context.now, outcome, agent, context.address.key, None, note
        )
        migrations.put_migration(context, move)

    def _heard(self, context: Context, header: Header) -> Slices[tuple[list[Heard], int]]:
        """Return what the sender may be told of what was said here, oldest first, and how much there is."""
        if is_kept(header):
            if not is_of(header, context.principal):
                return [], 0
            words: list[Heard] = []
            if may_be_told(header, context.principal):
                words = yield from kept_words(context, self._counters.all_partitions())
            if words:
                return words, len(words)
            # Of one that an older version kept, or a passport brought, an agent has what is its own.
            partitions = policy.partitions(context.principal, "private")
        else:
            partitions = policy.partitions(context.principal)
        return (yield from newest_talk(context, partitions)), self._counters.count(partitions)

    def _context_read(self, context: Context, header: Header, tool: str | None) -> Slices[travel.ContextRead]:
        work = context.get(migrations.WORK, ToolState)
        seen = self._seen(context)
        if is_kept(header) and is_of(header, context.principal):  # what others noted down is no part
            seen = work_context.view_of_user(self._own(context), self._common(context), context.principal)
        readable = self._counters.count(policy.partitions(context.principal))
        heard, messages = yield from self._heard(context, header)
        told = yield from briefing(heard, seen, header.purpose, tool, messages)
        return travel.ContextRead(
            purpose=header.purpose,
            briefing=told.text,
            talk=travel.TalkView(
                messages=messages,
                last_at=optional_datetime(told.last_at),
                read=reads.call_for_newest(context.address.key) if readable else None,
                rest=UNSET if told.cut is None else reads.call_for_one(context.address.key, told.cut),
                earlier=reads.call_for_newest(header.continues) if header.continues else UNSET,
            ),
            session_id=context.address.key,
            continues=header.continues or UNSET,
            status=seen_status(header.status, self._counters.talk(policy.partitions(context.principal))),
            project_id=header.project_id,
            workspace_path=None if work is None else work.workspace_path,
            tool=None if work is None else work.tool,
            original_tool=None if work is None else work.original_tool,
            started_at=to_datetime(header.created_at),
            context=seen,
            migrations=migrations.migrations(context),
        )


def slices(handled: R | Slices[R]) -> Slices[R]:
    """Wrap a result as a handler's generator."""
    assert isinstance(handled, Generator), "both handlers are generators"
    return handled


def _decision(what: str, why: str | None, context: Context) -> work_context.StoredDecision:
    who: Principal = context.principal
    return work_context.StoredDecision(what, why, context.now, who.agent_id, who.user or "")


def _workflow(state: travel.WorkflowState, context: Context) -> work_context.StoredWorkflow:
    who: Principal = context.principal
    return work_context.StoredWorkflow(
        state.task,
        state.step,
        state.status,
        list(state.next),
        list(state.blockers),
        context.now,
        who.agent_id,
        who.user or "",
    )
