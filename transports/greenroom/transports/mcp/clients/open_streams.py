"""The requests of one client that stay open as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from greenroom.transports.mcp.frames.calls import Call, Limits


class OpenStreams:
    """The streams of one client, each open while its block runs.

    Attributes:
        scopes: The cancel scope of each stream, by its call.
    """

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
        """End all streams, and every later one as soon as it begins."""
        self._ended = True
        for scope in list(self.scopes.values()):
            scope.cancel()
