"""Vectors of the rows in one space, as one growing matrix of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAST = 64


class Matrix:
    """One int8 vector a row with its scale; a row without a vector is all zero."""

    __slots__ = ("_has", "_scales", "_values", "count", "dimensions")

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.count = 0
        """Rows that have a vector."""
        self._values = np.zeros((_LEAST, dimensions), np.int8)
        self._scales = np.zeros(_LEAST, np.float32)
        self._has = np.zeros(_LEAST, np.bool_)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` rows."""
        room = len(self._has)
        if size > room:
            room = max(size, room + room // 2)
            for name in ("_values", "_scales", "_has"):
                array = getattr(self, name)
                grown = np.zeros((room, *array.shape[1:]), array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)

    def set(
        self,
        rows: npt.NDArray[np.intp],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> None:
        """Give ``rows`` their vectors."""
        self.reserve(int(rows.max(initial=-1)) + 1)
        self.count += int(len(rows) - self._has[rows].sum())
        self._values[rows] = values
        self._scales[rows] = scales
        self._has[rows] = True

    def view(self, size: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return values, scales and which rows have any, of the first ``size`` rows; not copied."""
        self.reserve(size)
        return self._values[:size], self._scales[:size], self._has[:size]

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Leave only ``rows``, which are in order."""
        self.reserve(int(rows.max(initial=-1)) + 1)
        for array in (self._values, self._scales, self._has):
            array[: len(rows)] = array[rows]
            array[len(rows) :] = 0
        self.count = int(self._has.sum())

    def resident_bytes(self, size: int) -> int:
        """Return the bytes of ``size`` rows."""
        return size * (self.dimensions + 5)
