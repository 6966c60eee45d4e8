"""One client: its protocol era, its name, its open requests, and which path answers each of them.

Invariants:

- `calls` holds every request that is not settled. A request settles exactly once: with its
  answer, or because its client took it back.
- A settled call has left its turn, so nobody waits for it any more.
- A frame is taken without waiting. What waits is a message in a mailbox, or a task of its own.
- The first request decides the era. What is plain and frequent is done here (`fast_path`); the
  rest goes to the SDK, imported when a request first needs it (`sdk_server`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from greenroom.actors import PROGRESS_CALLBACK
from greenroom.runtime import Refusal, StoreFailedError
from greenroom.transports.auth.caller import RateLimit, fit_agent_id
from greenroom.transports.mcp.agent_port import AgentPort, SubscriberPort
from greenroom.transports.mcp.calls import Call
from greenroom.transports.mcp.client_port import ClientPort, Spawn
from greenroom.transports.mcp.fast_path import LARGEST_WEIGHT, timeout_of
from greenroom.transports.mcp.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    RequestError,
    RequestKey,
    error_line,
)
from greenroom.transports.mcp.limits import Limits
from greenroom.transports.mcp.open_streams import OpenStreams
from greenroom.transports.mcp.ordering import OrderedQueue
from greenroom.transports.mcp.progress import report_for
from greenroom.transports.mcp.response_sink import ResponseSink
from greenroom.transports.mcp.roots import Roots
from greenroom.transports.mcp.sdk_client import SdkClient
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.versions import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Era,
    client_name,
    era_mismatch,
    is_plain_initialize,
    negotiate_version,
    opens_modern_era,
)
from greenroom.transports.observability.meter import Outcome

logger = logging.getLogger(__name__)

CONNECTION_CLOSED = -32000
HANDSHAKE_LIMIT = 64 * 1024  # bytes

IN_ORDER = frozenset(
    {
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
    }
)
"""The requests of the domain: they take effect in the order in which they arrived."""


Done = Callable[[ClientPort, Call, Any], None]
"""Told what a request was answered with: the reply, or an exception."""


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
        profiles: The tool profiles that hold for it; empty for the server's own.
        on_failure: Called when the store has failed for good and nothing more may be answered.

    Attributes:
        offer: The tools that it is offered.
        era: The era it speaks; None before its first request.
        version: The protocol's revision.
        initialize: The parameters of its handshake; None without one.
        name: Its own name for itself.
        roots: The questions after its folders; None if it was not asked.
        subscriber: Its subscriptions outside of listen streams; None until it subscribes.
        failed: Why the store failed for good, once it did.
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
        profiles: tuple[str, ...] = (),
    ) -> None:
        self.server = server
        self.offer = server.offers.of(profiles)
        self.limits = limits
        self.sink = sink
        self.spawn = spawn
        self.era: Era | None = None
        self.version = HANDSHAKE_VERSIONS[-1]
        self.initialize: dict[str, Any] | None = None
        self.initialized = False
        self.name: str | None = None
        self.subscriber: SubscriberPort | None = None
        self.failed: StoreFailedError | None = None
        self._changed = trio.lowlevel.ParkingLot() if changed is None else changed
        self._on_failure = on_failure
        self.sdk: SdkClient | None = None
        self.roots: Roots | None = None
        self._name_fixed = False
        self._agent_for = agent_for
        self._agent: AgentPort | None = None
        self._has_room = has_room
        self._rate_limit = rate_limit
        self._calls: dict[RequestKey, Call] = {}
        self._open_bytes = 0
        self._large = 0
        self.queue = OrderedQueue(self._may_begin, self._begin)
        self.streams = OpenStreams(limits, self.notify_changed)
        self._closed = False

    # -- what others ask ------------------------------------------------------------------------

    @property
    def agent(self) -> AgentPort:
        """The client's agent; to ask for it fixes its name."""
        if self._agent is None:
            self._agent = self._agent_for(fit_agent_id(self.name))
        return self._agent

    @property
    def scopes(self) -> frozenset[str]:
        """What the client may do; to ask for it fixes no name. Nothing, where there is no agent for it."""
        keep = self._agent is not None or self._name_fixed
        try:
            agent = self.agent if keep else self._agent_for(fit_agent_id(self.name))
        except Exception:  # noqa: BLE001  (whatever is asked through it is answered with that)
            return frozenset()
        return agent.scopes

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

    def _may_begin(self, call: Call) -> bool:
        if self._closed:  # what waits is called off as well, one after the other
            return False
        return not call.weight or (self._large < self.limits.large_answers and self._has_room())

    def _begin(self, call: Call) -> None:
        assert call.begin is not None, "only what can begin has a turn"
        call.begin(call)

    # -- in --------------------------------------------------------------------------------------

    def take(self, frame: Frame, sink: ResponseSink) -> None:
        """Take a request, a notification or a response; what comes of a request goes to `sink`."""
        if frame.key is None:
            if not self._closed:
                self._notified(frame)
        elif frame.is_response:
            if (self.roots is None or not self.roots.take_response(frame)) and self.sdk is not None:
                self.sdk.take_response(frame)
        elif self._closed:
            assert frame.id is not None, "a request has an id"
            sink.answer(error_line(frame.id, CONNECTION_CLOSED, "Connection closed"))
        elif frame.key in self._calls:
            # Under that id the client would take this for the answer to its first request.
            assert frame.id is not None, "a request has an id"
            sentence = f"the id {frame.id.decode()} belongs to a request that is not answered yet"
            sink.answer(error_line(b"null", INVALID_REQUEST, sentence))
        else:
            self._requested(Call(self, frame, sink, trio.current_time(), self.server.request_timeout))

    def _requested(self, call: Call) -> None:
        frame = call.frame
        assert frame.key is not None, "a request has an id"
        self._calls[frame.key] = call
        self._open_bytes += frame.size
        if not self._name_fixed:
            self.name = client_name(frame.method, frame.params)
            self._name_fixed = self.name is not None or frame.method in IN_ORDER
        if self.era is None:
            self.era = Era.MODERN if opens_modern_era(frame.method, frame.params) else Era.HANDSHAKE
            if self.era is Era.MODERN:
                self.version = MODERN_VERSION
        if self._of_this_era(call):
            if (tracer := self.server.tracer) is not None:
                call.span = tracer.begin(frame.method, self.version, frame.params, frame.key)
            if not self._let_pass(call):
                return
            if not self._took_fast_path(call):
                self._send_to_sdk(call)

    def _let_pass(self, call: Call) -> bool:
        """Return whether the client may send this now; answer it when it may not."""
        if self._rate_limit is None or call.frame.method == "ping":
            return True
        seconds = self._rate_limit.request(call.arrived)
        if seconds > 0:
            self.server.answer_limited(self, call, seconds)
        return seconds <= 0

    def _of_this_era(self, call: Call) -> bool:
        """Return whether a request is of the connection's era; answer it when it is not."""
        assert self.era is not None, "the first request decides"
        refusal = era_mismatch(self.era, call.frame.method, call.frame.params)
        if refusal is not None:
            self.fail(call, *refusal)
        return refusal is None

    def _took_fast_path(self, call: Call) -> bool:
        """Answer a plain and frequent request without the SDK; return whether it was one."""
        if self.sdk is not None and self.sdk.is_handshaking:
            return False  # what it will be allowed after that is not known yet
        assert self.era is not None, "the first request decides"
        frame = call.frame
        if frame.method == "initialize":
            return self._shake_hands(call)
        if self.era is Era.HANDSHAKE and not self.initialized and frame.method != "ping":
            return False
        method = self.server.methods[self.era].get(frame.method)
        return method is not None and method(self, call)

    def _shake_hands(self, call: Call) -> bool:
        params, size = call.frame.params, call.frame.size
        if size > HANDSHAKE_LIMIT:  # it is kept as long as the client is
            sentence = f"a handshake has at most {HANDSHAKE_LIMIT:,} bytes; this one has {size:,}"
            self.fail(call, INVALID_REQUEST, sentence)
            return True
        if self.sdk is not None or params is None or not is_plain_initialize(params):
            return False
        self.accept_handshake(params, negotiate_version(params["protocolVersion"]))
        result = self.server.initialize_result(self.version, self.scopes, self.offer)
        self.answer(call, b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (call.id, result))
        return True

    def accept_handshake(self, params: dict[str, Any], version: str) -> None:
        """Record a handshake that was accepted."""
        self.initialize, self.version, self.initialized = params, version, True

    def _notified(self, frame: Frame) -> None:
        if (tracer := self.server.tracer) is not None:
            tracer.begin(frame.method, self.version, frame.params).end("ok")
        if frame.method == "notifications/cancelled":
            key = (frame.params or {}).get("requestId")
            call = self._calls.get(key) if isinstance(key, int | str) and type(key) is not bool else None
            if call is not None:
                self._cancel(call)
        elif self.sdk is not None:
            self.sdk.take_notification(frame)
        elif frame.method == "notifications/initialized":
            # Without a handshake before it, too, this leads to the SDK.
            if self.era is not Era.MODERN and not self.initialized:
                self.sdk = SdkClient(self.server.sdk, self)
                self.sdk.take_notification(frame)
        else:
            logger.debug("the notification %s was passed over: nothing here hears of it", frame.method)

    def _cancel(self, call: Call) -> None:
        if call.cancel_work is not None:
            call.cancel_work()
        if not call.settled:
            self._settle(call, "cancelled")
            call.sink.unanswered()

    def _send_to_sdk(self, call: Call) -> None:
        if call.frame.method != "subscriptions/listen":
            with suppress(RequestError):  # whoever handles it says so, after the SDK has said its own
                call.timeout = timeout_of(call)
            self.server.deadlines.watch(call)
        if call.frame.method in IN_ORDER:
            call.payload = trio.Event()
            call.begin = _grant_turn
            call.weight = self._weight_of(call.frame)
            self.queue.join(call)
        if self.sdk is None:
            self.sdk = SdkClient(self.server.sdk, self)
        self.sdk.take_request(call)

    def _weight_of(self, frame: Frame) -> int:
        tool = self.offer.tools.get(frame.name or "")
        if tool is not None:
            return tool.weight
        return LARGEST_WEIGHT if frame.method == "resources/read" else 0

    # -- the domain ------------------------------------------------------------------------------

    def ask(self, call: Call, request: Any, done: Done) -> None:
        """Send a request into the domain; its turn has come.

        Args:
            call: What brought it.
            request: A checked request.
            done: Called with the reply or the error that it was answered with.
        """
        self.count_large(call)
        settled = partial(self._replied, call, request, done)
        try:
            if self.server.is_query(request):
                self.queue.leave(call)
                self._await(call, partial(self.agent.ask, request, checked=True), done)
                return
            if self.agent.must_ask(request):
                leave = partial(self.queue.leave, call)
                self._await(call, partial(self.agent.ask, request, checked=True, on_accepted=leave), done)
                return
            posted = self.agent.post(
                request, settled, on_accepted=partial(self.queue.leave, call), deadline=call.deadline
            )
        except StoreFailedError as error:
            self.store_failed(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
            self._complete(call, done, error)
        else:
            call.cancel_work = posted.cancel

    def _replied(self, call: Call, request: Any, done: Done, result: Any) -> None:
        call.cancel_work = None
        try:
            reply = result.unwrap()
        except StoreFailedError as error:
            self.store_failed(error)
        except Refusal as first:
            fallback = self.agent.fallback(request, first)
            if fallback is None:
                self._complete(call, done, first)
            else:
                self._await(call, fallback, done)
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            self._complete(call, done, error)
        else:
            self._complete(call, done, reply)

    def _complete(self, call: Call, done: Done, reply: Any) -> None:
        """Let a request be answered; a reply that cannot be told must not leave it open."""
        if not call.settled:
            try:
                done(self, call, reply)
            except Exception:
                logger.exception("what %s was answered with cannot be told", call.frame.method)
                if not call.settled:
                    self.fail(call, INTERNAL_ERROR, "Internal server error")

    def _await(self, call: Call, asking: Callable[[], Awaitable[Any]], done: Done) -> None:
        """Let a request be answered with what ``asking`` returns or raises."""
        scope = trio.CancelScope(deadline=call.deadline)
        call.cancel_work = scope.cancel

        async def ask() -> None:
            PROGRESS_CALLBACK.set(report_for(call))
            with scope:
                try:
                    reply: Any = await asking()
                except StoreFailedError as error:
                    self.store_failed(error)
                    return
                except Exception as error:  # noqa: BLE001  (as in `ask`)
                    reply = error
                call.cancel_work = None
                self._complete(call, done, reply)

        self.spawn(ask)

    async def ask_for_sdk(self, call: Call, request_for: Callable[[], Any]) -> Any:
        """Return the reply to a request that came by way of the SDK, asked when its turn has come.

        Args:
            call: What brought it.
            request_for: Makes the checked request.

        Raises:
            Exception: whatever making or asking it raised, except that a failed store ends everything.
        """
        on_accepted = None
        if call.begin is not None:
            await self.wait_for_turn(call)
            on_accepted = partial(self.queue.leave, call)
        self.count_large(call)
        request = request_for()
        PROGRESS_CALLBACK.set(report_for(call))
        try:
            return await self.agent.ask(request, checked=True, on_accepted=on_accepted)
        except StoreFailedError as error:
            self.store_failed(error)
            await trio.sleep_forever()

    async def wait_for_turn(self, call: Call) -> None:
        """Wait for the turn of a request that came by way of the SDK."""
        await call.payload.wait()
        await trio.lowlevel.checkpoint_if_cancelled()  # its turn and its end may have come at once

    def count_large(self, call: Call) -> None:
        """Count a call that is on its way into the domain among those whose answers may be large."""
        call.counted_weight = call.weight
        self._large += call.weight

    def store_failed(self, error: StoreFailedError) -> None:
        """Answer nothing any more: what is on disk is not known."""
        if self.failed is None:
            self.failed = error
            self._on_failure()

    # -- out -------------------------------------------------------------------------------------

    def answer(self, call: Call, line: bytes, outcome: Outcome = "ok") -> None:
        """Answer a request that is not settled yet."""
        if self.failed is None:
            self._settle(call, outcome)
            call.sink.answer(line)

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with an error of the protocol."""
        if call.span is not None:
            call.span.fail(code, sentence)
        self.answer(call, error_line(call.id, code, sentence, data), "error")

    def expire(self, call: Call) -> None:
        """End a request whose time is up; what is begun is carried out whole."""
        cancel_work, call.cancel_work = call.cancel_work, None
        self.server.answer_overdue(self, call)
        if cancel_work is not None:
            cancel_work()

    def _settle(self, call: Call, outcome: Outcome) -> None:
        assert call.frame.key is not None, "a request has an id"
        call.settled = True
        del self._calls[call.frame.key]
        self._open_bytes -= call.frame.size
        self._large -= call.counted_weight
        self.server.record_settled(call, outcome)
        if call.begin is not None:
            if call.has_left_queue:
                self.queue.advance()
            else:
                self.queue.leave(call)
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
        self._closed = True
        for call in list(self._calls.values()):
            cancel_work, call.cancel_work = call.cancel_work, None
            self.fail(call, CONNECTION_CLOSED, "Connection closed")
            if cancel_work is not None:
                cancel_work()

    def close(self) -> None:
        """Cancel what is open for the client, which is gone. Its tasks end with whoever spawned them."""
        self._closed = True
        for call in list(self._calls.values()):
            self._cancel(call)
        if self._agent is not None:
            self._agent.close()


def _grant_turn(call: Call) -> None:
    call.payload.set()
