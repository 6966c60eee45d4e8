"""Postings of the newest rows, in structures that are cheap to add to."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.index.document import FIELDS, Field

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK = 4_096
"""Terms of one block of the vocabulary, at most; it is put in order without a pause (1 ms)."""
MOST_TIMES = 2**16 - 1
"""How often a term counts in one row at most."""
_TERM_BYTES = 148  # a dictionary entry, a string's header, an integer and a place in order
_ARRAY_BYTES = 100

Postings = tuple["npt.NDArray[np.int32]", "npt.NDArray[np.uint16]"]


class Memtable:
    """Postings by field and term; a posting is a row, shifted, and how often the term occurs there.

    Attributes:
        fields: Half of a vocabulary occurs once: such a term has its posting itself, any other has an array.
        size: Rows, which are counted from the first of the tail.
        postings: Postings of all fields.
    """

    __slots__ = ("_blocks", "fields", "postings", "resident_bytes", "size")

    def __init__(self) -> None:
        self.fields: dict[Field, dict[str, int | array[int]]] = {field: {} for field in FIELDS}
        self._blocks: dict[Field, list[list[str]]] = {field: [] for field in FIELDS}
        self.size = 0
        self.postings = 0
        self.resident_bytes = 0

    def post(self, field: Field, row: int, counts: Iterable[tuple[str, int]]) -> int:
        """Post ``row``, which is no lower than the rows before; returns the number of occurrences."""
        terms = self.fields[field]
        total = grown = 0
        for term, count in counts:
            total += count
            posting = row << 16 | min(count, MOST_TIMES)
            known = terms.get(term)
            if isinstance(known, array):
                known.append(posting)
                grown += 8
            elif known is None:
                terms[term] = posting
                grown += _TERM_BYTES + len(term)
            else:
                terms[term] = array("Q", (known, posting))
                grown += _ARRAY_BYTES
            self.postings += 1
        self.resident_bytes += grown
        return total

    def find(self, field: Field, term: str) -> Postings | None:
        """Return the rows of ``term`` in order, and how often it occurs there, or None."""
        known = self.fields[field].get(term)
        if known is None:
            return None
        return unpack(array("Q", (known,)) if isinstance(known, int) else known)

    def count(self, field: Field, term: str) -> int:
        """Return how many rows hold ``term``."""
        known = self.fields[field].get(term)
        return len(known) if isinstance(known, array) else int(known is not None)

    def vocabulary(self, field: Field) -> Iterator[list[str]]:
        """Yield the terms of a field in blocks, each in order; they are read-only."""
        terms, blocks = self.fields[field], self._blocks[field]
        for place, start in enumerate(range(0, len(terms), BLOCK)):
            if place == len(blocks):
                blocks.append([])
            block = blocks[place]
            known, all_of_it = len(block), min(BLOCK, len(terms) - start)
            if known < all_of_it:  # new terms are the last of a dictionary
                block += islice(terms, start + known, start + all_of_it)
                block.sort()
            yield block


def unpack(postings: array[int]) -> Postings:
    """Return rows and numbers of occurrences."""
    packed = np.array(postings, np.uint64)
    return (packed >> 16).astype(np.int32), packed.astype(np.uint16)  # which keeps the lower 16 bits
