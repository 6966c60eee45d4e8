"""What one would take instead, without a network and in this process.

SQLite's full-text search, rank-bm25, rapidfuzz over whole texts, and nothing but the cosine of the vectors
that Greenroom's embedders make. Each is used as its documentation shows, on the texts of one store. The ready
index is what is timed; making it is not.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import trio
from rapidfuzz import fuzz, process, utils

from greenroom.actors.search.embedding.embedder_loader import load

if TYPE_CHECKING:
    import numpy.typing as npt

    from greenroom.actors import EmbedderChoice
    from greenroom.actors.search.embedding.embedder import Embedder

DEPTH = 50
_WORD = re.compile(r"\w+")

Find = Callable[[str], Sequence[str]]
"""Returns the ids of texts, best first, for a question's words."""
Make = Callable[[Mapping[str, str]], Find]
"""Makes that of texts by their ids."""


def sqlite_fts5(texts: Mapping[str, str]) -> Find:
    """FTS5 with its Porter stemmer, any of the words, in the order of its `bm25()`."""
    store = sqlite3.connect(":memory:")
    store.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text, tokenize='porter unicode61')")
    store.executemany("INSERT INTO texts VALUES (?, ?)", texts.items())

    def find(text: str) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(text))
        rows = store.execute("SELECT id FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (words, DEPTH))
        return [each for (each,) in rows]

    return find


def rank_bm25(texts: Mapping[str, str]) -> Find:
    """`BM25Okapi` over words in lower case."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]  # noqa: PLC0415 - only for this

    index = BM25Okapi([_words(text) for text in texts.values()])
    ids = list(texts)

    def find(text: str) -> Sequence[str]:
        found: Sequence[str] = index.get_top_n(_words(text), ids, n=DEPTH)
        return found

    return find


def cosine(embedder: EmbedderChoice) -> Make:
    """Return what orders texts by the cosine of their vectors with the question's, and by nothing else."""
    made = trio.run(load, embedder)
    known: dict[str, npt.NDArray[np.float32]] = {}

    def vectors(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, trio.run(_embedded, made, new), strict=True))
        return np.stack([known[text] for text in texts])

    def make(texts: Mapping[str, str]) -> Find:
        table, ids = vectors(list(texts.values())), list(texts)

        def find(text: str) -> Sequence[str]:
            nearest = np.argsort(-(table @ vectors([text])[0]), kind="stable")[:DEPTH]
            return [ids[place] for place in nearest]

        return find

    return make


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
    found = []
    for start in range(0, len(texts), embedder.batch):
        for each in await embedder.embed(texts[start : start + embedder.batch]):
            values = np.frombuffer(each.values, np.int8).astype(np.float32)
            found.append(values / (np.linalg.norm(values) or 1.0))
    return found


def _rapidfuzz(scorer: Any) -> Make:
    def make(texts: Mapping[str, str]) -> Find:
        ids, processed = list(texts), [utils.default_process(text) for text in texts.values()]

        def find(text: str) -> Sequence[str]:
            found = process.extract(utils.default_process(text), processed, scorer=scorer, limit=DEPTH)
            return [ids[place] for _, _, place in found]

        return find

    return make


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


METHODS: Mapping[str, Make] = {
    "SQLite FTS5, BM25": sqlite_fts5,
    "rank-bm25": rank_bm25,
    "rapidfuzz WRatio": _rapidfuzz(fuzz.WRatio),
    "rapidfuzz token_set_ratio": _rapidfuzz(fuzz.token_set_ratio),
}
