"""The order of the files of source code for a query: a sum of absolute signals, and its weights.

    strength = sum of weight * signal
    share    = strength / (what the query's words are worth together + EVEN)
    score, match = 1 / (1 + exp(-(share - middle) / width)), each with its own middle and width

What is found is a file, with the passages of it that say most. Nothing depends on what else is found, so
scores can be compared between queries.

The weights were fitted to 525 questions about 13 public repositories and rounded; they do on these what
weights do that were fitted to the other twelve (`bench.tune_code`). Vectors are not asked: those of
`embedding.static` put one question in a hundred more in the first place, of one kind, and help none of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from greenroom.actors.core.replies.grades import NONE_LEAST, Least
from greenroom.actors.ranking.sums import Asked, place_among
from greenroom.actors.search.ranking.chunks import best_places
from greenroom.actors.search.ranking.code_query import CodeQuery
from greenroom.actors.search.ranking.code_signals import SourceView, file_signals, passages_say, read_terms
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.view import Floats, Mask

WEIGHTS: Final[Mapping[str, float]] = {
    "passage": 0.07,
    "spread": 0.025,
    "file": 0.25,
    "path": 0.25,
    "stem": 2.0,
    "compound": 2.0,
    "defined": 2.5,
    "size": 0.25,
    "test": -2.5,
    "aside": -1.5,
    "prose": -2.5,
}
"""The weights of the signals, see `code_signals.SIGNALS`."""
PASSAGES: Final = 3
"""Passages of a file that are returned at most."""
EVEN: Final = 8.0
"""Added to what a query's words are worth, so that one common word is not answered with certainty."""
_MATCH: Final = 0.11, 0.08
"""The share of what the query is worth that is a match of a half, and how much more makes it 0.73: 95 of 100
right files that have half of the query's words have more than 0.7 then (`bench.scores`)."""
_RELEVANCE: Final = 0.65, 0.124
"""Likewise of the share of right files among the ten best, to questions of which half are of another
repository: fitted by `bench.scores`."""


class RankedFile(NamedTuple):
    """A file that was found.

    Attributes:
        path: Where it is.
        score: Its measured relevance, 0 to 1.
        match: How well it matches, 0 to 1.
        rows: Its passages that say something of the query, best first: rows of the index.
        parts: What each signal added to its strength, or took from it.
    """

    path: str
    score: float
    match: float
    rows: Sequence[int]
    parts: Mapping[str, float]

    @property
    def signals(self) -> dict[str, float]:
        """What spoke for it, and how much."""
        return {name: value for name, value in self.parts.items() if value > 0}


class RankedFiles(NamedTuple):
    """The best files, best first.

    Attributes:
        files: These.
        total: How many files have a word of the query, and the least score at least.
        corrected: What was looked for instead of words that are nowhere.
        unknown: Words that are nowhere, and that nothing is like.
        worth: What the query's words are worth together.
        about: The file that was asked about, its row a file's number; None where none was.
    """

    files: Sequence[RankedFile]
    total: int
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    worth: float
    about: Asked | None = None


def rank_files(
    view: SourceView,
    query: CodeQuery,
    should_yield: Callable[[], bool],
    *,
    limit: int,
    least: Least = NONE_LEAST,
    below: Mask | None = None,
    about: int | None = None,
) -> Slices[RankedFiles]:
    """Return the ``limit`` best files; yields when ``should_yield()``.

    Args:
        view: The passages.
        query: What is looked for.
        should_yield: Whether to yield.
        limit: How many are returned at most.
        least: The match and the score that they have at least.
        below: Which files are looked at, by number; all unless given.
        about: The number of a file that is told of, even where it is not among the best.
    """
    groups, corrected, unknown = yield from read_terms(view, query, should_yield)
    said = yield from passages_say(view, groups, should_yield)
    values = yield from file_signals(view, query, groups, said, should_yield)
    strength = np.zeros(len(view.corpus.authors), np.float32)
    for name, value in values.items():
        strength += np.float32(WEIGHTS[name]) * value
    worth = sum(group.weight for group in groups)
    shares = strength / np.float32(worth + EVEN)
    found = (values["passage"] > 0) | (values["path"] > 0)
    for scale, wanted in ((_MATCH, least.score), (_RELEVANCE, least.relevance)):
        if wanted > 0:
            found &= _worth(shares, scale) >= wanted
    if below is not None:
        found &= below
    files = np.flatnonzero(found)
    best = files[best_places(strength[files], limit)]
    scores, matches = (_worth(shares[best], scale).tolist() for scale in (_RELEVANCE, _MATCH))
    ranked: list[RankedFile] = []
    for number, score, match in zip(best.tolist(), scores, matches, strict=True):
        ranked.append(
            RankedFile(
                path=view.corpus.authors[number],
                score=score,
                match=match,
                rows=_passages(view, said, number),
                parts=_parts(values, number),
            )
        )
        if should_yield():
            yield
    told = None
    if about is not None:
        place = place_among(strength, found, about)
        score, match = (float(_worth(shares[about], scale)) for scale in (_RELEVANCE, _MATCH))
        told = Asked(about, score, match, place, _parts(values, about))
    return RankedFiles(ranked, len(files), corrected, unknown, worth, told)


def _worth(shares: Any, scale: tuple[float, float]) -> Any:
    """Return what shares of what a query is worth are on a scale, 0 to 1."""
    middle, width = scale
    return 1 / (1 + np.exp((np.float32(middle) - shares) / np.float32(width)))


def _parts(values: Mapping[str, Floats], number: int) -> dict[str, float]:
    """Return what each signal added to the strength of a file."""
    parts = {name: float(WEIGHTS[name] * value[number]) for name, value in values.items()}
    return {name: part for name, part in parts.items() if part}


def signals(
    view: SourceView, query: CodeQuery, should_yield: Callable[[], bool]
) -> Slices[dict[str, Floats]]:
    """Return the signals of each file, by its number, for those who fit weights."""
    groups, _, _ = yield from read_terms(view, query, should_yield)
    said = yield from passages_say(view, groups, should_yield)
    return (yield from file_signals(view, query, groups, said, should_yield))


def _passages(view: SourceView, strength: Floats, number: int) -> list[int]:
    """Return the best passages of a file, without those that say far less than the best."""
    rows = np.flatnonzero((view.corpus.author == number) & view.visible)
    best = rows[best_places(strength[rows], PASSAGES)]
    return [row for row in best.tolist() if strength[row] * 2 >= strength[best[0]]]
