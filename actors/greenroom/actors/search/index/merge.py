"""Merging of segments: which ones to merge, and the merge in small steps.

Segments are merged with others of about their size, a few at once, so each row is rewritten only a few times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.document import FIELDS, Field
from greenroom.actors.search.index.segment import CHUNK_POSTINGS, CHUNK_TERMS, Chunk, Segment

TAIL_ROWS = 1_024
"""The tail is merged when it has this many rows; loading a row takes 20 us."""
TAIL_POSTINGS = 131_072
RATIO = 3
MANY = 32
"""This many runs are merged at once; every search looks up each run."""
FEW = 4
"""The same number while no more rows come, so that no writer waits for the merge."""
CROWD = 3 * MANY
"""If there are this many runs, a writer that adds a run takes part in the merge."""
_RATIO_OF_RUNS = 1


def first_merged(weights: Sequence[int], fresh: int, ratio: int = RATIO) -> int:
    """Return the first run of a merge that ends with the last ``fresh`` runs.

    An earlier run takes part unless it weighs more than ``ratio`` times all later runs together.

    Args:
        weights: The cost of merging each run, the oldest first.
        fresh: The number of runs at the end that take part in any case.
        ratio: A smaller ratio rewrites each row less often, but leaves more runs.
    """
    start = len(weights) - fresh
    total = sum(weights[start:])
    while start and weights[start - 1] <= ratio * total:
        start -= 1
        total += weights[start]
    return start


FANOUT = 8
"""This many segments of about one size are merged; a search looks up each segment, at most about 20."""
_ALIKE = 2


def first_of_tier(weights: Sequence[int], fresh: int, fanout: int) -> int:
    """Return the first segment of a merge that ends with the last ``fresh`` segments.

    Earlier segments take part if there are enough of about the merged size, or smaller; and so on with the
    result. Of 1,000 equal segments, each row is written three times, and at most 21 segments are left.
    """
    start = len(weights) - fresh
    while True:
        total = sum(weights[start:])
        first = start
        while first and weights[first - 1] <= _ALIKE * total:
            first -= 1
        if start - first + 1 < fanout:
            return start
        start = first


def first_of_many(sizes: Sequence[int], many: int = MANY) -> int | None:
    """Return the first run of a merge of ``many`` small runs; None for fewer runs.

    If all rows come in runs, this is the only merge; in 100 MB of text each row is rewritten four times. A
    large run waits until the later runs together are as large, and small runs before it wait, too. With
    twice as many runs, the last ones are merged in any case, large ones included.
    """
    if len(sizes) < many:
        return None
    start = first_merged(sizes, 1, _RATIO_OF_RUNS)
    if len(sizes) - start >= many:
        return start
    return first_merged(sizes, many, _RATIO_OF_RUNS) if len(sizes) >= 2 * many else None


_STEP_TERMS = 4_096  # terms of all segments in one step (3 ms)
_STEP_POSTINGS = 32_768
_LEAST = 64


def merged_chunks(
    segments: Sequence[Segment], kept: npt.NDArray[np.bool_]
) -> Iterator[tuple[Field, Chunk] | None]:
    """Yield chunks of the merged segment's ``kept`` rows; None after a step without a chunk."""
    places = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    places[~kept] = -1
    starts = np.cumsum([0, *(segment.size for segment in segments)])
    rows = [places[start:end] for start, end in pairwise(starts)]
    for field in FIELDS:
        waiting: list[Chunk] = []
        terms = postings = 0
        cursors = _cursors([segment.chunks[field] for segment in segments])
        while not all(cursor.is_done for cursor in cursors):
            bound = min((bound for cursor in cursors if (bound := cursor.bound()) is not None), default=None)
            parts = [(cursor.take(bound), own) for cursor, own in zip(cursors, rows, strict=True)]
            joined = _join([(chunk, own) for chunk, own in parts if chunk is not None])
            if joined is not None:
                waiting.append(joined)
                terms += len(joined.terms)
                postings += len(joined.rows)
            if terms < CHUNK_TERMS // 2 and postings < CHUNK_POSTINGS // 2:
                yield None
            else:
                yield field, _concatenate(waiting)
                waiting, terms, postings = [], 0, 0
        if waiting:
            yield field, _concatenate(waiting)


