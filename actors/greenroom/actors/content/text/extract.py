"""Extracts: the most informative sentences of a text, within a number of characters."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import STOP_WORDS, spans

LOOKED_AT: Final = 10_000
"""Only this many characters, at the beginning of a text, are read."""
GAP: Final = " … "
_END: Final = re.compile(r"(?<=[.!?…])\s+|\n+")
_TELLING: Final = re.compile(r"\d|`|\bnot?\b|n't\b|\bnever\b|\bmust\b|https?:|_|\w\.\w|/", re.IGNORECASE)
_FIRST: Final = 1.5
"""The factor for the first sentence, which usually names the subject."""
_TELLS: Final = 1.3
"""The factor for a sentence with a number, a name in code, or a negation."""

_LENGTH: Final = 20
"""This is added to the length of a sentence, so that single words do not score best."""


class _Sentence(NamedTuple):
    place: int
    text: str
    words: frozenset[str]


def extract_sentences(text: str, most: int) -> str:
    """Return a short text unchanged, and a longer text's most informative sentences.

    Returns:
        The sentences in their order, with `GAP` for omissions. The score of a sentence is the weight of its
        words divided by its length; repeated words weigh more. Sentences without new words are left out.
    """
    if len(text) <= most:
        return text
    sentences = _sentences(text[:LOOKED_AT])
    counts = Counter(word for each in sentences for word in each.words)
    chosen: list[_Sentence] = []
    covered: set[str] = set()
    room = most - len(GAP)
    for sentence in sorted(sentences, key=lambda each: (-_worth(each, counts), each.place)):
        size = len(sentence.text) + len(GAP)
        if size <= room and not sentence.words <= covered:
            chosen.append(sentence)
            covered |= sentence.words
            room -= size
    if not chosen:
        return text[: most - 1] + "…"
    return _joined(sorted(chosen), len(sentences), is_whole=len(text) <= LOOKED_AT)


def _sentences(text: str) -> list[_Sentence]:
    parts = [part.strip() for part in _END.split(text)]
    return [
        _Sentence(
            place, part, frozenset(word for _, _, word in spans(part.lower()) if word not in STOP_WORDS)
        )
        for place, part in enumerate(filter(None, parts))
    ]


def _worth(sentence: _Sentence, counts: Counter[str]) -> float:
    """Return the score of a sentence, relative to its length."""
    words = sum(3 + min(counts[word] - 1, 3) for word in sentence.words)
    worth = words / (len(sentence.text) + _LENGTH)
    worth *= _FIRST if sentence.place == 0 else 1.0
    return worth * (_TELLS if _TELLING.search(sentence.text) else 1.0)


def _joined(chosen: list[_Sentence], there: int, *, is_whole: bool) -> str:
    """Join sentences, with marks where other sentences are left out."""
    text = ""
    after = 0
    for sentence in chosen:
        if sentence.place != after:
            text += GAP if text else GAP.lstrip()
        elif text:
            text += " "
        text += sentence.text
        after = sentence.place + 1
    return text if is_whole and after == there else text + GAP.rstrip()
