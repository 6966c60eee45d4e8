"""In-order dispatch: calls reach their mailboxes in the order of arrival, one at a time.

A call leaves the queue when its place in the order is sure: when its message is in the
mailbox, or when there will be no message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from greenroom.transports.mcp.calls import Call


class OrderedQueue:
    """A queue of calls; the first one is on its way or waits until it may begin.

    Args:
        may_begin: Whether there is room for a call now. Who makes room calls `advance`.
        begin: Sends a call on.
    """

    def __init__(self, may_begin: Callable[[Call], bool], begin: Callable[[Call], None]) -> None:
        self._may_begin = may_begin
        self._begin = begin
        self._queue: deque[Call] = deque()
        self._advancing = False

    def join(self, call: Call) -> None:
        """Begin a call now if its turn has come, else when it comes."""
        if not self._queue and not self._advancing and self._may_begin(call):
            call.has_begun = True
            self._begin(call)
            if not call.has_left_queue:
                self._queue.append(call)
        else:
            self._queue.append(call)

    def leave(self, call: Call) -> None:
        """Let a call that has joined go, whether its turn has come or not; a second time does nothing."""
        if not call.has_left_queue:
            call.has_left_queue = True
            if not call.has_begun:  # at once: behind a first one that waits long it would hold its memory
                self._queue.remove(call)
            self.advance()

    def advance(self) -> None:
        """Begin whoever may begin."""
        if self._advancing or not self._queue:
            return
        self._advancing = True
        try:
            while self._queue:
                first = self._queue[0]
                if first.has_left_queue:
                    self._queue.popleft()
                elif first.has_begun or not self._may_begin(first):
                    break
                else:
                    first.has_begun = True
                    self._begin(first)
        finally:
            self._advancing = False
