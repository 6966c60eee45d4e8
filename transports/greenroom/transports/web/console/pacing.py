"""Page rendering in short slices, so that the event loop serves agents meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Final

import trio

SLICE: Final = 0.0005
"""Seconds after which a page yields to the event loop."""
PASSES: Final = 4
"""Passes of the event loop between two slices; a request takes about as many."""


class Turns:
    """Lets one page at a time compute, so many block no longer than one."""

    def __init__(self, slice_seconds: float = SLICE) -> None:
        self._slice_seconds = slice_seconds
        self._turn = trio.Lock()

    async def join(self, parts: Iterable[str]) -> str:
        """Join texts that may be slow to produce."""
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
    """Add texts for the length of a slice; return whether there are no more."""
    ends = perf_counter() + seconds
    for part in parts:
        made.append(part)
        if perf_counter() >= ends:
            return False
    return True
