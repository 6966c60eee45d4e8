"""Calls, which are requests in flight: their limits, deadlines, and streams that stay open."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from math import inf
from typing import Any, Final, Protocol

import msgspec
import trio

from greenroom.transports.base.defaults import MAX_IN_FLIGHT, MAX_MESSAGE_BYTES, REQUEST_SECONDS
from greenroom.transports.base.observability.tracing import RequestSpan
from greenroom.transports.mcp.frames.frames import INVALID_PARAMS, Frame, RequestError

UNCOUNTED: Final = frozenset({"ping", "tools/list"})
"""Requests outside of the rate limit: some clients list the tools before each call."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one connection.

    Attributes:
        max_message_bytes: The longest message, in bytes.
        in_flight: Requests that are read but not answered.
        in_flight_bytes: Bytes of these requests; the request that exceeds this limit is still read.
        unsent_bytes: Bytes of unread answers, beyond which the client must wait.
        unsent_notices: Bytes of unread output, beyond which the client gets no notification.
        streams: Requests that stay open, such as listen streams; these are not in flight.
        subscriptions: Resources on all listen streams together, and as many on the connection itself.
        large_answers: A large answer begins only while the weights of those in progress sum to less.
        drain: Seconds for open requests and unread answers after the end of input.
        stop: Seconds for open requests after a request to stop.
    """

    max_message_bytes: int = MAX_MESSAGE_BYTES
    in_flight: int = MAX_IN_FLIGHT
    in_flight_bytes: int = 32 * 1024 * 1024
    unsent_bytes: int = 4 * 1024 * 1024
    unsent_notices: int = 4 * 1024
    streams: int = 1_000
    subscriptions: int = 10_000
    large_answers: int = 64
    drain: float = REQUEST_SECONDS
    stop: float = 0.5


DEADLINE_META_KEY = "greenroom/deadline_ms"
STALE_ALARMS = 100  # this many deadlines, and two for each open call, are kept before a clean-up


class ResponseSink(Protocol):
    """Takes the lines of one request, or lines without a request; never waits or fails.

    A sink is lines of a pipe, messages of a WebSocket, or a stream of HTTP. A line is the JSON of one message
    and ends with a newline.
    """

    def send(self, line: bytes) -> None:
        """Take a notification or a request of the server, before the answer."""

    def answer(self, line: bytes) -> None:
        """Take the answer, which is the last line."""

    def unanswered(self) -> None:
        """End without an answer, because the request was cancelled."""

    def close_stream(self) -> None:
        """Close the stream, if the client can resume it later."""

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of its output.

        So an unread notification stays a flag of its subscriber, and costs no more.
        """


class CallState(Enum):
    """The state of a call. Only `OrderedQueue` changes it, and only forwards.

    UNORDERED ─▶ WAITING ─▶ BEGUN ─▶ PLACED, and from each of them to SETTLED.
    """

    UNORDERED = "unordered"
    """It has no place in the order, or not yet."""
    WAITING = "waiting"
    """Its turn has not come."""
    BEGUN = "begun"
    """Its turn has come; no other call begins."""
    PLACED = "placed"
    """Its place in the order is fixed."""
    SETTLED = "settled"
    """It was answered, or its client cancelled it."""


# Python 3.11 looks a member up by a function, ten times slower; each call needs ten look-ups.
UNORDERED, WAITING, BEGUN, PLACED, SETTLED = CallState


class Call:
    """One request in flight.

    Attributes:
        expire: Ends it when it has timed out.
        id: Its id, as received.
        arrived: When it was read, in trio's time.
        deadline: When it times out, in trio's time.
        payload: Its parsed parameters, set by its method.
        begin: Sends it to its actor when its turn has come; None for requests without an order.
        cancel_work: Cancels the work for it; None while there is none.
        trace_id: Its trace id, if requests are logged; else empty.
    """

    __slots__ = (
        "arrived",
        "begin",
        "cancel_work",
        "deadline",
        "expire",
        "frame",
        "id",
        "payload",
        "sink",
        "span",
        "state",
        "timeout",
        "trace_id",
        "weight",
    )

    def __init__(
        self,
        expire: Callable[[Call], None],
        frame: Frame,
        sink: ResponseSink,
        arrived: float,
        seconds: float,
    ) -> None:
        assert frame.id is not None, "a call is a request"
        self.expire = expire
        self.frame = frame
        self.id = frame.id
        self.sink = sink
        self.arrived = arrived
        self.timeout = seconds
        self.deadline = arrived + seconds
        self.payload: Any = None
        self.state = UNORDERED
        self.begin: Callable[[Call], None] | None = None
        self.weight = 0
        self.cancel_work: Callable[[], None] | None = None
        self.span: RequestSpan | None = None
        self.trace_id = ""

    @property
    def settled(self) -> bool:
        """Whether it is settled."""
        return self.state is SETTLED

    def cancel(self) -> None:
        """Cancel the work for it."""
        if self.cancel_work is not None:
            self.cancel_work()

    @contextmanager
    def cancellable(self) -> Iterator[trio.CancelScope]:
        """Run the block for it, until it is cancelled."""
        with trio.CancelScope() as scope:
            self.cancel_work = scope.cancel
            try:
                yield scope
            finally:
                self.cancel_work = None


