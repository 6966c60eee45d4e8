"""A few vectors that stand for many: the middles of groups of those that are alike."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

GROUPS: Final = 16
_LOOKED_AT = 1_024  # vectors, evenly spread, of which groups are made
_TURNS = 3
_LONGEST = 127  # of int8
_EPSILON = 1e-9


def centroids(
    values: npt.NDArray[np.int8], scales: Floats, mask: npt.NDArray[np.bool_]
) -> Generator[None, None, tuple[npt.NDArray[np.int8], Floats]]:
    """Return the vectors of the rows of ``mask``, or of many the middles of groups; pauses now and then."""
    rows = np.flatnonzero(mask)
    if len(rows) <= GROUPS:
        return values[rows], scales[rows]
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_AT)).astype(np.intp)]
    vectors = values[some].astype(np.float32) * scales[some, None]
    found = vectors[np.linspace(0, len(some) - 1, GROUPS).astype(np.intp)]
    for _ in range(_TURNS):
        closeness = np.empty((GROUPS, len(vectors)), np.float32)
        for group in range(GROUPS):
            closeness[group] = np.vecdot(vectors, found[group])
            yield
        nearest = closeness.argmax(axis=0)
        for group in np.unique(nearest).tolist():
            middle = vectors[nearest == group].sum(axis=0)
            found[group] = middle / (np.linalg.norm(middle) + _EPSILON)
    largest = np.abs(found).max(axis=1) + np.float32(_EPSILON)
    small = np.round(found / largest[:, None] * _LONGEST).astype(np.int8)
    return small, (largest / _LONGEST).astype(np.float32)
