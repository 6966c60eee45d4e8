"""The order of chunks of documents for a query: signals and scores.

    strength = sum of weight * signal
    share    = strength / (the worth of all words of the query + EVEN)
    score    = 1 / (1 + exp(-(share - middle) / width))

No score depends on the other results, so scores of different queries can be compared. The weights are
round numbers, chosen before anything was measured. A test took 120 headings from the documentation of four
public repositories as queries for their sections. Weights fitted to three of the repositories did worse on
the fourth, by 1 to 3 points of MRR, so the round numbers stayed.

A score is measured. It is the share of results with this score, among the ten best, that were of the right
file; half of the queries were these headings, the others had no answer. `bench.relevance` fits the middles
and widths. So scores can also be compared with and without vectors, and between models.

A chunk is found by its text, the headings above it, the path of its file, and the rest of its file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.replies.grades import NONE_LEAST, Least
from greenroom.actors.search.ranking import meaning
from greenroom.actors.search.ranking.chunks import (
    FACTORS,
    Chunks,
    Group,
    add_files,
    best_places,
    group_of,
    saturate,
)
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.spelling import find_corrections
from greenroom.actors.search.ranking.sums import RankedRow, SignalSum, find_place, logistic, weigh
from greenroom.actors.search.ranking.view import Floats
from greenroom.actors.search.ranking.weights import DOCUMENT_WEIGHTS
from greenroom.runtime import Slices

_SCALES: Final[Mapping[str, tuple[float, float]]] = {
    "words": (1.42, 0.325),
    "both, static": (1.88, 0.477),
    "meaning, static": (1.11, 0.259),
    "both, sentences": (1.88, 0.477),
    "meaning, sentences": (0.74, 0.162),
}
"""For each kind of comparison: the share with a score of 0.5, and the width; one width above, it is 0.73."""
_MATCHES: Final[Mapping[str, float]] = {
    "words": 0.34,
    "both, static": 0.42,
    "meaning, static": 0.21,
    "both, sentences": 0.30,
    "meaning, sentences": 0.20,
}
"""For each kind of comparison: the share with a match of 0.5.

Then 95 of 100 right chunks with half of the query's words have a match above 0.7 (`bench.scores`).
"""
_FLOORS: Final[Mapping[str, float]] = {
    "words": 0.06,
    "both, static": 0.06,
    "meaning, static": 0.04,
    "both, sentences": 0.04,
    "meaning, sentences": 0.04,
}
"""For each kind of comparison: if the best score is lower than this, nothing is an answer.

More than 98 of 100 questions that have an answer score higher (`bench.scores`).
"""
EVEN: Final = 8.0
"""Added to the worth of a query's words, so that a single common word does not give certainty."""
_FIELDS: Final = {"text": "text", "key": "headings", "tags": "heading", "author": "path"}
"""The signal of each field of the index."""
_NOWHERE: Final = (np.empty(0, np.int32), np.empty(0, np.float32))


class RankedChunks(NamedTuple):
    """The best rows, best first.

    Attributes:
        shares: The strength of each row, divided by the worth of the query.
        scores: The measured relevance of each row, 0 to 1.
        matches: How well each row matches, 0 to 1.
        total: How many rows have the requested least score, and a word of the query or a score of 0.5. It is
            at least the number of returned rows.
        corrected: For each term that no chunk has, the terms that were looked up instead.
        unknown: Terms that no chunk has and that resemble no known term.
        is_nothing: Whether all rows are too weak to be an answer.
        parts: What each signal added to the strength of each row; empty unless requested.
        about: The row that the caller named; None if none was named.
        weights: The weight of each term of the query, by its rarity.
    """

    rows: npt.NDArray[np.intp]
    shares: Floats
    scores: Floats
    matches: Floats
    total: int
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    is_nothing: bool
    parts: Sequence[Mapping[str, float]] = ()
    about: RankedRow | None = None
    weights: Mapping[str, float] = MappingProxyType({})

    def reorder(self, order: Sequence[int], limit: int) -> RankedChunks:
        """Return the best rows in another order; each place keeps its score."""
        rows = self.rows[list(order)]
        about = self.about
        if about is not None and about.row in rows:
            about = about._replace(place=1 + rows.tolist().index(about.row))
        return self._replace(
            rows=rows[:limit],
            shares=self.shares[:limit],
            scores=self.scores[:limit],
            matches=self.matches[:limit],
            parts=[self.parts[place] for place in order[:limit]] if self.parts else self.parts,
            about=about,
        )


