"""Grades of search results by measured relevance, and a caller's thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Grade = Literal["high", "medium", "low"]
GRADES: Final[Mapping[Grade, float]] = {"high": 0.5, "medium": 0.1, "low": 0.0}
"""The least relevance of each grade. At least half of the hits of grade high are right."""
WEAK: Final = 0.25
"""A list of memories is weak if its measured chance of a right answer is below this."""
GOOD: Final = 0.7
"""A list of passages is weak if no score exceeds this. Of right answers with half of the query's words, 95 %
exceed it."""


class Least(NamedTuple):
    """The thresholds of a search."""

    score: float
    relevance: float


NONE_LEAST: Final = Least(0.0, 0.0)


def grade_of(relevance: float) -> Grade:
    """Return the grade of a hit."""
    return next(grade for grade, least in GRADES.items() if relevance >= least)


def least_of(score: float | Grade | None, relevance: float | Grade | None) -> Least:
    """Return both thresholds as numbers; a word in either argument means a grade of relevance."""
    grades = [GRADES[each] for each in (score, relevance) if isinstance(each, str)]
    return Least(
        0.0 if score is None or isinstance(score, str) else score,
        max([0.0 if relevance is None or isinstance(relevance, str) else relevance, *grades]),
    )
