"""Pages are made in turns, in slices between which the event loop serves others: agents wait for no page."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Final

import trio

SLICE: Final = 0.0005
"""Seconds after which a page gives up the event loop."""
PASSES: Final = 4
"""Passes of the event loop between two slices, in about as many of which a request is answered."""


class Turns:
    """Lets one page at a time compute, for a slice: many together hold the loop no longer than one.

    Args:
        slice_seconds: The length of a slice.
    """

    def __init__(self, slice_seconds: float = SLICE) -> None:
        self._slice_seconds = slice_seconds
        self._turn = trio.Lock()

    async def joined(self, parts: Iterable[str]) -> str:
        """Return texts, each of which may take a while to make, as one.

        Args:
            parts: Makes them one after another.
        """
        made: list[str] = []
        more = iter(parts)
        is_over = False
        while not is_over:
            async with self._turn:
                is_over = _slice(more, made, self._slice_seconds)
                for _ in range(PASSES):
                    await trio.lowlevel.checkpoint()
        return "".join(made)


def _slice(parts: Iterable[str], made: list[str], seconds: float) -> bool:
    """Add texts for the length of a slice; return whether those were all."""
    ends = perf_counter() + seconds
    for part in parts:
        made.append(part)
        if perf_counter() >= ends:
            return False
    return True
