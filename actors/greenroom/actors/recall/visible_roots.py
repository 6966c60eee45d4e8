"""What one reader sees of the overview, as numbers of roots."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from greenroom.actors.auth.principal import Principal
    from greenroom.actors.recall.summary_index import SummaryIndex
    from greenroom.runtime import Slices

    Floats = npt.NDArray[np.float32]
    Numbers = npt.NDArray[np.intp]
    Mask = npt.NDArray[np.bool_]

_BLOCK = 4_096  # vectors compared without a pause


class VisibleRoots:
    """The roots and units that one reader sees, until the overview changes.

    Attributes:
        roots: Which roots.
        holding: Which roots have a memory that the reader sees, as far as it is known what there is.
        known: Of which of all roots it is known what there is.
        newest: When the newest visible memory of each root was made, 0 where that is not known.
    """

    def __init__(self, overview: SummaryIndex, principal: Principal) -> None:
        seen = overview.seen(principal)
        listing = _numbers(overview.listing)
        self.roots: Mask = (listing >= 0) & _flags(seen.listings)[listing]
        self.known: Mask = _flags(overview.complete)
        self._overview = overview
        self._root = _numbers(overview.unit_root)
        self._units: Mask = (self._root >= 0) & _flags(seen.partitions)[_numbers(overview.unit_partition)]
        self.holding: Mask = np.zeros(len(listing), np.bool_)
        self.holding[self._root[self._units]] = True
        self.newest = np.zeros(len(listing), np.int64)
        newest = np.array(overview.newest, np.int64)
        np.maximum.at(self.newest, self._root[self._units], newest[self._units])

    def with_term(self, term: str) -> Numbers:
        """Return the roots with a visible memory that has a term, each once."""
        return self._of(self._overview.terms.get(term))

    def with_day(self, day: int) -> Numbers:
        """Return the roots with a visible memory of a day, in days since 1970, each once."""
        return self._of(self._overview.days.get(day))

    def closest(self, space: str, query: Floats, should_yield: Callable[[], bool]) -> Slices[Floats | None]:
        """Return the highest cosine of a query with a visible vector of each root, 0 where there is none.

        None if there are none at all.
        """
        found = self._overview.spaces.get(space)
        if found is None or found.dimensions != len(query):
            return None
        units = _numbers(found.units)
        scales = np.frombuffer(bytes(found.scales), np.float32)
        values = np.frombuffer(bytes(found.values), np.int8).reshape(len(units), -1)
        rows = np.flatnonzero(units < len(self._units))
        rows = rows[self._units[units[rows]]]
        best = np.zeros(len(self.roots), np.float32)
        for start in range(0, len(rows), _BLOCK):
            some = rows[start : start + _BLOCK]
            cosine = np.vecdot(values[some].astype(np.float32), query) * scales[some]
            np.maximum.at(best, self._root[units[some]], cosine)
            if should_yield():
                yield
        return best

    def _of(self, units: array[int] | None) -> Numbers:
        if units is None:
            return np.empty(0, np.intp)
        numbers = _numbers(units)
        numbers = numbers[numbers < len(self._units)]  # the others came later
        held = np.zeros(len(self.roots), np.bool_)
        held[self._root[numbers[self._units[numbers]]]] = True
        return np.flatnonzero(held & self.roots)


def _numbers(values: array[int]) -> Numbers:
    """Return a copy: an array that somebody looks into cannot grow."""
    return np.array(values, np.intp)


def _flags(values: bytearray) -> Mask:
    return np.frombuffer(bytes(values), np.bool_)
