"""The vectors of one space: a growing matrix of bytes, and its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from greenroom.actors.index.arrays import vector_chunk
from greenroom.actors.index.document import ShouldYield
from greenroom.actors.index.records import TokenVectors, VectorChunk
from greenroom.actors.schemas.vectors import Vectors
from greenroom.runtime import Slices

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAST = 64
_MOVED = 4_096  # rows moved without a pause (0.5 ms)


class VectorMatrix:
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

    def keep(self, rows: npt.NDArray[np.intp], size: int, should_yield: ShouldYield) -> Slices[None]:
        """Leave only ``rows`` of the first ``size``, in order; yields when ``should_yield()``."""
        self.reserve(size)
        for start in range(0, len(rows), _MOVED):
            moved = rows[start : start + _MOVED]
            end = start + len(moved)
            if moved[-1] >= end:  # nothing moved so far otherwise
                for array in (self._values, self._scales, self._has):
                    array[start:end] = array[moved]
            if should_yield():
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


def pack(
    vectors: Sequence[tuple[int, Vectors]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8], npt.NDArray[np.float32], VectorChunk]:
    """Return ids, values and scales of at least one vector, and their record."""
    ids = np.array([number for number, _ in vectors], np.uint64)
    values = np.frombuffer(b"".join(vector.values for _, vector in vectors), np.int8).reshape(len(ids), -1)
    scales = np.array([vector.scale for _, vector in vectors], np.float32)
    return ids, values, scales, vector_chunk(ids, values, scales)


def token_matrix(record: TokenVectors, dimensions: int) -> npt.NDArray[np.int8]:
    """Return the vectors of one row's tokens."""
    return np.frombuffer(record.values, np.int8).reshape(-1, dimensions)
