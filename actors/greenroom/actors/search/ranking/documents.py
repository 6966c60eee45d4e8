"""The order of the chunks of documents for a query: a sum of absolute signals, and its weights.

    strength = sum of weight * signal
    share    = strength / (what the query's words are worth together + EVEN)
    score    = 1 / (1 + exp(-(share - middle) / width))

Nothing here depends on what else is found, so scores can be compared between queries. The weights are round
numbers that stood before anything was measured. On 120 headings of the documentation of four public
repositories, each asked for its section, none that were fitted to three of them did better on the fourth
(they lost 1 to 3 points of MRR), so they stayed. A score is the share of answers with it that were of the
right file, among the ten best to these headings and as many that nothing answers: `bench.relevance` fits the
middles and widths, so that scores with vectors and without, or of several models, can be compared as well.

A chunk is found by its text, by the headings above it and by the path of its file, and by what the rest of
its file says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.replies.grades import NONE_LEAST, Least
from greenroom.actors.ranking.sums import Asked, SignalSum, place_among
from greenroom.actors.search.ranking import meaning
from greenroom.actors.search.ranking.chunks import (
    FACTORS,
    Chunks,
    Group,
    add_files,
    best_places,
    group_of,
    saturated,
)
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.spelling import Correction, corrections
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.view import Floats, Rows

    Postings = tuple[Rows, Floats]

MEANING: Final = 12.0
"""The weight of the signal ``meaning``."""
WEIGHTS: Final[Mapping[str, float]] = {
    "text": 1.0,
    "headings": 0.6,
    "heading": 0.6,
    "path": 0.2,
    "file": 0.3,
    "coverage": 4.0,
    "titled": 4.0,
    "meaning": MEANING,
}
"""The weights of the signals."""
SIGNALS: Final[Mapping[str, str]] = {
    "text": "A chunk that says the query's words is wanted; rare words say more than common ones (BM25).",
    "headings": "The document's title and the headings above a chunk say what it is about (BM25).",
    "heading": "... the nearest of them most.",
    "path": "Files and folders are named by what they are about (BM25).",
    "file": "A document about what is asked is where to look (BM25 of all its chunks together).",
    "coverage": "Which share of the query, by rarity, the chunk and its headings say.",
    "titled": "The nearest heading is the query, or which share of it is (both ways, by rarity).",
    "meaning": "The chunk means what is asked, whatever its words (cosine).",
}
"""The signals, and why there is each."""

_SCALES: Final[Mapping[str, tuple[float, float]]] = {
    "words": (1.42, 0.325),
    "both, static": (1.88, 0.477),
    "meaning, static": (1.11, 0.259),
    "both, sentences": (1.88, 0.477),
    "meaning, sentences": (0.74, 0.162),
}
"""By what was compared: the share that is a score of a half, and how much more makes it 0.73."""
_MATCHES: Final[Mapping[str, float]] = {
    "words": 0.34,
    "both, static": 0.42,
    "meaning, static": 0.21,
    "both, sentences": 0.30,
    "meaning, sentences": 0.20,
}
"""Likewise, the share that is a match of a half: 95 of 100 chunks of the right file with half of the query's
words have more than 0.7 then (`bench.scores`)."""
_FLOORS: Final[Mapping[str, float]] = {
    "words": 0.06,
    "both, static": 0.06,
    "meaning, static": 0.04,
    "both, sentences": 0.04,
    "meaning, sentences": 0.04,
}
"""Likewise, the score of the best below which nothing is taken for an answer; more than 98 of 100 questions
that have one have more (`bench.scores`)."""
EVEN: Final = 8.0
"""Added to what a query's words are worth, so that one common word is not answered with certainty."""
_FIELDS: Final = {"text": "text", "key": "headings", "tags": "heading", "author": "path"}
"""The signals of the index's fields."""
_NOWHERE: Final = (np.empty(0, np.int32), np.empty(0, np.float32))


