"""Small stores in memory, and what a search of them gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from greenroom.actors.search.index import Document
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import Ranked, rank
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import finish

if TYPE_CHECKING:
    from greenroom.actors.search.embedding.vector_messages import QueryVectors

DAY = 86_400_000_000
"""Microseconds."""
SPACE = "test:3"


class Note(NamedTuple):
    """A memory, as a test has it; `day` counts from 1970."""

    text: str
    author: str = ""
    conversation: str | None = None
    key: str = ""
    tags: tuple[str, ...] = ()
    day: int = 19_000
    vector: tuple[float, ...] | None = None
    tokens: tuple[tuple[float, ...], ...] | None = None
    hidden: bool = False
    out: bool = False
    """Whether the filters leave it out."""


def stored(notes: Sequence[Note]) -> Corpus:
    """Put the notes into an index, in order."""
    corpus = Corpus()
    for number, note in enumerate(notes, 1):
        document = Document(
            id=number,
            partition=note.hidden,
            namespace="user:me",
            text=note.text,
            key=note.key,
            author=note.author,
            tags=note.tags,
            conversation=note.conversation,
            position=number,
            created_at=note.day * DAY,
            updated_at=note.day * DAY,
        )
        finish(corpus.add(document))
    with_vectors = [number for number, note in enumerate(notes, 1) if note.vector is not None]
    if with_vectors:
        vectors = np.array([notes[number - 1].vector for number in with_vectors], np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.round(vectors * 127).astype(np.int8)
        scales = np.full(len(values), 1 / 127, np.float32)
        corpus.set_vectors(SPACE, np.array(with_vectors, np.uint64), values, scales)
    corpus.fetch_tokens = lambda _, number: _bytes(notes[number - 1].tokens)
    return corpus


def _bytes(tokens: Sequence[Sequence[float]] | None) -> np.ndarray[Any, Any] | None:
    return None if tokens is None else np.round(np.array(tokens) * 100).astype(np.int8)


def search(
    notes: Sequence[Note],
    text: str,
    vectors: QueryVectors | None = None,
    *,
    limit: int = 1_000,
    offset: int = 0,
) -> Ranked:
    """Return what a search of the notes that are not hidden finds among those that are not left out."""
    corpus = stored(notes)
    visible = np.array([not note.hidden for note in notes], np.bool_)
    wanted = np.array([not note.out for note in notes], np.bool_)
    query = RankQuery.read(text, vectors, offset=offset)
    found: Ranked = finish(rank(View(corpus, visible), query, wanted, limit=limit))
    return found


def order(notes: Sequence[Note], text: str, vectors: QueryVectors | None = None, **how: Any) -> list[int]:
    """Return the numbers of the notes found, best first."""
    return [int(row) for row in search(notes, text, vectors, **how).rows]
