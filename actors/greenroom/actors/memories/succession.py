"""Notes in the order of what took the place of what, for a search that asks for a state of things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import PLAIN
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.ranking.weights import KINDS
from greenroom.actors.search.ranking.supersession import (
    COMPARED,
    LONGEST,
    UNIT,
    Statement,
    gains,
    successions,
)
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.ranking import Ranked
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.intent import State
    from greenroom.actors.search.ranking.supersession import Floats, Places

_TURN = KINDS.index("conversation")


def by_state(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    ranked: Ranked,
    space: str | None,
    state: State,
) -> Slices[Ranked]:
    """Return the same rows with what a question for ``state`` asks for before what it does not.

    Only notes change places, among the best of them; what a row gains or loses is a signal, ``succession``.
    """
    notes = np.flatnonzero(ranked.kinds != _TURN)[:COMPARED]
    statements = yield from _statements(repository, context, corpus, ranked.rows[notes])
    places = notes[[each is not None for each in statements]]
    if len(places) <= 1:
        return ranked
    cosines = None if space is None else _cosines(corpus, space, ranked.rows[places])
    strengths = ranked.strengths[places].astype(np.float64) / UNIT
    said = [each for each in statements if each is not None]
    probabilities = successions(said, cosines, ranked.vectors)
    gained_each = gains(strengths, places, said, probabilities, ranked.vectors, state)
    moved = np.argsort(-strengths - gained_each, kind="stable")
    every = np.arange(len(ranked.rows))
    every[places] = places[moved]
    return ranked.moved(every, "succession")


def _statements(
    repository: MemoryRepository, context: Context, corpus: Corpus, rows: Places
) -> Slices[list[Statement | None]]:
    """Return what is compared of each note, None of one that is too long to be about one matter."""
    found: list[Statement | None] = []
    for row in rows.tolist():
        stored = repository.by_update(context, int(corpus.ids[row]))
        assert stored is not None, "what is in the index is in the store"
        value, version = yield from repository.value(context, stored.entry)
        form = records.JSON if version.details is None else version.details.form
        text = beginning(value, form, LONGEST + 1)
        details = stored.entry.details or PLAIN
        found.append(
            Statement.read(text, details.tags, stored.entry.created_at, is_imported=details.is_dated)
            if len(text) <= LONGEST
            else None
        )
        if context.should_yield():
            yield
    return found


def _cosines(corpus: Corpus, space: str, rows: Places) -> Floats | None:
    """Return the cosines of notes with one another, 0 without a vector; None in an unknown space."""
    found = corpus.vectors(space)
    if found is None:
        return None
    values, _, has = found
    vectors = values[rows].astype(np.float64) * has[rows][:, None]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return vectors @ vectors.T
