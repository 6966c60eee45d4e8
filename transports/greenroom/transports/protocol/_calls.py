"""Requests on their way, and the clock that none outlives."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from greenroom.transports.protocol._frames import Frame
from greenroom.transports.protocol._outlet import Outlet

if TYPE_CHECKING:
    from greenroom.transports.observability._tracing import RequestSpan
    from greenroom.transports.protocol._client import Client


class Call:
    """One request on its way.

    Attributes:
        client: Whose it is.
        frame: The request as it came, with an id.
        outlet: Where its answer goes.
        arrived: When it was read, in trio's time.
        seconds: How long it may take from then.
        payload: What its method has made of its parameters.
        begin: Sends it on, when its turn has come; None for requests that have no order.
        begun: Whether its turn has come.
        left: Whether its place in the order is sure.
        weight: How large its answer may be (`Tool.weight`).
        counted: How much of that counts among the client's large answers now.
        settled: Whether it is over.
        cancelled: Whether the client took it back.
        withdraw: Calls off what is under way for it; None while nothing is.
        is_standing: Whether it is, or was, a stream.
        reply: JSON that its answer is completed with on the way back from the SDK.
        span: Its span; None where nobody traces.
    """

    __slots__ = (
        "arrived",
        "begin",
        "begun",
        "cancelled",
        "client",
        "counted",
        "frame",
        "is_standing",
        "left",
        "outlet",
        "payload",
        "reply",
        "seconds",
        "settled",
        "span",
        "weight",
        "withdraw",
    )

    def __init__(self, client: Client, frame: Frame, outlet: Outlet, arrived: float, seconds: float) -> None:
        self.client = client
        self.frame = frame
        self.outlet = outlet
        self.arrived = arrived
        self.seconds = seconds
        self.payload: Any = None
        self.begin: Callable[[Client, Call], None] | None = None
        self.weight = self.counted = 0
        self.begun = self.left = False
        self.settled = self.cancelled = self.is_standing = False
        self.withdraw: Callable[[], None] | None = None
        self.reply: bytes | None = None
        self.span: RequestSpan | None = None

    @property
    def id(self) -> bytes:
        """The request's id, as it came."""
        assert self.frame.id is not None, "a call is a request"
        return self.frame.id

    @property
    def deadline(self) -> float:
        """When it must be over, in trio's time."""
        return self.arrived + self.seconds


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
        self._shorter: list[tuple[float, int, Call]] = []
        self._numbers = itertools.count()
        self._sleeping = trio.CancelScope()
        self._wakes_at = float("inf")

    def watch(self, call: Call) -> None:
        """End this call in time, unless it is forgotten before."""
        if call.seconds == self._usual:
            self._open[call] = None
        else:
            heapq.heappush(self._shorter, (call.deadline, next(self._numbers), call))
        if call.deadline < self._wakes_at:
            self._sleeping.deadline = self._wakes_at = call.deadline

    def forget(self, call: Call) -> None:
        """Let a call go that is over."""
        self._open.pop(call, None)

    async def run(self) -> None:
        """Watch the clock, until cancelled."""
        while True:
            self._wakes_at = self._next()
            with trio.CancelScope(deadline=self._wakes_at) as self._sleeping:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._shorter and (self._shorter[0][0] <= now or self._shorter[0][2].settled):
                self._end(heapq.heappop(self._shorter)[2])
            while self._open and (first := next(iter(self._open))).deadline <= now:
                del self._open[first]
                self._end(first)

    def _next(self) -> float:
        usual = next(iter(self._open)).deadline if self._open else float("inf")
        return min(usual, self._shorter[0][0] if self._shorter else float("inf"))

    def _end(self, call: Call) -> None:
        if not call.settled:
            self._overdue(call)
