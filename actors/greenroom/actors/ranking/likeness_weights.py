"""What each way counts in which files of source code are like each other. Needs no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LIKENESS: Final[Mapping[str, float]] = {"terms": 0.57, "name": 0.17, "imports": 0.17, "linked": 0.09}
"""The weights of the signals, each of which goes from 0 to 1.

``terms``: What tells most of the file is said by the other (BM25, as a share of the file's own).
``name``: Which share of the words in both files' names they have in common, by rarity.
``imports``: Which share of what the two import they have in common.
``linked``: One imports the other.
"""


def likeness_of(signals: Mapping[str, float]) -> float:
    """Return how like each other two files are, 0 to 1."""
    return sum(LIKENESS[name] * value for name, value in signals.items())
