"""The summary of a root: terms, days and vectors by partition, in a shared index.

A search over more roots than it can query reads the summaries to choose the roots. A summary changes in the
same commit as each memory, so that the next search sees the change. Sort keys have the root's tag:

    "m" tag           the header: version of the text rules, and the last summarized update
    "b" tag part      summarized terms and days
    "p" tag part      summarized vectors
    "r" tag update    one later memory
    "v" tag update    its vector

A summary may contain too much: words of removed memories stay until the next rebuild, which is part of the
upkeep of the index. A root of an older program has no summary until a search needs it.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.memories.storage import directory, records
from greenroom.actors.memories.storage.records import Entry, RootSummary
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.search.embedding.vectors import Vectors
from greenroom.actors.search.index import TidyIndex
from greenroom.actors.search.index.document import Analysed, Field
from greenroom.actors.search.index.index import TIMER
from greenroom.runtime import Context, RecordDamagedError, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

    Floats = npt.NDArray[np.float32]

INDEX = directory.SUMMARIES
META, PARTS, ROWS, CENTROIDS, VECTORS = directory.SUMMARY_HEADERS, b"b", b"r", b"p", b"v"
LOOSE = 512
"""Memories with rows of their own from which the upkeep of the index rebuilds the summary."""
CLEARED = 64
"""Memories whose own rows are deleted in one step of the upkeep."""
_PART = 2_048  # terms in one row
_LOOKED_UP = 64  # terms between two yields
_GROUPS = 16  # centroids of a partition
_SAMPLED = 1_024  # vectors, evenly spread, of which groups are made
_ROUNDS = 3  # of k-means
_INT8 = 127  # its largest value
_EPSILON = 1e-9
_FIELDS: tuple[Field, ...] = ("text", "tags", "key", "author")


class SummaryRow(msgspec.Struct, frozen=True, array_like=True):
    """The terms and days of one partition, or a part of them.

    Attributes:
        partition: The partition.
        terms: The terms by which its memories are found.
        days: The days of creation, since 1970.
        newest: The newest time of creation, in microseconds since 1970.
    """

    partition: MemoryPartition
    terms: list[str]
    days: list[int]
    newest: int


class VectorRow(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of one partition, or centroids of groups of them.

    Attributes:
        partition: The partition.
        space: The embedding space.
        scales: Factors of the vectors, float32.
        values: The vectors, int8, one after the other.
    """

    partition: MemoryPartition
    space: str
    scales: bytes
    values: bytes


class SummaryHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header of a root's summary; see `records.RootSummary`."""

    rules: str
    upto: int
    generation: int = 0


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return where a sort key holds the root."""
    return ((1, 1 + names.ROOT_TAG_BYTES),) if len(key) > names.ROOT_TAG_BYTES else ()


def add(repository: MemoryRepository, context: Context, entry: Entry, analysed: Analysed) -> None:
    """Stage the summary row of a memory that was just written."""
    summary, rules = repository.summary(context), current_rules().name
    if summary is None and _is_first(context, entry):
        summary = records.RootSummary(rules, entry.update - 1, cleared=entry.update - 1)
        _stage(repository, context, summary)
    if summary is None:  # of an older program: a search builds it
        return
    if summary.rules != rules:
        if summary.rules:
            _invalidate(repository, context, summary)
        return
    terms = {term for field in _FIELDS for term in analysed.counts.get(field, ())}
    row = SummaryRow(repository.partition(entry), sorted(terms), [entry.created_at // DAY], entry.created_at)
    context.put_row(INDEX, ROWS + repository.tag + entry.update.to_bytes(8), row)


def add_vectors(
    repository: MemoryRepository, context: Context, space: str, vectors: Sequence[tuple[int, Vectors]]
) -> None:
    """Stage vectors of memories that are not summarized yet; for the others, see `renew`."""
    summary = repository.summary(context)
    if summary is None or summary.rules != current_rules().name:
        return
    for update, vector in vectors:
        held = None
        if update > summary.upto:
            try:
                held = repository.by_update(context, update)
            except RecordDamagedError as error:
                if not error.entry:
                    raise
        if held is not None:
            scale = struct.pack("<f", vector.scale)
            row = VectorRow(repository.partition(held.entry), space, scale, vector.values)
            context.put_row(INDEX, VECTORS + repository.tag + update.to_bytes(8), row)


def renew(repository: MemoryRepository, context: Context, space: str) -> Slices[None]:
    """Stage the summarized vectors again, once all memories have vectors in a new space."""
    summary = repository.summary(context)
    if (
        summary is not None
        and summary.parts
        and summary.rules == current_rules().name
        and summary.space != space
    ):
        yield from _rebuild(repository, context)


def forget(repository: MemoryRepository, context: Context, update: int) -> None:
    """Stage the removal of a removed memory's own row."""
    summary = repository.summary(context)
    if summary is not None and update > summary.cleared:
        _delete_own(repository, context, update)


