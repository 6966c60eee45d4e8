"""Where the runtime's time comes from, so that tests and simulations can bring their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The two times that the runtime reads; waiting goes by trio's own clock."""

    def now(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC. It may jump."""
        ...

    def perf(self) -> float:
        """Return a monotonic time in seconds, fine enough to cut slices of milliseconds."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """Return the system's wall clock in microseconds since 1970 UTC."""
        return max(0, time.time_ns() // 1_000)  # keys hold times as bytes, which have no sign

    perf = staticmethod(time.perf_counter)
