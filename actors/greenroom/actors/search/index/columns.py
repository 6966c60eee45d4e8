"""The columns of the rows: one growing array each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

N = TypeVar("N", bound="Hashable")

NAMED = ("partition", "namespace", "author", "kind", "conversation")
"""Columns that hold numbers of names."""
CHANGING = ("alive", "supersedes", "importance", "rating", "uses", "last_used", "expires")
"""The mutable columns; all others never change."""
TYPES: Mapping[str, Any] = {
    "id": np.uint64,
    "created": np.int64,
    "updated": np.int64,
    "position": np.int64,
    "number": np.uint64,
    **dict.fromkeys(NAMED, np.int32),
    "flags": np.uint8,
    "length.text": np.uint32,
    "length.key": np.uint32,
    "length.tags": np.uint32,
    "length.author": np.uint32,
    "length.labels": np.uint32,
    "alive": np.bool_,
    "supersedes": np.uint64,
    "importance": np.float32,
    "rating": np.float32,
    "uses": np.uint32,
    "last_used": np.int64,
    "expires": np.int64,
}
_LEAST = 16
_ROW_BYTES: int = sum(np.dtype(kind).itemsize for kind in TYPES.values())


class NameTable(Generic[N]):
    """Numbers for names, in order of appearance."""

    __slots__ = ("_numbers", "names")

    def __init__(self) -> None:
        self.names: list[N] = []
        self._numbers: dict[N, int] = {}

    def number(self, name: N) -> int:
        """Return the number of ``name``; a new one if it has none."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def find(self, name: N) -> int | None:
        """Return the number of ``name``, or None."""
        return self._numbers.get(name)


class Columns:
    """Arrays of equal length that grow at their end."""

    __slots__ = ("arrays", "size")

    def __init__(self) -> None:
        self.size = 0
        self.arrays: dict[str, npt.NDArray[Any]] = {
            name: np.empty(_LEAST, dtype) for name, dtype in TYPES.items()
        }

    def reserve(self, size: int) -> None:
        """Make room for ``size`` rows in all."""
        room = len(self.arrays["id"])
        if size > room:
            # Untouched pages take no memory, and copying 100,000 rows takes 2 ms.
            room = max(size, room + room // 2)
            for name, array in self.arrays.items():
                self.arrays[name] = grown = np.empty(room, array.dtype)
                grown[: self.size] = array[: self.size]

    def append(self, values: Iterable[tuple[str, Any]]) -> int:
        """Add one row with all its columns; return it."""
        row = self.size
        self.reserve(row + 1)
        arrays = self.arrays
        for name, value in values:
            arrays[name][row] = value
        self.size = row + 1
        return row

    def extend(self, size: int, columns: Iterable[tuple[str, npt.NDArray[Any]]]) -> None:
        """Add ``size`` rows with all their columns."""
        self.reserve(self.size + size)
        for name, values in columns:
            self.arrays[name][self.size : self.size + size] = values
        self.size += size

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Keep only ``rows``, which are sorted."""
        for array in self.arrays.values():
            array[: len(rows)] = array[rows]
        self.size = len(rows)

    def resident_bytes(self) -> int:
        """Return the bytes of the rows."""
        return self.size * _ROW_BYTES