def rank_chunks(
    view: Chunks,
    query: RankQuery,
    *,
    limit: int,
    least: Least = NONE_LEAST,
    only: str | None = None,
    explain: bool = False,
    about: Sequence[int] = (),
) -> Slices[RankedChunks]:
    """Return the ``limit`` best chunks.

    With ``only``, rows are compared by ``words`` or by ``meaning`` alone. The strongest row of ``about`` is
    reported even if it is not among the best.
    """
    groups, corrected, unknown = yield from _read(view, query)
    towards = None if only == "words" else _query_vector(view, query, groups)
    cosine: Floats | None = None
    if towards is not None:
        assert query.vectors is not None, "the vector is made of them"
        cosine = yield from meaning.cosines(view, query.vectors.space, towards)
    size = len(view.visible)
    strengths, coverage = SignalSum(size, explain=explain), np.zeros(size, np.float32)
    if only != "meaning":
        yield from _add_words(view, groups, strengths, coverage)
    if cosine is not None:
        _add(strengths, {"meaning": cosine})
    strength = strengths.total
    yield
    worth = EVEN + (0.0 if only == "meaning" else sum(group.weight for group in groups))
    compared = "words" if cosine is None else _compared(query, only)
    middle, width = _SCALES[compared]
    match_middle = _MATCHES[compared]
    related = coverage > 0
    found = view.visible if cosine is not None else related  # postings have only visible rows
    for at, wanted in ((middle, least.relevance), (match_middle, least.score)):
        if wanted > 0:
            found = found & (strength >= worth * (at + width * _logit(wanted)))
    rows = np.flatnonzero(found)
    best = rows[best_places(strength[rows], limit)]
    # With vectors every row has some cosine with the query, so only likely rows are counted.
    likely = found & (related | (strength >= worth * middle))
    total = max(len(best), int(np.count_nonzero(likely)))
    shares = strength[best] / np.float32(worth)
    named = None
    if len(about):
        row = int(about[int(np.argmax(strength[list(about)]))])
        share = strength[[row]] / np.float32(worth)
        score, match = (float(logistic(share, at, width)[0]) for at in (middle, match_middle))
        named = RankedRow(row, score, match, find_place(strength, found, row), strengths.parts(row))
    scores: Floats = logistic(shares, middle, width)
    # A row with every word of the query is an answer, however common the words are.
    is_nothing = not len(best) or (bool(unknown) and float(scores[0]) < _FLOORS[compared])
    return RankedChunks(
        rows=best,
        shares=shares,
        scores=scores,
        matches=logistic(shares, match_middle, width),
        total=total,
        corrected=corrected,
        unknown=unknown,
        is_nothing=is_nothing,
        parts=[strengths.parts(row) for row in best.tolist()] if explain else (),
        about=named,
        weights={group.term: group.weight for group in groups},
    )


def _compared(query: RankQuery, only: str | None) -> str:
    """Return the key of `_SCALES` for the comparison that a query gets."""
    assert query.vectors is not None, "meaning was compared"
    vectors = "static" if query.vectors.sentence is None else "sentences"
    return f"{only or 'both'}, {vectors}"


def _logit(score: float) -> float:
    """Return the distance of a score from the middle, in widths."""
    return math.log(score / (1 - score)) if score < 1 else math.inf


def _add(
    strengths: SignalSum, signals: Mapping[str, Floats], rows: Any = slice(None), times: float = 1.0
) -> None:
    """Add signals, each times its weight."""
    for name, part in weigh(signals, DOCUMENT_WEIGHTS, times=times):
        strengths.add(name, part, rows)


def _add_words(view: Chunks, groups: Sequence[Group], strengths: SignalSum, coverage: Floats) -> Slices[None]:
    """Add signals of words to ``strengths``, and rows' shares of the query to ``coverage``."""
    if not groups:
        return
    files = np.zeros(len(view.file_lengths), np.float32)
    titled = np.zeros(len(coverage), np.float32)
    everything = sum(group.weight for group in groups) or 1.0
    for group in groups:
        for field, (rows, times) in group.found.items():
            signal = saturate(times, view.norms(field)[rows], FACTORS[field])
            _add(strengths, {_FIELDS[field]: signal}, rows, group.weight)
            if field == "tags":
                titled[rows] += np.float32(group.weight)
            if field == "text":
                add_files(view, files, group)
            yield
        _cover(coverage, group, np.float32(group.weight / everything))
    _add(strengths, {"file": files[view.corpus.author], "coverage": coverage})
    # A word that a heading has and the query lacks counts as a word of middling rarity.
    headed = np.flatnonzero(titled)
    more = np.maximum(view.field("tags")[headed] - np.float32(len(groups)), 0)
    more *= np.float32(everything / len(groups))
    _add(strengths, {"titled": titled[headed] / (np.float32(everything) + more)}, headed)


def _cover(coverage: Floats, group: Group, share: np.float32) -> None:
    """Add a term's share, once, to rows that have the term in text or headings."""
    own, above = (group.found.get(field, _NOWHERE)[0] for field in ("text", "key"))
    headed = coverage[above] + share
    coverage[own] += share
    coverage[above] = headed


def _read(
    view: Chunks, query: RankQuery
) -> Slices[tuple[list[Group], dict[str, tuple[str, ...]], list[str]]]:
    """Return the query's terms, the replacements of unknown ones, and terms that stay unknown.

    If only parts of an identifier are found, it still counts in the query's worth. Otherwise a corpus without
    the identifier would answer with more certainty than a corpus that has it.
    """
    groups: list[Group] = []
    corrected: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for term in query.terms:
        found = [group_of(view, term.term)]
        if not found[0].chunks:
            parts = [group_of(view, part) for part in term.instead]
            parts = [group for group in parts if group.chunks]
            if parts:
                corrected[term.word] = tuple(part.term for part in parts)
                found += parts
            elif meant := (yield from find_corrections(view, term)):
                corrected[term.word] = tuple(correction.term for correction in meant)
                found = [group_of(view, term.term, meant)]
            else:
                unknown.append(term.word)
        groups += found
        yield
    return groups, corrected, unknown


def _query_vector(view: Chunks, query: RankQuery, groups: Sequence[Group]) -> Floats | None:
    """Return the query's vector; None without vectors."""
    vectors = query.vectors
    if vectors is None:
        return None
    counts = {group.term: group.chunks for group in groups}
    weights = meaning.word_weights(
        view.count, vectors.words, frozenset(), counts, in_context=vectors.sentence is not None
    )
    return meaning.query_vector(vectors, weights)
