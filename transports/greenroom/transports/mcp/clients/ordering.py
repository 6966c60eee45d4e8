"""In-order dispatch: calls reach their mailboxes in the order of arrival, one at a time.

A call leaves the queue when its place in the order is sure: when its message is in the
mailbox, or when there will be no message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from greenroom.transports.mcp.frames.calls import BEGUN, PLACED, SETTLED, UNORDERED, WAITING, Call
from greenroom.transports.mcp.limits import Limits

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


class OrderedQueue:
    """The order of one client's calls; the first one is on its way or waits until it may begin.

    Every change of `Call.state` is made here. What a call weighs counts from its turn to its end.

    Args:
        limits: How many large answers there may be at a time.
        has_room: Whether the client reads its answers; while it does not, no large answer is begun. Who
            makes room calls `advance`.

    Attributes:
        is_closed: Whether nothing begins any more: what waits is called off, one after the other.
    """

    def __init__(self, limits: Limits, has_room: Callable[[], bool]) -> None:
        self.is_closed = False
        self._limits = limits
        self._has_room = has_room
        self._queue: deque[Call] = deque()
        self._large = 0
        self._advancing = False

    def join(self, call: Call, begin: Callable[[Call], None], weight: int = 0) -> None:
        """Begin a call now if its turn has come, else when it comes."""
        call.begin, call.weight = begin, weight
        if self._queue or self._advancing or not self._may_begin(call):
            call.state = WAITING
            self._queue.append(call)
        else:
            self._begin(call)
            if call.state is BEGUN:
                self._queue.append(call)

    def join_for_task(self, call: Call, weight: int) -> None:
        """Join for a task that waits for the turn (`turn`)."""
        call.payload = turn = trio.Event()
        self.join(call, lambda _: turn.set(), weight)

    async def turn(self, call: Call) -> None:
        """Wait for the turn of a call for which a task waits; one without an order has it always."""
        if call.begin is not None:
            await call.payload.wait()
            await trio.lowlevel.checkpoint_if_cancelled()  # its turn and its end may have come at once

    def leave(self, call: Call) -> None:
        """Let the next one begin, since this one's place is sure; a second time does nothing."""
        if call.state is BEGUN:
            call.state = PLACED
            self.advance()

    def settle(self, call: Call) -> None:
        """Take note that a call is over, whether its turn has come or not."""
        before, call.state = call.state, SETTLED
        if before is WAITING:
            self._queue.remove(call)  # at once: behind a first one that waits long it would hold its memory
        elif before is not UNORDERED:
            self._large -= call.weight
        self.advance()

    def advance(self) -> None:
        """Begin whoever may begin."""
        if self._advancing or not self._queue:
            return
        self._advancing = True
        try:
            while self._queue:
                first = self._queue[0]
                if first.state is WAITING:
                    if not self._may_begin(first):
                        break
                    self._begin(first)
                if first.state is BEGUN:
                    break
                self._queue.popleft()
        finally:
            self._advancing = False

    def _may_begin(self, call: Call) -> bool:
        if self.is_closed:
            return False
        return not call.weight or (self._large < self._limits.large_answers and self._has_room())

    def _begin(self, call: Call) -> None:
        assert call.begin is not None, "who has joined can begin"
        call.state = BEGUN
        self._large += call.weight
        call.begin(call)
