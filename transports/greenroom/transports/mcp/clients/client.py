"""One client: its open requests, and which path answers each of them.

Invariants:

- `calls` holds every request that is not settled. A request settles exactly once: with its
  answer, or because its client took it back.
- How far each of them is, `OrderedQueue` knows; who sent them, `ClientIdentity`.
- A frame is taken without waiting. What waits is a message in a mailbox, or a task of its own.
- The first request decides the era. What is plain and frequent is done here (`fast_path`); the
  rest goes to the SDK, imported when a request first needs it (`sdk_server`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import trio

from greenroom.actors import Agent
from greenroom.transports.auth.caller import NO_CHOICE, RateLimit, ToolChoice
from greenroom.transports.base.observability.meter import Outcome
from greenroom.transports.base.observability.request_log import trace_id_of
from greenroom.transports.mcp.agent_port import AgentPort, SubscriberPort
from greenroom.transports.mcp.client_identity import ClientIdentity
from greenroom.transports.mcp.clients.open_streams import OpenStreams
from greenroom.transports.mcp.clients.ordering import IN_ORDER, OrderedQueue
from greenroom.transports.mcp.clients.roots import Roots
from greenroom.transports.mcp.domain_requests import DomainRequests, Spawn
from greenroom.transports.mcp.fast_path import LARGEST_WEIGHT, timeout_of
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Frame,
    RequestError,
    RequestKey,
    error_line,
)
from greenroom.transports.mcp.frames.versions import Era, era_mismatch, is_plain_initialize, negotiate_version
from greenroom.transports.mcp.limits import UNCOUNTED, Limits
from greenroom.transports.mcp.response_sink import ResponseSink
from greenroom.transports.mcp.sdk_client import SdkClient
from greenroom.transports.mcp.server import McpServer

logger = logging.getLogger(__name__)

CONNECTION_CLOSED = -32000
HANDSHAKE_LIMIT = 64 * 1024  # bytes


class Client:
    """The state of one client: its handshake and its open requests.

    Args:
        server: What it speaks to.
        agent_for: Returns its agent in the domain, given its name made to fit.
        sink: Sink for messages that belong to no request.
        limits: Bounds of what it may have open.
        spawn: Starts a task that ends with the client.
        has_room: Whether it reads its answers; while it does not, no large answer is begun.
        changed: Where tasks wait for a change of this client.
        rate_limit: Counts its requests; None where they are not counted, or were before they came here.
        tools: How tools are listed to it.
        transport: How it is connected.
        is_single_request: Whether it is one request, and ends with that.
        on_failure: Called when the store has failed for good and nothing more may be answered.

    Attributes:
        offer: The tools that it is offered.
        identity: Who it is.
        queue: The order of its requests.
        streams: Its open streams.
        domain: Its requests on their way into the domain.
        roots: The questions after its folders; None if it was not asked.
        subscriber: Its subscriptions outside of listen streams; None until it subscribes.
        sdk: The SDK's side of it; None before a request needs it.
    """

    def __init__(
        self,
        server: McpServer,
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
        self.sdk: SdkClient | None = None
        self.roots: Roots | None = None
        self._changed = trio.lowlevel.ParkingLot() if changed is None else changed
        self._rate_limit = rate_limit
        self._calls: dict[RequestKey, Call] = {}
        self._open_bytes = 0
        self._is_single_request = is_single_request
        server.connected.add(self, transport)
        if server.lists is not None:
            server.lists.add(self)

    # -- what others ask ------------------------------------------------------------------------

    @property
    def agent_id(self) -> str | None:
        """The id of its agent; None where there was no need of one yet."""
        agent = self.identity.known_agent
        return agent.principal.agent_id if isinstance(agent, Agent) else None

    @property
    def open_requests(self) -> int:
        """How many requests are not settled, streams included."""
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether it has as much in flight as it may have; streams are not in flight."""
        return (
            len(self._calls) - len(self.streams) >= self.limits.in_flight
            or self._open_bytes >= self.limits.in_flight_bytes
            or (self.sdk is not None and self.sdk.is_full)
        )

    # -- in --------------------------------------------------------------------------------------

    def take(self, frame: Frame, sink: ResponseSink, wait: float = 0.0) -> None:
        """Take a request, a notification or a response; what comes of a request goes to `sink`.

        Args:
            frame: What came.
            sink: Where answers go.
            wait: Seconds by which a request came too soon, where its server counts requests itself.
        """
        if frame.key is None:
            if not self.queue.is_closed:
                self._notified(frame)
        elif frame.is_response:
            if (self.roots is None or not self.roots.take_response(frame)) and self.sdk is not None:
                self.sdk.take_response(frame)
        elif self.queue.is_closed:
            assert frame.id is not None, "a request has an id"
            self.server.record_unread(self.agent_id)
            sink.answer(error_line(frame.id, CONNECTION_CLOSED, "Connection closed"))
        elif frame.key in self._calls:
            # Under that id the client would take this for the answer to its first request.
            assert frame.id is not None, "a request has an id"
            self.server.record_unread(self.agent_id)
            sentence = f"the id {frame.id.decode()} belongs to a request that is not answered yet"
            sink.answer(error_line(b"null", INVALID_REQUEST, sentence))
        else:
            call = Call(self, frame, sink, trio.current_time(), self.server.request_timeout)
            self._requested(call, wait)

    def _requested(self, call: Call, wait: float) -> None:
        frame = call.frame
        assert frame.key is not None, "a request has an id"
        self._calls[frame.key] = call
        if self.server.log is not None:
            call.trace_id = trace_id_of((frame.params or {}).get("_meta"))
        self._open_bytes += frame.size
        era = self.identity.learn(frame)
        if (refusal := era_mismatch(era, frame.method, frame.params)) is not None:
            self.fail(call, *refusal)
            return
        if (tracer := self.server.tracer) is not None:
            call.span = tracer.begin(frame.method, self.identity.version, frame.params, frame.key)
        if self._let_pass(call, wait) and not self._took_fast_path(call, era):
            if frame.problem:
                self.fail(call, INVALID_PARAMS, frame.problem)
            else:
                self._send_to_sdk(call)

    def _let_pass(self, call: Call, wait: float) -> bool:
        """Return whether the client may send this now; answer it when it may not."""
        if self._rate_limit is not None and call.frame.method not in UNCOUNTED:
            wait = self._rate_limit.request(call.arrived)
        if wait > 0:
            self.server.answer_limited(self, call, wait)
        return wait <= 0

    def _took_fast_path(self, call: Call, era: Era) -> bool:
        """Answer a plain and frequent request without the SDK; return whether it was one."""
        if self.sdk is not None and self.sdk.is_handshaking:
            return False  # what it will be allowed after that is not known yet
        name = call.frame.method
        if name == "initialize":
            return self._shake_hands(call)
        method = self.server.methods[era].get(name)
        if method is None:
            return False
        if not self.identity.is_introduced and name != "ping":
            if self.sdk is None:
                self.fail(call, INVALID_PARAMS, f"send initialize first: {name} is not answered before it")
            return self.sdk is None
        return method(self, call)

    def _shake_hands(self, call: Call) -> bool:
        params, size = call.frame.params, call.frame.size
        if size > HANDSHAKE_LIMIT:  # it is kept as long as the client is
            sentence = f"a handshake has at most {HANDSHAKE_LIMIT:,} bytes; this one has {size:,}"
            self.fail(call, INVALID_REQUEST, sentence)
            return True
        if self.sdk is not None or params is None or not is_plain_initialize(params):
            return False
        who = self.identity
        who.accept_handshake(params, negotiate_version(params["protocolVersion"]))
        result = self.server.initialize_result(who.version, who.scopes, self.offer)
        self.answer(call, b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (call.id, result))
        return True

    def _notified(self, frame: Frame) -> None:
        if (tracer := self.server.tracer) is not None:
            tracer.begin(frame.method, self.identity.version, frame.params).end("ok")
        if frame.method == "notifications/roots/list_changed" and self.roots is not None:
            self.roots.forget()
        if frame.method == "notifications/cancelled":
            key = (frame.params or {}).get("requestId")
            call = self._calls.get(key) if isinstance(key, int | str) and type(key) is not bool else None
            if call is not None:
                self._cancel(call)
        elif self.sdk is not None:
            self.sdk.take_notification(frame)
        elif frame.method == "notifications/initialized":
            # Without a handshake before it, too, this leads to the SDK.
            if not self.identity.is_introduced:
                self.sdk = SdkClient(self.server.sdk, self)
                self.sdk.take_notification(frame)
        else:
            logger.debug("a notification was passed over: nothing here hears of it")

    def _cancel(self, call: Call) -> None:
        call.cancel()
        if not call.settled:
            self._settle(call, "cancelled")
            call.sink.unanswered()

    def _send_to_sdk(self, call: Call) -> None:
        if call.frame.method != "subscriptions/listen":
            with suppress(RequestError):  # whoever handles it says so, after the SDK has said its own
                call.timeout = timeout_of(call)
            self.server.deadlines.watch(call)
        if call.frame.method in IN_ORDER:
            self.queue.join_for_task(call, self._weight_of(call.frame))
        if self.sdk is None:
            self.sdk = SdkClient(self.server.sdk, self)
        self.sdk.take_request(call)

    def _weight_of(self, frame: Frame) -> int:
        tool = self.offer.tools.get(frame.name or "")
        if tool is not None:
            return tool.weight
        return LARGEST_WEIGHT if frame.method == "resources/read" else 0

    # -- out -------------------------------------------------------------------------------------

    def answer(self, call: Call, line: bytes, outcome: Outcome = "ok") -> None:
        """Answer a request that is not settled yet."""
        if self.domain.failed is None:
            self._settle(call, outcome)
            call.sink.answer(line)

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with an error of the protocol."""
        if call.span is not None:
            call.span.fail(code, sentence)
        self.answer(call, error_line(call.id, code, sentence, data), "error")

    def expire(self, call: Call) -> None:
        """End a request whose time is up; what is begun is carried out whole."""
        self.server.answer_overdue(self, call)
        call.cancel()

    def _settle(self, call: Call, outcome: Outcome) -> None:
        assert call.frame.key is not None, "a request has an id"
        del self._calls[call.frame.key]
        self._open_bytes -= call.frame.size
        self.server.record_settled(call, outcome)
        self.queue.settle(call)
        self.notify_changed()

    def notify_changed(self) -> None:
        """Wake whoever waits for a change of this client."""
        if self._changed:
            self._changed.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that depends on this client."""
        while not condition():
            await self._changed.park()

    # -- the end ---------------------------------------------------------------------------------

    async def drain(self) -> None:
        """End the streams with their results, and wait until nothing is open any more."""
        self.streams.end()
        await self.until(lambda: not self._calls)

    def fail_open_requests(self) -> None:
        """Answer every open request with the error that the connection is closed."""
        self.queue.is_closed = True
        for call in list(self._calls.values()):
            self.fail(call, CONNECTION_CLOSED, "Connection closed")
            call.cancel()

    def close(self) -> None:
        """Cancel what is open for the client, which is gone. Its tasks end with whoever spawned them."""
        self.queue.is_closed = True
        if self.server.lists is not None:
            self.server.lists.discard(self)
        for call in list(self._calls.values()):
            self._cancel(call)
        self.server.connected.remove(self, may_come_back=self._is_single_request)
        self.identity.close()
