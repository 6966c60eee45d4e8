"""Compaction of the index, one short step per message: merge segments, fold patches, gather vectors.

A new segment is written over many commits. It takes effect with the last one, which adds it to the manifest.
Changes in the meantime are in patches, which stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index import arrays, records
from greenroom.actors.search.index.document import FIELDS, Field
from greenroom.actors.search.index.loader import LoadedIndex
from greenroom.actors.search.index.merge import FANOUT, FEW, MANY, first_of_many, first_of_tier, merged_chunks
from greenroom.actors.search.index.segment import Chunk, Segment
from greenroom.runtime import Context, Slices

STEP_BYTES = 262_144
"""One step writes about this many bytes of records."""
CLEARED = 64
"""One step deletes at most this many records of doomed segments."""
PATCHES = 256
"""Patches are folded if there are this many, and at least one for each `ROWS_A_PATCH` rows."""
ROWS_A_PATCH = 32
DEAD_ROWS = 256
"""A segment is rewritten if more than this many of its rows, and more than a quarter of them, are dead."""
VECTOR_ROWS = 240
"""A chunk has about this many vectors, 64 kB; one of at least half as many stays, as an import brings it."""
SMALL_CHUNKS = 32
"""Chunks of vectors are gathered if at least this many are less than half full."""


@dataclass(slots=True)
class _NewSegment:
    """A segment that is being written.

    Attributes:
        start: The first segment that it replaces.
        end: The first segment after the replaced ones.
        kept: Which rows of the replaced segments it keeps.
        steps: Yields the chunks of its postings. After the last chunk this attribute is None.
        touched: The ids of memories that changed since the start.
    """

    number: int
    start: int
    end: int
    kept: npt.NDArray[np.bool_]
    steps: Iterator[tuple[Field, Chunk] | None] | None
    chunks: dict[Field, list[Chunk]] = field(default_factory=lambda: {name: [] for name in FIELDS})
    block: int = 0
    touched: set[int] = field(default_factory=set)


class Compactor:
    """Compact one index, step by step."""

    def __init__(self, manifest: records.Manifest, loaded: LoadedIndex, *, packed: bool) -> None:
        self._manifest = manifest
        self._packed = packed
        self._loaded = loaded
        self._corpus = loaded.corpus
        self._building: _NewSegment | None = None
        self._folding = False
        if manifest.building is not None:  # the process ended during a merge
            manifest.doomed.append(manifest.building)
            manifest.building = None

    def touch(self, id: int) -> bool:
        """Record that a memory changed; return whether its patch must stay."""
        if self._building is None:
            return False
        self._building.touched.add(id)
        return True

    def step(self, context: Context, *, is_quiet: bool = False) -> Slices[bool]:
        """Do one step, if there is one; if ``is_quiet``, merge even a few runs."""
        many = FEW if is_quiet else MANY
        if self._building is not None:
            yield from self._build(context, self._building)
        elif self._manifest.doomed:
            yield from self._clear(context)
        elif self._corpus.tail_is_full():
            yield from self._corpus.seal()
            segments = self._corpus.segments
            fresh = sum(segment.number is None for segment in segments)
            first = first_of_tier([one.weight for one in segments], fresh, FANOUT)
            self._begin(context, first, len(segments))
        elif (start := first_of_many([one.rows for one in self._manifest.segments], many)) is not None:
            self._begin(context, start, len(self._manifest.segments))
        elif (place := self._mostly_dead()) is not None:
            self._begin(context, place, place + 1)
        elif (patches := self._many_patches()) is not None:
            yield from self._fold(context, *patches)
        elif (space := self._crowded()) is not None:
            yield from self._gather(context, space)
        else:
            return False
        return True

    def merge_on(self, context: Context) -> Slices[None]:
        """Continue a merge in progress, so that a fast writer takes part in the work."""
        if self._building is not None:
            yield from self._build(context, self._building)

    # -- segments ----------------------------------------------------------

    def _begin(self, context: Context, start: int, end: int) -> None:
        manifest = self._manifest
        kept = self._corpus.mask_kept(start, end)
        number = manifest.building = manifest.next_segment
        manifest.next_segment += 1
        steps = merged_chunks(self._corpus.segments[start:end], kept)
        self._building = _NewSegment(number, start, end, kept, steps)
        context.put(records.MANIFEST, manifest)

    def _build(self, context: Context, building: _NewSegment) -> Slices[None]:
        if building.steps is not None:
            staged = 0
            for found in building.steps:
                if found is not None:
                    staged += self._put_chunk(context, building, *found)
                    if staged > STEP_BYTES:
                        return
                yield
            building.steps = None
        low, _ = self._corpus.span(building.start, building.end)
        rows = low + np.flatnonzero(building.kept)
        block = rows[building.block * records.BLOCK_ROWS :][: records.BLOCK_ROWS]
        if len(block):
            lasting = arrays.block_record(self._corpus, block, packed=self._packed)
            context.put(records.block_key(building.number, building.block), lasting)
            changing = arrays.changing_record(self._corpus, block, packed=self._packed)
            context.put(records.changing_key(building.number, building.block), changing)
            # Later changes are not in this record.
            building.touched -= {int(number) for number in self._corpus.ids[block]}
            building.block += 1
        else:
            yield from self._finish(context, building)

    def _put_chunk(self, context: Context, building: _NewSegment, name: Field, chunk: Chunk) -> int:
        written = building.chunks[name]
        record = arrays.chunk_record(chunk, packed=self._packed)
        context.put(records.chunk_key(building.number, name, len(written)), record)
        written.append(chunk.join())
        terms = sum(map(len, record.terms))
        return len(record.ends) + len(record.rows) + len(record.times) + terms + len(record.packed)

    def _finish(self, context: Context, building: _NewSegment) -> Slices[None]:
        """Replace the merged segments by the new one, in RAM and on disk."""
        corpus, manifest, loaded = self._corpus, self._manifest, self._loaded
        start, end = building.start, building.end
        low, high = corpus.span(start, end)
        replaced = corpus.segments[start:end]
        in_tail = sum(segment.size for segment in replaced if segment.number is None)
        for number in map(int, corpus.ids[high - in_tail : high]):
            context.delete(records.row_key(number))
            for part in range(loaded.long.pop(number, 0)):
                context.delete(records.more_key(number, part))
            yield
        untouched = loaded.patched - building.touched
        ids = np.fromiter(untouched, np.uint64, len(untouched))
        rows = corpus.rows_of(ids, dead=True)
        yield from self._drop_patches(context, ids[(rows >= low) & (rows < high)])
        manifest.doomed += [segment.number for segment in replaced if segment.number is not None]
        size = int(building.kept.sum())
        if size:
            counts = {name: len(chunks) for name, chunks in building.chunks.items()}
            manifest.segments[start:end] = [
                records.SegmentRecord(building.number, size, counts, records.BLOCK_ROWS)
            ]
        else:
            del manifest.segments[start:end]
        manifest.building = None
        context.put(records.MANIFEST, manifest)
        segment = Segment(size, building.chunks, building.number)
        yield from corpus.replace(start, end, segment, building.kept)
        self._building = None

    def _clear(self, context: Context) -> Slices[None]:
        """Delete some records of doomed segments."""
        context.use_reserve()
        doomed = self._manifest.doomed
        left = CLEARED
        while doomed:
            found = context.scan(msgspec.Raw, prefix=records.segment_prefix(doomed[0]))
            for key, _ in islice(found, left):
                context.delete(key)
                left -= 1
                yield
            if not left:
                break
            del doomed[0]
        context.put(records.MANIFEST, self._manifest)

    def _mostly_dead(self) -> int | None:
        low = 0
        for place, segment in enumerate(self._corpus.segments):
            high = low + segment.size
            dead = segment.size - int(np.count_nonzero(self._corpus.alive[low:high]))
            if dead > max(DEAD_ROWS, segment.size // 4):
                return place
            low = high
        return None

    # -- patches -----------------------------------------------------------

    def _many_patches(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]] | None:
        """Return ids and rows to fold, if there are enough; patches in the tail stay."""
        patched = self._loaded.patched
        enough = 1 if self._folding else max(PATCHES, self._corpus.size // ROWS_A_PATCH)
        if len(patched) < enough:
            self._folding = False
            return None
        ids = np.fromiter(patched, np.uint64, len(patched))
        rows = self._corpus.rows_of(ids, dead=True)
        _, end = self._corpus.span(0, len(self._manifest.segments))
        foldable = rows < end
        self._folding = int(foldable.sum()) >= enough
        return (ids[foldable], rows[foldable]) if self._folding else None

    def _fold(
        self, context: Context, ids: npt.NDArray[np.uint64], rows: npt.NDArray[np.intp]
    ) -> Slices[None]:
        """Rewrite one block of columns that has patches, and delete these patches."""
        unknown = ids[rows < 0][: records.BLOCK_ROWS]
        if len(unknown):
            yield from self._drop_patches(context, unknown)
            return
        row = int(rows[0])
        low = 0
        for segment in self._manifest.segments:
            if row < low + segment.rows:
                break
            low += segment.rows
        block = (row - low) // segment.block_rows
        first = low + block * segment.block_rows
        last = min(first + segment.block_rows, low + segment.rows)
        changing = arrays.changing_record(self._corpus, np.arange(first, last), packed=self._packed)
        context.put(records.changing_key(segment.number, block), changing)
        yield from self._drop_patches(context, ids[(rows >= first) & (rows < last)])

    def _drop_patches(self, context: Context, ids: npt.NDArray[np.uint64]) -> Slices[None]:
        for number in map(int, ids):
            context.delete(records.patch_key(number))
            self._loaded.patched.discard(number)
            yield

    # -- vectors -----------------------------------------------------------

    def _crowded(self) -> str | None:
        return next(
            (space for space, chunks in self._loaded.chunks.items() if len(_small(chunks)) >= SMALL_CHUNKS),
            None,
        )

    def _gather(self, context: Context, name: str) -> Slices[None]:
        """Gather small chunks of vectors into one."""
        space, chunks = self._manifest.spaces[name], self._loaded.chunks[name]
        found = self._corpus.vectors(name)
        assert found is not None, "a space with chunks has vectors"
        values, scales, has = found
        gathered: list[npt.NDArray[np.uint64]] = []
        rows = 0
        for number in _small(chunks):
            key = records.vector_key(space.number, number)
            chunk = context.get(key, records.VectorChunk)
            assert chunk is not None, "only this method deletes chunks"
            gathered.append(arrays.from_bytes(chunk.ids, np.uint64))
            rows += chunks.pop(number)
            context.delete(key)
            if rows >= VECTOR_ROWS:
                break
            yield
        ids = np.unique(np.concatenate(gathered))
        places = self._corpus.rows_of(ids)
        known = places >= 0
        ids, places = ids[known], places[known]
        ids, places = ids[has[places]], places[has[places]]
        if len(ids):
            record = arrays.vector_chunk(ids, values[places], scales[places])
            context.put(records.vector_key(space.number, space.next_chunk), record)
            chunks[space.next_chunk] = len(ids)
            space.next_chunk += 1
        context.put(records.MANIFEST, self._manifest)


def _small(chunks: dict[int, int]) -> list[int]:
    return [number for number, rows in chunks.items() if rows < VECTOR_ROWS // 2]
