"""How values are distributed, counted in classes with fixed bounds."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec

WORKS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0)
"""Bounds of the number of works in a group."""

SECONDS: Final = (
    *(0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
)
"""Bounds of how long something at the disk took, in seconds."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Values counted in classes, since the runtime was opened.

    Attributes:
        bounds: The highest value of each class but the last, ascending.
        counts: How many values each class holds; the last one holds those above all bounds.
        sum: All values together.
        count: How many values there are.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    count: int


class Histogram:
    """Counts values. One thread at a time may `note`; any may ask for the `distribution`.

    Args:
        bounds: The highest value of each class but the last, ascending.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def distribution(self) -> Distribution:
        """Return what was counted so far."""
        counts = tuple(self._counts)
        return Distribution(bounds=self._bounds, counts=counts, sum=self._sum, count=sum(counts))
