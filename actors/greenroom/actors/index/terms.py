"""Terms in order, as one string: a list of strings takes six times as much memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final, overload

import numpy as np

BETWEEN: Final = "\n"
"""What stands between two terms, and in hardly any."""


class JoinedTerms(Sequence[str]):
    """Terms that never change, at least one. A slice of them is a list.

    Attributes:
        text: All of them, with `BETWEEN` between each two.
    """

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.flatnonzero(characters == ord(BETWEEN)).astype(np.uint32)
        self._starts = array("I", (0,))
        self._starts.frombytes((ends + np.uint32(1)).tobytes())
        self._starts.append(len(text) + 1)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return one term, or some."""
        if isinstance(place, slice):
            start, end, _ = place.indices(len(self))
            part = self.text[self._starts[start] : self._starts[max(start, end)] - 1]
            return part.split(BETWEEN) if start < end else []
        at = place if place >= 0 else place + len(self)
        if not 0 <= at < len(self):
            raise IndexError(place)
        return self.text[self._starts[at] : self._starts[at + 1] - 1]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        """Yield all in order."""
        return iter(self.text.split(BETWEEN))

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self.text.__sizeof__() + self._starts.itemsize * len(self._starts)


def joined(terms: Sequence[str]) -> Sequence[str]:
    """Return at least one term for a long time; as they are where one has what stands between them."""
    if isinstance(terms, JoinedTerms):
        return terms
    text = BETWEEN.join(terms)
    return terms if text.count(BETWEEN) >= len(terms) else JoinedTerms(text)
