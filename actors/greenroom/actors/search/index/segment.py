"""Postings of rows that never change, in sorted chunks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import FIELDS, Field, ShouldYield
from greenroom.actors.search.index.memtable import Memtable
from greenroom.actors.search.index.terms import JoinedTerms, joined, place_of
from greenroom.runtime import Slices

Times = npt.NDArray[Any]  # unsigned integers of 16 bits, or of 8 where all are small
Postings = tuple[npt.NDArray[np.int32], Times]
CHUNK_TERMS = 4_096
CHUNK_POSTINGS = 32_768  # 200 kB
_SMALL = 256
_TERM_BYTES = 80  # a string and its slot


def unpack(packed: npt.NDArray[np.uint64]) -> Postings:
    """Return rows and numbers of occurrences of postings as a `Memtable` has them."""
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
    times: Times

    def find(self, term: str) -> Postings | None:
        """Return the postings of a term, or None."""
        start, end = self._span(term)
        return (self.rows[start:end], self.times[start:end]) if end else None

    def count(self, term: str) -> int:
        """Return how many rows hold a term."""
        start, end = self._span(term)
        return end - start

    def counts(self) -> npt.NDArray[np.uint32]:
        """Return how many rows hold each term."""
        counts = self.ends.copy()
        counts[1:] -= self.ends[:-1]
        return counts

    def _span(self, term: str) -> tuple[int, int]:
        """Return where the postings of a term begin and end; (0, 0) for none."""
        place = place_of(self.terms, term)
        if place is None:
            return 0, 0
        return int(self.ends[place - 1]) if place else 0, int(self.ends[place])

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        if isinstance(self.terms, JoinedTerms):
            terms = self.terms.resident_bytes()
        else:
            terms = _TERM_BYTES * len(self.terms)
        return terms + self.ends.nbytes + self.rows.nbytes + self.times.nbytes

    def joined(self) -> Chunk:
        """Return the same for a long time: its terms take less memory, and small numbers, too."""
        is_small = self.times.dtype == np.uint16 and int(self.times.max(initial=0)) < _SMALL
        times = self.times.astype(np.uint8) if is_small else self.times
        return self._replace(terms=joined(self.terms), times=times)


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
        self.chunks = {field: [chunk.joined() for chunk in chunks.get(field, ())] for field in FIELDS}
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
    packed = yield from tail.packed(should_yield)
    chunks: dict[Field, list[Chunk]] = {}
    for field in FIELDS:
        if (terms := packed.get(field)) is None:
            continue
        ends = np.frombuffer(terms.ends, np.uint32)
        postings = unpack(np.frombuffer(terms.postings, np.uint64))
        chunks[field] = []
        for chunk in cut(terms.terms, ends, *postings):
            chunks[field].append(chunk)
            if should_yield():
                yield
    return Segment(tail.size, chunks)


def cut(
    terms: Sequence[str],
    ends: npt.NDArray[np.uint32],
    rows: npt.NDArray[np.int32],
    times: Times,
) -> Iterator[Chunk]:
    """Yield the chunks of a field."""
    start = first = 0
    while start < len(terms):
        enough = int(np.searchsorted(ends, first + CHUNK_POSTINGS)) + 1
        end = min(start + CHUNK_TERMS, enough, len(terms))
        last = int(ends[end - 1])
        yield Chunk(terms[start:end], ends[start:end] - np.uint32(first), rows[first:last], times[first:last])
        start, first = end, last
