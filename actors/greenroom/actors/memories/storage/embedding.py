"""Vectors of memories: asking the embedder for them, and storing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from greenroom.actors.core.replies.memory_types import Vectors
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import indexing, root_summary
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.search.embedding import rows
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

EMBEDDED_CHARACTERS = 8_000
"""How much of a long text has a part in its vector."""
BATCH_CHARACTERS = 400_000


def said(text: str, author: str) -> str:
    """Return a text without its author's name and a colon at its start, as transcripts have them.

    Who wrote it is known apart, and a name in each text draws all vectors towards it.
    """
    name = f"{author}:"
    return (text[len(name) :].lstrip() or text) if author and text.startswith(name) else text


def embedded(value: bytes, form: int, author: str) -> str:
    """Return the text of an uncompressed value that is embedded."""
    return said(beginning(value, form, EMBEDDED_CHARACTERS), author)


def attend(
    repository: MemoryRepository, context: Context, written: Sequence[tuple[int, str]]
) -> Slices[None]:
    """Stage vectors of memories that were just written, by update number and text, or see to it later."""
    sidecar = context.sidecar
    if sidecar is None or not written:
        return
    vectors: list[tuple[int, Vectors]] = []
    for update, text in written:
        made = sidecar.embed_nowait(text)
        if made is None:
            wait(repository, context)
            break
        vectors.append((update, made))
        if context.should_yield():
            yield
    if vectors:
        space = sidecar.space
        before = serving(repository, context)
        yield from repository.index.set_vectors(context, space, vectors)
        root_summary.note_vectors(repository, context, space, vectors)
        if before is None:
            rows.put_serving(context, None, space)


def wait(repository: MemoryRepository, context: Context) -> None:
    """Stage that memories lack vectors, and tell the embedder; once is enough until they have them."""
    if not repository.embedder_notified and context.sidecar is not None:
        repository.embedder_notified = True
        rows.put_pending(context, does=True)
        context.sidecar.add_pending(context.address)


def list_again(repository: MemoryRepository, context: Context) -> None:
    """Stage the rows of the embedder's index, which may be lost; it finds out whether vectors are lacking."""
    space = serving(repository, context)
    rows.put_serving(context, None, space)
    if repository.counter:
        wait(repository, context)


def look(repository: MemoryRepository, context: Context, corpus: Corpus) -> None:
    """Tell the embedder of memories that lack vectors, now that they are searched."""
    sidecar = context.sidecar
    if sidecar is None or repository.embedder_notified:
        return
    if sidecar.space is None or _lacking(corpus, sidecar.space):
        wait(repository, context)


def serving(repository: MemoryRepository, context: Context) -> str | None:
    """Return the space in which searches compare: the oldest, which stays until a new one is complete.

    One that is merely kept is passed over.
    """
    spaces = repository.index.spaces(context)
    return next((each for each in spaces if not rows.is_kept(context, each)), None)


def unlist(repository: MemoryRepository, context: Context) -> None:
    """Stage that the embedder does not find this actor any more."""
    rows.put_pending(context, does=False)
    for each in repository.index.spaces(context):
        rows.put_serving(context, each, None)


def space(repository: MemoryRepository, context: Context) -> str | None:
    """Return the space of the vectors that a client may look for; None while none is known."""
    sidecar = context.sidecar
    return (None if sidecar is None else sidecar.space) or serving(repository, context)


def waiting(context: Context) -> int:
    """Return how many of the root's memories have no vectors of that space yet, about."""
    return 0 if context.sidecar is None else int(context.sidecar.waiting(context.address))


def texts(
    repository: MemoryRepository, request: requests.TextsToEmbed, context: Context
) -> Slices[replies.UnembeddedTexts]:
    """Hand over texts without vectors of a space."""
    if not repository.counter:
        rows.put_pending(context, does=False)
        return replies.UnembeddedTexts(texts=[], remaining=0)
    yield from indexing.finish(repository, context)
    corpus = yield from repository.index.loaded(context)
    found: list[replies.UnembeddedText] = []
    size = 0
    for update in corpus.without_vectors(request.space, request.limit):
        stored = repository.by_update(context, update)
        if stored is not None and size < BATCH_CHARACTERS:
            value, version = yield from repository.value(context, stored.entry)
            form = 0 if version.details is None else version.details.form
            text = embedded(value, form, repository.author(stored.entry))
            found.append(replies.UnembeddedText(id=update, text=text))
            size += len(text)
        if context.should_yield():
            yield
    remaining = _lacking(corpus, request.space) - len(found)
    if not found:
        yield from _complete(repository, context, request.space)
    return replies.UnembeddedTexts(texts=found, remaining=max(0, remaining))


def store(
    repository: MemoryRepository, request: requests.StoreVectors, context: Context
) -> Slices[replies.VectorsStored]:
    """Keep vectors; when all have theirs, the space takes the place of older ones."""
    before = serving(repository, context)
    stored = yield from repository.index.set_vectors(context, request.space, request.vectors)
    root_summary.note_vectors(repository, context, request.space, request.vectors)
    found = (repository.by_update(context, update) for update, _ in request.vectors)
    repository.publish_about(context, *(one.entry for one in found if one is not None))
    if before is None and stored:
        rows.put_serving(context, None, request.space)
    corpus = yield from repository.index.loaded(context)
    remaining = _lacking(corpus, request.space)
    if not remaining:
        yield from _complete(repository, context, request.space)
    return replies.VectorsStored(stored=stored, remaining=remaining)


def _complete(repository: MemoryRepository, context: Context, space: str) -> Slices[None]:
    repository.embedder_notified = False
    rows.put_pending(context, does=False)
    for other in repository.index.spaces(context):
        if other != space and not rows.is_kept(context, other):
            yield from repository.index.drop_space(context, other)
            rows.put_serving(context, other, space)
    yield from root_summary.renew(repository, context, space)


def _lacking(corpus: Corpus, space: str) -> int:
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = corpus.vectors(space)
    missing = corpus.alive if found is None else corpus.alive & ~found[2]
    return int(np.count_nonzero(missing))
