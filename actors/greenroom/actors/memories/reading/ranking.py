"""Rank memories by quality; rank notes by negation and supersession, too. Needs numpy.

    quality = 0.4 importance + 0.2 use + 0.1 recent use + 0.3 rating

The quality is 0-1 and independent of any query. The writer sets the importance. Use grows with each use and
is 0.63 after five. Recent use halves every three weeks. The rating is the mean of all ratings: -1
counts as 0, no rating as 0.5, and 1 as 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.validation.times import DAY
from greenroom.actors.memories.storage.records import PLAIN
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.search.ranking.denial_order import COMPARED as MOST_NEGATIONS
from greenroom.actors.search.ranking.denial_order import LONGEST as LONGEST_NEGATION
from greenroom.actors.search.ranking.denial_order import find_order, read_sentences, weigh_terms
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.supersession import (
    COMPARED,
    LONGEST,
    UNIT,
    Statement,
    compute_gains,
    estimate_supersessions,
)
from greenroom.actors.search.ranking.weights import KINDS
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.intent import State
    from greenroom.actors.search.ranking.rank import Ranked
    from greenroom.actors.search.ranking.supersession import Floats, Places

    Parts = npt.NDArray[np.float32]

WEIGHTS = {"importance": 0.4, "use": 0.2, "recent_use": 0.1, "rating": 0.3}
_SOME_USES = 5.0
_RECENT_DAYS = 30.0


def quality_of(corpus: Corpus, rows: npt.NDArray[np.intp], now: int) -> tuple[Parts, dict[str, Parts]]:
    """Return the quality of index rows at a time (microseconds since 1970), and its parts."""
    uses = corpus.uses[rows].astype(np.float32)
    days = np.maximum(0, now - corpus.last_used[rows]).astype(np.float32) / np.float32(DAY)
    recent: Parts = np.exp(-days / np.float32(_RECENT_DAYS), dtype=np.float32)
    parts: dict[str, Parts] = {
        "importance": corpus.importance[rows],
        "use": 1 - np.exp(-uses / np.float32(_SOME_USES)),
        "recent_use": np.where(uses > 0, recent, np.float32(0)),
        "rating": (corpus.rating[rows] + np.float32(1)) / np.float32(2),
    }
    total = np.zeros(len(rows), np.float32)
    for name, weight in WEIGHTS.items():
        parts[name] = np.float32(weight) * parts[name]
        total += parts[name]
    return total, parts


_TURN = KINDS.index("conversation")


def order_by_negation(
    repository: MemoryRepository, context: Context, corpus: Corpus, ranked: Ranked
) -> Slices[Ranked]:
    """Rank notes that deny the query's statement before notes that affirm it.

    Only the best notes change places; the gain or loss of a row is the signal ``negation``.
    """
    count = max(FEW, ranked.visible)
    rarity = {term: idf(len(each.rows), count) for each in ranked.reading.groups for term in each.meant}
    weights = weigh_terms(rarity)
    notes = np.flatnonzero(ranked.kinds != _TURN)[:MOST_NEGATIONS]
    if not weights or len(notes) <= 1:
        return ranked
    texts = []
    for row in ranked.rows[notes].tolist():
        read = yield from repository.read_row(context, int(corpus.ids[row]))
        text = "" if read is None else beginning(read.value, read.form, LONGEST_NEGATION)
        texts.append(read_sentences(text, weights))
        yield
    every = np.arange(len(ranked.rows))
    every[notes] = notes[find_order(ranked.log_odds[notes], texts, weights)]
    return ranked.reorder(every, "negation")


def order_by_state(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    ranked: Ranked,
    space: str | None,
    state: State,
) -> Slices[Ranked]:
    """Rank notes that fit the ``state`` in the query before those that do not.

    Only the best notes change places; the gain or loss of a row is the signal ``succession``.
    """
    notes = np.flatnonzero(ranked.kinds != _TURN)[:COMPARED]
    statements = yield from _statements(repository, context, corpus, ranked.rows[notes])
    places = notes[[each is not None for each in statements]]
    if len(places) <= 1:
        return ranked
    cosines = None if space is None else _cosines(corpus, space, ranked.rows[places])
    strengths = ranked.strengths[places].astype(np.float64) / UNIT
    known = [each for each in statements if each is not None]
    probabilities = estimate_supersessions(known, cosines, ranked.vectors)
    gained_each = compute_gains(strengths, places, known, probabilities, ranked.vectors, state)
    moved = np.argsort(-strengths - gained_each, kind="stable")
    every = np.arange(len(ranked.rows))
    every[places] = places[moved]
    return ranked.reorder(every, "succession")


def _statements(
    repository: MemoryRepository, context: Context, corpus: Corpus, rows: Places
) -> Slices[list[Statement | None]]:
    """Return the statement of each note; None for a note too long to compare."""
    found: list[Statement | None] = []
    for row in rows.tolist():
        read = yield from repository.read_row(context, int(corpus.ids[row]))
        if read is None:
            found.append(None)
            continue
        text = beginning(read.value, read.form, LONGEST + 1)
        details = read.entry.details or PLAIN
        found.append(
            Statement.read(text, details.tags, read.entry.created_at, is_imported=details.is_dated)
            if len(text) <= LONGEST
            else None
        )
        yield
    return found


def _cosines(corpus: Corpus, space: str, rows: Places) -> Floats | None:
    """Return the cosines between notes (0 without a vector); None for an unknown space."""
    found = corpus.vectors(space)
    if found is None:
        return None
    values, _, has = found
    vectors = values[rows].astype(np.float64) * has[rows][:, None]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return vectors @ vectors.T
