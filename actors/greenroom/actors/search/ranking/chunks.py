"""Chunks of files, the terms of a query in them, and BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.spelling import Correction
from greenroom.actors.search.ranking.view import Floats, Postings, View

FACTORS: Final[Mapping[str, float]] = {"text": 1.2, "key": 0.8, "tags": 0.8, "author": 0.8}
"""The saturation of BM25 for each field with terms: how much a repeated word adds."""
_B: Final = 0.6


class Chunks(View):
    """The living chunks, and statistics that every query needs."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus, corpus.alive.copy())
        self._fields: dict[str, Floats] = {}
        self._norms: dict[str, Floats] = {}
        self._corpus = corpus
        self._arrangement = corpus.arrangement

    def is_of(self, corpus: Corpus) -> bool:
        """Return whether this view still describes the rows of a corpus."""
        return corpus is self._corpus and corpus.arrangement == self._arrangement

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean length of each field."""
        count = max(1, self.count)
        return {
            field: max(1.0, float(self.field(field).sum(where=self.visible, dtype=np.float64)) / count)
            for field in ("text", "key", "tags", "author")
        }

    def field(self, name: str) -> Floats:
        """Return the number of terms in a field, by row."""
        if name not in self._fields:
            self._fields[name] = self.corpus.lengths(name).astype(np.float32)
        return self._fields[name]

    def norms(self, name: str) -> Floats:
        """Return the length normalization of BM25 for a field, by row."""
        if name not in self._norms:
            self._norms[name] = _norms(self.field(name), self.means[name], FACTORS[name])
        return self._norms[name]

    @cached_property
    def files(self) -> int:
        """How many documents there are."""
        return int(np.count_nonzero(self.file_lengths))

    @cached_property
    def file_lengths(self) -> Floats:
        """The number of terms in each document's chunks."""
        of_files = self.corpus.author[self.visible]
        return np.bincount(of_files, self.field("text")[self.visible], len(self.corpus.authors)).astype(
            np.float32
        )


class Group(NamedTuple):
    """A term of the query, its importance, its weight by rarity, and its postings."""

    term: str
    chunks: int
    counts: float
    weight: float
    found: Mapping[str, Postings]


def group_of(view: Chunks, term: str, meant: Sequence[Correction] = (), counts: float = 1.0) -> Group:
    """Look up a term of the query, or its corrections ``meant``, in every field."""
    meant = meant or [Correction(term, 1.0, 0)]
    found = {field: _postings(view, field, meant) for field in FACTORS}
    count = max(len(found["text"][0]), len(found["key"][0])) or len(found["author"][0])
    there = {field: postings for field, postings in found.items() if len(postings[0])}
    return Group(term, count, counts, counts * idf(count, max(FEW, view.count)), there)


def _postings(view: Chunks, field: str, meant: Sequence[Correction]) -> Postings:
    if len(meant) == 1:
        rows, times = view.postings(field, meant[0].term)
        return rows, times if meant[0].likeness == 1 else times * np.float32(meant[0].likeness)
    total: dict[int, float] = {}
    for correction in meant:
        rows, times = view.postings(field, correction.term)
        for row, often in zip(rows.tolist(), times.tolist(), strict=True):
            total[row] = total.get(row, 0.0) + often * correction.likeness
    order = sorted(total)
    return np.array(order, np.int32), np.array([total[row] for row in order], np.float32)


def add_files(view: Chunks, files: Floats, group: Group) -> None:
    """Add the BM25 score of a term to the documents of its rows."""
    rows, times = group.found["text"]
    counts = np.bincount(view.corpus.author[rows], times, len(files)).astype(np.float32)
    which = np.flatnonzero(counts)
    mean = max(1.0, view.total / max(1, view.files))
    norms = _norms(view.file_lengths[which], mean, FACTORS["text"])
    rare = idf(len(which), max(FEW, view.files))
    files[which] += np.float32(group.counts * rare) * saturate(counts[which], norms, FACTORS["text"])


def _norms(lengths: Floats, mean: float, k: float) -> Floats:
    """Return the length normalization in the denominator of BM25."""
    return np.float32(k * (1 - _B)) + np.float32(k * _B / mean) * lengths


def saturate(times: Floats, norms: Floats, k: float) -> Floats:
    """Return BM25 without the rarity. This overwrites ``norms``."""
    norms += times
    found: Floats = times * np.float32(k + 1)
    found /= norms
    return found


def best_places(strength: Floats, limit: int) -> npt.NDArray[Any]:
    """Return the places of the ``limit`` strongest, in order; among equals, the oldest row first."""
    if len(strength) > limit:
        bound = np.partition(strength, len(strength) - limit)[len(strength) - limit]
        places = np.flatnonzero(strength >= bound)
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((places, -strength[places]))][:limit]
