"""Chunks that say a query of stop words, which no index has: documents are read for it, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.content.text.verbatim import MOST_READ, verbatim
from greenroom.actors.corpus.preparing import rules_of
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

_ANSWERING: Final = 0.15
"""Of the time that a search has when it begins to read, what must be left for its answer."""


class Said(NamedTuple):
    """What was found.

    Attributes:
        likeness: How like the query each row is that says it, as `text.verbatim` has it.
        cut: What was not read; nothing where all was.
    """

    likeness: dict[int, float]
    cut: str


def rows_saying(
    repository: CorpusRepository, context: Context, corpus: Corpus, query: str
) -> Slices[Said | None]:
    """Return the rows that say a query of stop words; None for another query."""
    words = verbatim(query, rules_of(is_code=repository.is_code))
    if words is None:
        return None
    likeness: dict[int, float] = {}
    cut = ""
    least = context.seconds_left() * _ANSWERING
    for looked, chunk in enumerate(filter(None, repository.indexed(context))):
        if looked == MOST_READ or context.seconds_left() < least:
            cut = f"words that are nearly everywhere were looked for in the first {looked:,} passages alone"
            break
        text = "\n".join([chunk.text, chunk.key, chunk.author, *chunk.tags])
        found = yield from words.likeness(text, context.should_yield)
        row = corpus.row(chunk.id) if found else None
        if row is not None:
            likeness[row] = found
        if context.should_yield():
            yield
    return Said(likeness, cut)
