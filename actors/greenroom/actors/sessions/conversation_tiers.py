"""How large the tiers of a conversation are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST_RECENT = 200
MOST_COMPRESSED = 1_000
MOST_LINES = 2_000


class TierSizes(NamedTuple):
    """The most messages in each tier of a conversation; the first tier has the newest."""

    recent: int = 20
    compressed: int = 80
    lines: int = 200


def parse_tiers(sizes: Sequence[int]) -> TierSizes:
    """Return the sizes of tiers.

    Raises:
        ValueError: there are not three of them, or one is out of range.
    """
    most = TierSizes(MOST_RECENT, MOST_COMPRESSED, MOST_LINES)
    if (
        len(sizes) != len(most)
        or sizes[0] < 1
        or any(not 0 <= a <= b for a, b in zip(sizes, most, strict=True))
    ):
        raise ValueError(
            f"conversation_tiers is {list(sizes)} and must be three numbers: of recent "
            f"messages 1 to {MOST_RECENT}, of compressed ones up to {MOST_COMPRESSED:,}, of lines up to "
            f"{MOST_LINES:,}"
        )
    return TierSizes(*sizes)
