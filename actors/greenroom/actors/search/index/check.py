"""Check the index against the memories, for `greenroom verify`, and rebuild it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.words import TextRules, rules_named
from greenroom.actors.core.replies.damage import filter_damage
from greenroom.actors.search.index import arrays, records
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.document import (
    FIELDS,
    Document,
    Field,
    analyse,
)
from greenroom.actors.search.index.loader import LoadedIndex, load, take_vectors
from greenroom.actors.search.index.memtable import MOST_TIMES
from greenroom.actors.search.index.rows import NAMED, TYPES, plain_columns
from greenroom.runtime import Context, RecordDamagedError, Slices, StoreDamagedError

Prints = Mapping[Field, npt.NDArray[np.uint64]]


MOST = 100
"""At most this many sentences about memories are returned."""
_WRAP = 2**64 - 1
_REPLACED = (records.ROWS, records.MORE, records.PATCHES, records.SEGMENTS)


class _Problems:
    """Sentences about differences; only the first are kept. ``called`` names a memory in them."""

    def __init__(self, called: str) -> None:
        self.called = called
        self.sentences: list[str] = []
        self._count = 0

    def add(self, sentence: str) -> None:
        self._count += 1
        if self._count <= MOST:
            self.sentences.append(sentence)

    def all(self) -> list[str]:
        more = self._count - MOST
        return [*self.sentences, f"and {more} more"] if more > 0 else self.sentences


def check(
    context: Context,
    documents: Iterable[Document | None],
    kept: Corpus | None,
    partition: Callable[[bytes], Any],
    called: str,
) -> Slices[list[str]]:
    """Compare an index with ``documents``; return a sentence for each difference.

    A None among the documents is a point to yield. ``kept`` is the index in RAM, if it is loaded; ``called``
    names a memory in sentences.
    """
    try:
        manifest = context.get(records.MANIFEST, records.Manifest)
        if manifest is None:
            return ["there is no index"] if any(documents) else []
        rules = rules_named(manifest.analysis)
        if manifest.format != records.FORMAT or rules is None:
            return [f"the index is of another version ({manifest.format}, {manifest.analysis!r})"]
        loaded = yield from load(context, manifest, partition)
    except StoreDamagedError as error:
        return [str(error)]
    corpus = loaded.corpus
    prints = yield from _fingerprints(corpus)
    found = _Problems(called)
    yield from _compare_documents(corpus, prints, documents, rules, found)
    yield from _check_tokens(context, corpus, manifest, found)
    if kept is not None:
        yield from _compare_memory(corpus, prints, kept, found)
    return found.all()


def _compare_documents(
    corpus: Corpus,
    prints: Prints,
    documents: Iterable[Document | None],
    rules: TextRules,
    found: _Problems,
) -> Slices[None]:
    expected = np.zeros(corpus.size, np.bool_)
    for document in documents:
        if document is None:
            yield
            continue
        row = corpus.row(document.id)
        if row is None:
            found.add(f"{found.called} {document.id} is not in the index")
            continue
        expected[row] = True
        analysed = yield from analyse(document, rules)
        wrong = _wrong_columns(corpus, row, document, analysed.flags)
        for field in FIELDS:
            counts = analysed.counts.get(field, {})
            own = yield from _fingerprint(field, counts)
            length = min(sum(min(count, MOST_TIMES) for count in counts.values()), 2**32 - 1)
            if own != int(prints[field][row]) or length != int(corpus.lengths(field)[row]):
                wrong.append(f"the terms of its {field}")
        if wrong:
            found.add(f"{found.called} {document.id} is in the index with other values: {', '.join(wrong)}")
        yield
    for row in map(int, np.flatnonzero(corpus.alive & ~expected)):
        found.add(f"the index has {found.called} {int(corpus.ids[row])}, which is not there")


def _check_tokens(
    context: Context, corpus: Corpus, manifest: records.Manifest, found: _Problems
) -> Slices[None]:
    for name, space in manifest.spaces.items():
        prefix = records.space_prefix(records.TOKENS, space.number)
        for key, stored in context.scan(records.TokenVectors, prefix=prefix):
            number = records.token_id(key)
            if corpus.row(number) is None:
                found.add(f"the index has vectors of {found.called} {number} in {name}, which is not there")
            elif len(stored.values) % space.dimensions:
                found.add(f"the vectors of {found.called} {number} in {name} have another length")
            yield


def _compare_memory(corpus: Corpus, prints: Prints, kept: Corpus, found: _Problems) -> Slices[None]:
    """Compare the stored index with the one in RAM, which may order rows differently."""
    own = yield from _fingerprints(kept)
    living = np.flatnonzero(corpus.alive)
    rows = kept.rows_of(corpus.ids[living])
    same = (rows >= 0) & (np.count_nonzero(kept.alive) == len(living))
    living, rows, strange = living[same], rows[same], living[~same]
    wrong = np.zeros(len(rows), np.bool_)
    for field in FIELDS:
        wrong |= own[field][rows] != prints[field][living]
    for name in TYPES:
        if name not in NAMED:
            wrong |= kept.column(name)[rows] != corpus.column(name)[living]
    for space in {*kept.spaces(), *corpus.spaces()}:
        mine, theirs = kept.vectors(space), corpus.vectors(space)
        if mine is not None and theirs is not None:
            pairs: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = zip(mine, theirs, strict=True)
            for have, want in pairs:
                differs = have[rows] != want[living]
                wrong |= differs.any(axis=tuple(range(1, differs.ndim)))  # there may be no row at all
        elif mine is not None:
            wrong |= mine[2][rows]
        elif theirs is not None:
            wrong |= theirs[2][living]
    for row in map(int, (*strange, *living[wrong])):
        found.add(f"{found.called} {int(corpus.ids[row])} is in memory with other values than on disk")


def _wrong_columns(corpus: Corpus, row: int, document: Document, flags: int) -> list[str]:
    expected = plain_columns(document) | {"flags": flags}
    wrong = [name for name, value in expected.items() if corpus.column(name)[row] != TYPES[name](value)]
    for name in NAMED:
        number = int(corpus.column(name)[row])
        if (None if number < 0 else corpus.names[name].names[number]) != getattr(document, name):
            wrong.append(name)
    return wrong


def _fingerprints(corpus: Corpus) -> Slices[Prints]:
    """Return a fingerprint of each row's terms, by field."""
    found = {field: np.zeros(corpus.size, np.uint64) for field in FIELDS}
    low = 0
    segments = yield from corpus.all_segments()
    for segment in segments:
        for field, chunks in segment.chunks.items():
            for chunk in chunks:
                terms = map(partial(_of_term, field), chunk.terms)
                numbers = np.fromiter(terms, np.uint64, len(chunk.terms))
                postings = np.repeat(numbers, chunk.counts())
                postings *= chunk.times.astype(np.uint64) * np.uint64(2) + np.uint64(1)
                np.add.at(found[field], chunk.rows + low, postings)
                yield
        low += segment.size
    return found


