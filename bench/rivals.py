"""What one would take instead, without a network: SQLite's full-text search, rank-bm25, rapidfuzz.

Each gets the conversation of the question only, as Greenroom does, and is used as its documentation
shows. The ready index is what is timed; making it is not.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz, process, utils

if TYPE_CHECKING:
    from bench.locomo import Turn
    from bench.trials import Query

DEPTH = 50
_WORD = re.compile(r"\w+")

One = Callable[[str], Sequence[str]]
Search = Callable[["Query", str], Sequence[str]]


def sqlite_fts5(turns: Sequence[Turn]) -> One:
    """FTS5 with its Porter stemmer, any of the words, in the order of its `bm25()`."""
    store = sqlite3.connect(":memory:")
    store.execute("CREATE VIRTUAL TABLE turns USING fts5(id UNINDEXED, text, tokenize='porter unicode61')")
    store.executemany("INSERT INTO turns VALUES (?, ?)", [(turn.id, turn.text) for turn in turns])

    def search(text: str) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(text))
        rows = store.execute("SELECT id FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?", (words, DEPTH))
        return [turn for (turn,) in rows]

    return search


def rank_bm25(turns: Sequence[Turn]) -> One:
    """`BM25Okapi` over words in lower case."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]  # noqa: PLC0415 - only for this

    index = BM25Okapi([_words(turn.text) for turn in turns])
    ids = [turn.id for turn in turns]

    def search(text: str) -> Sequence[str]:
        found: Sequence[str] = index.get_top_n(_words(text), ids, n=DEPTH)
        return found

    return search


def _rapidfuzz(scorer: Any) -> Callable[[Sequence[Turn]], One]:
    def make(turns: Sequence[Turn]) -> One:
        texts = [utils.default_process(turn.text) for turn in turns]

        def search(text: str) -> Sequence[str]:
            found = process.extract(utils.default_process(text), texts, scorer=scorer, limit=DEPTH)
            return [turns[place].id for _, _, place in found]

        return search

    return make


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _by_conversation(make: Callable[[Sequence[Turn]], One]) -> Callable[[Sequence[Turn]], Search]:
    def of(turns: Sequence[Turn]) -> Search:
        conversation = attrgetter("conv")
        searches = {
            name: make(list(some)) for name, some in groupby(sorted(turns, key=conversation), conversation)
        }
        return lambda query, text: searches[query.conv](text)

    return of


METHODS: Mapping[str, Callable[[Sequence[Turn]], Search]] = {
    "SQLite FTS5, BM25": _by_conversation(sqlite_fts5),
    "rank-bm25": _by_conversation(rank_bm25),
    "rapidfuzz WRatio": _by_conversation(_rapidfuzz(fuzz.WRatio)),
    "rapidfuzz token_set_ratio": _by_conversation(_rapidfuzz(fuzz.token_set_ratio)),
}
