"""Sorted terms as one string, with a sixth of the memory of a list."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, overload

import numpy as np

BETWEEN: Final = "\n"
"""The separator of terms, which hardly any term contains."""
_BLOCK = 64
"""The first of so many terms is also stored as a string; the others are found by one search in the text."""
_SLOT_BYTES = 8


class JoinedTerms(Sequence[str]):
    """Immutable sorted terms, at least one; a slice of them is a list."""

    __slots__ = ("_firsts", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.flatnonzero(characters == ord(BETWEEN)).astype(np.uint32)
        self._starts = array("I", (0,))
        self._starts.frombytes((ends + np.uint32(1)).tobytes())
        self._starts.append(len(text) + 1)
        self._firsts = [self[place] for place in range(0, len(self), _BLOCK)]

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
        """Return the number of terms."""
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        """Yield all terms in order."""
        return iter(self.text.split(BETWEEN))

    def place(self, term: str) -> int | None:
        """Return the place of a term without a separator in it; None for none."""
        block = bisect_right(self._firsts, term) - 1
        if block < 0:
            return None
        first, end = block * _BLOCK, min((block + 1) * _BLOCK, len(self))
        if term == self._firsts[block]:
            return first
        if term == self[end - 1]:  # no separator follows the last term
            return end - 1
        at = self.text.find(f"{BETWEEN}{term}{BETWEEN}", self._starts[first], self._starts[end])
        return None if at < 0 else bisect_left(self._starts, at + 1)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        firsts = sum(first.__sizeof__() + _SLOT_BYTES for first in self._firsts)
        return self.text.__sizeof__() + self._starts.itemsize * len(self._starts) + firsts


def place_of(terms: Sequence[str], term: str) -> int | None:
    """Return the place of a term among sorted terms; None for none."""
    if isinstance(terms, JoinedTerms) and BETWEEN not in term:
        return terms.place(term)
    place = bisect_left(terms, term)
    return place if place < len(terms) and terms[place] == term else None


def join_terms(terms: Sequence[str]) -> Sequence[str]:
    """Join at least one term; return them unchanged if one has the separator."""
    if isinstance(terms, JoinedTerms):
        return terms
    text = BETWEEN.join(terms)
    return terms if text.count(BETWEEN) >= len(terms) else JoinedTerms(text)
