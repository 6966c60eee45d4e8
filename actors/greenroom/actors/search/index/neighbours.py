"""Neighbours in conversations: the row before and after each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import NO_POSITION

Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]

_FEW = 256
"""Up to this many new rows it is cheaper to insert them than to sort everything (8 ms for 100,000)."""


class Neighbours(NamedTuple):
    """The neighbours and the place of each row in its conversation; -1 for none."""

    previous: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]


class ConversationOrder:
    """The rows of conversations, by conversation, position and row; rows without a position come last."""

    __slots__ = ("_rows", "size")

    def __init__(self) -> None:
        self.size = 0
        """The number of sorted rows."""
        self._rows: Rows = np.empty(0, np.int32)

    def rows(self, conversation: Rows, position: Positions) -> Rows:
        """Return the order of all rows, from their columns; known rows have not changed."""
        size = len(conversation)
        if size > self.size + _FEW or not self.size:
            self._rows = _sort(np.arange(size, dtype=np.int32), conversation, position)
        elif size > self.size:
            self._insert(
                _sort(np.arange(self.size, size, dtype=np.int32), conversation, position),
                conversation,
                position,
            )
        self.size = size
        return self._rows

    def renumber(self, places: Rows) -> None:
        """Apply new row numbers, -1 for rows that are gone."""
        known = places[: self.size]
        moved = known[self._rows]
        self._rows = moved[moved >= 0]
        self.size = int((known >= 0).sum())

    def resident_bytes(self) -> int:
        """Return the memory in use."""
        return self._rows.nbytes

    def _insert(self, fresh: Rows, conversation: Rows, position: Positions) -> None:
        """Insert sorted rows into their places."""
        rows = self._rows
        groups = conversation[rows]
        ends = np.searchsorted(groups, conversation[fresh], "right")
        places = ends.copy()
        for number, row in enumerate(fresh):
            if position[row] != NO_POSITION:
                start = int(np.searchsorted(groups, conversation[row]))
                keys = _keys(position[rows[start : ends[number]]])
                places[number] = start + np.searchsorted(keys, position[row], "right")
        self._rows = np.insert(rows, places, fresh)


def _keys(position: Positions) -> Positions:
    return np.where(position == NO_POSITION, np.iinfo(np.int64).max, position)


def _sort(rows: Rows, conversation: Rows, position: Positions) -> Rows:
    rows = rows[conversation[rows] >= 0]
    return rows[np.lexsort((_keys(position[rows]), conversation[rows]))]


def neighbours(order: Rows, conversation: Rows, mask: npt.NDArray[np.bool_]) -> Neighbours:
    """Return the neighbours among the rows of ``mask``; ``order`` is of `ConversationOrder.rows`."""
    size = len(conversation)
    previous, following, place = (np.full(size, -1, np.int32) for _ in range(3))
    seen = order if mask.all() else order[mask[order]]
    if len(seen):
        group = conversation[seen]
        same = group[1:] == group[:-1]
        previous[seen[1:]] = np.where(same, seen[:-1], np.int32(-1))
        following[seen[:-1]] = np.where(same, seen[1:], np.int32(-1))
        index = np.arange(len(seen), dtype=np.int32)
        first = np.where(np.concatenate(([True], ~same)), index, np.int32(0))
        place[seen] = index - np.maximum.accumulate(first)
    return Neighbours(previous, following, place, seen)
