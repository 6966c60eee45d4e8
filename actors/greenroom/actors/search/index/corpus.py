"""The index in memory: what ranking reads. It knows nothing of actors and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.index.arrays import VectorMatrix
from greenroom.actors.search.index.document import FIELDS, Analysed, Document, Field, ShouldYield, analyse
from greenroom.actors.search.index.memtable import Memtable
from greenroom.actors.search.index.merge import TAIL_POSTINGS, TAIL_ROWS, first_merged, merged_chunks
from greenroom.actors.search.index.neighbours import ConversationOrder, Neighbours, neighbours
from greenroom.actors.search.index.rows import Rows
from greenroom.actors.search.index.segment import Chunk, Postings, Segment, sealed, unpack
from greenroom.runtime import Slices

_POSTED = 1_024  # terms posted without a pause (0.5 ms)
_FREQUENT = 4  # times as many terms as are wanted are counted
_NO_ROWS = np.empty(0, np.int32)
_NO_TIMES = np.empty(0, np.uint16)


class Corpus(Rows):
    """Rows with their postings, neighbours and vectors.

    Attributes:
        segments: Postings of the older rows, in order; the tail has the rest.
        fetch_tokens: Brings a memory's token vectors from where they are kept, by space and id.
    """

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

    def add(
        self, document: Document, should_yield: ShouldYield, rules: TextRules | None = None
    ) -> Slices[int]:
        """Analyse a document, by the current rules unless others are given, and add it; returns its row.

        Yields when ``should_yield()``.
        """
        analysed = yield from analyse(document, should_yield, rules)
        return (yield from self.add_analysed(document, analysed, should_yield))

    def add_analysed(self, document: Document, analysed: Analysed, should_yield: ShouldYield) -> Slices[int]:
        """Add a document that was analysed before; returns its row. Yields when ``should_yield()``."""
        row = self.add_row(document, analysed)
        self._tail.size += 1
        yield from self.post_terms(row, analysed.counts, should_yield)
        return row

    def post_terms(
        self, row: int, counts: Mapping[Field, Mapping[str, int]], should_yield: ShouldYield
    ) -> Slices[None]:
        """Add terms to a row of the tail, each for the first time; yields when ``should_yield()``."""
        place = row - self._tail_start
        for field, terms in counts.items():
            remaining = iter(terms.items())
            total = int(self._columns.arrays[f"length.{field}"][row])
            while step := list(islice(remaining, _POSTED)):
                total += self._tail.post(field, place, step)
                if should_yield():
                    yield
            self._columns.arrays[f"length.{field}"][row] = min(total, 2**32 - 1)

    def attach_segment(self, segment: Segment) -> None:
        """Take the postings of the rows that were added last, while the tail is empty."""
        assert not self._tail.size, "what is in the tail is newer"
        self.segments.append(segment)
        self._tail_start += segment.size

    def set_vectors(
        self,
        space: str,
        ids: npt.NDArray[np.uint64],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> int:
        """Give the memories ``ids`` their vectors, one a row of ``values``; returns how many are there."""
        rows = self.rows_of(ids)
        known = rows >= 0
        matrix = self._matrices.get(space)
        if matrix is None:
            matrix = self._matrices[space] = VectorMatrix(values.shape[1])
        matrix.set(rows[known], values[known], scales[known])
        return int(known.sum())

    def drop_vectors(self, space: str) -> None:
        """Forget the vectors of a space."""
        self._matrices.pop(space, None)

    # -- tidying -----------------------------------------------------------

    @property
    def tail_rows(self) -> int:
        """How many of the last rows are in no segment yet."""
        return self._tail.size

    def tail_is_full(self) -> bool:
        """Return whether the tail should become a segment."""
        return self._tail.size >= TAIL_ROWS or self._tail.postings >= TAIL_POSTINGS

    def compact(self, should_yield: ShouldYield) -> Slices[None]:
        """Seal a full tail and merge what is due, for a corpus that is only in memory."""
        if not self.tail_is_full():
            return
        yield from self.seal(should_yield)
        start = first_merged([segment.weight for segment in self.segments], 1)
        if start == len(self.segments) - 1:
            return
        kept = self.kept(start, len(self.segments))
        chunks: dict[Field, list[Chunk]] = {field: [] for field in FIELDS}
        for found in merged_chunks(self.segments[start:], kept):
            if found is not None:
                chunks[found[0]].append(found[1])
            if should_yield():
                yield
        yield from self.replace(
            start, len(self.segments), Segment(int(kept.sum()), chunks), kept, should_yield
        )

    def seal(self, should_yield: ShouldYield) -> Slices[None]:
        """Make a segment of the tail, and begin a new one; yields when ``should_yield()``."""
        if self._tail.size:
            segment = yield from sealed(self._tail, should_yield)
            self._tail = Memtable()
            self.attach_segment(segment)

    def all_segments(self, should_yield: ShouldYield) -> Slices[list[Segment]]:
        """Return the segments, and what the tail would be as one; yields when ``should_yield()``."""
        if not self._tail.size:
            return self.segments
        last = yield from sealed(self._tail, should_yield)
        return [*self.segments, last]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the first row of segment ``start`` and the first after segment ``end - 1``."""
        first = sum(segment.size for segment in self.segments[:start])
        return first, first + sum(segment.size for segment in self.segments[start:end])

    def kept(self, start: int, end: int) -> npt.NDArray[np.bool_]:
        """Return which rows of the segments ``start`` to ``end - 1`` a merge of them keeps."""
        low, high = self.span(start, end)
        return self.alive[low:high].copy()

    def replace(
        self, start: int, end: int, segment: Segment, kept: npt.NDArray[np.bool_], should_yield: ShouldYield
    ) -> Slices[None]:
        """Put the segment that was merged from ``start`` to ``end - 1`` in their place.

        Args:
            start: The first segment merged.
            end: The first after it that was not.
            segment: What became of them.
            kept: Which of their rows it has.
            should_yield: Whether to yield.
        """
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
                yield from matrix.keep(rows, size, should_yield)
            self._order.renumber(places)

    # -- neighbours --------------------------------------------------------

    def neighbours(self, mask: npt.NDArray[np.bool_]) -> Neighbours:
        """Return the neighbours in conversations among the rows of ``mask`` only, and each row's place."""
        order = self._order.rows(self.conversation, self.position)
        return neighbours(order, self.conversation, mask)

    @property
    def previous(self) -> npt.NDArray[np.int32]:
        """The living row before each in its conversation, -1 for none."""
        return self._living().previous

    @property
    def following(self) -> npt.NDArray[np.int32]:
        """The living row after each in its conversation, -1 for none."""
        return self._living().following

    def _living(self) -> Neighbours:
        if self._neighbours is None or self._neighbours[0] != self.arrangement:
            self._neighbours = self.arrangement, self.neighbours(self.alive)
        return self._neighbours[1]

    # -- terms -------------------------------------------------------------

    def postings(self, field: Field, term: str) -> Postings:
        """Return the rows that hold ``term``, ascending, and how often; dead rows may be among them."""
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
        """Return how many rows hold ``term``, dead ones included: what `postings` has, without making it."""
        return sum(segment.count(field, term) for segment in self.segments) + self._tail.count(field, term)

    def vocabulary(self, field: Field) -> Iterator[Sequence[str]]:
        """Yield the terms of a field in blocks, none empty, each block in order.

        A term may come in several blocks, and may have no living row.
        """
        for segment in self.segments:
            for chunk in segment.chunks[field]:
                yield chunk.terms[:]
        yield from self._tail.vocabulary(field)

    def frequent(
        self, field: Field, mask: npt.NDArray[np.bool_], most: int, should_yield: ShouldYield
    ) -> Slices[dict[str, int]]:
        """Return the terms of a field that most rows of a mask hold, and how many of them do, most first.

        Of more different terms than a few hundred in a segment one that is rare there may be missing. What is
        counted is right.
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
                if should_yield():
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
        """Return the vectors by row, their scales, and which rows have one; None for an unknown space."""
        matrix = self._matrices.get(space)
        return None if matrix is None else matrix.view(self.size)

    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]:
        """Return the vectors of each row's tokens, or None for a row without; read from the store.

        They are int8, one a row of the matrix, all of one scale.
        """
        fetch = self.fetch_tokens
        return [None if fetch is None else fetch(space, int(self.ids[row])) for row in rows]

    def without_vectors(self, space: str, limit: int) -> list[int]:
        """Return ids of living memories that have no vector in ``space``, oldest first."""
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
