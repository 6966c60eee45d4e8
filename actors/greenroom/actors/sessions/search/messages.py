"""The messages of a session as a corpus for ranking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.neighbours import Neighbours

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Postings = tuple[Rows, npt.NDArray[Any]]

_NO_POSTINGS = np.empty(0, np.int32), np.empty(0, np.float32)


class Messages:
    """The corpus of a session, see `greenroom.actors.search.ranking.Corpus`.

    Messages are neighbours in the order of ids. They belong to no conversation, since one conversation for
    all would not distinguish them. Metadata is searched like text, but adds no length and no times.

    It is valid until the corpus changes.
    """

    def __init__(self, corpus: Corpus, *, metadata: bool) -> None:
        self._corpus = corpus
        self.size = corpus.size
        self.author = corpus.author
        self.authors = corpus.authors
        self.conversation = corpus.conversation
        self.created = corpus.created
        self.flags = corpus.flags
        self._names = frozenset(chain.from_iterable(corpus.vocabulary("author")))
        self._metadata = metadata and any(corpus.vocabulary("tags"))
        self._learned: dict[str, Postings] = {}
        self._lines: list[str] = []

    def learn(self, term: str, found: Iterable[Postings]) -> int:
        """Merge posting lists into that of ``term``, with the highest counts; return its rows."""
        some = [(rows, times) for rows, times in found if len(rows)]
        if len(some) == 1:
            rows, times = some[0]
            self._learned[term] = rows, times.astype(np.float32)
            return len(rows)
        most = np.zeros(self.size, np.float32)
        for rows, times in some:
            most[rows] = np.maximum(most[rows], times)
        rows = np.flatnonzero(most).astype(np.int32)
        self._learned[term] = rows, most[rows]
        return len(rows)

    def forget(self) -> None:
        """Drop the learned terms."""
        self._learned.clear()

    # -- what ranking reads ------------------------------------------------

    def lengths(self, field: Any) -> npt.NDArray[np.uint32]:
        """Return the number of terms by row."""
        return self._corpus.lengths(field)

    def postings(self, field: Any, term: str) -> Postings:
        """Return the rows with ``term``, and its counts."""
        if field == "author":  # a fast path: most words of a query name no sender
            return self._corpus.postings("author", term) if term in self._names else _NO_POSTINGS
        if field != "text":
            return _NO_POSTINGS
        learned = self._learned.get(term)
        if learned is not None:
            return learned
        rows, times = self._corpus.postings("text", term)
        if self._metadata:
            more, more_times = self._corpus.postings("tags", term)
            if not len(rows):
                return more, more_times
            if len(more):
                rows, place = np.unique(np.concatenate((rows, more)), return_inverse=True)
                times = np.bincount(place, np.concatenate((times, more_times))).astype(np.float32)
        return rows, times

    def vocabulary(self, field: Any) -> Iterator[Sequence[str]]:
        """Yield the terms in blocks."""
        yield from self._corpus.vocabulary(field)
        if field == "text" and self._metadata:
            yield from self._corpus.vocabulary("tags")

    def lines(self) -> Iterator[str]:
        """Yield blocks of the terms of texts, one term a line; blocks are cached."""
        for place, block in enumerate(self.vocabulary("text")):
            if place == len(self._lines):
                self._lines.append("\n".join(block))
            yield self._lines[place]

    def neighbours(self, mask: Mask) -> Neighbours:
        """Return the neighbours and places of rows among those of ``mask``."""
        rows = np.flatnonzero(mask).astype(np.int32)
        # Rows are in runs of ascending or descending ids, on which a stable sort is fast.
        rows = rows[np.argsort(self._corpus.position[rows], kind="stable")]
        previous, following, place = (np.full(self.size, -1, np.int32) for _ in range(3))
        previous[rows[1:]] = rows[:-1]
        following[rows[:-1]] = rows[1:]
        place[rows] = np.arange(len(rows), dtype=np.int32)
        return Neighbours(previous, following, place, rows)

    def vectors(self, space: str) -> tuple[npt.NDArray[np.int8], Floats, Mask] | None:
        """Return the vectors; messages have none."""
        return self._corpus.vectors(space)

    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]:
        """Return token vectors; messages have none."""
        return self._corpus.token_vectors(space, rows)
