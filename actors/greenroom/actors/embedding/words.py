"""The words of a query: where they stand, as the index would take them apart."""

from __future__ import annotations

from typing import NamedTuple

from greenroom.actors.text.analyze import spans


class Word(NamedTuple):
    """A word and where in the text it stands."""

    start: int
    end: int
    spelling: str


def words_of(text: str) -> list[Word]:
    """Return a text's words in order; runs of symbols are none."""
    return [Word(*found) for found in spans(text) if any(map(str.isalnum, found[2]))]
