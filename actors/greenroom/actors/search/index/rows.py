"""The rows of the index, a growing array for each column, without terms and vectors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import FOREVER, NEVER, NO_POSITION, Analysed, Document, Field

D = TypeVar("D", bound=np.generic)
N = TypeVar("N", bound=Hashable)

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


def plain_columns(document: Document) -> dict[str, Any]:
    """Return the columns of a document that hold neither names, terms nor flags."""
    return {
        "created": document.created_at,
        "updated": document.updated_at,
        "number": document.number,
        "position": NO_POSITION if document.position is None else document.position,
        "supersedes": document.supersedes or 0,
        "importance": document.importance,
        "rating": document.rating,
        "uses": document.uses,
        "last_used": NEVER if document.last_used is None else document.last_used,
        "expires": FOREVER if document.expires_at is None else document.expires_at,
    }


_ID_BYTES = 130  # a dictionary entry and two integers
_BEGINNINGS = count(step=1 << 40)  # so that two corpora never have the same numbers
_OF_VIEWS = frozenset({"alive", "expires", "supersedes"})


class _Column(Generic[D]):
    """A column of `TYPES` as an attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, rows: Rows, _: type[Rows]) -> npt.NDArray[D]:
        return rows.arrays[self._name][: rows.size]


class _Names(Generic[N]):
    """The names for the numbers in a column of `NAMED`, as an attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, rows: Rows, _: type[Rows]) -> Sequence[N]:
        return rows.names[self._name].names


class Rows:
    """Rows in order of insertion; a removed row is dead until rows are renumbered.

    All columns are read-only views, valid until the next change. A column such as `author` has numbers of
    the names in `authors`. The values have the meaning that `Document` states.

    Attributes:
        arrangement: A number that grows when rows are added, removed or renumbered, or change their expiry or
            supersession. While it stays the same, visibility and neighbours do, too.
        arrays: The columns by name, with room for more rows.
        size: The number of rows, dead ones included.
        names: The names for the numbers in the columns of `NAMED`.
    """

    ids = _Column[np.uint64]("id")
    alive = _Column[np.bool_]("alive")
    numbers = _Column[np.uint64]("number")
    """The numbers of the memories, the same for all versions."""
    supersedes = _Column[np.uint64]("supersedes")
    """For each memory, the number of the memory that it supersedes; 0 if there is none."""
    partition = _Column[np.int32]("partition")
    partitions = _Names[Any]("partition")
    namespace = _Column[np.int32]("namespace")
    namespaces = _Names[str]("namespace")
    author = _Column[np.int32]("author")
    authors = _Names[str]("author")
    kind = _Column[np.int32]("kind")
    kinds = _Names[str]("kind")
    conversation = _Column[np.int32]("conversation")
    """-1 outside of conversations."""
    conversations = _Names[str]("conversation")
    position = _Column[np.int64]("position")
    """The place in the conversation; `NO_POSITION` for none."""
    created = _Column[np.int64]("created")
    updated = _Column[np.int64]("updated")
    expires = _Column[np.int64]("expires")
    """`FOREVER` for never."""
    last_used = _Column[np.int64]("last_used")
    """`NEVER` for never."""
    importance = _Column[np.float32]("importance")
    rating = _Column[np.float32]("rating")
    """-1 to 1; 0 without ratings."""
    uses = _Column[np.uint32]("uses")
    flags = _Column[np.uint8]("flags")

    def __init__(self) -> None:
        self.arrangement = next(_BEGINNINGS)
        self.names: dict[str, NameTable[Any]] = {name: NameTable() for name in NAMED}
        self.arrays = {name: np.empty(_LEAST, dtype) for name, dtype in TYPES.items()}
        self.size = 0
        self._row_of: dict[int, int] | None = None  # needed only when ids do not ascend

    # -- writing -----------------------------------------------------------

    def add_row(self, document: Document, analysed: Analysed) -> int:
        """Add a row without lengths; return it."""
        if self._row_of is None and self.size and document.id <= int(self.ids[-1]):
            self._row_of = self._rows_by_id()
        assert self._row_of is None or document.id not in self._row_of, f"memory {document.id} is known"
        conversation, names = document.conversation, self.names
        values: dict[str, Any] = {
            **plain_columns(document),
            "id": document.id,
            "partition": names["partition"].number(document.partition),
            "namespace": names["namespace"].number(document.namespace),
            "author": names["author"].number(document.author),
            "kind": names["kind"].number(document.kind),
            "conversation": -1 if conversation is None else names["conversation"].number(conversation),
            "flags": analysed.flags,
            "length.text": 0,
            "length.key": 0,
            "length.tags": 0,
            "length.author": 0,
            "length.labels": 0,
            "alive": True,
        }
        row = self.size
        self._reserve(row + 1)
        for name, value in values.items():
            self.arrays[name][row] = value
        self.size += 1
        if self._row_of is not None:
            self._row_of[document.id] = row
        self.arrangement += 1
        return row

    def extend(self, size: int, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows with all their columns, without their postings."""
        if self._row_of is None:
            ids = columns["id"]
            before = self.ids[-1:]
            if (ids[1:] <= ids[:-1]).any() or (ids[:1] <= before).any():
                self._row_of = self._rows_by_id()
        if self._row_of is not None:
            self._row_of.update(
                (int(number), self.size + place) for place, number in enumerate(columns["id"])
            )
        self._reserve(self.size + size)
        for name, values in columns.items():
            self.arrays[name][self.size : self.size + size] = values
        self.size += size
        self.arrangement += 1

    def remove(self, id: int) -> bool:
        """Mark a memory's row as dead; return False if there is none."""
        return self.change(id, {"alive": False})

    def change(self, id: int, values: Mapping[str, Any]) -> bool:
        """Change columns of a memory's row; return False if there is none."""
        row = self.row(id)
        if row is None:
            return False
        for name, value in values.items():
            self.arrays[name][row] = value
        self.arrangement += not _OF_VIEWS.isdisjoint(values)
        return True

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Keep only ``rows``, which are sorted, and renumber them."""
        for array in self.arrays.values():
            array[: len(rows)] = array[rows]
        self.size = len(rows)
        if self._row_of is not None:
            self._row_of = self._rows_by_id()
        self.arrangement += 1

    # -- reading -----------------------------------------------------------

    def row(self, id: int) -> int | None:
        """Return the row of a living memory, or None."""
        if self._row_of is None:
            ids = self.ids
            row = int(np.searchsorted(ids, np.uint64(id)))
            if row == len(ids) or int(ids[row]) != id:
                return None
        else:
            known = self._row_of.get(id)
            if known is None:
                return None
            row = known
        return row if self.arrays["alive"][row] else None

    def rows_of(self, ids: npt.NDArray[np.uint64], *, dead: bool = False) -> npt.NDArray[np.intp]:
        """Return the rows of living memories, with ``dead`` also of dead ones; -1 for others."""
        if self._row_of is not None:
            found = np.array([self._row_of.get(int(number), -1) for number in ids], np.intp)
        elif not self.size:
            return np.full(len(ids), -1, np.intp)
        else:
            found = np.minimum(np.searchsorted(self.ids, ids), self.size - 1)
            found[self.ids[found] != ids] = -1
        if not dead:
            found[~self.alive[found]] = -1
        return found

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column by its name in `TYPES`."""
        return self.arrays[name][: self.size]

    def lengths(self, field: Field) -> npt.NDArray[np.uint32]:
        """Return the number of posted occurrences of a field, by row."""
        return self.column(f"length.{field}")

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        ids = 0 if self._row_of is None else _ID_BYTES * len(self._row_of)
        return self.size * _ROW_BYTES + ids

    def _reserve(self, size: int) -> None:
        """Make room for ``size`` rows in all."""
        room = len(self.arrays["id"])
        if size > room:
            # Untouched pages take no memory, and copying 100,000 rows takes 2 ms.
            room = max(size, room + room // 2)
            for name, array in self.arrays.items():
                self.arrays[name] = grown = np.empty(room, array.dtype)
                grown[: self.size] = array[: self.size]

    def _rows_by_id(self) -> dict[int, int]:
        return {int(number): row for row, number in enumerate(self.ids)}