class OpenStreams:
    """The streams of one client, each open while its block runs."""

    def __init__(self, limits: Limits, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._changed = changed
        self.scopes: dict[Call, trio.CancelScope] = {}
        self._weight = 0
        self._ended = False

    def has_room(self, call: Call, weight: int) -> bool:
        """Return whether a request may stay open as a stream with this many subscriptions."""
        limits = self._limits
        held = sum(other.frame.size for other in self.scopes)
        return (
            len(self.scopes) < limits.streams
            and self._weight + weight <= limits.subscriptions
            and held + call.frame.size <= limits.in_flight_bytes // 4
        )

    @contextmanager
    def stream(self, call: Call, *, weight: int) -> Iterator[None]:
        """Keep a request open; the block ends early if the client cancels it or disconnects."""
        with call.cancellable() as scope:
            self.scopes[call] = scope
            self._weight += weight
            self._changed()
            if self._ended:
                scope.cancel()
            try:
                yield
            finally:
                del self.scopes[call]
                self._weight -= weight

    def end(self) -> None:
        """End all streams, and every later stream as soon as it begins."""
        self._ended = True
        for scope in list(self.scopes.values()):
            scope.cancel()


def _timeout_of(call: Call) -> float:
    meta = None if call.frame.params is None else call.frame.params.get("_meta")
    wanted = meta.get(DEADLINE_META_KEY) if isinstance(meta, dict) else None
    if wanted is None:
        return call.timeout
    if not isinstance(wanted, int | float) or type(wanted) is bool or not wanted > 0:
        sentence = f'_meta["{DEADLINE_META_KEY}"] must be a number of milliseconds greater than 0'
        raise RequestError(INVALID_PARAMS, sentence)
    return min(call.timeout * 1000, wanted) / 1000  # an integer may exceed every float


class Deadlines:
    """Ends calls that time out, with one task for all of them.

    Nearly all calls have the same timeout, so they end in order of arrival and need no heap.
    """

    def __init__(self, usual: float, overdue: Callable[[Call], None]) -> None:
        self._usual = usual
        self._overdue = overdue
        self._open: dict[Call, None] = {}
        self._shorter: dict[Call, _Alarm] = {}
        self._alarms: list[_Alarm] = []
        self._numbers = itertools.count()
        self._sleeping = trio.CancelScope()
        self._wakes_at = inf

    def watch(self, call: Call) -> None:
        """End this call at its deadline, unless it is forgotten before; idempotent.

        The timeout is the server's, or the client's if that is shorter.
        """
        if call in self._shorter:
            return
        if call.frame.params and "_meta" in call.frame.params:
            call.timeout = _timeout_of(call)
            call.deadline = call.arrived + call.timeout
        deadline = call.deadline
        if call.timeout == self._usual:
            self._open[call] = None
        else:
            alarm = self._shorter[call] = _Alarm(deadline, next(self._numbers), call)
            heapq.heappush(self._alarms, alarm)
        if deadline < self._wakes_at:
            self._sleeping.deadline = self._wakes_at = deadline

    def forget(self, call: Call) -> None:
        """Forget a settled call."""
        if self._open.pop(call, call) is None or not self._shorter:
            return
        alarm = self._shorter.pop(call, None)
        if alarm is not None:
            alarm.call = None
            if len(self._alarms) > STALE_ALARMS + 2 * len(self._shorter):
                self._alarms = [each for each in self._alarms if each.call is not None]
                heapq.heapify(self._alarms)

    async def run(self) -> None:
        """Watch the clock until cancelled."""
        while True:
            self._wakes_at = self._next()
            with trio.CancelScope(deadline=self._wakes_at) as self._sleeping:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._alarms and self._alarms[0].deadline <= now:
                if (call := heapq.heappop(self._alarms).call) is not None:
                    del self._shorter[call]
                    self._overdue(call)
            while self._open and (first := next(iter(self._open))).deadline <= now:
                del self._open[first]
                self._overdue(first)

    def _next(self) -> float:
        usual = next(iter(self._open)).deadline if self._open else inf
        return min(usual, self._alarms[0].deadline if self._alarms else inf)


class _Alarm:
    """The deadline of a call with an unusual timeout; drops settled calls."""

    __slots__ = ("call", "deadline", "number")

    def __init__(self, deadline: float, number: int, call: Call) -> None:
        self.deadline = deadline
        self.number = number
        self.call: Call | None = call

    def __lt__(self, other: _Alarm) -> bool:
        return (self.deadline, self.number) < (other.deadline, other.number)