class RankedChunks(NamedTuple):
    """The best rows, best first.

    Attributes:
        rows: Their numbers in the index.
        shares: Their strengths by what the query is worth.
        scores: The measured relevance of each, 0 to 1.
        matches: How well each matches, 0 to 1.
        total: How many rows have a word of the query, or a score of a half, and the least at least; not
            fewer than are returned.
        corrected: What was looked for instead of terms that no chunk has.
        unknown: Terms that no chunk has, and that nothing is like.
        has_vectors: Whether meaning was compared.
        is_nothing: Whether all of it is so weak that nothing can be taken for an answer.
        parts: What each signal added to the strength of each row, if that was asked for.
        about: The row that was asked about; None where none was.
        weights: What each term of the query counts, by its rarity.
    """

    rows: npt.NDArray[np.intp]
    shares: Floats
    scores: Floats
    matches: Floats
    total: int
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    has_vectors: bool
    is_nothing: bool
    parts: Sequence[Mapping[str, float]] = ()
    about: Asked | None = None
    weights: Mapping[str, float] = MappingProxyType({})

    def moved(self, order: Sequence[int], limit: int) -> RankedChunks:
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
    should_yield: Callable[[], bool],
    *,
    limit: int,
    least: Least = NONE_LEAST,
    only: str | None = None,
    explain: bool = False,
    about: Sequence[int] = (),
) -> Slices[RankedChunks]:
    """Return the ``limit`` best chunks; yields when ``should_yield()``.

    Args:
        view: The chunks.
        query: What is looked for.
        should_yield: Whether to yield.
        limit: How many are returned at most.
        least: The match and the score that they have at least.
        only: ``words`` or ``meaning``, to go by these alone.
        explain: Whether to tell what each signal added.
        about: Rows of which the strongest is told of, even where it is not among the best.
    """
    groups, corrected, unknown = yield from _read(view, query, should_yield)
    towards = None if only == "words" else _towards(view, query, groups)
    cosine: Floats | None = None
    if towards is not None:
        assert query.vectors is not None, "it is made of them"
        cosine = yield from meaning.cosines(view, query.vectors.space, towards, should_yield)
    words = _Words.nothing(view, apart=explain)
    if only != "meaning":
        yield from _by_words(view, groups, words, should_yield)
    if cosine is not None:
        cosine *= np.float32(MEANING)
        words.sum.add("meaning", cosine)
    strength = words.sum.total
    if should_yield():
        yield
    worth = EVEN + (0.0 if only == "meaning" else sum(group.weight for group in groups))
    compared = "words" if cosine is None else _compared(query, only)
    middle, width = _SCALES[compared]
    related = words.coverage > 0
    found = view.visible if cosine is not None else related  # postings have visible rows alone
    for at, wanted in ((middle, least.relevance), (_MATCHES[compared], least.score)):
        if wanted > 0:
            found = found & (strength >= worth * (at + width * _logit(wanted)))
    rows = np.flatnonzero(found)
    best = rows[best_places(strength[rows], limit)]
    # What is meant is near everything, more or less: that alone says nothing of how many there are.
    likely = found & (related | (strength >= worth * middle))
    total = max(len(best), int(np.count_nonzero(likely)))
    shares = strength[best] / np.float32(worth)
    told = None
    if len(about):
        row = int(about[int(np.argmax(strength[list(about)]))])
        score = float(_scores(strength[[row]] / np.float32(worth), middle, width)[0])
        match = float(_scores(strength[[row]] / np.float32(worth), _MATCHES[compared], width)[0])
        told = Asked(row, score, match, place_among(strength, found, row), words.sum.parts(row))
    scores = _scores(shares, middle, width)
    # What has every word of the query is one, be they as common as they may.
    is_nothing = not len(best) or (bool(unknown) and float(scores[0]) < _FLOORS[compared])
    return RankedChunks(
        best,
        shares,
        scores,
        _scores(shares, _MATCHES[compared], width),
        total,
        corrected,
        unknown,
        cosine is not None,
        is_nothing,
        [words.sum.parts(row) for row in best.tolist()] if explain else (),
        told,
        {group.asked: group.weight for group in groups},
    )


def _scores(shares: Floats, middle: float, width: float) -> Floats:
    """Return what shares of what a query is worth are as scores."""
    found: Floats = 1 / (1 + np.exp((np.float32(middle) - shares) / np.float32(width)))
    return found