def _cursors(merged: Sequence[Sequence[Chunk]]) -> list[_Cursor]:
    """Return a cursor for each segment, with its share of each step."""
    terms = [sum(len(chunk.terms) for chunk in chunks) for chunks in merged]
    postings = [sum(len(chunk.rows) for chunk in chunks) for chunks in merged]
    return [
        _Cursor(
            chunks,
            max(_LEAST, _STEP_TERMS * own_terms // max(1, sum(terms))),
            max(_LEAST, _STEP_POSTINGS * own_postings // max(1, sum(postings))),
        )
        for chunks, own_terms, own_postings in zip(merged, terms, postings, strict=True)
    ]


class _Cursor:
    """The position of a merge in the chunks of one segment."""

    __slots__ = ("_chunks", "_number", "_place", "_postings", "_some", "_terms")

    def __init__(self, chunks: Sequence[Chunk], terms: int, postings: int) -> None:
        """Begin with the first of ``chunks``; a step takes about ``terms`` terms or ``postings`` postings."""
        self._chunks = chunks
        self._number = 0
        self._place = 0
        self._terms = terms
        self._postings = postings
        self._some = chunks[0].terms[:] if chunks else []

    @property
    def is_done(self) -> bool:
        """Whether all terms are taken."""
        return self._number == len(self._chunks)

    def bound(self) -> str | None:
        """Return the term at which the next step ends; None for the end."""
        if self.is_done:
            return None
        terms, ends = self._some, self._chunks[self._number].ends
        done = int(ends[self._place - 1]) if self._place else 0
        enough = int(ends.searchsorted(done + self._postings)) + 1
        end = min(self._place + self._terms, enough)
        if end < len(terms):
            return terms[end]
        following = self._number + 1
        return self._chunks[following].terms[0] if following < len(self._chunks) else None

    def take(self, bound: str | None) -> Chunk | None:
        """Take the terms below ``bound`` from one chunk; None if there are none."""
        if self.is_done:
            return None
        terms, (_, ends, rows, times) = self._some, self._chunks[self._number]
        start = self._place
        end = len(terms) if bound is None else bisect_left(terms, bound, start)
        self._place = end
        if end == len(terms):
            self._number, self._place = self._number + 1, 0
            self._some = [] if self.is_done else self._chunks[self._number].terms[:]
        if start == end:
            return None
        first = int(ends[start - 1]) if start else 0
        last = int(ends[end - 1])
        return Chunk(
            terms[start:end], ends[start:end] - np.uint32(first), rows[first:last], times[first:last]
        )


def _join(parts: Sequence[tuple[Chunk, npt.NDArray[np.int32]]]) -> Chunk | None:
    """Join chunks of one range of terms; leave out rows with the new place -1."""
    if not parts:
        return None
    if len(parts) == 1:
        terms: Sequence[str] = parts[0][0].terms
    else:
        terms = sorted(set().union(*(chunk.terms for chunk, _ in parts)))
    number = {term: place for place, term in enumerate(terms)}
    own = map(number.__getitem__, chain.from_iterable(chunk.terms for chunk, _ in parts))
    every = np.repeat(np.fromiter(own, np.uint16), np.concatenate([chunk.counts() for chunk, _ in parts]))
    row = np.concatenate([places[chunk.rows] for chunk, places in parts])
    time = np.concatenate([chunk.times for chunk, _ in parts])
    kept = row >= 0
    every, row, time = every[kept], row[kept], time[kept]
    if not len(every):
        return None
    # A stable sort keeps the rows of a term in order; for 16 bits it is a fast radix sort.
    order = np.argsort(every, kind="stable")
    counts = np.bincount(every, minlength=len(terms))
    if not counts.all():
        terms = [term for term, count in zip(terms, counts.tolist(), strict=True) if count]
        counts = counts[counts > 0]
    return Chunk(terms, np.cumsum(counts, dtype=np.uint32), row[order], time[order])


def _concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """Join chunks of consecutive ranges of terms."""
    if len(chunks) == 1:
        return chunks[0]
    before = np.cumsum([0, *(len(chunk.rows) for chunk in chunks)], dtype=np.uint32)
    return Chunk(
        [term for chunk in chunks for term in chunk.terms],
        np.concatenate([chunk.ends + start for chunk, start in zip(chunks, before, strict=False)]),
        np.concatenate([chunk.rows for chunk in chunks]),
        np.concatenate([chunk.times for chunk in chunks]),
    )
