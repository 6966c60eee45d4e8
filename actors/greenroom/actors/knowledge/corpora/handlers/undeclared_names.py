"""Names that documents repeat and nobody has declared, by what somebody calls them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.core.base.threads import imported
from greenroom.actors.corpus.said import rows_saying
from greenroom.actors.entities import USUAL_COUNT, EntityName, NameCounter, folded, look_up
from greenroom.actors.knowledge.corpora.handlers.chunks import locate
from greenroom.actors.knowledge.corpora.handlers.search import view_of
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.query import Term

MOST_CHUNKS: Final = 500
"""Chunks that are read for the names in them."""
_MOST_CHARACTERS: Final = 1_000_000
_MOST_TERMS: Final = 100
"""Words of the index that a part of a word may stand for."""
_SHORTEST: Final = 2
_MOST_NAMES: Final = 1_000


class FoundName(NamedTuple):
    """A name that documents repeat.

    Attributes:
        name: As it is mostly spelled.
        mentions: How often it is there.
        chunks: The chunks that have it, those that have it most first.
        documents: Their documents, in that order.
    """

    name: str
    mentions: int
    chunks: list[int]
    documents: list[str]


def found_names(
    repository: CorpusRepository, wanted: str, known: Collection[str], context: Context
) -> Slices[list[FoundName]]:
    """Return the names that may be meant, the likeliest first, as `SuggestEntities` would list them.

    Args:
        repository: The corpus.
        wanted: A name, even mistyped or in part, or a pattern.
        known: Names that are declared.
        context: The message's.
    """
    yield from imported("greenroom.actors.search.ranking.spelling")
    corpus = yield from repository.index.loaded(context)
    stop_words = yield from rows_saying(repository, context, corpus, wanted)
    if stop_words is not None and stop_words.likeness:
        rows: Sequence[int] = list(stop_words.likeness)
    else:
        rows = yield from _rows_having(view_of(repository, corpus), wanted, context)
    counter = NameCounter()
    said: dict[int, Counter[str]] = {}
    paths: dict[int, str] = {}
    documents: dict[int, DocumentRecord] = {}
    passages: list[Passage] = []
    read = (-1, -1)
    characters = 0
    for row in rows[:MOST_CHUNKS]:
        near = locate(repository, context, corpus, int(corpus.ids[row]), documents)
        assert near is not None, "what is in the index is in the store"
        block = bisect_right(near.document.blocks, near.number) - 1
        if (near.document.number, block) != read:  # one after the other, most are of the same block
            read = near.document.number, block
            passages = repository.passages(context, near.document, block)
        text = passages[near.number - near.document.blocks[block]].text
        said[near.place.id] = counter.add(near.place.id, text)
        paths[near.place.id] = near.document.path
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            break
        if context.should_yield():
            yield
    names = counter.suggestions(known, USUAL_COUNT, _MOST_NAMES)
    folds = [EntityName(folded(each.name), number) for number, each in enumerate(names)]
    likely = yield from look_up(folds, wanted, context.should_yield)
    likely.sort(key=lambda each: (-each[1], -names[each[0]].count, names[each[0]].name))
    return [_found(names[number].name, names[number].count, said, paths) for number, _ in likely]


def _found(name: str, count: int, said: dict[int, Counter[str]], paths: dict[int, str]) -> FoundName:
    alike = folded(name)
    often = {
        chunk: sum(times for each, times in names.items() if folded(each) == alike)
        for chunk, names in said.items()
    }
    chunks = sorted((chunk for chunk in often if often[chunk]), key=lambda chunk: (-often[chunk], chunk))
    return FoundName(name, count, chunks, list(dict.fromkeys(paths[chunk] for chunk in chunks)))


def _rows_having(view: Chunks, wanted: str, context: Context) -> Slices[Sequence[int]]:
    """Return the chunks that have each word of what is wanted, or what it may have been meant to be."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.search.ranking.query import RankQuery  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.search.ranking.spelling import corrections  # noqa: PLC0415 - as above

    corpus: Any = view.corpus
    rows: Any = None
    for term in RankQuery.read(wanted.replace("*", " ").replace("?", " "), None).terms:
        if len(term.word) < _SHORTEST:
            continue
        having = yield from _rows_with(corpus, (yield from _holding(corpus, term, context)), context)
        if not len(having):
            meant = yield from corrections(view, term, context.should_yield)
            having = yield from _rows_with(corpus, [each.term for each in meant], context)
        rows = having if rows is None else np.intersect1d(rows, having)
    if rows is None:
        return ()
    found: list[int] = rows[corpus.alive[rows]].tolist()
    return found


def _holding(corpus: Corpus, term: Term, context: Context) -> Slices[list[str]]:
    """Return the words of the index that a word of what is wanted is, or is a part of."""
    part = term.word.casefold()
    found = {term.term: None}
    for block in corpus.vocabulary("text"):
        found |= dict.fromkeys(each for each in block if part in each)
        if context.should_yield():
            yield
    return list(found)[:_MOST_TERMS]


def _rows_with(corpus: Corpus, terms: Sequence[str], context: Context) -> Slices[Any]:
    """Return the rows that have one of some terms."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = [np.zeros(0, np.int64)]
    for term in terms:
        found.append(corpus.postings("text", term)[0].astype(np.int64))
        if context.should_yield():
            yield
    return np.unique(np.concatenate(found))
