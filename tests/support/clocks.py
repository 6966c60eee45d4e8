"""A clock of our own: wall time that follows trio's (virtual) time and jumps when told."""

from __future__ import annotations

import trio

START = 1_700_000_000_000_000
SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR


class VirtualClock:
    """Wall time is trio's time plus an offset; each look at `perf` costs a tick, so slices end by counting.

    Args:
        start: The wall clock when trio's clock stands at 0, in microseconds since 1970.
        tick: Seconds that pass between two looks at `perf`.
    """

    def __init__(self, start: int = START, tick: float = 0.000_1) -> None:
        self._offset = start
        self._tick = tick
        self._perf = 0.0

    def now(self) -> int:
        return self._offset + round(trio.current_time() * SECOND)

    def perf(self) -> float:
        self._perf += self._tick
        return self._perf

    def jump(self, microseconds: int) -> None:
        """Set the wall clock forward, or back."""
        self._offset += microseconds
