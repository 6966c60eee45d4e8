"""Requests on their way, and the clock that none outlives."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from math import inf
from typing import Any, Protocol

import trio

from greenroom.transports.base.observability.tracing import RequestSpan
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.response_sink import ResponseSink

STALE_ALARMS = (
    100  # deadlines of calls that are over, beside as many as are open, before they are cleared away
)


class CallOwner(Protocol):
    """Whose call it is, as far as deadlines matter."""

    @property
    def agent_id(self) -> str | None:
        """The id of its agent; None where there was no need of one yet."""

    def expire(self, call: Call) -> None:
        """End a call whose time is up."""


class CallState(Enum):
    """How far a call is. `OrderedQueue` alone takes it further, and never back.

    UNORDERED ─▶ WAITING ─▶ BEGUN ─▶ PLACED, and from each of them to SETTLED.
    """

    UNORDERED = "unordered"
    """It is in no order, or not yet."""
    WAITING = "waiting"
    """Its turn has not come."""
    BEGUN = "begun"
    """Its turn has come; nothing else begins."""
    PLACED = "placed"
    """Its place in the order is sure."""
    SETTLED = "settled"
    """It was answered, or its client took it back."""


# In Python 3.11 a member is looked up by a function, ten times as slowly, and each call asks ten times.
UNORDERED, WAITING, BEGUN, PLACED, SETTLED = CallState


class Call:
    """One request on its way.

    Attributes:
        client: Whose it is.
        frame: The request as it came, with an id.
        sink: Sink for its notifications and its answer.
        arrived: When it was read, in trio's time.
        timeout: Seconds that it may take from then.
        payload: What its method has made of its parameters; on the way to the SDK the event of its turn.
        state: How far it is.
        begin: Sends it on, when its turn has come; None for requests that have no order.
        weight: How large its answer may be (`Tool.weight`).
        cancel_work: Cancels what is under way for it; None while nothing is.
        reply: JSON that its answer is completed with on the way back from the SDK.
        span: Its span; None where nobody traces.
        trace_id: The id of its trace, where requests are logged; else empty.
    """

    __slots__ = (
        "arrived",
        "begin",
        "cancel_work",
        "client",
        "frame",
        "payload",
        "reply",
        "sink",
        "span",
        "state",
        "timeout",
        "trace_id",
        "weight",
    )

    def __init__(
        self, client: CallOwner, frame: Frame, sink: ResponseSink, arrived: float, seconds: float
    ) -> None:
        self.client = client
        self.frame = frame
        self.sink = sink
        self.arrived = arrived
        self.timeout = seconds
        self.payload: Any = None
        self.state = UNORDERED
        self.begin: Callable[[Call], None] | None = None
        self.weight = 0
        self.cancel_work: Callable[[], None] | None = None
        self.reply: bytes | None = None
        self.span: RequestSpan | None = None
        self.trace_id = ""

    @property
    def id(self) -> bytes:
        """The request's id, as it came."""
        assert self.frame.id is not None, "a call is a request"
        return self.frame.id

    @property
    def deadline(self) -> float:
        """When it must be over, in trio's time."""
        return self.arrived + self.timeout

    @property
    def settled(self) -> bool:
        """Whether it is over."""
        return self.state is SETTLED

    def cancel(self) -> None:
        """Cancel what is under way for it."""
        if self.cancel_work is not None:
            self.cancel_work()

    @contextmanager
    def cancellable(self) -> Iterator[trio.CancelScope]:
        """Do for it what the block does, until it is cancelled."""
        with trio.CancelScope() as scope:
            self.cancel_work = scope.cancel
            try:
                yield scope
            finally:
                self.cancel_work = None


class Deadlines:
    """Ends calls whose time is up, with one task for all of them.

    Nearly all have the same time, so they end in the order in which they came and need no heap.

    Args:
        usual: The seconds that nearly all calls have.
        overdue: Called with each call whose time is up.
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
        """End this call in time, unless it is forgotten before."""
        deadline = call.deadline
        if call.timeout == self._usual:
            self._open[call] = None
        else:
            alarm = self._shorter[call] = _Alarm(deadline, next(self._numbers), call)
            heapq.heappush(self._alarms, alarm)
        if deadline < self._wakes_at:
            self._sleeping.deadline = self._wakes_at = deadline

    def forget(self, call: Call) -> None:
        """Let a call go that is over; nothing of it is kept."""
        if self._open.pop(call, call) is None or not self._shorter:
            return
        alarm = self._shorter.pop(call, None)
        if alarm is not None:
            alarm.call = None
            if len(self._alarms) > STALE_ALARMS + 2 * len(self._shorter):
                self._alarms = [each for each in self._alarms if each.call is not None]
                heapq.heapify(self._alarms)

    async def run(self) -> None:
        """Watch the clock, until cancelled."""
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
    """The deadline of a call whose time is not the usual one; without its call once that is over."""

    __slots__ = ("call", "deadline", "number")

    def __init__(self, deadline: float, number: int, call: Call) -> None:
        self.deadline = deadline
        self.number = number
        self.call: Call | None = call

    def __lt__(self, other: _Alarm) -> bool:
        return (self.deadline, self.number) < (other.deadline, other.number)
