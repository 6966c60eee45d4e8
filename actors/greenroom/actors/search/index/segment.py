"""Immutable postings of rows, in sorted chunks of terms."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import FIELDS, Field
from greenroom.actors.search.index.memtable import Memtable
from greenroom.runtime import Slices

BETWEEN: Final = "\n"
"""The separator of terms, which hardly any term contains."""
_BLOCK = 64
"""Of this many terms, the first is also stored as a string; one search in the text finds the others."""
_SLOT_BYTES = 8


class JoinedTerms(Sequence[str]):
    """Immutable sorted terms, at least one; a slice of them is a list."""

    __slots__ = ("_firsts", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.flatnonzero(characters == ord(BETWEEN)).astype(np.uint32)
        self._starts = array("I", (0,))
        self._starts.frombytes((ends + np.uint32(1)).tobytes())
        self._starts.append(len(text) + 1)
        self._firsts = [self[place] for place in range(0, len(self), _BLOCK)]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return one term, or some."""
        if isinstance(place, slice):
            start, end, _ = place.indices(len(self))
            part = self.text[self._starts[start] : self._starts[max(start, end)] - 1]
            return part.split(BETWEEN) if start < end else []
        at = place if place >= 0 else place + len(self)
        if not 0 <= at < len(self):
            raise IndexError(place)
        return self.text[self._starts[at] : self._starts[at + 1] - 1]

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        """Yield all terms in order."""
        return iter(self.text.split(BETWEEN))

    def place(self, term: str) -> int | None:
        """Return the place of a term that has no separator in it; None if absent."""
        block = bisect_right(self._firsts, term) - 1
        if block < 0:
            return None
        first, end = block * _BLOCK, min((block + 1) * _BLOCK, len(self))
        if term == self._firsts[block]:
            return first
        if term == self[end - 1]:  # no separator follows the last term
            return end - 1
        at = self.text.find(f"{BETWEEN}{term}{BETWEEN}", self._starts[first], self._starts[end])
        return None if at < 0 else bisect_left(self._starts, at + 1)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        firsts = sum(first.__sizeof__() + _SLOT_BYTES for first in self._firsts)
        return self.text.__sizeof__() + self._starts.itemsize * len(self._starts) + firsts


def place_of(terms: Sequence[str], term: str) -> int | None:
    """Return the place of a term among sorted terms; None if absent."""
    if isinstance(terms, JoinedTerms) and BETWEEN not in term:
        return terms.place(term)
    place = bisect_left(terms, term)
    return place if place < len(terms) and terms[place] == term else None


def join_terms(terms: Sequence[str]) -> Sequence[str]:
    """Join at least one term; return them unchanged if one has the separator."""
    if isinstance(terms, JoinedTerms):
        return terms
    text = BETWEEN.join(terms)
    return terms if text.count(BETWEEN) >= len(terms) else JoinedTerms(text)


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
    """Consecutive terms of one field, at least one, and where each term's postings end."""

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
    """Postings of ``size`` rows, by field; the cost of a merge is its ``weight``."""

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
        """Return the rows of ``term``, counted from this segment's first row, and its frequencies."""
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
