"""Weights of the terms of a text, highest at their first occurrence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import STOP_WORDS, current_rules

NUMBER: Final = 1.25
NAME: Final = 2.0
WORD: Final = 0.5
"""Weights of a term at its first occurrence."""
AGAIN: Final = {NUMBER: 1.0, NAME: 0.45, WORD: 0.015}
"""Weights at later occurrences: another statement about a number or a name; nearly nothing for a word."""
BESIDE: Final = 0.15
"""The weight of the first adjacency of two terms."""

_EMPTY_WORDS: Final = """
a an the very really quite just also then there such simply actually basically essentially generally
usually thus moreover furthermore additionally indeed that which this these those its their his her our
my your as
"""
EMPTY: Final = frozenset(_EMPTY_WORDS.split())
"""English filler words: none of them negates, binds or counts."""
ENGLISH: Final = 0.2
"""The least share of stop words in an English text."""

MAX_WORD: Final = 64
"""Characters of a word that distinguish it."""

_WORD: Final = re.compile(r"\w+(?:[.,'\u2019_/:@-]\w+)*")
_EDGES: Final = "\"'\u201c\u201d\u2018\u2019([{"


class Term(NamedTuple):
    """An occurrence of a term: its key, and its weight at the first occurrence."""

    key: str
    weight: float


def terms(text: str) -> Iterator[Term]:
    """Yield the terms of a unit in order, without stop words."""
    analysed = current_rules().cached_token
    for found in _WORD.finditer(text):
        word = found[0]
        begins = not text[: found.start()].strip(_EDGES + " ") if found.start() < len(_EDGES) else False
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


def drop_filler(text: str) -> tuple[str, int]:
    """Remove English filler words from a part of a sentence; return it with their number."""
    words = text.split()
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
