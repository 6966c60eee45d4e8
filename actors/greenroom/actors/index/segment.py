"""Postings: of the newest rows, cheap to add to, and of a run of rows that never change, in sorted chunks."""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.index.document import FIELDS, Field, ShouldYield
from greenroom.runtime import Slices

BLOCK = 4_096
"""Terms of one block of the vocabulary, at most; it is put in order without a pause (1 ms)."""
MOST_TIMES = 2**16 - 1
"""How often a term counts in one row at most."""
_NEW_TERM_BYTES = 148  # a dictionary entry, a string's header, an integer and a place in order
_ARRAY_BYTES = 100

Postings = tuple["npt.NDArray[np.int32]", "npt.NDArray[np.uint16]"]
CHUNK_TERMS = 4_096
CHUNK_POSTINGS = 32_768  # 200 kB
_RUN = 4_096  # terms sorted without a pause (1 ms)
_TERM_BYTES = 80  # a string and its slot


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
                grown += _NEW_TERM_BYTES + len(term)
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


class Chunk(NamedTuple):
    """Neighbouring terms of one field, at least one.

    Attributes:
        terms: In order.
        ends: Where each term's postings end.
        rows: Rows, counted from the segment's first.
        times: How often the term occurs there.
    """

    terms: Sequence[str]
    ends: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.int32]
    times: npt.NDArray[np.uint16]

    def find(self, term: str) -> Postings | None:
        """Return the postings of a term, or None."""
        start, end = self._span(term)
        return (self.rows[start:end], self.times[start:end]) if end else None

    def count(self, term: str) -> int:
        """Return how many rows hold a term."""
        start, end = self._span(term)
        return end - start

    def _span(self, term: str) -> tuple[int, int]:
        """Return where the postings of a term begin and end; (0, 0) for none."""
        place = bisect_left(self.terms, term)
        if place == len(self.terms) or self.terms[place] != term:
            return 0, 0
        return int(self.ends[place - 1]) if place else 0, int(self.ends[place])

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return _TERM_BYTES * len(self.terms) + self.ends.nbytes + self.rows.nbytes + self.times.nbytes


class Segment:
    """Postings of ``size`` rows.

    Attributes:
        number: By what its records are known; None when it has none.
        chunks: By field, in order of their terms.
        weight: What a merge of it costs: its postings and rows.
    """

    __slots__ = ("_firsts", "chunks", "number", "resident_bytes", "size", "weight")

    def __init__(self, size: int, chunks: Mapping[Field, list[Chunk]], number: int | None = None) -> None:
        self.size = size
        self.chunks = {field: chunks.get(field, []) for field in FIELDS}
        self.number = number
        self._firsts = {field: [chunk.terms[0] for chunk in found] for field, found in self.chunks.items()}
        every = [chunk for found in self.chunks.values() for chunk in found]
        self.resident_bytes = sum(chunk.resident_bytes() for chunk in every)
        self.weight = size + sum(len(chunk.rows) for chunk in every)

    def find(self, field: Field, term: str) -> Postings | None:
        """Return the rows of ``term``, counted from the first of this segment, and how often it occurs."""
        place = bisect_right(self._firsts[field], term)
        return self.chunks[field][place - 1].find(term) if place else None

    def count(self, field: Field, term: str) -> int:
        """Return how many rows hold ``term``."""
        place = bisect_right(self._firsts[field], term)
        return self.chunks[field][place - 1].count(term) if place else 0


def sealed(tail: Memtable, should_yield: ShouldYield) -> Slices[Segment]:
    """Return the tail as a segment; yields when ``should_yield()``."""
    chunks: dict[Field, list[Chunk]] = {}
    for field, postings in tail.fields.items():
        terms = yield from _in_order(postings, should_yield)
        chunks[field] = []
        block: list[str] = []
        packed, ends = array("Q"), array("I")
        for term in terms:
            block.append(term)
            known = postings[term]
            if isinstance(known, int):
                packed.append(known)
            else:
                packed.extend(known)
            ends.append(len(packed))
            if len(block) == CHUNK_TERMS or len(packed) >= CHUNK_POSTINGS:
                chunks[field].append(Chunk(block, np.array(ends, np.uint32), *unpack(packed)))
                block, packed, ends = [], array("Q"), array("I")
            if not len(block) % 256 and should_yield():
                yield
        if block:
            chunks[field].append(Chunk(block, np.array(ends, np.uint32), *unpack(packed)))
    return Segment(tail.size, chunks)


def _in_order(terms: Iterable[str], should_yield: ShouldYield) -> Slices[Iterator[str]]:
    """Return ``terms`` sorted; sorting all at once would take 0.5 s for a million."""
    remaining = iter(terms)
    runs: list[list[str]] = []
    while run := list(islice(remaining, _RUN)):
        run.sort()
        runs.append(run)
        if should_yield():
            yield
    return iter(runs[0]) if len(runs) == 1 else heapq.merge(*runs)
