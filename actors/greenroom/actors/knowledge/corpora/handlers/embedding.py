"""Vectors of chunks: asking the embedder for them, and keeping them. They are made in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.knowledge.corpora.handlers.chunks import locate
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, embedded
from greenroom.actors.memories.requests.replies import UnembeddedText, UnembeddedTexts, VectorsStored
from greenroom.actors.memories.requests.requests import StoreVectors, TextsToEmbed
from greenroom.actors.search.embedding import rows
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

EMBEDDED_CHARACTERS = 8_000
BATCH_CHARACTERS = 400_000


def wait(repository: CorpusRepository, context: Context) -> None:
    """Stage that chunks lack vectors, and tell the embedder; once is enough until they have them.

    Those of source code get none: they found next to nothing more, and an embedder takes hours for them.
    """
    if not (repository.embedder_notified or repository.is_code) and context.sidecar is not None:
        repository.embedder_notified = True
        rows.put_pending(context, does=True)
        context.sidecar.add_pending(context.address)


def look(repository: CorpusRepository, context: Context, corpus: Corpus) -> None:
    """Tell the embedder of chunks that lack vectors, now that they are searched."""
    sidecar = context.sidecar
    if sidecar is None or repository.embedder_notified:
        return
    if sidecar.space is None or lacking(corpus, sidecar.space):
        wait(repository, context)


def forget(repository: CorpusRepository, context: Context) -> None:
    """Stage that the embedder has nothing to do here."""
    rows.put_pending(context, does=False)
    for space in repository.index.spaces(context):
        rows.put_serving(context, space, None)


def serving(repository: CorpusRepository, context: Context) -> str | None:
    """Return the space in which searches compare: the oldest, which stays until a new one is complete."""
    spaces = repository.index.spaces(context)
    return spaces[0] if spaces else None


def texts(repository: CorpusRepository, request: TextsToEmbed, context: Context) -> Slices[UnembeddedTexts]:
    """Hand over texts without vectors of a space."""
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
            text = embedded(located.document, passage)[:EMBEDDED_CHARACTERS]
            found.append(UnembeddedText(id=chunk, text=text))
            size += len(text)
        if context.should_yield():
            yield
    remaining = lacking(corpus, request.space) - len(found)
    if not found:
        yield from _complete(repository, context, request.space)
    return UnembeddedTexts(texts=found, remaining=max(0, remaining))


def store(repository: CorpusRepository, request: StoreVectors, context: Context) -> Slices[VectorsStored]:
    """Keep vectors of chunks; those of their words would take more than all the rest."""
    if repository.header.is_dropped:
        return VectorsStored(stored=0, remaining=0)
    before = serving(repository, context)
    kept = [(chunk, msgspec.structs.replace(each, tokens=None)) for chunk, each in request.vectors]
    stored = yield from repository.index.set_vectors(context, request.space, kept)
    repository.answers.clear()
    if before is None and stored:
        rows.put_serving(context, None, request.space)
    corpus = yield from repository.index.loaded(context)
    remaining = lacking(corpus, request.space)
    if not remaining:
        yield from _complete(repository, context, request.space)
    return VectorsStored(stored=stored, remaining=remaining)


def lacking(corpus: Corpus, space: str) -> int:
    """Return how many chunks have no vector of a space."""
    import numpy as np  # noqa: PLC0415 - loaded by now

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


def list_again(repository: CorpusRepository, context: Context) -> None:
    """Stage the rows of the embedder's index, which may be lost; it finds out whether vectors are lacking."""
    rows.put_serving(context, None, serving(repository, context))
    if repository.header.chunks:
        wait(repository, context)
