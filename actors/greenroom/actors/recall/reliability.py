"""How far scores are from the share of answers at them that were right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

TENTHS: Final = 10


class Scored(NamedTuple):
    """An answer's score, 0 to 1, and whether it was right."""

    score: float
    right: bool


class Tenth(NamedTuple):
    """The answers whose scores lie in one tenth of the scale.

    Attributes:
        least: The least score that belongs here.
        most: The least that no longer does; the last tenth has 1 as well.
        found: How many answers.
        score: Their mean score; None without any.
        right: Their share that was right; None without any.
    """

    least: float
    most: float
    found: int
    score: float | None
    right: float | None


def tenths(scored: Iterable[Scored]) -> list[Tenth]:
    """Return all ten, the lowest first."""
    filled: list[list[Scored]] = [[] for _ in range(TENTHS)]
    for each in scored:
        filled[min(TENTHS - 1, int(each.score * TENTHS))].append(each)
    return [_tenth(place, some) for place, some in enumerate(filled)]


def _tenth(place: int, scored: Sequence[Scored]) -> Tenth:
    least, most = place / TENTHS, (place + 1) / TENTHS
    if not scored:
        return Tenth(least, most, 0, None, None)
    score, right = (fmean(column) for column in zip(*scored, strict=True))
    return Tenth(least, most, len(scored), score, right)


def expected_error(scored: Sequence[Scored]) -> float:
    """Return the mean distance of score and right share, each tenth by its answers; 0 without any."""
    gaps = (
        each.found * abs(each.score - each.right)
        for each in tenths(scored)
        if each.score is not None and each.right is not None
    )
    return sum(gaps) / max(1, len(scored))
