"""One client: its era, its name, its open requests, and the way each of them takes.

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
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import trio

from greenroom.actors import REPORT
from greenroom.runtime import Refusal, StoreFailedError
from greenroom.transports.mcp.agent_port import fit_agent_id
from greenroom.transports.mcp.calls import Call
from greenroom.transports.mcp.fast_path import WEIGHTY, seconds_for
from greenroom.transports.mcp.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    RequestError,
    RequestKey,
    error_line,
)
from greenroom.transports.mcp.open_streams import Standing
from greenroom.transports.mcp.ordering import Turns
from greenroom.transports.mcp.progress import report_for
from greenroom.transports.mcp.versions import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Era,
    client_name,
    is_plain_initialize,
    negotiated,
    opens_modern_era,
    refusal_of,
)

if TYPE_CHECKING:
    from greenroom.transports.mcp.agent_port import Door, Notices
    from greenroom.transports.mcp.limits import Limits
    from greenroom.transports.mcp.response_sink import Outlet
    from greenroom.transports.mcp.roots import Roots
    from greenroom.transports.mcp.sdk_client import SdkClient
    from greenroom.transports.mcp.server import McpServer
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


class Toll(NamedTuple):
    """Counts at a time of trio's clock what comes; each returns 0, or the seconds until there may be one.

    Attributes:
        request: Counts a request.
        frame: Counts whatever comes, requests as well.
    """

    request: Callable[[float], float]
    frame: Callable[[float], float]


class Spawn(Protocol):
    """Starts a task that ends with the client."""

    def __call__(self, work: Callable[..., Any], /, *args: Any) -> None: ...


Done = Callable[["Client", Call, Any], None]
"""Told what a request was answered with: the reply, or an exception."""


class Client:
    """What one client has said and what is open for it.

    Args:
        server: What it speaks to.
        door_for: Opens its door into the domain, given its name made to fit.
        outlet: Where goes what belongs to no request.
        limits: What it may take.
        spawn: Starts a task that ends with the client.
        has_room: Whether it reads its answers; while it does not, nothing large is begun for it.
        changed: Where those park who wait for a change of all this.
        toll: Counts its requests; None where they are not counted, or were before they came here.
        profiles: The tool profiles that hold for it; empty for the server's own.
        on_failure: Called when the store has failed for good and nothing more may be answered.

    Attributes:
        offer: What it is offered.
        era: The era it speaks; None before its first request.
        version: The protocol's revision.
        initialize: The parameters of its handshake; None without one.
        name: Its own name for itself.
        roots: What it was asked about its folders; None if it was not.
        notices: What it hears of outside of listen streams; None until it subscribes.
        failed: Why the store failed for good, once it did.
    """

    def __init__(
        self,
        server: McpServer,
        door_for: Callable[[str], Door],
        outlet: Outlet,
        limits: Limits,
        *,
        spawn: Spawn,
        on_failure: Callable[[], None],
        has_room: Callable[[], bool] = lambda: True,
        changed: trio.lowlevel.ParkingLot | None = None,
        toll: Toll | None = None,
        profiles: tuple[str, ...] = (),
    ) -> None:
        self.server = server
        self.offer = server.offers.of(profiles)
        self.limits = limits
        self.outlet = outlet
        self.spawn = spawn
        self.era: Era | None = None
        self.version = HANDSHAKE_VERSIONS[-1]
        self.initialize: dict[str, Any] | None = None
        self.initialized = False
        self.name: str | None = None
        self.notices: Notices | None = None
        self.failed: StoreFailedError | None = None
        self._changed = trio.lowlevel.ParkingLot() if changed is None else changed
        self._on_failure = on_failure
        self.sdk: SdkClient | None = None
        self.roots: Roots | None = None
        self._name_fixed = False
        self._door_for = door_for
        self._door: Door | None = None
        self._has_room = has_room
        self._toll = toll
        self._calls: dict[RequestKey, Call] = {}
        self._open_bytes = 0
        self._large = 0
        self.turns = Turns(self._may_begin, self._begin)
        self.standing = Standing(limits, self.has_changed)
        self._over = False

    # -- what others ask ------------------------------------------------------------------------

    @property
    def door(self) -> Door:
        """The client's door; its name is fixed by now."""
        if self._door is None:
            self._door = self._door_for(fit_agent_id(self.name))
        return self._door

    @property
    def scopes(self) -> frozenset[str]:
        """What the client may do; to ask for it fixes no name. Nothing, where its door does not open."""
        keep = self._door is not None or self._name_fixed
        try:
            door = self.door if keep else self._door_for(fit_agent_id(self.name))
        except Exception:  # noqa: BLE001  (whatever is asked through it is answered with that)
            return frozenset()
        return door.scopes

    @property
    def open_requests(self) -> int:
        """How many requests are not settled, streams included."""
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether it has as much in flight as it may have; streams are not in flight."""
        return (
            len(self._calls) - len(self.standing) >= self.limits.in_flight
            or self._open_bytes >= self.limits.in_flight_bytes
            or (self.sdk is not None and self.sdk.is_full)
        )

    def _may_begin(self, call: Call) -> bool:
        if self._over:  # what waits is called off as well, one after the other
            return False
        return not call.weight or (self._large < self.limits.large_answers and self._has_room())

    def _begin(self, call: Call) -> None:
        assert call.begin is not None, "only what can begin has a turn"
        call.begin(self, call)

    # -- in --------------------------------------------------------------------------------------

    def take(self, frame: Frame, outlet: Outlet) -> None:
        """Take a request, a notification or a response; what comes of a request goes to `outlet`."""
        if frame.key is None:
            if not self._over:
                self._notified(frame)
        elif frame.is_response:
            if (self.roots is None or not self.roots.responded(frame)) and self.sdk is not None:
                self.sdk.responded(frame)
        elif self._over:
            assert frame.id is not None, "a request has an id"
            outlet.answer(error_line(frame.id, CONNECTION_CLOSED, "Connection closed"))
        elif frame.key in self._calls:
            # Under that id the client would take this for the answer to its first request.
            assert frame.id is not None, "a request has an id"
            sentence = f"the id {frame.id.decode()} belongs to a request that is not answered yet"
            outlet.answer(error_line(b"null", INVALID_REQUEST, sentence))
        else:
            self._requested(Call(self, frame, outlet, trio.current_time(), self.server.request_timeout))

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
            if not self._done_here(call):
                self._by_sdk(call)

    def _let_pass(self, call: Call) -> bool:
        """Return whether the client may send this now; answer it when it may not."""
        if self._toll is None or call.frame.method == "ping":
            return True
        seconds = self._toll.request(call.arrived)
        if seconds > 0:
            self.server.answer_limited(self, call, seconds)
        return seconds <= 0

    def _of_this_era(self, call: Call) -> bool:
        """Return whether a request is of the connection's era; answer it when it is not."""
        assert self.era is not None, "the first request decides"
        refusal = refusal_of(self.era, call.frame.method, call.frame.params)
        if refusal is not None:
            self.fail(call, *refusal)
        return refusal is None

    def _done_here(self, call: Call) -> bool:
        """Do what is plain and frequent; return whether it was."""
        if self.sdk is not None and self.sdk.shaking_hands:
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
        self.greeted(params, negotiated(params["protocolVersion"]))
        result = self.server.greeting(self.version, self.scopes, self.offer)
        self.answer(call, b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (call.id, result))
        return True

    def greeted(self, params: dict[str, Any], version: str) -> None:
        """Take note of a handshake that was accepted."""
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
            self.sdk.notified(frame)
        elif frame.method == "notifications/initialized":
            # Without a handshake before it, too, it opens the door for the SDK.
            if self.era is not Era.MODERN and not self.initialized:
                self.sdk = self.server.sdk_client(self)
                self.sdk.notified(frame)
        else:
            logger.debug("the notification %s was passed over: nothing here hears of it", frame.method)

    def _cancel(self, call: Call) -> None:
        if call.withdraw is not None:
            call.withdraw()
        if not call.settled:
            self._settle(call, "cancelled")
            call.outlet.unanswered()

    def _by_sdk(self, call: Call) -> None:
        if call.frame.method != "subscriptions/listen":
            with suppress(RequestError):  # whoever handles it says so, after the SDK has said its own
                call.seconds = seconds_for(call)
            self.server.deadlines.watch(call)
        if call.frame.method in IN_ORDER:
            call.payload = trio.Event()
            call.begin = _come
            call.weight = self._weight_of(call.frame)
            self.turns.join(call)
        if self.sdk is None:
            self.sdk = self.server.sdk_client(self)
        self.sdk.requested(call)

    def _weight_of(self, frame: Frame) -> int:
        tool = self.offer.tools.get(frame.name or "")
        if tool is not None:
            return tool.weight
        return WEIGHTY if frame.method == "resources/read" else 0

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
                self.turns.leave(call)
                self._await(call, partial(self.door.ask, request, checked=True), done)
                return
            if self.door.must_ask(request):
                leave = partial(self.turns.leave, call)
                self._await(call, partial(self.door.ask, request, checked=True, on_accepted=leave), done)
                return
            posted = self.door.post(
                request, settled, on_accepted=partial(self.turns.leave, call), deadline=call.deadline
            )
        except StoreFailedError as error:
            self.store_failed(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
            self._tell(call, done, error)
        else:
            call.withdraw = posted.abandon

    def _replied(self, call: Call, request: Any, done: Done, result: Any) -> None:
        call.withdraw = None
        try:
            reply = result.unwrap()
        except StoreFailedError as error:
            self.store_failed(error)
        except Refusal as first:
            further = self.door.further(request, first)
            if further is None:
                self._tell(call, done, first)
            else:
                self._await(call, further, done)
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            self._tell(call, done, error)
        else:
            self._tell(call, done, reply)

    def _tell(self, call: Call, done: Done, reply: Any) -> None:
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
        call.withdraw = scope.cancel

        async def ask() -> None:
            REPORT.set(report_for(call))
            with scope:
                try:
                    reply: Any = await asking()
                except StoreFailedError as error:
                    self.store_failed(error)
                    return
                except Exception as error:  # noqa: BLE001  (as in `ask`)
                    reply = error
                call.withdraw = None
                self._tell(call, done, reply)

        self.spawn(ask)

    async def asked(self, call: Call, request_for: Callable[[], Any]) -> Any:
        """Return the reply to a request that came by way of the SDK, asked when its turn has come.

        Args:
            call: What brought it.
            request_for: Makes the checked request.

        Raises:
            Exception: whatever making or asking it raised, except that a failed store ends everything.
        """
        on_accepted = None
        if call.begin is not None:
            await self.turn_of(call)
            on_accepted = partial(self.turns.leave, call)
        self.count_large(call)
        request = request_for()
        REPORT.set(report_for(call))
        try:
            return await self.door.ask(request, checked=True, on_accepted=on_accepted)
        except StoreFailedError as error:
            self.store_failed(error)
            await trio.sleep_forever()

    async def turn_of(self, call: Call) -> None:
        """Wait for the turn of a request that came by way of the SDK."""
        await call.payload.wait()
        await trio.lowlevel.checkpoint_if_cancelled()  # its turn and its end may have come at once

    def count_large(self, call: Call) -> None:
        """Count a call that is on its way into the domain among those whose answers may be large."""
        call.counted = call.weight
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
            call.outlet.answer(line)

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with an error of the protocol."""
        if call.span is not None:
            call.span.fail(code, sentence)
        self.answer(call, error_line(call.id, code, sentence, data), "error")

    def overdue(self, call: Call) -> None:
        """End a request whose time is up; what is begun is carried out whole."""
        withdraw, call.withdraw = call.withdraw, None
        self.server.answer_overdue(self, call)
        if withdraw is not None:
            withdraw()

    def _settle(self, call: Call, outcome: Outcome) -> None:
        assert call.frame.key is not None, "a request has an id"
        call.settled = True
        del self._calls[call.frame.key]
        self._open_bytes -= call.frame.size
        self._large -= call.counted
        self.server.settled(call, outcome)
        if call.begin is not None:
            if call.left:
                self.turns.advance()
            else:
                self.turns.leave(call)
        self.has_changed()

    def has_changed(self) -> None:
        """Let those look again who wait for a change."""
        if self._changed:
            self._changed.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that depends on this client."""
        while not condition():
            await self._changed.park()

    # -- the end ---------------------------------------------------------------------------------

    async def wound_up(self) -> None:
        """End the streams with their results, and wait until nothing is open any more."""
        self.standing.end()
        await self.until(lambda: not self._calls)

    def give_up(self) -> None:
        """Tell the client of every request that it will not be answered any more."""
        self._over = True
        for call in list(self._calls.values()):
            withdraw, call.withdraw = call.withdraw, None
            self.fail(call, CONNECTION_CLOSED, "Connection closed")
            if withdraw is not None:
                withdraw()

    def close(self) -> None:
        """The client is gone: call off what is open for it. Its tasks end with whoever spawned them."""
        self._over = True
        for call in list(self._calls.values()):
            self._cancel(call)
        if self._door is not None:
            self._door.close()


def _come(_client: Client, call: Call) -> None:
    call.payload.set()
