"""A wall clock that follows trio's (virtual) time and can jump."""

from __future__ import annotations

from typing import Final

import trio

START: Final = 1_700_000_000_000_000
"""The time of a `VirtualClock` when trio's clock is at 0, in November 2023."""

SECOND: Final = 1_000_000
"""A second in the microseconds that a clock counts."""

HOUR: Final = 3_600 * SECOND
"""An hour in microseconds."""

DAY: Final = 24 * HOUR
"""A day in microseconds."""


class VirtualClock:
    """A `Clock` with trio's time plus an offset, which a test can move.

    With trio's ``MockClock(autojump_threshold=0)`` every wait ends at once. Each call of `perf` takes a tick,
    so slices of a handler end after a fixed number of calls, however fast the machine is.

    Args:
        start: The wall clock when trio's clock is at 0, in microseconds since 1970 UTC.
        tick: Seconds between two calls of `perf`.
    """

    def __init__(self, start: int = START, tick: float = 0.000_1) -> None:
        self._offset = start
        self._tick = tick
        self._perf = 0.0

    def now(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC."""
        return self._offset + round(trio.current_time() * SECOND)

    def perf(self) -> float:
        """Return a time in seconds that grows by one tick with every call."""
        self._perf += self._tick
        return self._perf

    def jump(self, microseconds: int) -> None:
        """Move the wall clock forward or back."""
        self._offset += microseconds
