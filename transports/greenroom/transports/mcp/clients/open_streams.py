"""The requests of one client that stay open as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.limits import Limits


class OpenStreams:
    """The streams of one client, each for as long as its block runs.

    Args:
        limits: How many there may be, and how much of them is kept.
        changed: Called when there is one more, which is not in flight any more.
    """

    def __init__(self, limits: Limits, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._changed = changed
        self._scopes: dict[Call, trio.CancelScope] = {}
        self._weight = 0
        self._ended = False

    def __len__(self) -> int:
        return len(self._scopes)

    def has_room(self, call: Call, weight: int) -> bool:
        """Return whether a request may stay open as a stream with this many subscriptions."""
        limits = self._limits
        held = sum(other.frame.size for other in self._scopes)
        return (
            len(self._scopes) < limits.streams
            and self._weight + weight <= limits.subscriptions
            and held + call.frame.size <= limits.in_flight_bytes // 4
        )

    @contextmanager
    def stream(self, call: Call, *, weight: int) -> Iterator[None]:
        """Keep a request open; the block ends early when the client cancels it or ends."""
        with call.cancellable() as scope:
            self._scopes[call] = scope
            self._weight += weight
            self._changed()
            if self._ended:
                scope.cancel()
            try:
                yield
            finally:
                del self._scopes[call]
                self._weight -= weight

    def end(self) -> None:
        """End all streams, and from now on each as soon as it has begun."""
        self._ended = True
        for scope in list(self._scopes.values()):
            scope.cancel()
