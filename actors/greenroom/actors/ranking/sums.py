"""Sums of signals: one number a row, and where somebody asks why also what each signal added to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating[Any]]


class SignalSum:
    """What signals add up to, by row.

    Args:
        size: The number of rows.
        apart: Whether it is kept what each signal adds.
        dtype: Of the numbers.
    """

    def __init__(self, size: int, *, apart: bool, dtype: Any = np.float32) -> None:
        self.total: Numbers = np.zeros(size, dtype)
        self._apart: dict[str, Numbers] | None = {} if apart else None

    def add(self, name: str, value: Any, rows: Any = slice(None)) -> None:
        """Add what a signal is worth, to some rows, each of them named once, or to all."""
        self.total[rows] += value
        if self._apart is not None:
            self._apart.setdefault(name, np.zeros_like(self.total))[rows] += value

    def join(self, other: SignalSum, factor: float) -> None:
        """Add what others add up to, times a factor."""
        self.total += other.total * factor
        if self._apart is not None and other._apart is not None:
            self._apart |= {name: values * factor for name, values in other._apart.items()}

    def divide(self, by: float) -> None:
        """Divide everything by a number."""
        self.total /= by
        if self._apart is not None:
            self._apart = {name: values / by for name, values in self._apart.items()}

    def parts(self, row: int) -> dict[str, float]:
        """Return what each signal added to a row; nothing where that was not kept."""
        return {name: float(values[row]) for name, values in (self._apart or {}).items() if values[row]}


class Asked(NamedTuple):
    """What was asked about by its name, whether it is among the best or not.

    Attributes:
        row: Which of the rows that have the name; the strongest.
        score: Its measured relevance.
        match: How well it matches.
        place: Where it is among all that was found, from 1 on; None where it has nothing of the query.
        parts: What each signal added to its strength.
    """

    row: int
    score: float
    match: float
    place: int | None
    parts: Mapping[str, float]


def place_among(strength: Numbers, found: npt.NDArray[np.bool_], row: int) -> int | None:
    """Return where a row is among those that were found; of equals the first one comes first."""
    if not found[row]:
        return None
    better = found & (strength > strength[row])
    before = found[:row] & (strength[:row] == strength[row])
    return 1 + int(np.count_nonzero(better)) + int(np.count_nonzero(before))
