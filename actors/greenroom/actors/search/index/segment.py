"""Immutable postings of rows, in sorted chunks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import FIELDS, Field
from greenroom.actors.search.index.memtable import Memtable
from greenroom.actors.search.index.terms import JoinedTerms, join_terms, place_of
from greenroom.runtime import Slices

Times = npt.NDArray[Any]  # unsigned integers of 16 bits, or of 8 where all are small
Postings = tuple[npt.NDArray[np.int32], Times]
CHUNK_TERMS = 4_096
CHUNK_POSTINGS = 32_768  # 200 kB
_SMALL = 256
_TERM_BYTES = 80  # a string and its slot


def unpack(packed: npt.NDArray[np.uint64]) -> Postings:
    """Return the rows and frequencies of the postings of a `Memtable`."""
    return (packed >> 16).astype(np.int32), packed.astype(np.uint16)  # the lower 16 bits


class Chunk(NamedTuple):
    """Consecutive terms of one field, at least one.

    Attributes:
        ends: Where each term's postings end.
        rows: Rows, counted from the segment's first.
        times: How often the term occurs in the row.
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
        """Return the range of a term's postings; (0, 0) for none."""
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

    def join(self) -> Chunk:
        """Return a compact form: joined terms, and 8 bits for small numbers."""
        is_small = self.times.dtype == np.uint16 and int(self.times.max(initial=0)) < _SMALL
        times = self.times.astype(np.uint8) if is_small else self.times
        return self._replace(terms=join_terms(self.terms), times=times)


class Segment:
    """Postings of ``size`` rows.

    Attributes:
        number: Its number in the keys of its records; None without records.
        weight: The cost of a merge: its postings and rows.
    """

    __slots__ = ("_firsts", "chunks", "number", "resident_bytes", "size", "weight")

    def __init__(self, size: int, chunks: Mapping[Field, list[Chunk]], number: int | None = None) -> None:
        self.size = size
        self.chunks = {field: [chunk.join() for chunk in chunks.get(field, ())] for field in FIELDS}
        self.number = number
        self._firsts = {field: [chunk.terms[0] for chunk in found] for field, found in self.chunks.items()}
        every = [chunk for found in self.chunks.values() for chunk in found]
        self.resident_bytes = sum(chunk.resident_bytes() for chunk in every)
        self.weight = size + sum(len(chunk.rows) for chunk in every)

    def find(self, field: Field, term: str) -> Postings | None:
        """Return the rows of ``term``, counted from this segment's first, and its frequencies."""
        place = bisect_right(self._firsts[field], term)
        return self.chunks[field][place - 1].find(term) if place else None

    def count(self, field: Field, term: str) -> int:
        """Return how many rows hold ``term``."""
        place = bisect_right(self._firsts[field], term)
        return self.chunks[field][place - 1].count(term) if place else 0


def seal(tail: Memtable) -> Slices[Segment]:
    """Turn the tail into a segment."""
    packed = yield from tail.pack()
    chunks: dict[Field, list[Chunk]] = {}
    for field in FIELDS:
        if (terms := packed.get(field)) is None:
            continue
        ends = np.frombuffer(terms.ends, np.uint32)
        postings = unpack(np.frombuffer(terms.postings, np.uint64))
        chunks[field] = []
        for chunk in cut(terms.terms, ends, *postings):
            chunks[field].append(chunk)
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
