"""Grades of what a search finds, by its measured relevance; and the least that a caller takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Grade = Literal["high", "medium", "low"]
GRADES: Final[Mapping[Grade, float]] = {"high": 0.5, "medium": 0.1, "low": 0.0}
"""The least relevance of each grade: a hit of grade high is right at least as often as it is wrong."""
WEAK: Final = 0.25
"""A list of memories is weak where the measured chance that it has a right answer is less."""
GOOD: Final = 0.7
"""A list of passages is weak where none has a better score, as 95 of 100 right answers have that have half of
the query's words."""


class Least(NamedTuple):
    """The least that a search answers."""

    score: float
    relevance: float


NONE_LEAST: Final = Least(0.0, 0.0)


def grade_of(relevance: float) -> Grade:
    """Return the grade of a hit."""
    return next(grade for grade, least in GRADES.items() if relevance >= least)


def least_of(score: float | Grade | None, relevance: float | Grade | None) -> Least:
    """Return the least of both as numbers; a word compares the grade, whichever of them it is given for."""
    grades = [GRADES[each] for each in (score, relevance) if isinstance(each, str)]
    return Least(
        0.0 if score is None or isinstance(score, str) else score,
        max([0.0 if relevance is None or isinstance(relevance, str) else relevance, *grades]),
    )
