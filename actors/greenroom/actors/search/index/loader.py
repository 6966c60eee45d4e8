"""Load the index from its records into RAM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from greenroom.actors.search.index import arrays, records
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.document import FIELDS, Analysed, Document, Field
from greenroom.actors.search.index.segment import Chunk, Segment
from greenroom.runtime import Context, Slices, StoreDamagedError

T = TypeVar("T")


@dataclass(slots=True)
class LoadedIndex:
    """The index in RAM, with facts about its records.

    Attributes:
        long: By id of a row in the tail, the number of further records with its terms, if any.
        chunks: By space and chunk number, how many of the chunk's vectors are in use.
    """

    corpus: Corpus
    patched: set[int] = field(default_factory=set)
    long: dict[int, int] = field(default_factory=dict)
    chunks: dict[str, dict[int, int]] = field(default_factory=dict)


def load(
    context: Context, manifest: records.Manifest, partition: Callable[[bytes], Any]
) -> Slices[LoadedIndex]:
    """Load the stored index."""
    corpus = Corpus()
    found = LoadedIndex(corpus)
    for segment in manifest.segments:
        yield from _load_segment(context, corpus, segment, partition)
    for key, row in context.scan(records.RowRecord, prefix=records.ROWS):
        number = records.id_of(key)
        if row.parts:
            found.long[number] = row.parts
        yield from _load_row(context, corpus, number, row, partition)
        yield
    for key, patch in context.scan(records.Patch, prefix=records.PATCHES):
        number = records.id_of(key)
        found.patched.add(number)
        with _whole(key):
            corpus.change(number, patch)
        yield
    for name, space in manifest.spaces.items():
        prefix = records.space_prefix(records.VECTORS, space.number)
        for key, chunk in context.scan(records.VectorChunk, prefix=prefix):
            take_vectors(key, chunk, name, space, found)
            yield
    return found


def take_vectors(
    key: bytes, chunk: records.VectorChunk, name: str, space: records.Space, found: LoadedIndex
) -> None:
    """Add the vectors of one chunk."""
    with _whole(key):
        used = found.corpus.set_vectors(name, *arrays.vectors(chunk, space.dimensions))
    found.chunks.setdefault(name, {})[records.chunk_of(key)] = used


def _load_segment(
    context: Context, corpus: Corpus, segment: records.SegmentRecord, partition: Callable[[bytes], Any]
) -> Slices[None]:
    before = corpus.size
    for block in range(segment.blocks):
        key = records.block_key(segment.number, block)
        lasting = _there(key, context.get(key, records.BlockRecord))
        key = records.changing_key(segment.number, block)
        changing = _there(key, context.get(key, dict[str, bytes]))
        with _whole(key):
            arrays.add_block(corpus, lasting, changing, partition)
        yield
    if corpus.size - before != segment.rows:
        raise _damaged(records.segment_prefix(segment.number))
    chunks: dict[Field, list[Chunk]] = {}
    for name in FIELDS:
        chunks[name] = []
        for number in range(segment.chunks.get(name, 0)):
            key = records.chunk_key(segment.number, name, number)
            stored = _there(key, context.get(key, records.ChunkRecord))
            with _whole(key):
                chunks[name].append(arrays.chunk(stored))
            yield
    corpus.attach_segment(Segment(segment.rows, chunks, segment.number))


def _load_row(
    context: Context, corpus: Corpus, id: int, row: records.RowRecord, partition: Callable[[bytes], Any]
) -> Slices[None]:
    document = Document(
        id=id,
        partition=partition(row.partition),
        namespace=row.namespace,
        text="",
        author=row.author,
        kind=row.kind,
        conversation=row.conversation,
        position=row.position,
        number=row.number,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        importance=row.importance,
        uses=row.uses,
        last_used=row.last_used,
        rating=row.rating,
        supersedes=row.supersedes,
    )
    place = yield from corpus.add_analysed(document, Analysed(row.counts, row.flags))
    for part in range(row.parts):
        key = records.more_key(id, part)
        counts = _there(key, context.get(key, records.Counts))  # type: ignore[type-abstract]
        yield from corpus.post_terms(place, counts)


class _whole:  # noqa: N801 - used like a function, in `with`
    """Report errors within this block as a damaged record."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, (ValueError, KeyError, IndexError)):
            raise _damaged(self._key) from error


def _there(key: bytes, record: T | None) -> T:
    if record is None:
        raise _damaged(key)
    return record


def _damaged(key: bytes) -> StoreDamagedError:
    return StoreDamagedError(
        f"the index's record {key!r} is missing or does not fit the others; `greenroom verify` rebuilds it"
    )
