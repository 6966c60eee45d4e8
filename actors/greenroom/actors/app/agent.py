"""The single entry point for requests, for MCP tools and for programs."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any, TypeVar

import msgspec
import outcome
import trio

from greenroom.actors.app.addressing import Addressing, idempotency_scope
from greenroom.actors.app.client.context import ClientContext, ServerPort
from greenroom.actors.app.client.noted_work import NOTED
from greenroom.actors.app.client.prompts import PromptSource
from greenroom.actors.app.client.revision_notes import is_noted, note_revision, place_of_work
from greenroom.actors.app.client.work_notes import WorkNotes
from greenroom.actors.app.emptiness.explaining import EXPLANATIONS, explain_empty
from greenroom.actors.app.emptiness.narrowing import Asker
from greenroom.actors.app.hosting import Hosted, RuntimeHost
from greenroom.actors.app.requests import (
    AFTER_NOTES,
    ASKED,
    COUNTED,
    LEARNED,
    NAMES,
    ROUTES,
    TOOLS,
    closed_to,
    closed_to_impersonators,
    is_write,
    takes_several,
)
from greenroom.actors.app.resources.subscriber import ResourceSubscriber
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.core.audit.actor import record_denial, record_unread_denial
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.replies.sources import Sources, collect_sources
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.knowledge.ingest.files.places import Reach
from greenroom.actors.knowledge.workspaces.index_lease import Workspaces
from greenroom.actors.memories.recall.key_resolution import BY_KEY, MISSES, KeyResolver, is_missed
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.memories.storage.quota import Quota
from greenroom.actors.sessions.passports.signing import PassportOptions
from greenroom.actors.sessions.requests.current_session import SessionLocator
from greenroom.actors.sessions.workflows.tools import record_step
from greenroom.runtime import (
    Address,
    GreenroomError,
    Idempotency,
    Message,
    OverloadedError,
    Procedure,
    Refusal,
    Result,
    RuntimeClient,
    Ticket,
)
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS

R = TypeVar("R")
Q = TypeVar("Q", bound=msgspec.Struct)

LARGE_TEXT = 65_536


class Plan(msgspec.Struct):
    """A request in progress: its state from beginning to end.

    Attributes:
        by_key: Whether it names a memory by a key; the memory may be in another place.
        step: The tool of a call that is recorded as a workflow step.
        began: Its start on trio's clock, if the start is recorded.
        note: Records the answer in the client's session.
        costs: Whether it is charged to the agent's quota.
        message: The message for its actor; None if no single actor answers it.
        address: Its actor; None if the actor must be looked up first.
    """

    request: Any
    is_checked: bool = True
    by_key: bool = False
    step: str | None = None
    counted: str | None = None
    began: float = 0.0
    note: Callable[[Any], None] | None = None
    costs: bool = False
    message: Any = None
    address: Address | None = None
    idempotency: Idempotency | None = None
    sources: Sources = msgspec.field(default_factory=Sources)


class Agent:
    """An agent in a runtime: sends requests for one principal.

    Over a `Database` it works from any event loop. There only `ask` and `close` are available, callbacks run
    in the database's thread, and the agent leaves its session when the database is closed.

    Args:
        runtime: The runtime of `open_greenroom`, or a `Database`.
        timezone: The time zone of words such as "yesterday" in its searches; by default the machine's.
        client: The client's own name, which reveals its tool.
        passports: How passports of sessions are signed.
        locator: Finds the current session of a client without a connection.
        on_export: Called with the size of each export of memories or a session, in bytes.
        reach: The files that it may ingest into corpora; None means no files.
        savings: Counts the savings of its searches and reads.
        is_person: Whether a person uses it through pages: their reads save no tokens, and they get no links
            to passports.
        learns_workflows: Whether its tool calls are recorded as workflow steps, without arguments.
        prompts: The user's own prompts (`open_prompts`).
        notes: Records its work in its session (`open_work_notes`); without it, each note is written at once.
    """

    def __init__(
        self,
        runtime: RuntimeClient | RuntimeHost,
        principal: Principal,
        *,
        timezone: str | None = None,
        client: str | None = None,
        passports: PassportOptions | None = None,
        quota: Quota | None = None,
        locator: SessionLocator | None = None,
        on_export: Callable[[int], None] = lambda _: None,
        reach: Reach | None = None,
        workspaces: Workspaces | None = None,
        savings: Ledger | None = None,
        server: ServerPort | None = None,
        is_person: bool = False,
        learns_workflows: bool = False,
        prompts: PromptSource | None = None,
        notes: WorkNotes | None = None,
    ) -> None:
        self.principal = check_principal(principal)
        self._quota = quota
        impersonates = principal.seen_by is not None  # then nothing is counted or recorded for the agent
        self._savings = None if impersonates or is_person else savings
        self._closed = (closed_to_impersonators if impersonates else closed_to)(principal.scopes)
        self._scope = idempotency_scope(principal)
        self._timezone = timezone
        self._learns_workflows = learns_workflows and not impersonates
        self._is_noted = not impersonates and not is_person
        self._given_notes = notes
        if is_person and passports is not None:
            passports = passports._replace(base_url=None)
        self._context_of = partial(
            ClientContext,
            principal=principal,
            client=client,
            options=passports,
            scope=self._scope,
            locator=None if impersonates else locator,
            ledger=savings,
            server=server,
            quota=quota,
            on_export=on_export,
            reach=reach,
            workspaces=workspaces,
            prompts=prompts,
        )
        self._hosted: Hosted[Agent] | None = None
        if isinstance(runtime, RuntimeHost):
            self._hosted = Hosted(runtime, self._over)
        else:
            self._bind(runtime)

    def _over(self, runtime: RuntimeClient) -> Agent:
        """Return the same agent over a runtime of another thread."""
        agent = copy(self)
        agent._hosted = None  # noqa: SLF001  (a copy of itself)
        agent._bind(runtime)  # noqa: SLF001
        return agent

    def _bind(self, runtime: RuntimeClient) -> None:
        """Make the parts that belong to one runtime."""
        self._runtime = runtime
        self._lookup = KeyResolver(runtime, self.principal, NAMES)
        self._client_state = self._context_of(runtime)
        self._addressing = Addressing(
            runtime, self.principal, self._client_state, self._scope, self._timezone
        )
        self._notes = self._given_notes or WorkNotes(runtime)

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the agent's principal."""
        return self.principal.scopes

    def close(self) -> None:
        """Leave the current session, and release everything that is held for the agent.

        Until then, or the runtime's end, another tool that starts does not continue the agent's session.
        """
        if self._hosted is not None:
            self._hosted.post(Agent.close)
        else:
            self._client_state.session.close()

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Check that the agent's scopes open a request type, before its arguments are parsed.

        Raises:
            Refusal: ``PERMISSION_DENIED``; it is audited.
        """
        self._check_is_here()
        if request not in self._closed:
            return
        try:
            self._check_open_to_me(request)
        except Refusal as refusal:
            record_unread_denial(self._runtime, self.principal, request, arguments, refusal)
            raise

    async def ask(
        self,
        request: Message[R] | Procedure[R],
        *,
        checked: bool = False,
        on_accepted: Callable[[], None] | None = None,
    ) -> R:
        """Check a request, send it to its actor, and return the reply.

        Args:
            request: One of the types in `REQUESTS`, or of resources, prompts and completions.
            checked: Whether `parse_request` has checked it already.
            on_accepted: Called when the request's place in the actor's order is fixed.

        Raises:
            Refusal: An argument breaks a limit, or the actor refuses.
            TypeError: The request has another type.
            GreenroomError: `Runtime.ask` raises it.
        """
        if self._hosted is not None:
            return await self._hosted.call(
                lambda agent: agent.ask(request, checked=checked, on_accepted=on_accepted)
            )
        plan = self._begin(request, checked=checked)
        answer: R = await self._awaited(plan, self._carried_out, plan, on_accepted)
        return answer

    def post(
        self,
        request: Message[R] | Procedure[R],
        done: Callable[[Result], None],
        in_task: Callable[[Callable[[], Awaitable[R]]], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = math.inf,
    ) -> Ticket | None:
        """Send a request of `parse_request`, with a callback instead of waiting.

        Args:
            request: A request that `ask` accepts.
            done: Called once with the outcome of `ask`, or never if the request is abandoned.
            in_task: Called instead of ``done``, now or later, if a callback cannot answer: the caller must
                run its argument, an async function, in a task.
            on_accepted: As in `ask`.
            deadline: On trio's clock; the request does not begin after it. Tasks have other deadlines.

        Returns:
            A ticket that abandons it; None if it continues in a task.

        Raises:
            Refusal: The request is not open to the agent, or names something that no actor can have.
            TypeError: The request has another type.
            GreenroomError: `Runtime.post` did not accept the request.
        """
        self._check_is_here()
        plan = self._begin(request, checked=True)
        if plan.message is None and not plan.costs and on_accepted is not None:  # no actor orders it
            on_accepted()
            on_accepted = None
        if plan.address is None or plan.costs or is_noted(plan.request, self._client_state):
            in_task(partial(self._awaited, plan, self._carried_out, plan, on_accepted))
            return None

        def answered(result: Result) -> None:
            further = self._end(plan, result)
            if further is None:
                done(result)
            else:
                in_task(further)

        try:
            return self._runtime.post(
                plan.address,
                plan.message,
                answered,
                principal=self.principal,
                idempotency=plan.idempotency,
                deadline=deadline,
                on_accepted=on_accepted,
            )
        except GreenroomError as error:
            self._end(plan, outcome.Error(error))
            raise

    def subscriber(self, window: float = WINDOW_SECONDS) -> ResourceSubscriber:
        """Return a subscriber, a context manager, to resources that this agent may see.

        A quiet resource's first change is reported at once; changes within ``window`` seconds after it are
        one.
        """
        self._check_is_here()
        limit = None if self._quota is None else self._quota.subscriptions
        return ResourceSubscriber(
            self._runtime, self._runtime.subscriber(window), self._addressing.reader, limit
        )

    # -- the stages of a request --------------------------------------------------------------------

    def _begin(self, request: Any, *, checked: bool) -> Plan:
        """Return the plan of a request: its permission, costs, actor and records."""
        kind = type(request)
        if kind not in ASKED:
            raise TypeError(f"{kind.__name__} is not a request that agents ask")
        plan = Plan(request, is_checked=checked, by_key=kind in BY_KEY)
        if self._learns_workflows:
            plan.step = LEARNED.get(kind)
        if self._savings is not None:
            plan.counted = COUNTED.get(kind)
        if plan.step is not None or plan.counted is not None:
            plan.began = trio.current_time()
        if kind in AFTER_NOTES:
            self._notes.write()
        if self._is_noted and kind in NOTED:
            plan.note = self._notes.noting(self._client_state, request, TOOLS[kind])
        try:
            self._address(plan)
        except Refusal as refusal:
            self._end(plan, outcome.Error(refusal))
            raise
        return plan

    def _address(self, plan: Plan) -> None:
        """Find the actor of a request, if it is open to the agent."""
        kind = type(plan.request)
        if self._closed:
            self._check_open_to_me(kind)
        if self._quota is not None and is_write(kind):
            plan.costs = self._quota.counts(plan.request)
        route = ROUTES.get(kind)
        if route is None or (route.kind == "uri" and takes_several(plan.request)):
            return
        if not plan.is_checked:
            plan.request = check_request(plan.request)
        plan.address, plan.message, plan.idempotency = self._addressing.addressed(plan.request, route)
        by_id = route.by_memory_id and plan.request.memory_id is not None
        if by_id and getattr(plan.request, "namespace", None) is None:
            plan.address = None  # to be looked up: only a memory's id is known

    def _end(self, plan: Plan, result: Result) -> Callable[[], Awaitable[Any]] | None:
        """Record the outcome of a request, once.

        Returns:
            An async function for the final answer, if a key may be elsewhere or an empty answer needs its
            reason; None if the result is the answer.
        """
        kind = type(plan.request)
        first: Any = result.value if isinstance(result, outcome.Value) else result.error
        if plan.by_key and isinstance(first, MISSES) and is_missed(plan.request, first):
            plan.by_key = False
            return partial(self._awaited, plan, self._lookup.answer, plan.request, plan.idempotency, first)
        failed = isinstance(first, BaseException)
        if plan.step is not None and (isinstance(first, Exception) or not failed):
            seconds = trio.current_time() - plan.began
            record_step(self._client_state, plan.step, passed=not failed, seconds=seconds)
        if failed:
            if isinstance(first, Refusal):
                record_denial(self._runtime, self.principal, plan.request, first)
            elif isinstance(first, OverloadedError) and not is_write(kind):
                first.outcome = "not_done"  # a read changes nothing, done or not
            return None
        if plan.counted is not None:
            self._count(plan, first)
        if plan.note is not None:
            plan.note(first)
        if kind in EXPLANATIONS and first.lacks_reason:
            return partial(self._explained, plan.request, first)
        return None

    async def _awaited(self, plan: Plan, answer: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Return the answer to a request in this task."""
        result = await outcome.acapture(answer, *args)
        further = self._end(plan, result)
        return result.unwrap() if further is None else await further()

    async def _carried_out(self, plan: Plan, on_accepted: Callable[[], None] | None) -> Any:
        if plan.message is None and not plan.is_checked:
            plan.request = await _checked(plan.request)
        if plan.costs:
            assert self._quota is not None, "it costs something of a quota"
            await self._quota.charge(self._runtime, self.principal, plan.request, self._scope)
        if plan.message is None:
            if on_accepted is not None:
                on_accepted()
            if plan.counted is None:
                return await self._of_several(plan.request)
            with collect_sources() as plan.sources:
                return await self._of_several(plan.request)
        if plan.address is None:
            plan.address = await self._addressing.address_of(plan.request.memory_id)
        if is_noted(plan.request, self._client_state):
            plan.message = await note_revision(plan.message, self._client_state)
        return await self._runtime.ask(
            plan.address,
            plan.message,
            principal=self.principal,
            idempotency=plan.idempotency,
            on_accepted=on_accepted,
        )

    def _count(self, plan: Plan, reply: Any) -> None:
        """Count an answer's savings, in its session."""
        assert self._savings is not None, "what is counted has a ledger"
        assert plan.counted is not None
        size, seconds = len(msgspec.json.encode(reply)), trio.current_time() - plan.began
        session_id = (
            getattr(plan.message or plan.request, "session_id", None) or self._client_state.session.session_id
        )
        self._savings.record(self.principal, plan.counted, plan.sources, size, seconds, session_id)

    async def _explained(self, request: Any, reply: Any) -> Any:
        asker = Asker(self.principal, self._uncounted, learns_workflows=self._learns_workflows)
        return await explain_empty(asker, request, reply)

    async def _uncounted(self, request: Any) -> Any:
        """Return the answer to a request of our own, within the agent's rights."""
        plan = Plan(request)
        self._address(plan)
        return await self._carried_out(plan, None)

    async def _of_several(self, request: Any) -> Any:
        """Run a request that no single actor answers."""
        if isinstance(request, RecallContext):
            request = await place_of_work(request, self._client_state)
        procedure: Any = self._addressing.in_full(request)
        if procedure.runs != "here":
            return await self._runtime.query(procedure, principal=self.principal)
        with self._runtime.apply_settings():
            return await procedure.run(self._client_state)

    def _check_is_here(self) -> None:
        if self._hosted is not None:
            raise TypeError("an agent over a Database can only ask; make one over what open_greenroom opens")

    def _check_open_to_me(self, request: type[Any]) -> None:
        closed = self._closed.get(request)
        if closed is None:
            return
        if self.principal.seen_by is not None:
            raise auth_errors.impersonation_is_read_only(closed[0], self.principal.agent_id)
        raise auth_errors.scope_missing(*closed)


async def _checked(request: Q) -> Q:
    """Check a request and return it; the check of a large text takes time."""
    if isinstance(request, Procedure) and any(
        isinstance(value, str) and len(value) > LARGE_TEXT for value in msgspec.structs.astuple(request)
    ):
        return await run_in_thread(check_request, request)
    return check_request(request)
