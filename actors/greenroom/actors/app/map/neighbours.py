"""The nearest vectors of each vector, exact among its nearest groups. Needs numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]

NEIGHBOURS: Final = 4
"""The number of neighbours of each."""
_SMALL: Final = 1_500
"""Up to this many vectors, all pairs are compared."""
_GROUPS_LOOKED_AT: Final = 4
_TURNS: Final = 2


class Neighbours(NamedTuple):
    """Pairs of neighbours, each once, in order of index, and their cosines."""

    first: Places
    second: Places
    cosines: Floats


def neighbours(vectors: Floats, check: Callable[[], None]) -> Neighbours:
    """Return the `NEIGHBOURS` nearest of each vector by cosine, as pairs.

    Many vectors are grouped around centroids (k-means, Lloyd 1957). Each vector is compared with those of the
    groups with the nearest centroids: an inverted file (Jégou et al. 2011).
    """
    count = len(vectors)
    if count <= NEIGHBOURS:
        groups = [(np.arange(count), np.arange(count))]
    elif count <= _SMALL:
        groups = [(rows, np.arange(count)) for rows in np.array_split(np.arange(count), 1 + count // 500)]
    else:
        groups = _groups(vectors, check)
    best = np.full((count, NEIGHBOURS), -1, np.intp)
    cosines = np.zeros((count, NEIGHBOURS), np.float32)
    for rows, others in groups:
        check()
        closeness = vectors[rows] @ vectors[others].T
        closeness[rows[:, None] == others] = -2
        most = min(NEIGHBOURS, len(others) - 1)
        if most < 1:
            continue
        found = np.argpartition(closeness, -most, axis=1)[:, -most:]
        best[rows, :most] = others[found]
        cosines[rows, :most] = np.take_along_axis(closeness, found, axis=1)
    places = np.repeat(np.arange(count), NEIGHBOURS)
    others, close = best.ravel(), cosines.ravel()
    known = others >= 0
    pairs = np.minimum(places, others)[known] * count + np.maximum(places, others)[known]
    pairs, at = np.unique(pairs, return_index=True)
    return Neighbours(pairs // count, pairs % count, close[known][at])


def _groups(vectors: Floats, check: Callable[[], None]) -> list[tuple[Places, Places]]:
    """Return groups of vectors, each with the indexes of the vectors to compare."""
    count = len(vectors)
    number = int(np.sqrt(count))
    middles = vectors[np.linspace(0, count - 1, number).astype(np.intp)]
    for _ in range(_TURNS):
        check()
        nearest = (vectors @ middles.T).argmax(axis=1)
        order = np.argsort(nearest, kind="stable")
        _present, starts = np.unique(nearest[order], return_index=True)
        middles = np.add.reduceat(vectors[order], starts, axis=0)
        middles /= np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), np.float32(1e-9))
    nearest = (vectors @ middles.T).argmax(axis=1)
    members = [np.flatnonzero(nearest == group) for group in range(len(middles))]
    close = np.argsort(-(middles @ middles.T), axis=1, kind="stable")[:, :_GROUPS_LOOKED_AT]
    return [
        (rows, np.sort(np.concatenate([members[other] for other in close[group]])))
        for group, rows in enumerate(members)
        if len(rows)
    ]
