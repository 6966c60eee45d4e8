"""Vectors of chunks: request them from the embedder in the background, and store them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.knowledge.corpora.handlers.chunks import locate
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, text_to_embed
from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.vector_messages import (
    StoreVectors,
    TextsToEmbed,
    UnembeddedText,
    UnembeddedTexts,
    VectorsStored,
)
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

EMBEDDED_CHARACTERS = 8_000
BATCH_CHARACTERS = 400_000


def mark_waiting(repository: CorpusRepository, context: Context) -> None:
    """Stage that chunks have no vectors; notify the embedder once until they have vectors.

    Source code gets no vectors: they hardly improve code searches, and take hours to compute.
    """
    if not (repository.embedder_notified or repository.is_code) and context.sidecar is not None:
        repository.embedder_notified = True
        rows.put_pending(context, does=True)
        context.sidecar.add_pending(context.address)


def notify_embedder(repository: CorpusRepository, context: Context, corpus: Corpus) -> None:
    """On a search, notify the embedder if chunks have no vectors."""
    sidecar = context.sidecar
    if sidecar is None or repository.embedder_notified:
        return
    if sidecar.space is None or count_missing(corpus, sidecar.space):
        mark_waiting(repository, context)


def unmark(repository: CorpusRepository, context: Context) -> None:
    """Stage that the embedder has nothing to do for this corpus."""
    rows.put_pending(context, does=False)
    for space in repository.index.spaces(context):
        rows.put_serving(context, space, None)


def find_space(repository: CorpusRepository, context: Context) -> str | None:
    """Return the vector space for searches: the oldest, until a new space is complete."""
    spaces = repository.index.spaces(context)
    return spaces[0] if spaces else None


def list_texts(
    repository: CorpusRepository, request: TextsToEmbed, context: Context
) -> Slices[UnembeddedTexts]:
    """Return texts that have no vector in a space."""
    if repository.header.is_dropped or not repository.header.chunks:
        rows.put_pending(context, does=False)
        repository.embedder_notified = False
        return UnembeddedTexts(texts=[], remaining=0)
    corpus = yield from repository.index.loaded(context)
    found: list[UnembeddedText] = []
    size = 0
    known: dict[int, DocumentRecord] = {}
    for chunk in corpus.without_vectors(request.space, request.limit):
        if size >= BATCH_CHARACTERS:
            break
        located = locate(repository, context, corpus, chunk, known)
        if located is not None:
            passage = repository.passage(context, located)
            text = text_to_embed(located.document, passage)[:EMBEDDED_CHARACTERS]
            found.append(UnembeddedText(id=chunk, text=text))
            size += len(text)
        yield
    remaining = count_missing(corpus, request.space) - len(found)
    if not found:
        yield from _complete(repository, context, request.space)
    return UnembeddedTexts(texts=found, remaining=max(0, remaining))


def store(repository: CorpusRepository, request: StoreVectors, context: Context) -> Slices[VectorsStored]:
    """Store vectors of chunks, but no token vectors: these would take too much room."""
    if repository.header.is_dropped:
        return VectorsStored(stored=0, remaining=0)
    before = find_space(repository, context)
    kept = [(chunk, msgspec.structs.replace(each, tokens=None)) for chunk, each in request.vectors]
    stored = yield from repository.index.set_vectors(context, request.space, kept)
    repository.answers.clear()
    if before is None and stored:
        rows.put_serving(context, None, request.space)
    corpus = yield from repository.index.loaded(context)
    remaining = count_missing(corpus, request.space)
    if not remaining:
        yield from _complete(repository, context, request.space)
    return VectorsStored(stored=stored, remaining=remaining)


def count_missing(corpus: Corpus, space: str) -> int:
    """Return how many chunks have no vector in a space."""
    import numpy as np  # noqa: PLC0415 - already loaded

    found = corpus.vectors(space)
    missing = corpus.alive if found is None else corpus.alive & ~found[2]
    return int(np.count_nonzero(missing))


def _complete(repository: CorpusRepository, context: Context, space: str) -> Slices[None]:
    repository.embedder_notified = False
    rows.put_pending(context, does=False)
    for other in repository.index.spaces(context):
        if other != space:
            yield from repository.index.drop_space(context, other)
            rows.put_serving(context, other, space)


def restate(repository: CorpusRepository, context: Context) -> None:
    """Stage the embedder's index rows again, since they may be lost."""
    rows.put_serving(context, None, find_space(repository, context))
    if repository.header.chunks:
        mark_waiting(repository, context)
