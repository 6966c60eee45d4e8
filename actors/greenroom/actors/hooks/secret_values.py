"""Values that may be secrets: which are none, and which look drawn by chance."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final, NamedTuple

_LEAST_LETTERS: Final = 5
"""A secret has so many different characters."""
_STANDS_FOR: Final = re.compile(
    r"[$%<{\[(*].*|.*(?:\.\.\.|\u2026|\*\*\*|xxxx)"
    r"|(?:your|my|the|some|any|new|old|an?|example|dummy|fake|sample|placeholder|changeme|redacted|hidden)"
    r"(?:[^a-z0-9].*)?"
    r"|(?:null|nil|none|true|false|undefined|yes|no|on|off|str|string|text|bytes|bool|boolean|int|integer|any"
    r"|optional|required|todo|self|this|missing|invalid|wrong|empty|never|always|not|is|are|was|and|or|in|to)"
    r"(?:[^a-z0-9].*)?",
    re.IGNORECASE | re.DOTALL,
)
_WORD: Final = r"(?:[A-Za-z]{1,24}[0-9]{0,2}|[0-9]{1,4})"
_WORDY: Final = re.compile(rf"[^A-Za-z0-9]*+(?:{_WORD}(?:[^A-Za-z0-9]++|$))*+")


class Span(NamedTuple):
    """A secret in a text.

    Attributes:
        first: Where it begins.
        last: Where it ends, exclusive.
        kind: What it is called.
        doubt: How sure the kind is: 0 by its own shape, 1 by its name, 2 by what stands near it.
    """

    first: int
    last: int
    kind: str
    doubt: int = 0


def is_harmless(value: str) -> bool:
    """Return whether a value stands for a secret, as ``${TOKEN}``, ``<password>`` and ``xxxxxxxx`` do."""
    return len(set(value)) < _LEAST_LETTERS or _STANDS_FOR.fullmatch(value) is not None


def is_wordy(value: str) -> bool:
    """Return whether a value is made of words and small numbers, as names are."""
    return _WORDY.fullmatch(value) is not None


def is_random(value: str) -> bool:
    """Return whether a value of 20 characters or more looks drawn by chance."""
    if is_wordy(value):
        return False
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    return has_digit and has_letter and entropy(value) >= (3.0 if _HEX.fullmatch(value) else 3.8)


def entropy(value: str) -> float:
    """Return how many bits a character of a value has, by how often each comes in it."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


_HEX: Final = re.compile(r"[0-9a-fA-F-]+")
