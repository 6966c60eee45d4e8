"""Detect whether a model used an injected memory, by its distinctive words.

The *marks* of a memory are its distinctive words: four letters or more, or with a digit, no stop words, and
not in the prompt. The memory was used if half of its marks, and at least three, are in the model's text
after the injection. With two marks both must be there; a single mark never counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Final

from greenroom.actors.content.text.analyze import STOP_WORDS, tokens

MOST_MARKS: Final = 24
_LEAST: Final = 3
_LEAST_OF_FEW: Final = 2
_LETTERS: Final = 4
_DIGEST_BYTES: Final = 6


def marks_of(text: str, prompt: str) -> list[int]:
    """Return digests of a text's distinctive words that the prompt lacks."""
    known = _words(prompt)
    return [
        digest_of(each)
        for each in list(dict.fromkeys(_distinctive(text)))[: 2 * MOST_MARKS]
        if each not in known
    ][:MOST_MARKS]


def is_used(marks: Collection[int], texts: Iterable[str]) -> bool:
    """Return whether texts show that a memory with these marks was used."""
    if len(marks) < _LEAST_OF_FEW:
        return False
    words = {digest_of(word) for text in texts for word in _distinctive(text)}
    found = sum(each in words for each in marks)
    if len(marks) < _LEAST:
        return found == len(marks)
    return found >= max(_LEAST, -(-len(marks) // 2))


def _distinctive(text: str) -> Iterable[str]:
    for token in tokens(text):
        for term in token.posted:
            if term not in STOP_WORDS and (len(term) >= _LETTERS or any(map(str.isdigit, term))):
                yield term


def _words(text: str) -> set[str]:
    return {term for token in tokens(text) for term in token.posted}


def digest_of(text: str) -> int:
    """Return a number that stands for a text, from which the text cannot be restored."""
    return int.from_bytes(blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest())
