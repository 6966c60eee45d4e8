"""What is said around a message: the stretch of talk in which it stands.

A session is one conversation, of which nothing can be said that does not hold for each of its messages. What
several conversations are to ranking, stretches of some twenty messages are within one, wherever they begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking.lexical import K_CONVERSATION, B, idf, pseudo_documents
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.lexical import TermVariants
    from greenroom.actors.search.ranking.view import Floats, View

    Doubles = npt.NDArray[np.float64]

REACH = 10
"""How many visible messages before and after one belong to its stretch."""
_STEPS = (1, 2, 4, 3)
"""Widths that add up to `REACH`, none more than what those before it add up to and one."""

_ROUNDING = 1e-6


def words_around(
    view: View, groups: Sequence[TermVariants], should_yield: Callable[[], bool]
) -> Slices[Floats]:
    """Return BM25 of the stretch around each visible row, as one text; yields when ``should_yield()``.

    What all stretches have is taken off, for it tells none from another: in a short session there is but one.
    """
    order = view.neighbours.order
    total = np.zeros(len(order))
    lengths = _sums(view.lengths[order])
    mean = max(1.0, float(lengths.mean())) if len(order) else 1.0
    damping = K_CONVERSATION * (1 - B + B * lengths / mean)
    count = view.count + pseudo_documents(view)
    for group in groups:
        said = np.zeros(len(order))
        said[view.neighbours.place[group.rows]] = group.times
        times = _sums(said)
        weight = idf(int(np.count_nonzero(times)), count)
        total += weight * (K_CONVERSATION + 1) * times / (times + damping)
        if should_yield():
            yield
    return _by_row(view, total - total.min(initial=total.max(initial=0.0)))


def best_around(view: View, values: Floats) -> Floats:
    """Return the highest value in the stretch around each visible row."""
    best = values[view.neighbours.order]
    for step in _STEPS:
        before = best.copy()
        np.maximum(best[step:], before[:-step], out=best[step:])
        np.maximum(best[:-step], before[step:], out=best[:-step])
    return _by_row(view, best)


def _sums(values: npt.NDArray[Any]) -> Doubles:
    """Return the sum of the values in the stretch around each place."""
    up_to = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    places = np.arange(len(values))
    found = up_to[np.minimum(len(values), places + REACH + 1)] - up_to[np.maximum(0, places - REACH)]
    return np.where(found < _ROUNDING, 0.0, found)


def _by_row(view: View, values: npt.NDArray[Any]) -> Floats:
    found = np.zeros(len(view.visible), np.float32)
    found[view.neighbours.order] = values
    return found
