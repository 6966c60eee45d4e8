"""Terms in order, as one string: a list of strings takes six times as much memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

_BETWEEN = "\n"


class JoinedTerms(Sequence[str]):
    """Terms that never change. A slice of them is a list."""

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str, starts: array[int]) -> None:
        self._text = text
        self._starts = starts

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return one term, or some."""
        if isinstance(place, slice):
            start, end, _ = place.indices(len(self))
            part = self._text[self._starts[start] : self._starts[max(start, end)] - 1]
            return part.split(_BETWEEN) if start < end else []
        at = place if place >= 0 else place + len(self)
        if not 0 <= at < len(self):
            raise IndexError(place)
        return self._text[self._starts[at] : self._starts[at + 1] - 1]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        """Yield all in order."""
        return iter(self._text.split(_BETWEEN))

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self._text.__sizeof__() + self._starts.itemsize * len(self._starts)


def joined(terms: Sequence[str]) -> Sequence[str]:
    """Return at least one term for a long time; as they are where one has what stands between them."""
    text = _BETWEEN.join(terms)
    if isinstance(terms, JoinedTerms) or text.count(_BETWEEN) >= len(terms):
        return terms
    return JoinedTerms(text, array("I", chain((0,), accumulate(len(term) + 1 for term in terms))))
