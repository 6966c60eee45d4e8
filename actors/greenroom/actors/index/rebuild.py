"""The index made anew of the memories that there are."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from greenroom.actors.index import arrays, records
from greenroom.actors.index.corpus import Corpus
from greenroom.actors.index.document import Document
from greenroom.actors.index.loader import LoadedIndex, take_vectors
from greenroom.runtime import Context, Slices, StoreDamagedError

_REPLACED = (records.ROWS, records.MORE, records.PATCHES, records.SEGMENTS)


def rebuild(
    context: Context, old: records.Manifest | None, documents: Iterable[Document | None], analysis: str
) -> Slices[tuple[records.Manifest, LoadedIndex]]:
    """Stage an index of ``documents`` in the place of what is there; yields when the slice is over.

    Args:
        context: Where its records are.
        old: What the index consisted of; its vectors are kept.
        documents: The memories; None where they pause.
        analysis: How texts become terms.
    """
    for prefix in _REPLACED:
        for key, _ in context.scan(msgspec.Raw, prefix=prefix):
            context.delete(key)
            if context.should_yield():
                yield
    corpus = Corpus()
    for document in documents:
        if document is not None:
            yield from corpus.add(document, context.should_yield)
            yield from corpus.compact(context.should_yield)
        if document is None or context.should_yield():
            yield
    yield from corpus.seal(context.should_yield)
    manifest = records.Manifest(records.FORMAT, analysis)
    if old is not None:
        manifest.spaces, manifest.next_space = old.spaces, old.next_space
    for number in range(len(corpus.segments)):
        yield from _stage_segment(context, corpus, manifest, number)
    context.put(records.MANIFEST, manifest)
    loaded = LoadedIndex(corpus)
    yield from _keep_vectors(context, manifest, loaded)
    return manifest, loaded


def _keep_vectors(context: Context, manifest: records.Manifest, loaded: LoadedIndex) -> Slices[None]:
    """Take the vectors that fit the memories, and delete what does not."""
    spaces = {space.number: (name, space) for name, space in manifest.spaces.items()}
    for key, stored in context.scan(msgspec.Raw, prefix=records.VECTORS):
        name, space = spaces.get(records.space_of(key), (None, None))
        if name is None or space is None or not _took(key, stored, name, space, loaded):
            context.delete(key)
        if context.should_yield():
            yield
    for key, stored in context.scan(msgspec.Raw, prefix=records.TOKENS):
        _, space = spaces.get(records.space_of(key), (None, None))
        if space is None or not _fits(stored, loaded.corpus, records.token_id(key), space):
            context.delete(key)
        if context.should_yield():
            yield


def _took(key: bytes, stored: msgspec.Raw, name: str, space: records.Space, loaded: LoadedIndex) -> bool:
    try:
        take_vectors(key, msgspec.msgpack.decode(stored, type=records.VectorChunk), name, space, loaded)
    except (StoreDamagedError, msgspec.DecodeError):
        return False
    return True


def _fits(stored: msgspec.Raw, corpus: Corpus, id: int, space: records.Space) -> bool:
    try:
        tokens = msgspec.msgpack.decode(stored, type=records.TokenVectors)
    except msgspec.DecodeError:
        return False
    return corpus.row(id) is not None and len(tokens.values) % space.dimensions == 0


def _stage_segment(context: Context, corpus: Corpus, manifest: records.Manifest, place: int) -> Slices[None]:
    segment = corpus.segments[place]
    number = segment.number = manifest.next_segment
    manifest.next_segment += 1
    low, high = corpus.span(place, place + 1)
    for block, first in enumerate(range(low, high, records.BLOCK_ROWS)):
        rows = np.arange(first, min(first + records.BLOCK_ROWS, high))
        context.put(records.block_key(number, block), arrays.block_record(corpus, rows))
        context.put(records.changing_key(number, block), arrays.changing_record(corpus, rows))
        if context.should_yield():
            yield
    for field, chunks in segment.chunks.items():
        for count, chunk in enumerate(chunks):
            context.put(records.chunk_key(number, field, count), arrays.chunk_record(chunk))
            if context.should_yield():
                yield
    counts = {field: len(chunks) for field, chunks in segment.chunks.items()}
    manifest.segments.append(records.SegmentRecord(number, segment.size, counts, records.BLOCK_ROWS))
