"""Dispatch in order: calls reach their mailboxes one at a time.

A call leaves the queue when its place in the order is fixed: its message is in the mailbox, or there will be
no message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from greenroom.transports.mcp.frames.calls import BEGUN, PLACED, SETTLED, UNORDERED, WAITING, Call, Limits

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
"""The requests to actors that take effect in the order of their arrival."""


class OrderedQueue:
    """The order of one client's calls; the first has begun, or waits until it may.

    Only this class changes `Call.state`. The weight of a call counts from its turn to its end.

    Args:
        has_room: Whether the client reads its answers; while it does not, no large answer begins. Code that
            makes room calls `advance`.

    Attributes:
        is_closed: Whether no call begins any more: waiting calls are cancelled one by one.
    """

    def __init__(self, limits: Limits, has_room: Callable[[], bool]) -> None:
        self.is_closed = False
        self._limits = limits
        self._has_room = has_room
        self._queue: deque[Call] = deque()
        self._large = 0
        self._advancing = False

    def join(self, call: Call, begin: Callable[[Call], None], weight: int = 0) -> None:
        """Begin a call when its turn comes, or now if its turn has come."""
        call.begin, call.weight = begin, weight
        if call.state is WAITING:  # its place was reserved
            self.advance()
        elif self._queue or self._advancing or not self._may_begin(call):
            call.state = WAITING
            self._queue.append(call)
        else:
            self._begin(call)
            if call.state is BEGUN:
                self._queue.append(call)

    def hold(self, call: Call) -> None:
        """Reserve the place of a call that joins later."""
        call.state = WAITING
        self._queue.append(call)

    def leave(self, call: Call) -> None:
        """Let the next call begin, because the place of this call is fixed; idempotent."""
        if call.state is BEGUN:
            call.state = PLACED
            if self._queue:
                self.advance()

    def settle(self, call: Call) -> None:
        """Remove a call that is settled, whether its turn has come or not."""
        before, call.state = call.state, SETTLED
        if before is WAITING:
            self._queue.remove(call)  # now: behind a call that waits long, it would keep its memory
        elif before is not UNORDERED:
            self._large -= call.weight
        if self._queue:
            self.advance()

    def advance(self) -> None:
        """Begin the calls that may begin."""
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
        if self.is_closed or call.begin is None:
            return False
        return not call.weight or (self._large < self._limits.large_answers and self._has_room())

    def _begin(self, call: Call) -> None:
        assert call.begin is not None, "who has joined can begin"
        call.state = BEGUN
        self._large += call.weight
        call.begin(call)
