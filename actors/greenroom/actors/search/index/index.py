"""An actor's index: its records, part of each memory's commit, and a copy in RAM."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index import records
from greenroom.actors.search.index.document import FOREVER, Analysed, Document, Field, analyse
from greenroom.actors.search.index.memtable import Part, Run
from greenroom.runtime import Context, Message, RecordDamagedError, Slices, StoreDamagedError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.compaction import Compactor
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.index.loader import LoadedIndex
    from greenroom.actors.search.index.runs import ReadRun

logger = logging.getLogger(__name__)
TIMER = "index"
_PART = 2_048  # one record has about this many terms
_WRITES = 1_024  # this many records of the tail and patches are written between checks for compaction


class TidyIndex(Message[None], frozen=True):
    """An actor's message to itself: do a step of compaction, see `MemoryIndex.compact`."""


class ColumnChanges(TypedDict, total=False):
    """The columns of a memory that change without a new version; see `Document`."""

    importance: float
    uses: int
    last_used: int
    rating: float
    expires_at: int | None
    supersedes: int


class MemoryIndex:
    """The index of one actor.

    Every change is staged in the commit of the calling message, and applied to the copy in RAM. So a message
    that fails must drop this object, as a rollback of the actor does. The actor must handle `TidyIndex` with
    `compact`, and must not store records of its own under keys that begin with ``i``.

    Args:
        partition: The type of the documents' partitions.
        documents: Yields the memories that belong in the index, and None as a point to yield. If given,
            loading rebuilds an index that cannot be read or was made by other rules.
        rules: Returns the current rules by which texts become terms.
        packed: Whether to store segments compressed; uncompressed ones can be read as well.
    """

    def __init__(
        self,
        partition: Any,
        documents: Callable[[Context], Iterable[Document | None]] | None = None,
        *,
        rules: Callable[[], TextRules] = current_rules,
        packed: bool = False,
    ) -> None:
        self._rules = rules
        self._packed = packed
        self._documents = documents
        self._decode_partition = msgspec.msgpack.Decoder(partition).decode
        self._manifest: records.Manifest | None = None
        self._is_stored = False
        self._loaded: LoadedIndex | None = None
        self._compactor: Compactor | None = None
        self._is_quiet = False
        self._writes: int | None = None  # writes since the last check; None before the first count

    # -- writing -----------------------------------------------------------

    def add(self, context: Context, document: Document) -> Slices[Analysed]:
        """Add a memory with an id that was never used; return its terms and flags."""
        analysed = yield from analyse(document, self._rules())
        self._begin(context)
        parts = yield from _stage_row(context, document, analysed)
        if self._loaded is not None:
            yield from self._loaded.corpus.add_analysed(document, analysed)
            if parts:
                self._loaded.long[document.id] = parts
        self._count_write(context)
        return analysed

    def read_run(self, run: Run, kept: Sequence[bool]) -> Slices[ReadRun]:
        """Check an untrusted run and keep some rows; a `ValueError` if it is invalid."""
        yield from import_in_thread("greenroom.actors.search.index.runs")
        from greenroom.actors.search.index.runs import read  # noqa: PLC0415 - needs numpy, loaded by now

        return (yield from read(run, kept))

    def add_runs(self, context: Context, parts: Sequence[tuple[Part, ReadRun]]) -> Slices[None]:
        """Add the rows of several runs as one segment.

        The ids ascend, and are higher than all earlier ids. An index has either single rows or runs.
        """
        from greenroom.actors.search.index import arrays, merge, runs  # noqa: PLC0415 - needs numpy, loaded by now
        from greenroom.actors.search.index.segment import Segment  # noqa: PLC0415 - as above

        run = yield from runs.join([each for _, each in parts])
        rows = [part for part, _ in parts]
        manifest = self._read_manifest(context)
        number = manifest.next_segment
        counts = {field: len(chunks) for field, chunks in run.chunks.items()}
        packed = self._packed and len(parts) > 1  # a single run is merged so soon that it is not worthwhile
        for block, (lasting, changing) in enumerate(runs.blocks(rows, run, packed=packed)):
            context.put(records.block_key(number, block), lasting)
            context.put(records.changing_key(number, block), changing)
            if self._loaded is not None:
                arrays.add_block(self._loaded.corpus, lasting, changing, self._decode_partition)
            yield
        for field, chunks in run.chunks.items():
            for place, chunk in enumerate(chunks):
                record = arrays.chunk_record(chunk, packed=packed)
                context.put(records.chunk_key(number, field, place), record)
                yield
        size = len(run.flags)
        manifest.next_segment += 1
        manifest.segments.append(records.SegmentRecord(number, size, counts, records.BLOCK_ROWS))
        context.put(records.MANIFEST, manifest)
        self._is_stored = True
        if self._loaded is not None:
            self._loaded.corpus.attach_segment(Segment(size, run.chunks, number))
        if merge.first_of_many([each.rows for each in manifest.segments]) is not None:
            self._tidy_soon(context)
        if self._compactor is not None and len(manifest.segments) >= merge.CROWD:
            yield from self._compactor.merge_on(context)

    def remove(self, context: Context, id: int) -> None:
        """Remove a memory; an unknown memory is no error."""
        if self._lacks(id):
            return
        row = context.get(records.row_key(id), records.RowRecord)
        must_mark = self._compactor is not None and self._compactor.touch(id)
        if row is not None:
            context.delete(records.row_key(id))
            for part in range(row.parts):
                context.delete(records.more_key(id, part))
        if row is None or must_mark:
            self._patch(context, id, {"alive": False})
        else:
            context.delete(records.patch_key(id))
            if self._loaded is not None:
                self._loaded.patched.discard(id)
        for space in self._read_manifest(context).spaces.values():
            if space.has_tokens:
                context.delete(records.token_key(space.number, id))
        if self._loaded is not None:
            self._loaded.long.pop(id, None)
            self._loaded.corpus.remove(id)
        self._count_write(context)

    def change(self, context: Context, id: int, **changes: Unpack[ColumnChanges]) -> None:
        """Change the mutable columns of a memory; an unknown memory is no error."""
        if self._lacks(id):
            return
        values: dict[str, Any] = {**changes}
        if "expires_at" in values:
            expires_at = values.pop("expires_at")
            values["expires"] = FOREVER if expires_at is None else expires_at
        if self._compactor is not None:
            self._compactor.touch(id)
        self._patch(context, id, (context.get(records.patch_key(id), records.Patch) or {}) | values)
        if self._loaded is not None:
            self._loaded.corpus.change(id, values)
        self._count_write(context)

    def set_vectors(
        self, context: Context, space: str, vectors: Sequence[tuple[int, Vectors]]
    ) -> Slices[int]:
        """Store vectors in a space, except of unknown and removed memories; return how many."""
        corpus = yield from self.loaded(context)
        known = [(number, vector) for number, vector in vectors if corpus.row(number) is not None]
        if not known:
            return 0
        from greenroom.actors.search.index.arrays import pack  # noqa: PLC0415 - needs numpy, loaded by now

        ids, values, scales, record = pack(known)
        self._begin(context)
        manifest = self._read_manifest(context)
        found = manifest.spaces.get(space)
        if found is None:
            found = manifest.spaces[space] = records.Space(manifest.next_space, values.shape[1])
            manifest.next_space += 1
        context.put(records.vector_key(found.number, found.next_chunk), record)
        assert self._loaded is not None, "it is loaded by now"
        self._loaded.chunks.setdefault(space, {})[found.next_chunk] = len(known)
        found.next_chunk += 1
        for number, vector in known:
            if vector.tokens is not None:
                found.has_tokens = True
                tokens = records.TokenVectors(vector.token_scale, vector.tokens)
                context.put(records.token_key(found.number, number), tokens)
        context.put(records.MANIFEST, manifest)
        corpus.set_vectors(space, ids, values, scales)
        self._count_write(context)
        return len(known)

    def drop_space(self, context: Context, space: str) -> Slices[None]:
        """Remove all vectors of a space."""
        manifest = self._read_manifest(context)
        found = manifest.spaces.pop(space, None)
        if found is None:
            return
        for kind in (records.VECTORS, records.TOKENS):
            for key in context.keys(records.space_prefix(kind, found.number)):
                context.delete(key)
                yield
        context.put(records.MANIFEST, manifest)
        if self._loaded is not None:
            self._loaded.chunks.pop(space, None)
            self._loaded.corpus.drop_vectors(space)

    def compact(self, context: Context) -> Slices[None]:
        """Do one short step of compaction, if there is one, and schedule the next."""
        yield from self.loaded(context)
        assert self._compactor is not None, "a loaded index has a compactor"
        if (yield from self._compactor.step(context, is_quiet=self._is_quiet)):
            context.set_timer(TIMER, context.now, TidyIndex())
        else:
            self._is_quiet = False
        self._writes = 0

    def compact_on(self, context: Context) -> Slices[None]:
        """Do a step of compaction if the index is in RAM, for a fast writer."""
        if self._loaded is not None:
            yield from self.compact(context)

    def settle(self, context: Context) -> None:
        """Merge runs until few are left, since no more rows come for now."""
        if self._loaded is None:
            return
        from greenroom.actors.search.index import merge  # noqa: PLC0415 - needs numpy, loaded by now

        if (
            merge.first_of_many([each.rows for each in self._read_manifest(context).segments], merge.FEW)
            is not None
        ):
            self._is_quiet = True
            self._tidy_soon(context)

    def rebuild(self, context: Context, documents: Iterable[Document | None]) -> Slices[None]:
        """Rebuild the index from the memories; keep the vectors that can be read."""
        yield from import_in_thread("greenroom.actors.search.index.check")
        from greenroom.actors.search.index.check import rebuild  # noqa: PLC0415 - needs numpy

        try:
            manifest = context.get(records.MANIFEST, records.Manifest)
        except StoreDamagedError:
            manifest = None
        self.unload()
        rules = self._rules()
        self._manifest, loaded = yield from rebuild(context, manifest, documents, rules, packed=self._packed)
        self._is_stored = True
        self._take(loaded)

    def check(
        self, context: Context, documents: Iterable[Document | None], called: str = "memory"
    ) -> Slices[list[str]]:
        """Compare the index with the memories; return the differences as sentences.

        It reads the index from its records, and compares the copy in RAM as well. ``called`` names a memory.
        """
        yield from import_in_thread("greenroom.actors.search.index.check")
        from greenroom.actors.search.index.check import check  # noqa: PLC0415 - needs numpy

        kept = None if self._loaded is None else self._loaded.corpus
        return (yield from check(context, documents, kept, self._decode_partition, called))

    # -- reading -----------------------------------------------------------

    def is_current(self, context: Context) -> bool:
        """Return whether an index of the current format and rules exists; if not, rebuild it."""
        manifest = self._read_manifest(context)
        return self._is_stored and (manifest.format, manifest.analysis) == (
            records.FORMAT,
            self._rules().name,
        )

    def loaded(self, context: Context) -> Slices[Corpus]:
        """Return the index in RAM, after loading it if necessary.

        Raises:
            StoreDamagedError: A record is missing or inconsistent, and ``documents`` was not given.
        """
        found = yield from self.loaded_in_time(context, 0.0)
        assert found is not None, "there was time"
        return found

    def loaded_in_time(self, context: Context, least: float) -> Slices[Corpus | None]:
        """Return the index like `loaded`, or None if loading takes too long; then load soon.

        At least ``least`` seconds of the message's time must be left; 0 means no limit.
        """
        if self._loaded is None:
            yield from self._load(context, least)
        if self._loaded is None:
            self._tidy_soon(context)
            return None
        self._loaded.corpus.fetch_tokens = partial(self._token_vectors, context)
        return self._loaded.corpus

    def without_vectors(self, context: Context, space: str, limit: int) -> Slices[list[int]]:
        """Return the oldest ``limit`` ids of memories that have no vector in ``space``."""
        corpus = yield from self.loaded(context)
        return corpus.without_vectors(space, limit)

    def spaces(self, context: Context) -> list[str]:
        """Return the spaces in which memories have vectors."""
        return list(self._read_manifest(context).spaces)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        return 0 if self._loaded is None else self._loaded.corpus.resident_bytes()

    def unload(self) -> None:
        """Drop the copy in RAM; the next search loads it again."""
        self._loaded = self._compactor = self._manifest = self._writes = None

    # -- parts -------------------------------------------------------------

    def _read_manifest(self, context: Context) -> records.Manifest:
        """Return the manifest; a new one if there is none."""
        if self._manifest is None:
            self._manifest = context.get(records.MANIFEST, records.Manifest)
            self._is_stored = self._manifest is not None
        if self._manifest is None:
            self._manifest = records.Manifest(records.FORMAT, self._rules().name)
        return self._manifest

    def _begin(self, context: Context) -> None:
        """Stage the manifest if there is none in the store."""
        manifest = self._read_manifest(context)
        if not self._is_stored:
            context.put(records.MANIFEST, manifest)
            self._is_stored = True

    def _load(self, context: Context, least: float) -> Slices[None]:
        try:
            manifest = self._read_manifest(context)
            if self._documents is None or self.is_current(context) or not any(self._documents(context)):
                reading = self._read(context, manifest)
                for _ in reading:
                    if least and context.seconds_left() < least:
                        reading.close()
                        return
                    yield
                return
            logger.warning("the index of %s was made by other rules and is made anew", context.address)
        except StoreDamagedError as error:
            if self._documents is None:
                raise
            logger.warning("the index of %s is broken and is made anew: %s", context.address, error)
        yield from self.rebuild(context, self._documents(context))

    def _read(self, context: Context, manifest: records.Manifest) -> Slices[None]:
        yield from import_in_thread("greenroom.actors.search.index.compaction")
        from greenroom.actors.search.index.loader import load  # noqa: PLC0415 - not before the first search

        self._take((yield from load(context, manifest, self._decode_partition)))

    def _take(self, loaded: LoadedIndex) -> None:
        from greenroom.actors.search.index.compaction import Compactor  # noqa: PLC0415 - needs numpy, loaded by now

        assert self._manifest is not None, "a loaded index has a manifest"
        self._loaded = loaded
        self._compactor = Compactor(self._manifest, loaded, packed=self._packed)
        self._writes = 0

    def _lacks(self, id: int) -> bool:
        """Return whether a memory is known not to be in the index."""
        return self._loaded is not None and self._loaded.corpus.row(id) is None

    def _patch(self, context: Context, id: int, patch: records.Patch) -> None:
        context.put(records.patch_key(id), patch)
        if self._loaded is not None:
            self._loaded.patched.add(id)

    def _count_write(self, context: Context) -> None:
        """Count a write, and schedule a step of compaction now and then."""
        if self._writes is None:
            self._writes = sum(1 for prefix in (records.ROWS, records.PATCHES) for _ in context.keys(prefix))
        self._writes += 1
        full = self._loaded is not None and self._loaded.corpus.tail_is_full()
        if full or self._writes >= _WRITES:
            self._tidy_soon(context)

    def _tidy_soon(self, context: Context) -> None:
        if context.timer_due(TIMER) is None:
            context.set_timer(TIMER, context.now, TidyIndex())

    def _token_vectors(self, context: Context, space: str, id: int) -> npt.NDArray[np.int8] | None:
        from greenroom.actors.search.index.arrays import token_matrix  # noqa: PLC0415 - needs numpy, loaded by now

        known = self._read_manifest(context).spaces.get(space)
        if known is None:
            return None
        try:
            found = context.get(records.token_key(known.number, id), records.TokenVectors)
        except RecordDamagedError:  # then the memory is compared by its other vector
            return None
        return None if found is None else token_matrix(found, known.dimensions)


