"""One client and its open requests, each of which settles exactly once.

Invariants:

- `calls` holds every request that is not settled. A request settles exactly once: by its answer, or because
        its client cancelled it.
- `OrderedQueue` knows the state of each request; `ClientIdentity` knows the sender.
- Taking a message never waits. Only messages in mailboxes and tasks wait.
- The first request decides the era, and with it the methods (`methods`).
- While the SDK is imported to check a request, that request keeps its place in the order. Until the client
        is introduced, all other requests except pings wait, because its identity decides their answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from types import ModuleType
from typing import Any, Protocol

import trio

from greenroom.actors import Agent
from greenroom.transports.auth.caller import NO_CHOICE, RateLimit, ToolChoice
from greenroom.transports.base.observability.meter import Outcome, RequestMeter
from greenroom.transports.base.observability.request_log import RequestLog, trace_id_of
from greenroom.transports.base.observability.tracing import Tracer
from greenroom.transports.mcp.agent_port import AgentPort, SubscriberPort
from greenroom.transports.mcp.clients.client_identity import ClientIdentity
from greenroom.transports.mcp.clients.domain_requests import DomainRequests, Spawn
from greenroom.transports.mcp.clients.ordering import IN_ORDER, OrderedQueue
from greenroom.transports.mcp.frames.calls import (
    UNCOUNTED,
    Call,
    Deadlines,
    Limits,
    OpenStreams,
    ResponseSink,
)
from greenroom.transports.mcp.frames.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    RequestError,
    RequestKey,
    error_line,
)
from greenroom.transports.mcp.frames.versions import Era, check_era
from greenroom.transports.mcp.tools.offered_tools import ToolOffers

logger = logging.getLogger(__name__)

CONNECTION_CLOSED = -32000


class MethodsPort(Protocol):
    """The interface of the methods of one era."""

    def take(self, client: Client, call: Call) -> None:
        """Answer a request, or answer with its error."""

    def limit(self, client: Client, call: Call, seconds: float) -> None:
        """Answer a call that exceeds the rate limit."""

    def expire(self, client: Client, call: Call) -> None:
        """Answer a call that timed out."""


class ServerPort(Protocol):
    """The server, as its clients use it; see `McpServer`."""

    offers: ToolOffers
    methods: Mapping[Era, MethodsPort]
    checks: ModuleType | None
    request_timeout: float
    deadlines: Deadlines
    tracer: Tracer | None
    meter: RequestMeter
    successors: Mapping[str | None, str]
    log: RequestLog | None
    run_ready: Callable[[], None]
    hold_dispatch: Callable[[], AbstractContextManager[None]]

    def add(self, client: Client, transport: str) -> None:
        """Record a client that has connected."""

    def remove(self, client: Client, *, may_come_back: bool) -> None:
        """Record a client that has disconnected."""

    def record_unread(self, agent_id: str | None = None) -> None:
        """Record a message that is not a valid request, or came too late."""

    async def import_checks(self) -> None:
        """Import the SDK's checks of requests."""


