"""Sums of signals, each times its weight, with the parts on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating[Any]]


def weigh(
    signals: Mapping[str, Any], weights: Mapping[str, Any], rows: Any = None, *, times: float = 1.0
) -> Iterator[tuple[str, Any]]:
    """Yield each signal with a weight, and its value times the weight.

    Args:
        signals: A number or an array for each signal. An array that is 0 everywhere is skipped.
        weights: A number for each signal, or an array with a number for each row.
        rows: The rows of each array to weigh; None for all.
        times: A further factor of each weight.
    """
    for name, weight in weights.items():
        value = signals.get(name)
        if value is not None and not is_nothing(value):
            yield name, (times * weight) * (value if rows is None else value[rows])


def is_nothing(signal: Any) -> bool:
    """Return whether a signal is a broadcast zero, such as `View.nothing`."""
    return getattr(signal, "strides", None) == (0,)


class SignalSum:
    """The sum of signals, by row; for explanations it also keeps what each signal adds."""

    def __init__(self, size: int, *, explain: bool, dtype: Any = np.float32) -> None:
        self.total: Numbers = np.zeros(size, dtype)
        self._parts: dict[str, Numbers] | None = {} if explain else None

    def add(self, name: str, part: Any, rows: Any = slice(None)) -> None:
        """Add the part of one signal to all rows, or to some distinct rows."""
        self.total[rows] += part
        if self._parts is not None:
            self._parts.setdefault(name, np.zeros_like(self.total))[rows] += part

    def join(self, other: SignalSum, factor: float) -> None:
        """Add another sum times a factor."""
        self.total += other.total * factor
        if self._parts is not None and other._parts is not None:
            self._parts |= {name: values * factor for name, values in other._parts.items()}

    def divide(self, by: float) -> None:
        """Divide the sum and its parts by a number."""
        self.total /= by
        if self._parts is not None:
            self._parts = {name: values / by for name, values in self._parts.items()}

    def parts(self, row: int) -> dict[str, float]:
        """Return what each signal added to a row; empty unless ``explain`` was set."""
        return {name: float(values[row]) for name, values in (self._parts or {}).items() if values[row]}


class RankedRow(NamedTuple):
    """The rank of a result that the caller named.

    Attributes:
        row: The strongest of the rows that have the name.
        place: Its place among all results, from 1; None if it has nothing in common with the query.
        parts: What each signal added to its strength.
    """

    row: int
    score: float
    match: float
    place: int | None
    parts: Mapping[str, float]


def find_place(strength: Numbers, found: npt.NDArray[np.bool_], row: int) -> int | None:
    """Return the place of a row among the results, from 1; None if absent."""
    if not found[row]:
        return None
    better = found & (strength > strength[row])
    before = found[:row] & (strength[:row] == strength[row])
    return 1 + int(np.count_nonzero(better)) + int(np.count_nonzero(before))


def logistic(shares: Any, middle: float, width: float) -> Any:
    """Map shares to 0..1: 0.5 at the middle, 0.73 one width above."""
    return 1 / (1 + np.exp((np.float32(middle) - shares) / np.float32(width)))
