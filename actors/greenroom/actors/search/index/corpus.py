"""The index in RAM, which ranking reads; independent of actors and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.index.arrays import VectorMatrix
from greenroom.actors.search.index.document import FIELDS, NO_POSITION, Analysed, Document, Field, analyse
from greenroom.actors.search.index.memtable import Memtable
from greenroom.actors.search.index.merge import TAIL_POSTINGS, TAIL_ROWS, first_merged, merged_chunks
from greenroom.actors.search.index.rows import Rows
from greenroom.actors.search.index.segment import Chunk, Postings, Segment, seal, unpack
from greenroom.runtime import Slices

RowNumbers = npt.NDArray[np.int32]
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
        self._rows: RowNumbers = np.empty(0, np.int32)

    def rows(self, conversation: RowNumbers, position: Positions) -> RowNumbers:
        """Return the order of all rows, from their columns; rows sorted before must be unchanged."""
        size = len(conversation)
        if size > self.size + _FEW or not self.size:
            self._rows = _sort_rows(np.arange(size, dtype=np.int32), conversation, position)
        elif size > self.size:
            self._insert(
                _sort_rows(np.arange(self.size, size, dtype=np.int32), conversation, position),
                conversation,
                position,
            )
        self.size = size
        return self._rows

    def renumber(self, places: RowNumbers) -> None:
        """Apply new row numbers, -1 for rows that are gone."""
        known = places[: self.size]
        moved = known[self._rows]
        self._rows = moved[moved >= 0]
        self.size = int((known >= 0).sum())

    def resident_bytes(self) -> int:
        """Return the memory in use."""
        return self._rows.nbytes

    def _insert(self, fresh: RowNumbers, conversation: RowNumbers, position: Positions) -> None:
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


def _sort_rows(rows: RowNumbers, conversation: RowNumbers, position: Positions) -> RowNumbers:
    rows = rows[conversation[rows] >= 0]
    return rows[np.lexsort((_keys(position[rows]), conversation[rows]))]


def neighbours(order: RowNumbers, conversation: RowNumbers, mask: npt.NDArray[np.bool_]) -> Neighbours:
    """Return the neighbours among the rows of ``mask``; ``order`` comes from `ConversationOrder.rows`."""
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


_POSTED = 1_024  # terms posted without a pause (0.5 ms)
_FREQUENT = 4  # count this many times the wanted number of terms
_NO_ROWS = np.empty(0, np.int32)
_NO_TIMES = np.empty(0, np.uint16)


class Corpus(Rows):
    """Rows with their postings, neighbours and vectors."""

    def __init__(self) -> None:
        """Make an empty corpus."""
        super().__init__()
        self.segments: list[Segment] = []
        self.fetch_tokens: Callable[[str, int], npt.NDArray[np.int8] | None] | None = None
        self._tail = Memtable()
        self._tail_start = 0
        self._matrices: dict[str, VectorMatrix] = {}
        self._order = ConversationOrder()
        self._neighbours: tuple[int, Neighbours] | None = None

    # -- writing -----------------------------------------------------------

    def add(self, document: Document, rules: TextRules | None = None) -> Slices[int]:
        """Analyse a document, by given or current rules, and add it; return its row."""
        analysed = yield from analyse(document, rules)
        return (yield from self.add_analysed(document, analysed))

    def add_analysed(self, document: Document, analysed: Analysed) -> Slices[int]:
        """Add an analysed document; return its row."""
        row = self.add_row(document, analysed)
        self._tail.size += 1
        yield from self.post_terms(row, analysed.counts)
        return row

    def post_terms(self, row: int, counts: Mapping[Field, Mapping[str, int]]) -> Slices[None]:
        """Add new terms to a row of the tail."""
        place = row - self._tail_start
        for field, terms in counts.items():
            remaining = iter(terms.items())
            total = int(self.arrays[f"length.{field}"][row])
            while step := list(islice(remaining, _POSTED)):
                total += self._tail.post(field, place, step)
                yield
            self.arrays[f"length.{field}"][row] = min(total, 2**32 - 1)

    def attach_segment(self, segment: Segment) -> None:
        """Add the postings of the newest rows; the tail must be empty."""
        assert not self._tail.size, "the rows of the tail are newer"
        self.segments.append(segment)
        self._tail_start += segment.size

    def set_vectors(
        self,
        space: str,
        ids: npt.NDArray[np.uint64],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> int:
        """Store the vectors of the memories ``ids``; return how many of these memories exist."""
        rows = self.rows_of(ids)
        known = rows >= 0
        matrix = self._matrices.get(space)
        if matrix is None:
            matrix = self._matrices[space] = VectorMatrix(values.shape[1])
        matrix.set(rows[known], values[known], scales[known])
        return int(known.sum())

    def drop_vectors(self, space: str) -> None:
        """Drop the vectors of a space."""
        self._matrices.pop(space, None)

    # -- compaction --------------------------------------------------------

    @property
    def tail_rows(self) -> int:
        """The number of newest rows that are in no segment yet."""
        return self._tail.size

    def tail_is_full(self) -> bool:
        """Return whether the tail should become a segment."""
        return self._tail.size >= TAIL_ROWS or self._tail.postings >= TAIL_POSTINGS

    def compact(self) -> Slices[None]:
        """Seal a full tail and merge segments, for a corpus without records."""
        if not self.tail_is_full():
            return
        yield from self.seal()
        start = first_merged([segment.weight for segment in self.segments], 1)
        if start == len(self.segments) - 1:
            return
        kept = self.mask_kept(start, len(self.segments))
        chunks: dict[Field, list[Chunk]] = {field: [] for field in FIELDS}
        for found in merged_chunks(self.segments[start:], kept):
            if found is not None:
                chunks[found[0]].append(found[1])
            yield
        yield from self.replace(start, len(self.segments), Segment(int(kept.sum()), chunks), kept)

    def seal(self) -> Slices[None]:
        """Make a segment of the tail, and begin a new one."""
        if self._tail.size:
            segment = yield from seal(self._tail)
            self._tail = Memtable()
            self.attach_segment(segment)

    def all_segments(self) -> Slices[list[Segment]]:
        """Return the segments, including the tail as one."""
        if not self._tail.size:
            return self.segments
        last = yield from seal(self._tail)
        return [*self.segments, last]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the first row of segment ``start``, and the first after segment ``end - 1``."""
        first = sum(segment.size for segment in self.segments[:start])
        return first, first + sum(segment.size for segment in self.segments[start:end])

    def mask_kept(self, start: int, end: int) -> npt.NDArray[np.bool_]:
        """Return which rows a merge of the segments ``start`` to ``end - 1`` keeps."""
        low, high = self.span(start, end)
        return self.alive[low:high].copy()

    def replace(self, start: int, end: int, segment: Segment, kept: npt.NDArray[np.bool_]) -> Slices[None]:
        """Replace the segments ``start`` to ``end - 1`` by a segment of their ``kept`` rows."""
        low, high = self.span(start, end)
        self.segments[start:end] = [segment] if segment.size else []
        if not kept.all():
            size = self.size
            rows = np.concatenate((np.arange(low), low + np.flatnonzero(kept), np.arange(high, size)))
            places = np.full(size, -1, np.int32)
            places[rows] = np.arange(len(rows), dtype=np.int32)
            self.keep(rows)
            self._tail_start -= high - low - segment.size
            for matrix in self._matrices.values():
                yield from matrix.keep(rows, size)
            self._order.renumber(places)

    # -- neighbours --------------------------------------------------------

    def neighbours(self, mask: npt.NDArray[np.bool_]) -> Neighbours:
        """Return the neighbours in conversations among the rows of ``mask``, and each row's place."""
        order = self._order.rows(self.conversation, self.position)
        return neighbours(order, self.conversation, mask)

    @property
    def previous(self) -> npt.NDArray[np.int32]:
        """For each row, the living row before it in its conversation; -1 for none."""
        return self._living().previous

    @property
    def following(self) -> npt.NDArray[np.int32]:
        """For each row, the living row after it in its conversation; -1 for none."""
        return self._living().following

    def _living(self) -> Neighbours:
        if self._neighbours is None or self._neighbours[0] != self.arrangement:
            self._neighbours = self.arrangement, self.neighbours(self.alive)
        return self._neighbours[1]

    # -- terms -------------------------------------------------------------

    def postings(self, field: Field, term: str) -> Postings:
        """Return the rows that hold ``term``, in order and with dead ones, and the frequencies."""
        found: list[Postings] = []
        base = 0
        for segment in self.segments:
            part = segment.find(field, term)
            if part is not None:
                found.append((part[0] + np.int32(base), part[1]) if base else part)
            base += segment.size
        newest = self._tail.find(field, term)
        if newest is not None:
            rows, times = unpack(np.array(newest, np.uint64))
            found.append((rows + np.int32(base), times))
        if len(found) == 1:
            return found[0]
        if not found:
            return _NO_ROWS, _NO_TIMES
        return np.concatenate([rows for rows, _ in found]), np.concatenate([times for _, times in found])

    def count(self, field: Field, term: str) -> int:
        """Return how many rows hold ``term``, dead ones included, without making the postings."""
        return sum(segment.count(field, term) for segment in self.segments) + self._tail.count(field, term)

    def vocabulary(self, field: Field) -> Iterator[Sequence[str]]:
        """Yield sorted non-empty blocks of a field's terms; some repeat or have no living rows."""
        for segment in self.segments:
            for chunk in segment.chunks[field]:
                yield chunk.terms[:]
        yield from self._tail.vocabulary(field)

    def frequent(self, field: Field, mask: npt.NDArray[np.bool_], most: int) -> Slices[dict[str, int]]:
        """Return the most frequent terms in the rows of a mask, with their row counts.

        In a segment with more than a few hundred terms, a term that is rare there may be missing. The counts
        are exact.
        """
        found: dict[str, int] = {}
        base = 0
        for segment in self.segments:
            for chunk in segment.chunks[field]:
                held = np.concatenate(([0], np.cumsum(mask[base + chunk.rows])))[chunk.ends]
                counts = np.diff(held, prepend=0)
                for place in np.argsort(-counts, kind="stable")[: _FREQUENT * most].tolist():
                    if not counts[place]:
                        break
                    term = chunk.terms[place]
                    found[term] = found.get(term, 0) + int(counts[place])
                yield
            base += segment.size
        best = sorted(found, key=lambda term: (-found[term], term))[: _FREQUENT * most]
        best += self._tail.most_frequent(field, _FREQUENT * most)
        exact = {term: int(mask[self.postings(field, term)[0]].sum()) for term in dict.fromkeys(best)}
        order = sorted((term for term in exact if exact[term]), key=lambda term: (-exact[term], term))
        return {term: exact[term] for term in order[:most]}

    # -- vectors -----------------------------------------------------------

    def spaces(self) -> list[str]:
        """Return the spaces in which rows have vectors."""
        return list(self._matrices)

    def vectors(
        self, space: str
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]] | None:
        """Return vectors, scales, and which rows have one; None for an unknown space."""
        matrix = self._matrices.get(space)
        return None if matrix is None else matrix.view(self.size)

    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]:
        """Read each row's token vectors, int8 with one scale, from the store; None without vectors."""
        fetch = self.fetch_tokens
        return [None if fetch is None else fetch(space, int(self.ids[row])) for row in rows]

    def without_vectors(self, space: str, limit: int) -> list[int]:
        """Return the ids of living memories without a vector in ``space``, oldest first."""
        alive = self.alive
        matrix = self._matrices.get(space)
        missing = alive if matrix is None else alive & ~matrix.view(self.size)[2]
        return [int(number) for number in self.ids[np.flatnonzero(missing)[:limit]]]

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        terms = self._tail.resident_bytes + sum(segment.resident_bytes for segment in self.segments)
        vectors = sum(matrix.resident_bytes(self.size) for matrix in self._matrices.values())
        order = self._order.resident_bytes() + (0 if self._neighbours is None else 16 * self.size)
        return super().resident_bytes() + terms + vectors + order
