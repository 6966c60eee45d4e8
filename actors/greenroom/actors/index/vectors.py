"""Vectors of the rows in one space, as one growing matrix of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from greenroom.actors.index.document import Pace
    from greenroom.runtime import Slices

_LEAST = 64
_MOVED = 4_096  # rows moved without a pause (0.5 ms)


class Matrix:
    """One int8 vector a row with its scale; a row without a vector is all zero.

    Attributes:
        dimensions: Of each vector.
    """

    __slots__ = ("_has", "_scales", "_values", "dimensions")

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._values = np.zeros((_LEAST, dimensions), np.int8)
        self._scales = np.zeros(_LEAST, np.float32)
        self._has = np.zeros(_LEAST, np.bool_)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` rows; what is never touched takes no memory."""
        room = len(self._has)
        if size > room:
            room = max(size, room + room // 2)
            self._values = _grown(self._values, room)
            self._scales = _grown(self._scales, room)
            self._has = _grown(self._has, room)

    def set(
        self,
        rows: npt.NDArray[np.intp],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> None:
        """Give ``rows`` their vectors."""
        self.reserve(int(rows.max(initial=-1)) + 1)
        self._values[rows] = values
        self._scales[rows] = scales
        self._has[rows] = True

    def view(self, size: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return values, scales and which rows have any, of the first ``size`` rows; not copied."""
        self.reserve(size)
        return self._values[:size], self._scales[:size], self._has[:size]

    def keep(self, rows: npt.NDArray[np.intp], size: int, pace: Pace) -> Slices[None]:
        """Leave only ``rows`` of the first ``size``, in order; yields when ``pace`` says so."""
        self.reserve(size)
        for start in range(0, len(rows), _MOVED):
            moved = rows[start : start + _MOVED]
            end = start + len(moved)
            if moved[-1] >= end:  # nothing moved so far otherwise
                for array in (self._values, self._scales, self._has):
                    array[start:end] = array[moved]
            if pace():
                yield
        for array in (self._values, self._scales, self._has):
            array[len(rows) : size] = 0

    def resident_bytes(self, size: int) -> int:
        """Return the bytes of ``size`` rows."""
        return size * (self.dimensions + 5)


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
