"""The one door for requests: what MCP tools and programs alike ask through."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import outcome
import trio

from greenroom.actors.app.addressing import Addressing, idempotency_scope
from greenroom.actors.app.administration.server_stats import savings_resource
from greenroom.actors.app.client.prompts import PromptSource
from greenroom.actors.app.client.work_notes import WorkNotes, noting_value
from greenroom.actors.app.emptiness.narrowing import Asker
from greenroom.actors.app.hosting import Hosted, RuntimeHost
from greenroom.actors.app.resources.subscriber import ResourceSubscriber
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.audit.actor import record_denial, record_unread_denial
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.replies.sources import Sources, noting
from greenroom.actors.core.resources.resource_uris import is_of_savings
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.emptiness.explaining import EXPLAINED, explained
from greenroom.actors.knowledge.ingest.files.places import Reach
from greenroom.actors.knowledge.workspaces.index_lease import Workspaces
from greenroom.actors.memories.recall import key_resolution as fallback_lookup
from greenroom.actors.memories.recall.key_resolution import FallbackLookup
from greenroom.actors.memories.storage.quota import Quota
from greenroom.actors.orchestrations.client_session import (
    ClientOrchestration,
    ClientSessionState,
    PassportOptions,
    ServerPort,
    SessionLocator,
)
from greenroom.actors.orchestrations.complete_code import CompleteCode
from greenroom.actors.requests import (
    AFTER_NOTES,
    ASKED,
    COUNTED,
    LEARNED,
    NAMES,
    ROUTES,
    TOOLS,
    closed_to,
    closed_to_onlookers,
    is_looked_up,
    is_write,
    takes_several,
)
from greenroom.actors.schemas.resources import ReadResource
from greenroom.actors.sessions.requests import requests as sessions
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import (
    Address,
    Idempotency,
    Message,
    Procedure,
    Query,
    Refusal,
    Result,
    RuntimeClient,
    Ticket,
)

R = TypeVar("R")
Q = TypeVar("Q", bound=msgspec.Struct)

LARGE_TEXT = 65_536
DEBOUNCE_SECONDS = 0.1


def _learns_nothing(*, passed: bool) -> None:
    """Stand for a record that nobody wants."""


class Agent:
    """An agent at work in a runtime: asks in the name of one principal.

    Over a `Database` it asks from any event loop: `ask` and `close` alone work there, callbacks are called in
    the database's thread, and the session that it works in is left when the database is closed.

    Args:
        runtime: What `open_greenroom` opened, or a `Database`.
        principal: Who the agent is.
        timezone: The name of the time zone in which its searches mean words such as "yesterday", where they
            name none; the machine's for None.
        client: The client's own name for itself, which tells its tool.
        passports: How sessions are signed that travel.
        quota: What it may have, where that is limited.
        locator: Given, the client has no connection, and this knows which session it works in.
        on_export: Called with the bytes of each export of memories or of a session.
        reach: Which files it may have read into corpora; none for None.
        savings: Counts what its searches and readings save; nobody does for None.
        server: The process that serves it; None where none does.
        workspaces: Keep the indexes of the folders of code that it works in; nobody does for None.
        is_person: Whether a person looks at pages: what people read spares no agent anything, and they get no
            links to passports, which open without a key.
        learns_workflows: Whether its calls of tools are recorded as steps of work, without their arguments.
        prompts: Prompts of the user's own (`open_prompts`).
        notes: Notes what it does in the session that it works in (`open_work_notes`); given none, each note
            is written at once.
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
        self._hosted: Hosted[Agent] | None = None
        if isinstance(runtime, RuntimeHost):
            make = partial(
                Agent,
                principal=principal,
                timezone=timezone,
                client=client,
                passports=passports,
                quota=quota,
                locator=locator,
                on_export=on_export,
                reach=reach,
                workspaces=workspaces,
                savings=savings,
                server=server,
                is_person=is_person,
                learns_workflows=learns_workflows,
                prompts=prompts,
                notes=notes,
            )
            self._hosted = Hosted(runtime, make)
            return
        looks_on = principal.seen_by is not None  # then nothing of it is counted, nor recorded as the agent's
        if looks_on:
            locator = None
        if is_person and passports is not None:
            passports = passports._replace(base_url=None)
        self._runtime = runtime
        self._savings = None if looks_on or is_person else savings
        self._closed = (closed_to_onlookers if looks_on else closed_to)(principal.scopes)
        self._scope = idempotency_scope(principal)
        self._lookup = FallbackLookup(runtime, principal, NAMES)
        self._client_state = ClientSessionState(
            runtime, principal, client, passports, self._scope, locator, savings
        )
        self._addressing = Addressing(runtime, principal, self._client_state, self._scope, timezone)
        self._client_state.server = server
        self._client_state.quota = quota
        self._client_state.on_export = on_export
        self._client_state.reach = reach or Reach()
        self._client_state.workspaces = workspaces
        self._learns_workflows = learns_workflows and not looks_on
        self._client_state.prompts = prompts
        self._notes = notes or WorkNotes(runtime)
        self._is_noted = not looks_on and not is_person

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the agent's principal."""
        return self.principal.scopes

    def close(self) -> None:
        """Hold no session any more: the agent has left the one that it works in.

        An agent that is not closed holds the one that it started until the runtime is closed, and no other
        tool's start takes that up.
        """
        if self._hosted is not None:
            self._hosted.post(Agent.close)
        else:
            self._client_state.close()

    def must_ask(self, request: object) -> bool:
        """Return whether a request cannot be posted, because one actor alone cannot answer it."""
        return (
            is_looked_up(request)
            or isinstance(request, sessions.SearchContext)
            or takes_several(request)
            or fallback_lookup.may_miss(request)
            or (
                self._quota is not None and is_write(type(request)) and self._quota.counts(request)  # type: ignore[arg-type]
            )
        )

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Check that the agent's scopes open a type of request, before its arguments are read.

        Args:
            request: The type.
            arguments: What it would be made of, if that is known.

        Raises:
            Refusal: ``PERMISSION_DENIED``; it is recorded.
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
        request: Message[R] | Query[R] | Procedure[R] | Orchestration[R],
        *,
        checked: bool = False,
        on_accepted: Callable[[], None] | None = None,
    ) -> R:
        """Check a request, send it to the actor that it is for, and return the reply.

        Args:
            request: One of the types in `REQUESTS`, or `ReadResource`, `ListResources`, `CompleteResource`,
                `CompleteCode`, `ListPrompts`, `GetPrompt`, `CompletePrompt`.
            checked: Whether it comes from `parse_request`, which has checked it already.
            on_accepted: Called once the request has its place in the actor's order.

        Raises:
            Refusal: an argument breaks a limit, or the actor says no.
            TypeError: the request is none of these.
            GreenroomError: as `Runtime.ask`.
        """
        if type(request) not in ASKED:
            raise TypeError(f"{type(request).__name__} is not a request that agents ask")
        if self._hosted is not None:
            return await self._hosted.call(
                lambda agent: agent.ask(request, checked=checked, on_accepted=on_accepted)
            )
        learn, note = self._learner(request), self._noting(request)
        try:
            answer: R = await self._ask(request, checked=checked, on_accepted=on_accepted)
        except Refusal as refusal:
            learn(passed=False)
            record_denial(self._runtime, self.principal, request, refusal)
            raise
        learn(passed=True)
        if note is not None:
            note(answer)
        return answer if not _lacks_reason(request, answer) else await self._explained(request, answer)

    async def _ask(self, request: Any, *, checked: bool, on_accepted: Callable[[], None] | None) -> Any:
        if self._closed:
            self._check_open_to_me(type(request))
        if not checked:
            request = await _checked(request)
        if self._quota is not None and is_write(type(request)) and self._quota.counts(request):
            await self._quota.charge(self._runtime, self.principal, request, self._scope)
        if _is_of_several(request):
            if on_accepted is not None:
                on_accepted()
            return await self._counted(request)
        route = ROUTES[type(request)]
        address, named, idempotency = self._addressing.addressed(request, route)
        if is_looked_up(request):
            address = await self._addressing.address_of(named.memory_id)
        return await self._answered(address, named, request, idempotency, on_accepted)

    def post(
        self,
        request: Message[R],
        done: Callable[[Result], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = math.inf,
    ) -> Ticket:
        """Send a request that `parse_request` returned, and be called back instead of waiting.

        Args:
            request: One of the types in `REQUESTS` or `ReadResource`, and a message, not a query.
            done: Called once with what the actor answers, or never when the request is abandoned. Of that
                `fallback` knows whether it is what `ask` would end with.
            on_accepted: Called once the request has its place in the actor's order.
            deadline: On trio's clock; a request not begun by then is not begun.

        Raises:
            Refusal: the request names a resource that no actor can have.
            TypeError: the request is none of these, or one that an agent `must_ask`.
            GreenroomError: it was not accepted, as `Runtime.post` says.
        """
        self._check_is_here()
        route = ROUTES.get(type(request))
        if route is None or self.must_ask(request):
            raise TypeError(f"{type(request).__name__} is not a request that agents post")
        try:
            if self._closed:
                self._check_open_to_me(type(request))
            address, named, idempotency = self._addressing.addressed(request, route)
        except Refusal as refusal:
            record_denial(self._runtime, self.principal, request, refusal)
            raise
        if (note := self._noting(request)) is not None:
            done = noting_value(note, done)
        if type(request) is travel.GetSessionContext and self._savings is not None:
            done = self._counting(named, done)
        done = self._learning(request, done)
        return self._runtime.post(
            address,
            named,
            done,
            principal=self.principal,
            idempotency=idempotency,
            deadline=deadline,
            on_accepted=on_accepted,
        )

    def fallback(self, request: Message[R], first: R | Refusal) -> Callable[[], Awaitable[R]] | None:
        """Return what is to be awaited after a post was answered; None: that is the answer.

        A key that is not where its request looks first may lie elsewhere, and an empty answer says why.
        """
        self._check_is_here()
        if not isinstance(first, Refusal):
            return partial(self._explained, request, first) if _lacks_reason(request, first) else None
        if type(request) not in fallback_lookup.BY_KEY or not fallback_lookup.is_missed(request, first):
            return None
        idempotency = self._addressing.addressed(request, ROUTES[type(request)])[2]
        return partial(self._second_answer, request, idempotency, first, self._noting(request))

    def subscriber(self, window: float = DEBOUNCE_SECONDS) -> ResourceSubscriber:
        """Return a subscriber to resources, a context manager; it hears of what this agent may see.

        The first change of a quiet resource is told at once; those within ``window`` seconds after
        a telling become one, told at its end.

        Raises:
            RuntimeClosedError: the runtime is closed.
        """
        self._check_is_here()
        limit = None if self._quota is None else self._quota.subscriptions
        return ResourceSubscriber(
            self._runtime, self._runtime.subscriber(window), self._addressing.reader, limit
        )

    def _learner(self, request: Any) -> Callable[..., None]:
        """Return what records the call of a tool that begins now, once it is over, as a step of work."""
        tool = LEARNED.get(type(request)) if self._learns_workflows else None
        if tool is None:
            return _learns_nothing
        began = trio.current_time()

        def learn(*, passed: bool) -> None:
            seconds = trio.current_time() - began
            self._client_state.record_step(tool, passed=passed, seconds=seconds)

        return learn

    def _learning(self, request: Any, done: Callable[[Result], None]) -> Callable[[Result], None]:
        """Wrap a request's callback so that it is recorded as a step of work."""
        learn = self._learner(request)
        if learn is _learns_nothing:
            return done

        def learned(result: Result) -> None:
            learn(passed=isinstance(result, outcome.Value))
            done(result)

        return learned

    def _noting(self, request: Any) -> Callable[[Any], None] | None:
        """Return what notes a request that begins now in the client's session, once it is answered.

        What shows that session's work comes after what was noted before.
        """
        kind = type(request)
        if kind in AFTER_NOTES:
            self._notes.write()
        tool = TOOLS.get(kind)
        if tool is None or not self._is_noted:
            return None
        return self._notes.noting(self._client_state, request, tool)

    async def _second_answer(
        self,
        request: Message[R],
        idempotency: Idempotency | None,
        first: Refusal,
        note: Callable[[R], None] | None,
    ) -> R:
        answer: R = await self._lookup.answer(request, idempotency, first)
        if note is not None:
            note(answer)
        return answer

    async def _answered(
        self,
        address: Address,
        named: Message[R],
        request: Message[R],
        idempotency: Idempotency | None,
        on_accepted: Callable[[], None] | None,
    ) -> R:
        """Return an actor's reply, or where it has no such key, that of the actor that has it."""
        first: R | Refusal
        began = trio.current_time()
        try:
            first = await self._runtime.ask(
                address, named, principal=self.principal, idempotency=idempotency, on_accepted=on_accepted
            )
        except Refusal as refusal:
            first = refusal
        if type(request) in fallback_lookup.BY_KEY and fallback_lookup.is_missed(request, first):
            found: R = await self._lookup.answer(request, idempotency, first)
            return found
        if isinstance(first, Refusal):
            raise first
        if isinstance(named, travel.GetSessionContext) and self._savings is not None:
            self._count("get_session_context", first, began, Sources(), named.session_id)
        return first

    async def _counted(self, request: Any) -> Any:
        """Carry a request out, and count what it saved."""
        operation = COUNTED.get(type(request))
        if operation is None or self._savings is None:
            return await self._carried_out(request)
        began = trio.current_time()
        with noting() as sources:
            reply = await self._carried_out(request)
        session_id = getattr(request, "session_id", None) or self._client_state.session_id
        self._count(operation, reply, began, sources, session_id)
        return reply

    def _counting(self, request: Any, done: Callable[[Result], None]) -> Callable[[Result], None]:
        """Wrap the callback of a request to a session so that what it saved is counted."""
        began = trio.current_time()

        def count(result: Result) -> None:
            if isinstance(result, outcome.Value):
                self._count("get_session_context", result.value, began, Sources(), request.session_id)
            done(result)

        return count

    def _count(
        self, operation: str, reply: Any, began: float, sources: Sources, session_id: str | None
    ) -> None:
        assert self._savings is not None, "who counts has a ledger"
        size, seconds = len(msgspec.json.encode(reply)), trio.current_time() - began
        self._savings.record(self.principal, operation, sources, size, seconds, session_id)

    async def _explained(self, request: Any, reply: Any) -> Any:
        """Return an empty answer with the reason why it is empty."""
        asker = Asker(self.principal, self._uncounted, learns_workflows=self._learns_workflows)
        return await explained(asker, request, reply)

    async def _uncounted(self, request: Any) -> Any:
        """Return the answer to a request of our own, within what the agent may ask."""
        self._check_open_to_me(type(request))
        if _is_of_several(request):
            return await self._carried_out(request)
        address, named, _ = self._addressing.addressed(request, ROUTES[type(request)])
        return await self._runtime.ask(address, named, principal=self.principal)

    async def _carried_out(self, request: Any) -> Any:
        if isinstance(request, CompleteCode):
            self._addressing.check_resource_kind("workspace")
        if isinstance(request, ClientOrchestration):
            with self._runtime.apply_settings():
                return await request.carry_out(self._client_state)
        if isinstance(request, Orchestration):
            with self._runtime.apply_settings():
                return await request.run(self._runtime, self.principal)
        if isinstance(request, ReadResource) and is_of_savings(request.uri):
            self._addressing.address_of_resource(request.uri)
            return await savings_resource(self._client_state, request.uri)
        return await self._runtime.query(self._addressing.in_full(request), principal=self.principal)

    def _check_is_here(self) -> None:
        """Check that the agent works in a runtime of this event loop.

        Raises:
            TypeError: it works over a `Database`.
        """
        if self._hosted is not None:
            raise TypeError("an agent over a Database can only ask; make one over what open_greenroom opens")

    def _check_open_to_me(self, request: type[Any]) -> None:
        closed = self._closed.get(request)
        if closed is None:
            return
        if self.principal.seen_by is not None:
            raise auth_errors.only_looks_on(closed[0], self.principal.agent_id)
        raise auth_errors.scope_missing(*closed)


def _is_of_several(request: object) -> bool:
    """Return whether no actor alone answers a request."""
    return isinstance(request, Query | Procedure | Orchestration | sessions.SearchContext) or takes_several(
        request
    )


def _lacks_reason(request: object, reply: Any) -> bool:
    """Return whether an answer is empty and does not say why."""
    return type(request) in EXPLAINED and reply.lacks_reason


async def _checked(request: Q) -> Q:
    """Return a request after its checks, which take a while if it has a large text, such as a passport."""
    if isinstance(request, Orchestration) and any(
        isinstance(value, str) and len(value) > LARGE_TEXT for value in msgspec.structs.astuple(request)
    ):
        return await run_in_thread(check_request, request)
    return check_request(request)
