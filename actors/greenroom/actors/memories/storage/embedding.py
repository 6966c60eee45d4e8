"""Vectors of memories: request them from the embedder, and store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from greenroom.actors.memories.storage import indexing
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.vector_messages import (
    StoreVectors,
    TextsToEmbed,
    UnembeddedText,
    UnembeddedTexts,
    Vectors,
    VectorsStored,
)
from greenroom.runtime import Context, RecordDamagedError, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

EMBEDDED_CHARACTERS = 8_000
"""At most this many characters of a text are embedded."""
BATCH_CHARACTERS = 400_000


def strip_author(text: str, author: str) -> str:
    """Remove the author's name and a colon from the start of a text.

    In transcripts, texts begin like this. The author is stored separately; a name in each text would make all
    vectors similar.
    """
    name = f"{author}:"
    return (text[len(name) :].lstrip() or text) if author and text.startswith(name) else text


def text_to_embed(value: bytes, form: int, author: str) -> str:
    """Return the part of an uncompressed value that is embedded."""
    return strip_author(beginning(value, form, EMBEDDED_CHARACTERS), author)


def embed_or_queue(
    repository: MemoryRepository, context: Context, written: Sequence[tuple[int, str]]
) -> Slices[None]:
    """Stage vectors of new memories (update number and text), or queue the memories."""
    sidecar = context.sidecar
    if sidecar is None or not written:
        return
    vectors: list[tuple[int, Vectors]] = []
    for update, text in written:
        embedded = sidecar.embed_nowait(text)
        if embedded is None:
            queue(repository, context)
            break
        vectors.append((update, embedded))
        yield
    if vectors:
        space = sidecar.space
        before = serving_space(repository, context)
        yield from repository.index.set_vectors(context, space, vectors)
        if before is None:
            rows.put_serving(context, None, space)


def queue(repository: MemoryRepository, context: Context) -> None:
    """Stage the mark that memories lack vectors; notify the embedder once until they have them."""
    if not repository.embedder_notified and context.sidecar is not None:
        repository.embedder_notified = True
        rows.put_pending(context, does=True)
        context.sidecar.add_pending(context.address)


def relist(repository: MemoryRepository, context: Context) -> None:
    """Stage the rows of the embedder's index again, since they may be lost."""
    space = serving_space(repository, context)
    rows.put_serving(context, None, space)
    if repository.counter:
        queue(repository, context)


def queue_missing(repository: MemoryRepository, context: Context, corpus: Corpus) -> None:
    """Queue memories without vectors for the embedder when a search needs them."""
    sidecar = context.sidecar
    if sidecar is None or repository.embedder_notified:
        return
    if sidecar.space is None or _count_lacking(corpus, sidecar.space):
        queue(repository, context)


def serving_space(repository: MemoryRepository, context: Context) -> str | None:
    """Return the embedding space that searches use: the oldest, until a newer one is complete.

    Spaces that are only kept for later do not count.
    """
    spaces = repository.index.spaces(context)
    return next((each for each in spaces if not rows.is_kept(context, each)), None)


def unlist(repository: MemoryRepository, context: Context) -> None:
    """Stage the removal of this actor from the embedder's index."""
    rows.put_pending(context, does=False)
    for each in repository.index.spaces(context):
        rows.put_serving(context, each, None)


def space(repository: MemoryRepository, context: Context) -> str | None:
    """Return the embedding space that clients may use; None while none is known."""
    sidecar = context.sidecar
    return (None if sidecar is None else sidecar.space) or serving_space(repository, context)


def count_waiting(context: Context) -> int:
    """Return about how many memories of the root wait for vectors."""
    return 0 if context.sidecar is None else int(context.sidecar.waiting(context.address))


def texts(repository: MemoryRepository, request: TextsToEmbed, context: Context) -> Slices[UnembeddedTexts]:
    """Return texts that lack vectors in a space."""
    if not repository.counter:
        rows.put_pending(context, does=False)
        return UnembeddedTexts(texts=[], remaining=0)
    yield from indexing.finish(repository, context)
    corpus = yield from repository.index.loaded(context)
    found: list[UnembeddedText] = []
    size = 0
    for update in corpus.without_vectors(request.space, request.limit):
        read = None
        if size < BATCH_CHARACTERS and _is_sound(repository, context, update):
            read = yield from repository.read_row(context, update)
        if read is not None:
            text = text_to_embed(read.value, read.form, repository.author(read.entry))
            found.append(UnembeddedText(id=update, text=text))
            size += len(text)
        yield
    remaining = _count_lacking(corpus, request.space) - len(found)
    if not found:
        yield from _complete(repository, context, request.space)
    return UnembeddedTexts(texts=found, remaining=max(0, remaining))


def _is_sound(repository: MemoryRepository, context: Context, update: int) -> bool:
    """Return whether a memory exists and is readable; other replies report the damage."""
    try:
        stored = repository.by_update(context, update)
        return stored is not None and bool(repository.version(context, stored.entry))
    except RecordDamagedError as error:
        if not error.entry:
            raise
        return False


def store(repository: MemoryRepository, request: StoreVectors, context: Context) -> Slices[VectorsStored]:
    """Store vectors; once no memory lacks one, the space replaces older spaces."""
    before = serving_space(repository, context)
    stored = yield from repository.index.set_vectors(context, request.space, request.vectors)
    known = [update for update, _ in request.vectors if _is_sound(repository, context, update)]
    found = (repository.by_update(context, update) for update in known)
    repository.publish_about(context, *(one.entry for one in found if one is not None))
    if before is None and stored:
        rows.put_serving(context, None, request.space)
    corpus = yield from repository.index.loaded(context)
    remaining = _count_lacking(corpus, request.space)
    if not remaining:
        yield from _complete(repository, context, request.space)
    return VectorsStored(stored=stored, remaining=remaining)


def _complete(repository: MemoryRepository, context: Context, space: str) -> Slices[None]:
    repository.embedder_notified = False
    rows.put_pending(context, does=False)
    for other in repository.index.spaces(context):
        if other != space and not rows.is_kept(context, other):
            yield from repository.index.drop_space(context, other)
            rows.put_serving(context, other, space)


def _count_lacking(corpus: Corpus, space: str) -> int:
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = corpus.vectors(space)
    missing = corpus.alive if found is None else corpus.alive & ~found[2]
    return int(np.count_nonzero(missing))
