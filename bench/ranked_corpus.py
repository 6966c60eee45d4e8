"""An index in memory whose signals are looked at, for the programs that fit weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import signals
from greenroom.actors.search.ranking.view import View
from greenroom.actors.search.ranking.weights import SIGNALS
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.actors.search.embedding.embedder import LocalEmbedder
    from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors
    from greenroom.actors.search.index import Document
    from greenroom.actors.search.ranking.view import Floats

ORDER = list(SIGNALS)
"""The columns of a table of signals."""


class Remembering:
    """An embedder that makes each text's vectors once: they are the same in all stores."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        self.space, self.has_tokens = embedder.space, embedder.has_tokens
        self._embed, self._query = embedder.embed, embedder.query
        self._known: dict[str, Vectors] = {}
        self._queries: dict[str, QueryVectors] = {}

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._embed(new), strict=True))
        return [self._known[text] for text in texts]

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query."""
        if text not in self._queries:
            self._queries[text] = self._query(text)
        return self._queries[text]


def view_of(documents: Sequence[Document], embedded: Sequence[str], embedder: Remembering | None) -> View:
    """Return the view of documents, numbered from 1, of which the texts ``embedded`` have vectors."""
    corpus = corpus_of(documents, embedded, embedder)
    return View(corpus, corpus.alive.copy())


def corpus_of(documents: Sequence[Document], embedded: Sequence[str], embedder: Remembering | None) -> Corpus:
    """Return the index of which `view_of` is the view."""
    corpus = Corpus()
    for document in documents:
        finish(corpus.add(document))
        finish(corpus.compact())
    if embedder is None:
        return corpus
    vectors = embedder.embed(embedded)
    ids = np.arange(1, len(documents) + 1, dtype=np.uint64)
    values = np.stack([np.frombuffer(each.values, np.int8) for each in vectors])
    corpus.set_vectors(embedder.space, ids, values, np.array([each.scale for each in vectors], np.float32))
    if embedder.has_tokens:
        tokens = [np.frombuffer(each.tokens or b"", np.int8).reshape(-1, values.shape[1]) for each in vectors]
        corpus.fetch_tokens = lambda _, number: tokens[number - 1]
    return corpus


def table_of(view: View, query: RankQuery) -> Floats:
    """Return each row's signals, in `ORDER`."""
    values = finish(signals(view, query))
    nothing = np.zeros(len(view.visible), np.float32)
    return np.stack([values.get(name, nothing) for name in ORDER], axis=1)