class Client:
    """The state of one client: its handshake and its open requests.

    Args:
        sink: Sink for messages that belong to no request.
        spawn: Starts a task that ends with the client.
        has_room: Whether the client reads its answers; while it does not, no large answer begins.
        rate_limit: Counts its requests; None if they are not counted, or were counted before.
        is_single_request: Whether it makes one request, and ends with it.
        on_failure: Called when the store has failed permanently, and no further answer is allowed.

    Attributes:
        subscriber: Its subscriptions outside of listen streams; None until it subscribes.
        last_request: When its last request came, by trio's clock; None before its first.
    """

    def __init__(
        self,
        server: ServerPort,
        agent_for: Callable[[str], AgentPort],
        sink: ResponseSink,
        limits: Limits,
        *,
        spawn: Spawn,
        on_failure: Callable[[], None],
        has_room: Callable[[], bool] = lambda: True,
        changed: trio.lowlevel.ParkingLot | None = None,
        rate_limit: RateLimit | None = None,
        tools: ToolChoice = NO_CHOICE,
        transport: str = "stdio",
        is_single_request: bool = False,
    ) -> None:
        self.server = server
        self.offer = server.offers.of(tools)
        self.limits = limits
        self.sink = sink
        self.spawn = spawn
        self.identity = ClientIdentity(agent_for)
        self.queue = OrderedQueue(limits, has_room)
        self.streams = OpenStreams(limits, self.notify_changed)
        self.domain = DomainRequests(self.identity, self.queue, spawn, self.fail, on_failure)
        self.subscriber: SubscriberPort | None = None
        self.last_request: float | None = None
        self._methods: MethodsPort | None = None
        self._postponed: list[Call | Frame] = []
        self._is_importing = self._is_introducing = False
        self._changed = trio.lowlevel.ParkingLot() if changed is None else changed
        self._rate_limit = rate_limit
        self._calls: dict[RequestKey, Call] = {}
        self._open_bytes = 0
        self._is_single_request = is_single_request
        server.add(self, transport)

    # -- state for others -----------------------------------------------------------------------

    @property
    def agent_id(self) -> str | None:
        """The id of its agent; None if it needed no agent yet."""
        agent = self.identity.known_agent
        return agent.principal.agent_id if isinstance(agent, Agent) else None

    @property
    def open_requests(self) -> int:
        """The number of requests that are not settled, streams included."""
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether it has reached its limit of requests in flight; streams do not count."""
        return (
            len(self._calls) - len(self.streams.scopes) >= self.limits.in_flight
            or self._open_bytes >= self.limits.in_flight_bytes
        )

    # -- in --------------------------------------------------------------------------------------

    def take(self, frame: Frame, sink: ResponseSink, wait: float = 0.0) -> None:
        """Take a request, a notification or a response; answers to a request go to `sink`."""
        if frame.key is None:
            if not self.queue.is_closed:
                self._notified(frame)
        elif frame.is_response:
            self.domain.take_response(frame)
        elif self.queue.is_closed:
            assert frame.id is not None, "a request has an id"
            self.server.record_unread(self.agent_id)
            sink.answer(error_line(frame.id, CONNECTION_CLOSED, "Connection closed"))
        elif frame.key in self._calls:
            # An error under that id would look like the answer to the first request.
            assert frame.id is not None, "a request has an id"
            self.server.record_unread(self.agent_id)
            sentence = f"the id {frame.id.decode()} belongs to a request that is not answered yet"
            sink.answer(error_line(b"null", INVALID_REQUEST, sentence))
        else:
            call = Call(self.expire, frame, sink, trio.current_time(), self.server.request_timeout)
            self._requested(call, wait)

    def _requested(self, call: Call, wait: float) -> None:
        frame = call.frame
        assert frame.key is not None, "a request has an id"
        self._calls[frame.key] = call
        self.last_request = call.arrived
        if self.server.log is not None:
            call.trace_id = trace_id_of((frame.params or {}).get("_meta"))
        self._open_bytes += frame.size
        who = self.identity
        if not who.is_name_fixed:
            who.learn(frame)
        assert who.era is not None, "its first request tells it"
        if self._methods is None:
            self._methods = self.server.methods[who.era]
        if frame.method == "initialize" or (frame.params and "_meta" in frame.params):
            try:
                check_era(who.era, frame.method, frame.params)
            except RequestError as error:
                self.fail(call, error.code, str(error), error.data)
                return
        if (tracer := self.server.tracer) is not None:
            call.span = tracer.begin(frame.method, self.identity.version, frame.params, frame.key)
        if self._rate_limit is not None and frame.method not in UNCOUNTED:
            wait = self._rate_limit.request(call.arrived)
        if wait > 0:
            self._methods.limit(self, call, wait)
        elif self._is_introducing and frame.method != "ping":
            self.postpone(call)
        else:
            self._methods.take(self, call)

    def postpone(self, item: Call | Frame) -> None:
        """Take a request or notification after the import of the SDK's checks."""
        if isinstance(item, Frame):
            self._open_bytes += item.size
            self._is_introducing = True
        else:
            if item.frame.method != "subscriptions/listen":
                with suppress(RequestError):  # its method reports this, after the SDK's own check
                    self.server.deadlines.watch(item)
            if item.frame.method in IN_ORDER:
                self.queue.hold(item)
            self._is_introducing = self._is_introducing or item.frame.method == "initialize"
        self._postponed.append(item)
        if not self._is_importing:
            self._is_importing = True
            self.spawn(self._take_postponed)

    async def _take_postponed(self) -> None:
        try:
            await self.server.import_checks()
        except Exception:
            logger.exception("the SDK, which checks a request, cannot be imported")
        postponed, self._postponed = self._postponed, []
        self._is_importing = self._is_introducing = False
        for item in postponed:
            if isinstance(item, Frame):
                self._open_bytes -= item.size
                if self.server.checks is not None or not item.params:
                    self._initialized(item)
            elif self.server.checks is None:
                self.fail(item, INTERNAL_ERROR, "Internal server error")
            elif not item.settled:
                assert self._methods is not None, "it has sent a request"
                self._methods.take(self, item)
        self.notify_changed()

    def _notified(self, frame: Frame) -> None:
        if (tracer := self.server.tracer) is not None:
            tracer.begin(frame.method, self.identity.version, frame.params).end("ok")
        if frame.method == "notifications/roots/list_changed":
            self.domain.forget_folders()
        if frame.method == "notifications/cancelled":
            key = (frame.params or {}).get("requestId")
            call = self._calls.get(key) if isinstance(key, int | str) and type(key) is not bool else None
            if call is not None:
                self._cancel(call)
        elif frame.method == "notifications/initialized" and not self.identity.is_introduced:
            self._initialized(frame)
        else:
            logger.debug("a notification was ignored: it has no handler")

    def _initialized(self, frame: Frame) -> None:
        """Serve a client that has become ready, with or without a handshake before."""
        checks, params = self.server.checks, frame.params
        if self._is_introducing or (params and checks is None):
            self.postpone(frame)
        elif (
            checks is None
            or not params
            or checks.is_notification(frame.method, self.identity.version, params)
        ):
            self.identity.is_introduced = True

    def _cancel(self, call: Call) -> None:
        call.cancel()
        if not call.settled:
            self._settle(call, "cancelled")
            call.sink.unanswered()

    # -- out -------------------------------------------------------------------------------------

    def answer(self, call: Call, line: bytes, outcome: Outcome = "ok") -> None:
        """Answer a request that is not settled."""
        if self.domain.failed is None:
            self._settle(call, outcome)
            call.sink.answer(line)

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with a protocol error."""
        if call.span is not None:
            call.span.fail(code, sentence)
        self.answer(call, error_line(call.id, code, sentence, data), "error")

    def expire(self, call: Call) -> None:
        """End a request that timed out; an action that has begun is completed."""
        assert self._methods is not None, "who called has an era"
        self._methods.expire(self, call)
        call.cancel()

    def _settle(self, call: Call, outcome: Outcome) -> None:
        server, frame = self.server, call.frame
        assert frame.key is not None, "a request has an id"
        del self._calls[frame.key]
        self._open_bytes -= frame.size
        if call in self._postponed:
            self._postponed.remove(call)
        server.deadlines.forget(call)
        seconds = trio.current_time() - call.arrived
        server.meter.record(frame.method, server.successors.get(frame.name, frame.name), outcome, seconds)
        trace_id = call.trace_id if call.span is None else call.span.end(outcome)
        if server.log is not None:
            server.log.record(frame.method, outcome, seconds, trace_id, tool=frame.name, agent=self.agent_id)
        self.queue.settle(call)
        self.notify_changed()

    def notify_changed(self) -> None:
        """Wake the tasks that wait for a change of this client."""
        if self._changed:
            self._changed.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this client holds."""
        while not condition():
            await self._changed.park()

    # -- the end ---------------------------------------------------------------------------------

    async def drain(self) -> None:
        """End the streams with their results, and wait until no request is open."""
        self.streams.end()
        await self.until(lambda: not self._calls)

    def fail_open_requests(self) -> None:
        """Answer every open request with the error that the connection is closed."""
        self.queue.is_closed = True
        for call in list(self._calls.values()):
            self.fail(call, CONNECTION_CLOSED, "Connection closed")
            call.cancel()

    def close(self) -> None:
        """Cancel the client's open requests after its end. Its tasks end with their nursery."""
        self.queue.is_closed = True
        for call in list(self._calls.values()):
            self._cancel(call)
        self.server.remove(self, may_come_back=self._is_single_request)
        self.identity.close()
