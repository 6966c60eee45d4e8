"""Vectors of memories: what the embedder is told, and what it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.embedding import rows
from greenroom.actors.memory import _gist as gist
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.values import beginning
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.actors.index.corpus import Corpus
    from greenroom.actors.memory.repository import Keeper
    from greenroom.actors.schemas.vectors import Vectors
    from greenroom.runtime import Context, Slices

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
    """Return what of a value that is not compressed is embedded."""
    return said(beginning(value, form, EMBEDDED_CHARACTERS), author)


def attend(keeper: Keeper, context: Context, written: Sequence[tuple[int, str]]) -> Slices[None]:
    """Stage vectors of memories that were just written, by update number and text, or see to it later."""
    companion = context.companion
    if companion is None or not written:
        return
    vectors: list[tuple[int, Vectors]] = []
    for update, text in written:
        made = companion.embed_nowait(text)
        if made is None:
            wait(keeper, context)
            break
        vectors.append((update, made))
        if context.slice_over():
            yield
    if vectors:
        space = companion.space
        before = serving(keeper, context)
        yield from keeper.index.set_vectors(context, space, vectors)
        gist.note_vectors(keeper, context, space, vectors)
        if before is None:
            rows.moves(context, None, space)


def wait(keeper: Keeper, context: Context) -> None:
    """Stage that memories lack vectors, and tell the embedder; once is enough until they have them."""
    if not keeper.waits and context.companion is not None:
        keeper.waits = True
        rows.waits(context, does=True)
        context.companion.noticed(context.address)


def list_again(keeper: Keeper, context: Context) -> None:
    """Stage the rows of the embedder's index, which may be lost; it finds out whether vectors are lacking."""
    space = serving(keeper, context)
    rows.moves(context, None, space)
    if keeper.counter:
        wait(keeper, context)


def look(keeper: Keeper, context: Context, corpus: Corpus) -> None:
    """Tell the embedder of memories that lack vectors, now that they are searched."""
    companion = context.companion
    if companion is None or keeper.waits:
        return
    if companion.space is None or _lacking(corpus, companion.space):
        wait(keeper, context)


def serving(keeper: Keeper, context: Context) -> str | None:
    """Return the space in which searches compare: the oldest, which stays until a new one is complete."""
    spaces = keeper.index.spaces(context)
    return spaces[0] if spaces else None


def texts(
    keeper: Keeper, request: requests.TextsToEmbed, context: Context
) -> Slices[replies.UnembeddedTexts]:
    """Hand over texts without vectors of a space."""
    if not keeper.counter:
        rows.waits(context, does=False)
        return replies.UnembeddedTexts(texts=[], remaining=0)
    yield from upgrading.finish(keeper, context)
    corpus = yield from keeper.index.loaded(context)
    found: list[replies.UnembeddedText] = []
    size = 0
    for update in corpus.without_vectors(request.space, request.limit):
        held = keeper.updated(context, update)
        if held is not None and size < BATCH_CHARACTERS:
            value, version = yield from keeper.value(context, held.entry)
            form = 0 if version.more is None else version.more.form
            text = embedded(value, form, keeper.author(held.entry))
            found.append(replies.UnembeddedText(id=update, text=text))
            size += len(text)
        if context.slice_over():
            yield
    remaining = _lacking(corpus, request.space) - len(found)
    if not found:
        yield from _complete(keeper, context, request.space)
    return replies.UnembeddedTexts(texts=found, remaining=max(0, remaining))


def store(keeper: Keeper, request: requests.StoreVectors, context: Context) -> Slices[replies.VectorsStored]:
    """Keep vectors; when all have theirs, the space takes the place of older ones."""
    before = serving(keeper, context)
    stored = yield from keeper.index.set_vectors(context, request.space, request.vectors)
    gist.note_vectors(keeper, context, request.space, request.vectors)
    if before is None and stored:
        rows.moves(context, None, request.space)
    corpus = yield from keeper.index.loaded(context)
    remaining = _lacking(corpus, request.space)
    if not remaining:
        yield from _complete(keeper, context, request.space)
    return replies.VectorsStored(stored=stored, remaining=remaining)


def _complete(keeper: Keeper, context: Context, space: str) -> Slices[None]:
    keeper.waits = False
    rows.waits(context, does=False)
    for other in keeper.index.spaces(context):
        if other != space:
            yield from keeper.index.drop_space(context, other)
            rows.moves(context, other, space)
    yield from gist.renew(keeper, context, space)


def _lacking(corpus: Corpus, space: str) -> int:
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = corpus.vectors(space)
    missing = corpus.alive if found is None else corpus.alive & ~found[2]
    return int(np.count_nonzero(missing))
