"""What one search sees: the messages of its shelves and window, newest first, and nothing else.

Everything that a search counts (document frequencies, the vocabulary, who stands
next to whom, which senders exist) is counted here, over exactly these messages.
So a hidden or older message cannot change a score or an order.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from greenroom.actors.search._shelf import Field, Shelf
    from greenroom.runtime import Slices

STEP = 1024
"""Elements of a plain loop between two looks at the clock (0.1 to 0.5 ms)."""


class View:
    """The searched messages. A message's *rank* is its place in time, 0 being the newest."""

    def __init__(
        self, shelves: Sequence[Shelf], *, metadata: bool, ids: Sequence[int], oldest_id: int
    ) -> None:
        """Make an empty view; `fill` finds its messages."""
        self._shelves = shelves
        self._ids = ids
        self._oldest_id = oldest_id
        self._rank: list[int] = []
        self.rows: list[int] = []
        """Rows by rank."""
        self.fields: list[Field] = [shelf.text for shelf in shelves]
        if metadata:
            self.fields += [shelf.metadata for shelf in shelves]

    def fill(self, slice_over: Callable[[], bool]) -> Slices[None]:
        """Find the messages of the window; yields when ``slice_over`` says so."""
        rank = self._rank = [-1] * len(self._ids)
        waiting = [reversed(shelf.order) for shelf in self._shelves]
        held: list[list[int]] = [[] for _ in waiting]
        while waiting:
            for number, source in enumerate(waiting):
                held[number] += self._in_window(islice(source, STEP - len(held[number])))
            # A shelf whose next messages are unknown hides what is older than its last known one.
            full = [rows for rows in held if len(rows) == STEP]
            bound = max((self._ids[rows[-1]] for rows in full), default=0)
            taken: list[int] = []
            for rows in held:
                known = bisect_right(rows, -bound, key=self._age)
                taken += rows[:known]
                del rows[:known]
            taken.sort(key=self._age)
            for place, row in enumerate(taken, len(self.rows)):
                rank[row] = place
            self.rows += taken
            if not full:
                return
            if slice_over():
                yield

    def ranks(self, term: str, slice_over: Callable[[], bool]) -> Slices[set[int]]:
        """Return the ranks of the messages that hold ``term``; yields when ``slice_over`` says so."""
        found: set[int] = set()
        for field in self.fields:
            found |= yield from self._seen(field.rows(term), slice_over)
        return found

    def holds(self, term: str) -> bool:
        """Return whether any message of the view holds ``term``."""
        rank = self._rank
        return any(rank[row] >= 0 for field in self.fields for row in field.rows(term))

    def names(self) -> set[tuple[str, ...]]:
        """Return the terms of each sender's name; some may have no message here."""
        return {name for shelf in self._shelves for name in shelf.authors if name}

    def written_by(self, name: tuple[str, ...], slice_over: Callable[[], bool]) -> Slices[set[int]]:
        """Return the ranks of one sender's messages; yields when ``slice_over`` says so."""
        found: set[int] = set()
        for shelf in self._shelves:
            found |= yield from self._seen(shelf.authors.get(name, ()), slice_over)
        return found

    def _seen(self, rows: Sequence[int], slice_over: Callable[[], bool]) -> Slices[set[int]]:
        rank = self._rank
        found: set[int] = set()
        for start in range(0, len(rows), STEP):
            found.update([rank[row] for row in rows[start : start + STEP]])
            if slice_over():
                yield
        found.discard(-1)
        return found

    def _in_window(self, rows: Iterable[int]) -> list[int]:
        known = list(rows)
        return known[: bisect_right(known, -self._oldest_id, key=self._age)]

    def _age(self, row: int) -> int:
        return -self._ids[row]
