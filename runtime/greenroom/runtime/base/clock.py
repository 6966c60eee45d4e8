"""The runtime's clocks, which tests and simulations replace, and its random source."""

from __future__ import annotations

import os
import random
import time
from typing import Protocol


class Clock(Protocol):
    """The two clocks that the runtime reads; waits use trio's own clock."""

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


BLOCK_BYTES = 4_096


class BlockRandom(random.SystemRandom):
    """A `random.SystemRandom` that reads bytes from the system in blocks.

    A forked child would draw the same numbers, but it must not use the store anyway.
    """

    def __init__(self) -> None:
        self._block = b""
        self._at = 0

    def random(self) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        return (int.from_bytes(self.randbytes(7)) >> 3) * 2.0**-53

    def getrandbits(self, k: int, /) -> int:
        """Return a number of ``k`` random bits."""
        if k < 0:
            raise ValueError("a number of bits is not negative")
        count = (k + 7) // 8
        return int.from_bytes(self.randbytes(count)) >> (count * 8 - k)

    def randbytes(self, n: int) -> bytes:
        """Return ``n`` random bytes."""
        start, end = self._at, self._at + n
        if end > len(self._block):
            if n > BLOCK_BYTES:
                return os.urandom(n)
            self._block = os.urandom(BLOCK_BYTES)
            start, end = 0, n
        self._at = end
        return self._block[start:end]
