"""What the words of a text weigh: numbers, names and words, each most where it comes first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import STOP_WORDS, current_rules

NUMBER: Final = 1.25
NAME: Final = 2.0
WORD: Final = 0.5
"""What a term weighs where it comes first."""
AGAIN: Final = {NUMBER: 1.0, NAME: 0.45, WORD: 0.015}
"""What it weighs where it comes again: another statement of a number or of somebody, hardly of a word."""
BESIDE: Final = 0.15
"""What it weighs that two terms stand beside each other for the first time."""

_EMPTY_WORDS: Final = """
a an the very really quite just also then there such simply actually basically essentially generally
usually thus moreover furthermore additionally indeed that which this these those its their his her our
my your as
"""
EMPTY: Final = frozenset(_EMPTY_WORDS.split())
"""English words without which a part of a sentence says what it said; none negates, binds or numbers."""
ENGLISH: Final = 0.2
"""So many of the words of an English text are stop words, at least."""

MAX_WORD: Final = 64
"""Characters of a word that tell it from others."""

_WORD: Final = re.compile(r"\w+(?:[.,'\u2019_/:@-]\w+)*")
_EDGES: Final = "\"'\u201c\u201d\u2018\u2019([{"


class Term(NamedTuple):
    """A term at one place: what it is counted as, and what it weighs where it comes first."""

    key: str
    weight: float


def terms(said: str) -> Iterator[Term]:
    """Yield the terms of a unit in their order; English words that every text has are none."""
    analysed = current_rules().cached_token
    for found in _WORD.finditer(said):
        word = found[0]
        begins = not said[: found.start()].strip(_EDGES + " ") if found.start() < len(_EDGES) else False
        weight = _weight(word, begins=begins)
        if len(word) > MAX_WORD:
            yield Term(word[:MAX_WORD], weight)
            continue
        for key in analysed(word).posted:
            yield Term(key, weight)


def _weight(word: str, *, begins: bool) -> float:
    if any(map(str.isdigit, word)):
        return NUMBER
    if word[0].isupper() and (not begins or not word[1:].islower()):
        return NAME
    if "_" in word or "@" in word or "/" in word:
        return NAME
    return WORD


def without_empty(said: str) -> tuple[str, int]:
    """Return a part of a sentence without English words that say nothing, and how many these were."""
    words = said.split()
    kept = [word for word in words if word.lower() not in EMPTY]
    return " ".join(kept), len(words) - len(kept)


def is_english(parts: Iterable[str]) -> bool:
    """Return whether parts of sentences are English, by their stop words."""
    words = stops = 0
    for part in parts:
        for word in part.split():
            words += 1
            stops += word.strip(",.;:!?").lower() in STOP_WORDS
    return stops > ENGLISH * words
