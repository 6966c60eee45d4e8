"""When runs of rows are merged: sizes fall off geometrically, so each row is rewritten a few times only."""

from __future__ import annotations

from collections.abc import Sequence

TAIL_ROWS = 1_024
"""Rows in the tail from which it is merged; loading one takes 20 us."""
TAIL_POSTINGS = 131_072
RATIO = 3


def merge_start(weights: Sequence[int], fresh: int) -> int:
    """Return with which run a merge begins that ends with the last ``fresh`` runs.

    An earlier run takes part unless it outweighs all later ones by more than `RATIO`.

    Args:
        weights: What each run costs to merge, the oldest first.
        fresh: How many runs at the end take part in any case.
    """
    start = len(weights) - fresh
    total = sum(weights[start:])
    while start and weights[start - 1] <= RATIO * total:
        start -= 1
        total += weights[start]
    return start
