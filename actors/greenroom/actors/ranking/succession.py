"""Which note takes the place of which: what is asked for as it is now stands in the newer of the two.

Two notes about one matter share its rare words and mean similar things, and the newer one often says itself
that something changed: "moved from X to Y", "no longer", "instead". From these comes, for each pair, the
probability that the later note succeeds the earlier one. It is a logistic regression, fitted together with
the order that it leads to, on questions whose answer was replaced and on many more whose answer was not.

A question for the present state asks for its best match, or for what succeeded it. So each note hands its
chance to what succeeds it, and keeps the rest:

    chance of a note = its own · (1 - probability that it is succeeded)
                       + sum over earlier notes of  theirs · probability that it succeeds them

where the own chances are a softmax of the strengths. A question for a former state goes the other way round.
All of it is among the best matches of one search: nothing else is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.ranking.lexical import idf

if TYPE_CHECKING:
    from greenroom.actors.ranking.intent import State
    from greenroom.actors.ranking.weights import VectorSet

    Floats = npt.NDArray[np.floating]
    Places = npt.NDArray[np.intp]

COMPARED: Final = 50
"""Best matches among which successions are looked for."""
_SHARP: Final = {"words": 3.8, "static": 3.0, "sentences": 2.1, "tokens": 2.1}
"""How much a strength, as log-odds, tells which of the best matches is meant."""
_LEAST: Final = 1e-12
_AT_ONCE: Final = 60_000_000
"""Microseconds within which notes are stored at once: they are mostly of one state of things."""
_LESS_AT_ONCE: Final = 1.5
_COMMON: Final = 0.2
"""What more than this part of the notes has is no sign of one matter."""


class _Pairs(NamedTuple):
    """Weights of what tells that a later note succeeds an earlier one; the sum is a logit."""

    cosine: float
    shared: float
    overlap: float
    later_tells: float
    earlier_tells: float
    none: float


_WORDS: Final = _Pairs(0.0, 2.3, 7.2, 2.6, -2.7, -6.5)
_STATIC: Final = _Pairs(13.3, 1.6, 6.8, 2.6, -2.9, -10.0)
_SENTENCES: Final = _Pairs(16.0, 1.1, 6.5, 2.7, -2.6, -10.5)
_TABLES: Final = {"words": _WORDS, "static": _STATIC, "sentences": _SENTENCES, "tokens": _SENTENCES}

_CHANGE: Final = re.compile(
    r"\b(?:(?:mov|switch|migrat|shift|transferr|relocat|replac|retir|cancel|cancell|clos|dropp|abandon"
    r"|discontinu|supersed|disconnect|decommission|swapp|scrapp|stopp|expir|convert)ed|sold|ran out"
    r"|gave up|given up|(?:took|taken|takes) over|no (?:longer|more)|any ?more|any longer|instead"
    r"|from now on|since (?:this|next) \w+|(?:is|are|was|were) (?:gone|dead|history|over)"
    r"|(?:has|have) (?:left|gone|begun)"
    r"|nicht mehr|umgezogen|ab sofort|gewechselt|ersetzt|stattdessen|sondern"
    r"|désormais|déménagé|plus de|remplacé\w*|ya no|en (?:vez|lugar) de|reemplaz\w+|desde esta)\b",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """What is compared of a note.

    Attributes:
        terms: Of its text and its tags.
        tells: Whether it says that something changed.
        made: When, in microseconds since 1970.
    """

    terms: frozenset[str]
    tells: bool
    made: int


def tells_change(text: str) -> bool:
    """Return whether a text says that something took the place of something else."""
    return _CHANGE.search(text) is not None


def successions(statements: Sequence[Statement], cosines: Floats | None, vectors: VectorSet) -> Floats:
    """Return the probability that each note, by line, succeeds each other, by column.

    Args:
        statements: The notes.
        cosines: Of their vectors; None without.
        vectors: What these are.
    """
    weights = _WORDS if cosines is None else _TABLES[vectors]
    shared, overlap = _common(statements)
    tells = np.array([each.tells for each in statements], np.float64)
    made = np.array([each.made for each in statements], np.int64)
    logit = weights.shared * shared + weights.overlap * overlap + weights.none
    logit += weights.later_tells * tells[:, None] + weights.earlier_tells * tells[None, :]
    after = made[:, None] - made[None, :]
    if cosines is not None:
        logit += weights.cosine * cosines - _LESS_AT_ONCE * (after < _AT_ONCE)
    found: Floats = (after > 0) / (1 + np.exp(-logit))
    return found


def _common(statements: Sequence[Statement]) -> tuple[Floats, Floats]:
    """Return the logarithm of the rarity that each two share, and which part of theirs that is."""
    counts = Counter(term for each in statements for term in each.terms)
    common = max(2, len(statements) * _COMMON)
    rarity = np.array([idf(count, len(statements)) * (count <= common) for count in counts.values()])
    places = {term: place for place, term in enumerate(counts)}
    has = np.zeros((len(statements), len(counts)))
    for line, each in zip(has, statements, strict=True):
        line[[places[term] for term in each.terms]] = 1
    shared = (has * rarity) @ has.T
    whole = np.sqrt(np.maximum(shared.diagonal(), 1e-6))
    return np.log1p(shared), shared / (whole[:, None] * whole[None, :])


def gains(strengths: Floats, probabilities: Floats, vectors: VectorSet, state: State) -> Floats:
    """Return what each note's strength gains or loses when ``state`` is asked for.

    Args:
        strengths: Of each note, as log-odds.
        probabilities: As `successions` has them.
        vectors: Which vectors decided on the strengths.
        state: What is asked for.
    """
    sharp = _SHARP[vectors]
    own = np.exp(sharp * (strengths - strengths.max()))
    towards = probabilities if state == "present" else probabilities.T
    chances = own * (1 - towards.max(axis=0)) + towards @ own
    gained: Floats = (np.log(np.maximum(chances, _LEAST)) - np.log(np.maximum(own, _LEAST))) / sharp
    return gained