def _fingerprint(field: Field, counts: Mapping[str, int]) -> Slices[int]:
    total = 0
    for place, (term, count) in enumerate(counts.items()):
        total += _of_term(field, term) * (2 * min(count, MOST_TIMES) + 1)
        if not place % 1_024:
            yield
    return total & _WRAP


def _of_term(field: Field, term: str) -> int:
    return hash((field, term)) & _WRAP


def rebuild(
    context: Context,
    old: records.Manifest | None,
    documents: Iterable[Document | None],
    rules: TextRules,
    *,
    packed: bool,
) -> Slices[tuple[records.Manifest, LoadedIndex]]:
    """Stage a new index of ``documents`` in place of the old one; keep the vectors."""
    for prefix in _REPLACED:
        for key in context.keys(prefix):
            context.delete(key)
            yield
    corpus = Corpus()
    for document in documents:
        if document is not None:
            yield from corpus.add(document, rules)
            yield from corpus.compact()
        yield
    yield from corpus.seal()
    manifest = records.Manifest(records.FORMAT, rules.name)
    if old is not None:
        manifest.spaces, manifest.next_space = old.spaces, old.next_space
    for number in range(len(corpus.segments)):
        yield from _stage_segment(context, corpus, manifest, number, packed=packed)
    context.put(records.MANIFEST, manifest)
    loaded = LoadedIndex(corpus)
    yield from _keep_vectors(context, manifest, loaded)
    return manifest, loaded


def _keep_vectors(context: Context, manifest: records.Manifest, loaded: LoadedIndex) -> Slices[None]:
    """Keep the vectors that fit the memories, and delete the others."""
    spaces = {space.number: (name, space) for name, space in manifest.spaces.items()}

    def drop(error: RecordDamagedError) -> None:
        context.delete(context.own_key(error))  # these keys have no names

    met = filter_damage(context, records.VECTORS, drop)
    for key, stored in context.scan(msgspec.Raw, prefix=records.VECTORS, on_damage=met):
        name, space = spaces.get(records.space_of(key), (None, None))
        if name is None or space is None or not _take(key, stored, name, space, loaded):
            context.delete(key)
        yield
    met = filter_damage(context, records.TOKENS, drop)
    for key, stored in context.scan(msgspec.Raw, prefix=records.TOKENS, on_damage=met):
        _, space = spaces.get(records.space_of(key), (None, None))
        if space is None or not _fits(stored, loaded.corpus, records.token_id(key), space):
            context.delete(key)
        yield


def _take(key: bytes, stored: msgspec.Raw, name: str, space: records.Space, loaded: LoadedIndex) -> bool:
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


def _stage_segment(
    context: Context, corpus: Corpus, manifest: records.Manifest, place: int, *, packed: bool
) -> Slices[None]:
    segment = corpus.segments[place]
    number = segment.number = manifest.next_segment
    manifest.next_segment += 1
    low, high = corpus.span(place, place + 1)
    for block, first in enumerate(range(low, high, records.BLOCK_ROWS)):
        rows = np.arange(first, min(first + records.BLOCK_ROWS, high))
        context.put(records.block_key(number, block), arrays.block_record(corpus, rows, packed=packed))
        context.put(records.changing_key(number, block), arrays.changing_record(corpus, rows, packed=packed))
        yield
    for field, chunks in segment.chunks.items():
        for count, chunk in enumerate(chunks):
            context.put(records.chunk_key(number, field, count), arrays.chunk_record(chunk, packed=packed))
            yield
    counts = {field: len(chunks) for field, chunks in segment.chunks.items()}
    manifest.segments.append(records.SegmentRecord(number, segment.size, counts, records.BLOCK_ROWS))
