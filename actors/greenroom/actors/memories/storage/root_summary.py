"""What there is below a root, in short: terms, days and vectors, by partition, in a shared index.

A search over more roots than it can ask reads this to choose those that it asks. It is written in the
commit of each memory, so the next search knows of it. The tag in sort keys is what stands for the root in
memory ids:

    "m" tag           by which rules it was made, and up to which update it is put together
    "b" tag part      what was put together: terms and days
    "p" tag part      likewise: vectors
    "r" tag update    one memory after that
    "v" tag update    its vector

It says at least what there is: words of what was removed go when it is put together anew, with the index's
upkeep. A root of an older program has none until a search wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.replies.memory_types import Vectors
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.index import TidyIndex
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import Entry, RootSummary
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.search.index.document import Analysed, Field
from greenroom.actors.search.index.index import TIMER
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

INDEX = "memory_summaries"
META, PARTS, ROWS, CENTROIDS, VECTORS = b"m", b"b", b"r", b"p", b"v"
LOOSE = 512
"""Memories that have rows of their own before they are put together, when the index has its upkeep."""
CLEARED = 64
"""Memories whose own rows are deleted in one step of that."""
_PART = 2_048  # terms in one row
_LOOKED_UP = 64  # terms, without a look whether the slice is over
_FIELDS: tuple[Field, ...] = ("text", "tags", "key", "author")


class SummaryRow(msgspec.Struct, frozen=True, array_like=True):
    """What there is on one partition, or a part of it.

    Attributes:
        partition: Whose it is.
        terms: What it is found by.
        days: When it was made, in days since 1970.
        newest: When the newest of it was made, in microseconds since 1970.
    """

    partition: MemoryPartition
    terms: list[str]
    days: list[int]
    newest: int


class VectorRow(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of what lies on one partition, or of the middles of groups of it.

    Attributes:
        partition: Whose it is.
        space: What they can be compared with.
        scales: What the values are multiplied with, float32.
        values: The vectors, int8, one after the other.
    """

    partition: MemoryPartition
    space: str
    scales: bytes
    values: bytes


class SummaryHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a root's other rows are; see `records.RootSummary`."""

    rules: str
    upto: int
    generation: int = 0


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key the root is."""
    return ((1, 1 + names.ROOT_TAG_BYTES),) if len(key) > names.ROOT_TAG_BYTES else ()


def note(repository: MemoryRepository, context: Context, entry: Entry, analysed: Analysed) -> None:
    """Stage what a memory says that was just written."""
    summary, rules = repository.summary(context), current_rules().name
    if summary is None and _is_first(context, entry):
        summary = records.RootSummary(rules, entry.update - 1, cleared=entry.update - 1)
        _stage(repository, context, summary)
    if summary is None:  # of an older program: made when a search wants it
        return
    if summary.rules != rules:
        if summary.rules:
            _doubt(repository, context, summary)
        return
    terms = {term for field in _FIELDS for term in analysed.counts.get(field, ())}
    row = SummaryRow(repository.partition(entry), sorted(terms), [entry.created_at // DAY], entry.created_at)
    context.put_row(INDEX, ROWS + repository.tag + entry.update.to_bytes(8), row)


def note_vectors(
    repository: MemoryRepository, context: Context, space: str, vectors: Sequence[tuple[int, Vectors]]
) -> None:
    """Stage the vectors of memories that are not put together yet; those that are get theirs by `renew`."""
    summary = repository.summary(context)
    if summary is None or summary.rules != current_rules().name:
        return
    for update, vector in vectors:
        held = repository.by_update(context, update) if update > summary.upto else None
        if held is not None:
            scale = struct.pack("<f", vector.scale)
            row = VectorRow(repository.partition(held.entry), space, scale, vector.values)
            context.put_row(INDEX, VECTORS + repository.tag + update.to_bytes(8), row)


def renew(repository: MemoryRepository, context: Context, space: str) -> Slices[None]:
    """Stage vectors of what is put together, now that all of it has some in a new space."""
    summary = repository.summary(context)
    if (
        summary is not None
        and summary.parts
        and summary.rules == current_rules().name
        and summary.space != space
    ):
        yield from _put_together(repository, context)


def forget(repository: MemoryRepository, context: Context, update: int) -> None:
    """Stage that a memory that is removed has no row of its own any more."""
    summary = repository.summary(context)
    if summary is not None and update > summary.cleared:
        _delete_own(repository, context, update)


def clear(repository: MemoryRepository, context: Context) -> None:
    """Stage that nothing is left of a root without memories."""
    summary = repository.summary(context)
    if summary is not None:
        _delete_parts(repository, context, summary)
        for update in range(summary.cleared + 1, summary.upto + 1):
            _delete_own(repository, context, update)
        context.delete(records.SUMMARY)
        context.delete_row(INDEX, META + repository.tag)
        repository.set_summary(None)


def make(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage what there is, put together, for a search that does not know it; all has to be in the index.

    Of several searches that ask before they know the first one is enough. One that asks an activation which
    has not put it together may have found a row lost.
    """
    summary = repository.summary(context)
    is_made = (
        summary is not None
        and (summary.rules, summary.upto) == (current_rules().name, repository.counter)
        and summary.generation == repository.summarized
    )
    if repository.counter and not is_made:
        yield from _put_together(repository, context)


