"""Notes in the order in which a query with a negation asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.ranking.weights import KINDS
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.negation import COMPARED, LONGEST, reordered, said_of, weighed
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.ranking import Ranked
    from greenroom.actors.search.index.corpus import Corpus

_TURN = KINDS.index("conversation")


def by_negation(
    repository: MemoryRepository, context: Context, corpus: Corpus, ranked: Ranked
) -> Slices[Ranked]:
    """Return the same rows with notes that deny what the query says before those that affirm it.

    Only notes change places, among the best of them; what a row gains or loses is a signal, ``negation``.
    """
    count = max(FEW, ranked.visible)
    rarity = {term: idf(len(each.rows), count) for each in ranked.reading.groups for term in each.meant}
    weights = weighed(rarity)
    notes = np.flatnonzero(ranked.kinds != _TURN)[:COMPARED]
    if not weights or len(notes) <= 1:
        return ranked
    said = []
    for row in ranked.rows[notes].tolist():
        stored = repository.by_update(context, int(corpus.ids[row]))
        assert stored is not None, "what is in the index is in the store"
        value, version = yield from repository.value(context, stored.entry)
        form = records.JSON if version.details is None else version.details.form
        said.append(said_of(beginning(value, form, LONGEST), weights))
        if context.should_yield():
            yield
    every = np.arange(len(ranked.rows))
    every[notes] = notes[reordered(ranked.log_odds[notes], said, weights)]
    return ranked.moved(every, "negation")