def clear(repository: MemoryRepository, context: Context) -> None:
    """Stage the removal of the whole summary, for a root without memories."""
    summary = repository.summary(context)
    if summary is not None:
        _delete_parts(repository, context, summary)
        for update in range(summary.cleared + 1, summary.upto + 1):
            _delete_own(repository, context, update)
        context.delete(records.SUMMARY)
        context.delete_row(INDEX, META + repository.tag)
        repository.set_summary(None)


def build(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage the summary for a search that lacks it.

    All memories must be in the index.

    Several searches may request it at once: the first build is enough. A search whose activation has not
    built it may have found a lost row, so then it is built again.
    """
    summary = repository.summary(context)
    is_built = (
        summary is not None
        and (summary.rules, summary.upto) == (current_rules().name, repository.counter)
        and summary.generation == repository.summarized
    )
    if repository.counter and not is_built:
        yield from _rebuild(repository, context)


def rebuild(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage the summary again if there is one, as the index was rebuilt."""
    if repository.summary(context) is not None:
        yield from _rebuild(repository, context)


def invalidate(repository: MemoryRepository, context: Context) -> None:
    """Stage that a search must rebuild the summary, since rows may be lost."""
    summary = repository.summary(context)
    if summary is not None:
        _invalidate(repository, context, summary)


def tidy(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage one due step of a summary's upkeep, and set the timer."""
    summary = repository.summary(context)
    if summary is None or repository.indexed_to is not None:
        return
    if summary.cleared < summary.upto:
        end = min(summary.cleared + CLEARED, summary.upto)
        for update in range(summary.cleared + 1, end + 1):
            _delete_own(repository, context, update)
        _stage(repository, context, msgspec.structs.replace(summary, cleared=end))
    elif repository.counter - summary.upto >= LOOSE:
        yield from _rebuild(repository, context)
    else:
        return
    context.set_timer(TIMER, context.now, TidyIndex())


def _rebuild(repository: MemoryRepository, context: Context) -> Slices[None]:
    corpus = yield from repository.index.loaded(context)
    old = repository.summary(context)
    parts = 0
    if old is not None:
        _delete_parts(repository, context, old)
    spaces = corpus.spaces()
    space = spaces[-1] if spaces else None
    for row in _rows(corpus, space):
        if row is not None:
            kind = PARTS if isinstance(row, SummaryRow) else CENTROIDS
            context.put_row(INDEX, kind + repository.tag + parts.to_bytes(4), row)
            parts += 1
        yield
    if space is not None and corpus.without_vectors(space, 1):
        space = None  # `renew` adds the missing ones later
    summary = records.RootSummary(
        current_rules().name,
        repository.counter,
        parts,
        cleared=repository.counter if old is None else old.cleared,
        space=space,
        generation=1 if old is None else old.generation + 1,
    )
    _stage(repository, context, summary)
    repository.summarized = summary.generation


def _rows(corpus: Corpus, space: str | None) -> Iterator[SummaryRow | VectorRow | None]:
    """Yield the rows of the summary by partition, and now and then None."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    alive = corpus.alive
    for number in np.unique(corpus.partition[alive]).tolist():
        mask = alive & (corpus.partition == number)
        terms: set[str] = set()
        for field in _FIELDS:
            for block in corpus.vocabulary(field):
                for some in _cut(block, _LOOKED_UP):
                    terms.update(term for term in some if mask[corpus.postings(field, term)[0]].any())
                    yield None
        created = corpus.created[mask]
        days = np.unique(created // DAY).tolist()
        partition, newest = corpus.names["partition"].names[number], int(created.max())
        for some in _cut(sorted(terms), _PART):
            yield SummaryRow(partition, list(some), days, newest)
            days = []
        if space is not None:
            yield from _centroids(corpus, space, mask, partition)


def _centroids(
    corpus: Corpus, space: str, mask: npt.NDArray[np.bool_], partition: MemoryPartition
) -> Iterator[VectorRow | None]:
    """Yield a row of centroids, which stand for all of a partition's vectors."""
    found = corpus.vectors(space)
    if found is not None:
        values, scales = yield from _centroids_of(found[0], found[1], mask & found[2])
        if len(scales):
            yield VectorRow(partition, space, scales.tobytes(), values.tobytes())


def _centroids_of(
    values: npt.NDArray[np.int8], scales: Floats, mask: npt.NDArray[np.bool_]
) -> Generator[None, None, tuple[npt.NDArray[np.int8], Floats]]:
    """Return the vectors in ``mask``, or the centroids of many; yields at times."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    rows = np.flatnonzero(mask)
    if len(rows) <= _GROUPS:
        return values[rows], scales[rows]
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED)).astype(np.intp)]
    vectors = values[some].astype(np.float32) * scales[some, None]
    found = vectors[np.linspace(0, len(some) - 1, _GROUPS).astype(np.intp)]
    for _ in range(_ROUNDS):
        closeness = np.empty((_GROUPS, len(vectors)), np.float32)
        for group in range(_GROUPS):
            closeness[group] = np.vecdot(vectors, found[group])
            yield
        nearest = closeness.argmax(axis=0)
        for group in np.unique(nearest).tolist():
            middle = vectors[nearest == group].sum(axis=0)
            found[group] = middle / (np.linalg.norm(middle) + _EPSILON)
    largest = np.abs(found).max(axis=1) + np.float32(_EPSILON)
    small = np.round(found / largest[:, None] * _INT8).astype(np.int8)
    return small, (largest / _INT8).astype(np.float32)


def _cut(terms: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (terms[start : start + size] for start in range(0, max(1, len(terms)), size))


def _stage(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    context.put(records.SUMMARY, summary)
    header = SummaryHeader(summary.rules, summary.upto, summary.generation)
    context.put_row(INDEX, META + repository.tag, header)
    repository.set_summary(summary)


def _invalidate(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    """Stage that the summary does not cover all memories any more."""
    summary = msgspec.structs.replace(summary, rules="", space=None)
    context.put(records.SUMMARY, summary)
    context.delete_row(INDEX, META + repository.tag)
    repository.set_summary(summary)


def _is_first(context: Context, entry: Entry) -> bool:
    """Return whether no memory has an older update."""
    first = next(context.keys(records.UPDATES), None)
    return first is None or first == records.update_key(entry.update)


def _delete_own(repository: MemoryRepository, context: Context, update: int) -> None:
    for kind in (ROWS, VECTORS):
        context.delete_row(INDEX, kind + repository.tag + update.to_bytes(8))


def _delete_parts(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    for part in range(summary.parts):
        for kind in (PARTS, CENTROIDS):
            context.delete_row(INDEX, kind + repository.tag + part.to_bytes(4))