def _stage_row(context: Context, document: Document, analysed: Analysed) -> Slices[int]:
    """Stage a row of the tail; return how many further records it takes."""
    parts = _parts(analysed.counts)
    first = next(parts, {})
    number = 0
    for number, counts in enumerate(parts, 1):
        context.put(records.more_key(document.id, number - 1), counts)
        yield
    row = records.RowRecord(
        partition=msgspec.msgpack.encode(document.partition),
        namespace=document.namespace,
        author=document.author,
        kind=document.kind,
        conversation=document.conversation,
        position=document.position,
        number=document.number,
        created_at=document.created_at,
        updated_at=document.updated_at,
        expires_at=document.expires_at,
        importance=document.importance,
        uses=document.uses,
        last_used=document.last_used,
        rating=document.rating,
        supersedes=document.supersedes,
        flags=analysed.flags,
        counts=first,
        parts=number,
    )
    context.put(records.row_key(document.id), row)
    return number


def _parts(counts: records.Counts) -> Iterator[records.Counts]:
    """Cut terms into parts for records."""
    if sum(map(len, counts.values())) <= _PART:
        yield counts
        return
    for field, terms in counts.items():
        remaining = iter(terms.items())
        while step := dict(islice(remaining, _PART)):
            part: dict[Field, dict[str, int]] = {field: step}
            yield part
