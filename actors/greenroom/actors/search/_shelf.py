"""Postings of one shelf: which rows hold which term, and the shelf's rows in order of time.

A shelf knows nothing of the other shelves, so that a search over some of them
cannot be influenced by the rest. Rows are numbers that the index gives out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

from greenroom.actors.search._text import is_unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BLOCK = 1024
"""Terms that are looked through without a pause (0.05 ms by rapidfuzz)."""

_TERM_BYTES = 110  # a dictionary entry, a slot of the vocabulary and a string's header
_ROWS_BYTES = 80  # an array's header
_AUTHOR_BYTES = 350  # a dictionary entry, a tuple of a short name and an array's header
_ORDER_BYTES = 44  # a slot of a deque and its integer, and one of the author's rows


class Field:
    """Postings of one part of the messages: sender and content, or the metadata."""

    def __init__(self) -> None:
        # Half of a vocabulary occurs once: such a term has its row itself, any other has an array.
        self._rows: dict[str, int | array[int]] = {}
        self._blocks: list[list[str]] = []
        self._joined: list[str] = []
        self.resident_bytes = 0

    def add(self, row: int, terms: Iterable[str]) -> None:
        """Post ``row`` under each of ``terms``, which are distinct."""
        rows = self._rows
        grown = 0
        for term in terms:
            known = rows.get(term)
            if isinstance(known, array):
                known.append(row)
                grown += 4
            elif known is None:
                rows[term] = row
                grown += _TERM_BYTES + len(term)
                if not is_unspaced(term):
                    self._learn(term)
            else:
                rows[term] = array("I", (known, row))
                grown += _ROWS_BYTES
        self.resident_bytes += grown

    def rows(self, term: str) -> Sequence[int]:
        """Return the rows of ``term``, in no particular order."""
        found = self._rows.get(term, ())
        return (found,) if isinstance(found, int) else found

    def blocks(self) -> int:
        """Return how many blocks of at most `BLOCK` terms the vocabulary has."""
        return len(self._blocks)

    def block(self, number: int) -> list[str]:
        """Return the terms of one block."""
        return self._blocks[number]

    def containing(self, part: str, number: int) -> list[str]:
        """Return the terms of one block that have ``part`` in them."""
        # One look at the joined block is 20 times faster than a look at each term, and mostly enough.
        terms = self._blocks[number]
        if number == len(self._joined) and len(terms) == BLOCK:
            self._joined.append("\n".join(terms))
        joined = self._joined[number] if number < len(self._joined) else "\n".join(terms)
        return [term for term in terms if part in term] if part in joined else []

    def _learn(self, term: str) -> None:
        """Take a term into the vocabulary, the terms that may be misspelt or named in part."""
        if not self._blocks or len(self._blocks[-1]) == BLOCK:
            self._blocks.append([])
        self._blocks[-1].append(term)


class Shelf:
    """The messages of one visibility class."""

    def __init__(self, ids: Sequence[int]) -> None:
        """Make an empty shelf; ``ids`` are the index's ids by row."""
        self._ids = ids
        self.text = Field()
        self.metadata = Field()
        self.authors: dict[tuple[str, ...], array[int]] = {}
        """Rows by the terms of the sender's name."""
        self._author_bytes = 0
        self.order: deque[int] = deque()
        """Rows by id, oldest first."""

    def place(self, row: int) -> bool:
        """Put ``row`` into the order of time; False if its id is there already.

        Constant time at both ends, which is where a session grows and is filled back.
        """
        order, ids = self.order, self._ids
        if not order or ids[row] > ids[order[-1]]:
            order.append(row)
        elif ids[row] < ids[order[0]]:
            order.appendleft(row)
        else:
            position = bisect_left(order, ids[row], key=ids.__getitem__)
            if ids[order[position]] == ids[row]:
                return False
            order.insert(position, row)
        return True

    def sign(self, row: int, name: tuple[str, ...]) -> None:
        """Note who wrote ``row``."""
        rows = self.authors.get(name)
        if rows is None:
            rows = self.authors[name] = array("I")
            self._author_bytes += _AUTHOR_BYTES
        rows.append(row)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory that the shelf holds."""
        rows = _ORDER_BYTES * len(self.order) + self._author_bytes
        return self.text.resident_bytes + self.metadata.resident_bytes + rows