def remake(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage what there is, put together anew, if it was known: all that depends on the index is made anew."""
    if repository.summary(context) is not None:
        yield from _put_together(repository, context)


def doubt(repository: MemoryRepository, context: Context) -> None:
    """Stage that a search is to have it made anew, since some of the rows may be lost."""
    summary = repository.summary(context)
    if summary is not None:
        _doubt(repository, context, summary)


def tidy(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage a step of putting many memories together, if there is one, and come back for the next."""
    summary = repository.summary(context)
    if summary is None or repository.indexed_to is not None:
        return
    if summary.cleared < summary.upto:
        end = min(summary.cleared + CLEARED, summary.upto)
        for update in range(summary.cleared + 1, end + 1):
            _delete_own(repository, context, update)
        _stage(repository, context, msgspec.structs.replace(summary, cleared=end))
    elif repository.counter - summary.upto >= LOOSE:
        yield from _put_together(repository, context)
    else:
        return
    context.set_timer(TIMER, context.now, TidyIndex())


def _put_together(repository: MemoryRepository, context: Context) -> Slices[None]:
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
        if context.should_yield():
            yield
    if space is not None and corpus.without_vectors(space, 1):
        space = None  # what comes later is taken in by `renew`
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
    """Yield what there is by partition, in parts, and now and then None."""
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
    """Yield the middles of groups of a partition's vectors, which stand for them all."""
    from greenroom.actors.memories.centroids import centroids  # noqa: PLC0415 - needs numpy, loaded by now

    found = corpus.vectors(space)
    if found is not None:
        values, scales = yield from centroids(found[0], found[1], mask & found[2])
        if len(scales):
            yield VectorRow(partition, space, scales.tobytes(), values.tobytes())


def _cut(terms: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (terms[start : start + size] for start in range(0, max(1, len(terms)), size))


def _stage(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    context.put(records.SUMMARY, summary)
    header = SummaryHeader(summary.rules, summary.upto, summary.generation)
    context.put_row(INDEX, META + repository.tag, header)
    repository.set_summary(summary)


def _doubt(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    """Stage that what there is does not tell of all memories any more."""
    summary = msgspec.structs.replace(summary, rules="", space=None)
    context.put(records.SUMMARY, summary)
    context.delete_row(INDEX, META + repository.tag)
    repository.set_summary(summary)


def _is_first(context: Context, entry: Entry) -> bool:
    """Return whether no memory is there that was updated before."""
    first = next(context.scan(bytes, prefix=records.UPDATES), None)
    return first is None or first[0] == records.update_key(entry.update)


def _delete_own(repository: MemoryRepository, context: Context, update: int) -> None:
    for kind in (ROWS, VECTORS):
        context.delete_row(INDEX, kind + repository.tag + update.to_bytes(8))


def _delete_parts(repository: MemoryRepository, context: Context, summary: RootSummary) -> None:
    for part in range(summary.parts):
        for kind in (PARTS, CENTROIDS):
            context.delete_row(INDEX, kind + repository.tag + part.to_bytes(4))
