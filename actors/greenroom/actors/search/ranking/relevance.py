"""Relevance: the measured share of right answers at each strength.

The weights of the signals are fitted so that the right memory is the strongest: a choice of one among
several. Relevance is fitted in the same way, with one more choice, that no memory is right:

    odds      = exp(slope * strength - nothing)
    relevance = odds / (1 + sum of the best memories' odds)

These are the odds of one memory against no answer, whatever else was found. They bring memories of several
kinds and namespaces into one order. If many memories fit, each of them is less likely to be the right one.
``nothing`` grows with the number of memories: among many, one resembles the query by chance more often.

`bench.relevance` fits the numbers for each kind of memory and set of vectors. It uses the first ten results
for questions with known answers, and for questions without an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking.lexical import FEW
from greenroom.actors.search.ranking.view import Floats
from greenroom.actors.search.ranking.weights import KINDS, Kind, VectorSet

RIVALS: Final = 10
"""How many of the best memories share the relevance of a list."""
A_FEW: Final = 100
"""Up to this many memories `Scale.floor` applies; with more, `Scale.floor_of_many`."""
_HIGHEST: Final = 60.0


class Scale(NamedTuple):
    """The numbers that turn a strength into odds.

    Attributes:
        slope: How much the logarithm of the odds grows with the strength.
        nothing: The slope times the strength at which a memory is as likely as no answer.
        growth: How much ``nothing`` grows with the logarithm of the number of memories divided by `FEW`.
        floor: For few memories: no memory is an answer if the best one's probability is lower. Of the lists
            below it, fewer than one in ten begin with an answer. Few lists with an answer are below it.
        floor_of_many: The same for more memories.
    """

    slope: float
    nothing: float
    growth: float
    floor: float
    floor_of_many: float


# fmt: off
SCALES: Final[Mapping[Kind, Mapping[VectorSet, Scale]]] = {
    "note": {
        "words":     Scale(0.60,  4.67,  0.58, 0.030, 0.011),
        "static":    Scale(0.52,  3.99,  0.14, 0.045, 0.027),
        "sentences": Scale(0.60,  5.10,  0.05, 0.048, 0.047),
        "tokens":    Scale(0.62,  5.78,  0.03, 0.046, 0.047),
    },
    "dated note": {
        "words":     Scale(1.03,  9.29,  0.00, 0.010, 0.057),
        "static":    Scale(1.01,  9.67,  0.00, 0.012, 0.028),
        "sentences": Scale(0.95,  9.33,  0.00, 0.011, 0.069),
        "tokens":    Scale(0.88,  9.43,  0.00, 0.021, 0.066),
    },
    "conversation": {
        "words":     Scale(0.98,  8.49,  0.00, 0.226, 0.226),
        "static":    Scale(1.00,  9.84,  0.00, 0.242, 0.242),
        "sentences": Scale(1.00,  9.74,  0.00, 0.228, 0.228),
        "tokens":    Scale(0.98, 10.20,  0.00, 0.246, 0.246),
    },
}
# fmt: on


def log_odds(strength: Floats, kinds: npt.NDArray[np.uint8], vectors: VectorSet, count: int) -> Floats:
    """Return the logarithm of the odds of memories against no answer, among ``count`` visible ones."""
    larger = math.log(max(count, FEW) / FEW)
    scales = [SCALES[kind][vectors] for kind in KINDS]
    slopes = np.array([scale.slope for scale in scales], np.float32)
    nothing = np.array([scale.nothing + scale.growth * larger for scale in scales], np.float32)
    found: Floats = np.minimum(slopes[kinds] * strength - nothing[kinds], np.float32(_HIGHEST))
    return found


MATCH_MIDDLES: Final[Mapping[VectorSet, float]] = {
    "words": -3.6,
    "static": -2.4,
    "sentences": -1.9,
    "tokens": -1.5,
}
"""At these logarithms of the odds, the match is 0.5.

Then 95 of 100 right answers that contain half of the query's words match above 0.7 (`bench.scores`).
"""


def match_of(log_odds: Floats, vectors: VectorSet) -> Floats:
    """Return how well memories match, 0 to 1, from the logarithm of their odds."""
    found: Floats = (1 / (1 + np.exp(MATCH_MIDDLES[vectors] - log_odds))).astype(np.float32)
    return found


def rivals(odds: npt.NDArray[np.float64]) -> float:
    """Return the sum of the best of the sorted ``odds``."""
    return float(odds[:RIVALS].sum())
