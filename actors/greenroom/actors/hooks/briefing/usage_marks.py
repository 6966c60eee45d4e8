"""Whether a model used a memory that it was given: by words that come back which it did not have elsewhere.

A memory's *marks* are its telling words: those of four letters or more, or with a digit, that are no stop
words and not in the prompt. It was used if enough of them come back in what the model says after it was
given: half of them, and three at least. Of a memory that has fewer than three all must come back, and one
alone never tells.
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
    """Return digests of a text's telling words that are not in a prompt; they tell nobody what it says."""
    known = _words(prompt)
    return [
        digest_of(each) for each in list(dict.fromkeys(_telling(text)))[: 2 * MOST_MARKS] if each not in known
    ][:MOST_MARKS]


def comes_back(marks: Collection[int], said: Iterable[str]) -> bool:
    """Return whether texts show that a memory with these marks was used."""
    if len(marks) < _LEAST_OF_FEW:
        return False
    heard = {digest_of(word) for text in said for word in _telling(text)}
    found = sum(each in heard for each in marks)
    if len(marks) < _LEAST:
        return found == len(marks)
    return found >= max(_LEAST, -(-len(marks) // 2))


def _telling(text: str) -> Iterable[str]:
    for token in tokens(text):
        for term in token.posted:
            if term not in STOP_WORDS and (len(term) >= _LETTERS or any(map(str.isdigit, term))):
                yield term


def _words(text: str) -> set[str]:
    return {term for token in tokens(text) for term in token.posted}


def digest_of(text: str) -> int:
    """Return a number that stands for a text, from which nobody learns it."""
    return int.from_bytes(blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest())
