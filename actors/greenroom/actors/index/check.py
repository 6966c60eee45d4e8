"""Consistency check of the index against the memories, for `greenroom verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from greenroom.actors.index import records
from greenroom.actors.index.columns import NAMED, TYPES
from greenroom.actors.index.document import (
    FIELDS,
    FOREVER,
    NEVER,
    NO_POSITION,
    Document,
    Field,
    ShouldYield,
    analyse,
)
from greenroom.actors.index.loader import load
from greenroom.actors.index.memtable import MOST_TIMES
from greenroom.actors.text.words import TextRules, rules_named
from greenroom.runtime import Context, Slices, StoreDamagedError

if TYPE_CHECKING:
    import numpy.typing as npt

    from greenroom.actors.index.corpus import Corpus
    from greenroom.actors.index.segment import Segment

    Prints = Mapping[Field, npt.NDArray[np.uint64]]

MOST = 100
"""Sentences about memories, at most."""
_WRAP = 2**64 - 1


class _Problems:
    """Sentences, of which only some are kept."""

    def __init__(self) -> None:
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
) -> Slices[list[str]]:
    """Compare an index with ``documents``; return the differences, a sentence each.

    Args:
        context: Where its records are.
        documents: The memories; None where they pause.
        kept: The index in memory, if it is there.
        partition: Decodes partitions.
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
    prints = yield from _fingerprints(corpus, context.should_yield)
    found = _Problems()
    yield from _compare_documents(corpus, prints, documents, rules, found, context.should_yield)
    yield from _check_tokens(context, corpus, manifest, found)
    if kept is not None:
        yield from _compare_memory(corpus, prints, kept, found, context.should_yield)
    return found.all()


def _compare_documents(
    corpus: Corpus,
    prints: Prints,
    documents: Iterable[Document | None],
    rules: TextRules,
    found: _Problems,
    should_yield: ShouldYield,
) -> Slices[None]:
    expected = np.zeros(corpus.size, np.bool_)
    for document in documents:
        if document is None:
            yield
            continue
        row = corpus.row(document.id)
        if row is None:
            found.add(f"memory {document.id} is not in the index")
            continue
        expected[row] = True
        analysed = yield from analyse(document, should_yield, rules)
        wrong = _wrong_columns(corpus, row, document, analysed.flags)
        for field in FIELDS:
            counts = analysed.counts.get(field, {})
            own = yield from _fingerprint(field, counts, should_yield)
            length = min(sum(counts.values()), 2**32 - 1)
            if own != int(prints[field][row]) or length != int(corpus.lengths(field)[row]):
                wrong.append(f"the terms of its {field}")
        if wrong:
            found.add(f"memory {document.id} is in the index with other values: {', '.join(wrong)}")
        if should_yield():
            yield
    for row in map(int, np.flatnonzero(corpus.alive & ~expected)):
        found.add(f"the index has memory {int(corpus.ids[row])}, which is not there")


def _check_tokens(
    context: Context, corpus: Corpus, manifest: records.Manifest, found: _Problems
) -> Slices[None]:
    for name, space in manifest.spaces.items():
        prefix = records.space_prefix(records.TOKENS, space.number)
        for key, stored in context.scan(records.TokenVectors, prefix=prefix):
            number = records.token_id(key)
            if corpus.row(number) is None:
                found.add(f"the index has vectors of memory {number} in {name}, which is not there")
            elif len(stored.values) % space.dimensions:
                found.add(f"the vectors of memory {number} in {name} have another length")
            if context.should_yield():
                yield


def _compare_memory(
    corpus: Corpus, prints: Prints, kept: Corpus, found: _Problems, should_yield: ShouldYield
) -> Slices[None]:
    """Compare what was read with what is in memory, which may have its rows in other places."""
    own = yield from _fingerprints(kept, should_yield)
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
                wrong |= (have[rows] != want[living]).reshape(len(rows), -1).any(axis=1)
        elif mine is not None:
            wrong |= mine[2][rows]
        elif theirs is not None:
            wrong |= theirs[2][living]
    for row in map(int, (*strange, *living[wrong])):
        found.add(f"memory {int(corpus.ids[row])} is in memory with other values than on disk")


def _wrong_columns(corpus: Corpus, row: int, document: Document, flags: int) -> list[str]:
    expected: dict[str, Any] = {
        "created": document.created_at,
        "updated": document.updated_at,
        "position": NO_POSITION if document.position is None else document.position,
        "flags": flags,
        "number": document.number,
        "supersedes": document.supersedes or 0,
        "importance": np.float32(document.importance),
        "rating": np.float32(document.rating),
        "uses": document.uses,
        "last_used": NEVER if document.last_used is None else document.last_used,
        "expires": FOREVER if document.expires_at is None else document.expires_at,
    }
    wrong = [name for name, value in expected.items() if corpus.column(name)[row] != value]
    for name in NAMED:
        number = int(corpus.column(name)[row])
        if (None if number < 0 else corpus.names[name].names[number]) != getattr(document, name):
            wrong.append(name)
    return wrong


def _fingerprints(corpus: Corpus, should_yield: ShouldYield) -> Slices[Prints]:
    """Return by field and row what stands for the row's terms."""
    found = {field: np.zeros(corpus.size, np.uint64) for field in FIELDS}
    low = 0
    segments = yield from corpus.all_segments(should_yield)
    for segment in segments:
        yield from _add_fingerprints(segment, low, found, should_yield)
        low += segment.size
    return found


def _add_fingerprints(segment: Segment, low: int, found: Prints, should_yield: ShouldYield) -> Slices[None]:
    for field, chunks in segment.chunks.items():
        for chunk in chunks:
            terms = (_of_term(field, term) for term in chunk.terms)
            numbers = np.fromiter(terms, np.uint64, len(chunk.terms))
            postings = np.repeat(numbers, np.diff(chunk.ends, prepend=np.uint32(0)))
            postings *= chunk.times.astype(np.uint64) * np.uint64(2) + np.uint64(1)
            np.add.at(found[field], chunk.rows + low, postings)
            if should_yield():
                yield


def _fingerprint(field: Field, counts: Mapping[str, int], should_yield: ShouldYield) -> Slices[int]:
    total = 0
    for place, (term, count) in enumerate(counts.items()):
        total += _of_term(field, term) * (2 * min(count, MOST_TIMES) + 1)
        if not place % 1_024 and should_yield():
            yield
    return total & _WRAP


def _of_term(field: Field, term: str) -> int:
    return hash((field, term)) & _WRAP
