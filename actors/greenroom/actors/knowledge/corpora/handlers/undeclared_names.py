"""Find undeclared names that documents repeat."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.knowledge.corpora.handlers.chunks import find_literally, locate
from greenroom.actors.knowledge.corpora.handlers.search import get_view
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.entities import USUAL_COUNT, EntityName, NameCounter, fold, look_up
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.query import Term

MOST_CHUNKS: Final = 500
"""Names are looked for in at most this many chunks."""
_MOST_CHARACTERS: Final = 1_000_000
_MOST_TERMS: Final = 100
"""A part of a word may match at most this many words of the index."""
_SHORTEST: Final = 2
_MOST_NAMES: Final = 1_000


class UndeclaredName(NamedTuple):
    """A name that documents repeat, in its most frequent spelling.

    Chunks with the most mentions come first; documents are in the order of their chunks.
    """

    name: str
    mentions: int
    chunks: list[int]
    documents: list[str]


def find_undeclared(
    repository: CorpusRepository, wanted: str, known: Collection[str], context: Context
) -> Slices[list[UndeclaredName]]:
    """Return matching names, best first, in the form in which `SuggestEntities` lists names."""
    yield from import_in_thread("greenroom.actors.search.ranking.spelling")
    corpus = yield from repository.index.loaded(context)
    stop_words = yield from find_literally(repository, context, corpus, wanted)
    if stop_words is not None and stop_words.likeness:
        rows: Sequence[int] = list(stop_words.likeness)
    else:
        rows = yield from _find_rows(get_view(repository, corpus), wanted)
    counter = NameCounter()
    counts: dict[int, Counter[str]] = {}
    paths: dict[int, str] = {}
    documents: dict[int, DocumentRecord] = {}
    passages: list[Passage] = []
    read = (-1, -1)
    characters = 0
    for row in rows[:MOST_CHUNKS]:
        near = locate(repository, context, corpus, int(corpus.ids[row]), documents)
        assert near is not None, "what is in the index is in the store"
        block = bisect_right(near.document.blocks, near.number) - 1
        if (near.document.number, block) != read:  # most neighbours are in the same block
            read = near.document.number, block
            passages = repository.passages(context, near.document, block)
        text = passages[near.number - near.document.blocks[block]].text
        counts[near.place.id] = counter.add(near.place.id, text)
        paths[near.place.id] = near.document.path
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            break
        yield
    names = counter.suggest(known, USUAL_COUNT, _MOST_NAMES)
    folds = [EntityName(fold(each.name), number) for number, each in enumerate(names)]
    likely = yield from look_up(folds, wanted)
    likely.sort(key=lambda each: (-each[1], -names[each[0]].count, names[each[0]].name))
    return [_make_name(names[number].name, names[number].count, counts, paths) for number, _ in likely]


def _make_name(
    name: str, count: int, counts: dict[int, Counter[str]], paths: dict[int, str]
) -> UndeclaredName:
    alike = fold(name)
    often = {
        chunk: sum(times for each, times in names.items() if fold(each) == alike)
        for chunk, names in counts.items()
    }
    chunks = sorted((chunk for chunk in often if often[chunk]), key=lambda chunk: (-often[chunk], chunk))
    return UndeclaredName(name, count, chunks, list(dict.fromkeys(paths[chunk] for chunk in chunks)))


def _find_rows(view: Chunks, wanted: str) -> Slices[Sequence[int]]:
    """Return the rows of chunks that have every word, or a correction of the word."""
    import numpy as np  # noqa: PLC0415 - already loaded

    from greenroom.actors.search.ranking.query import RankQuery  # noqa: PLC0415 - needs numpy, which is already loaded
    from greenroom.actors.search.ranking.spelling import find_corrections  # noqa: PLC0415 - as above

    corpus: Any = view.corpus
    rows: Any = None
    for term in RankQuery.read(wanted.replace("*", " ").replace("?", " "), None).terms:
        if len(term.word) < _SHORTEST:
            continue
        having = yield from _find_term_rows(corpus, (yield from _find_words(corpus, term)))
        if not len(having):
            meant = yield from find_corrections(view, term)
            having = yield from _find_term_rows(corpus, [each.term for each in meant])
        rows = having if rows is None else np.intersect1d(rows, having)
    if rows is None:
        return ()
    found: list[int] = rows[corpus.alive[rows]].tolist()
    return found


def _find_words(corpus: Corpus, term: Term) -> Slices[list[str]]:
    part = term.word.casefold()
    found = {term.term: None}
    for block in corpus.vocabulary("text"):
        found |= dict.fromkeys(each for each in block if part in each)
        yield
    return list(found)[:_MOST_TERMS]


def _find_term_rows(corpus: Corpus, terms: Sequence[str]) -> Slices[Any]:
    import numpy as np  # noqa: PLC0415 - already loaded

    found = [np.zeros(0, np.int64)]
    for term in terms:
        found.append(corpus.postings("text", term)[0].astype(np.int64))
        yield
    return np.unique(np.concatenate(found))