def _compared(query: RankQuery, only: str | None) -> str:
    """Return the name of what a query with vectors is compared by."""
    assert query.vectors is not None, "meaning was compared"
    vectors = "static" if query.vectors.sentence is None else "sentences"
    return f"{only or 'both'}, {vectors}"


def _logit(score: float) -> float:
    """Return how many widths from the middle a score is."""
    return math.log(score / (1 - score)) if score < 1 else math.inf


class _Words(NamedTuple):
    """What the words of a query say of each row.

    Attributes:
        sum: The signals that need no embedder, by their weights.
        coverage: Which share of the query each row has.
    """

    sum: SignalSum
    coverage: Floats

    @classmethod
    def nothing(cls, view: Chunks, *, apart: bool) -> _Words:
        """Return what no words say."""
        size = len(view.visible)
        return cls(SignalSum(size, apart=apart), np.zeros(size, np.float32))


def _by_words(
    view: Chunks, groups: Sequence[Group], words: _Words, should_yield: Callable[[], bool]
) -> Slices[None]:
    """Add what the words of a query say."""
    if not groups:
        return
    strength, coverage = words
    files = np.zeros(len(view.file_lengths), np.float32)
    titled = np.zeros(len(coverage), np.float32)
    everything = sum(group.weight for group in groups) or 1.0
    for group in groups:
        for field, (rows, times) in group.found.items():
            name = _FIELDS[field]
            weight = np.float32(group.weight * WEIGHTS[name])
            strength.add(name, weight * saturated(times, view.norms(field)[rows], FACTORS[field]), rows)
            if field == "tags":
                titled[rows] += np.float32(group.weight)
            if field == "text":
                add_files(view, files, group)
            if should_yield():
                yield
        _cover(coverage, group, np.float32(group.weight / everything))
    files *= np.float32(WEIGHTS["file"])
    strength.add("file", files[view.corpus.author])
    strength.add("coverage", np.float32(WEIGHTS["coverage"]) * coverage)
    # Of a heading's words as many as are not in the query count as words of middling rarity.
    headed = np.flatnonzero(titled)
    more = np.maximum(view.field("tags")[headed] - np.float32(len(groups)), 0)
    more *= np.float32(everything / len(groups))
    share = titled[headed] / (np.float32(everything) + more)
    strength.add("titled", np.float32(WEIGHTS["titled"]) * share, headed)


def _cover(coverage: Floats, group: Group, share: np.float32) -> None:
    """Add a term's share to the rows that say it themselves or in the headings above them, once to each."""
    own, above = (group.found.get(field, _NOWHERE)[0] for field in ("text", "key"))
    headed = coverage[above] + share
    coverage[own] += share
    coverage[above] = headed


def _read(
    view: Chunks, query: RankQuery, should_yield: Callable[[], bool]
) -> Slices[tuple[list[Group], dict[str, tuple[str, ...]], list[str]]]:
    """Return the query's terms, what was looked for instead of unknown ones, and what stays unknown.

    An identifier of which only parts are there counts for what a query is worth, else a corpus that lacks it
    would answer its parts with more certainty than one that has it.
    """
    groups: list[Group] = []
    corrected: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for term in query.terms:
        found = [group_of(view, term.term, [Correction(term.term, 1.0, 0)])]
        if not found[0].chunks:
            parts = [group_of(view, part, [Correction(part, 1.0, 0)]) for part in term.instead]
            parts = [group for group in parts if group.chunks]
            if parts:
                corrected[term.word] = tuple(part.asked for part in parts)
                found += parts
            elif meant := (yield from corrections(view, term, should_yield)):
                corrected[term.word] = tuple(correction.term for correction in meant)
                found = [group_of(view, term.term, meant)]
            else:
                unknown.append(term.word)
        groups += found
        if should_yield():
            yield
    return groups, corrected, unknown


def _towards(view: Chunks, query: RankQuery, groups: Sequence[Group]) -> Floats | None:
    """Return the query's vector, None where it has none."""
    vectors = query.vectors
    if vectors is None:
        return None
    counts = {group.asked: group.chunks for group in groups}
    weights = meaning.word_weights(
        view, vectors.words, frozenset(), counts, in_context=vectors.sentence is not None
    )
    return meaning.query_vector(vectors, weights)
