"""Tests of values: placeholders, words, names, and random ones."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import Final, NamedTuple

_LEAST_LETTERS: Final = 5
"""A token has at least this many distinct characters."""
_TEMPLATE: Final = re.compile(
    r"\$\{.*|\$\(.*|\$env:.*|\$[a-z_][a-z0-9_]*|%[sdr]|%\([a-z_]+\)s|%[a-z_]+%|%env\(.*|<[^<>]*>?|\{.*|\[.*|\(.*"
    r"|[*.#_-]+|.*(?:\.\.\.|\u2026|\*\*\*|xxxx).*",
    re.IGNORECASE | re.DOTALL,
)
_EXAMPLES: Final = """
your example dummy fake sample placeholder change changeme replace insert enter redacted hidden blah null nil
none true false undefined str string text bytes bool boolean int integer optional required todo
"""
_OF_EXAMPLES: Final = frozenset(_EXAMPLES.split())
_SENTENCES: Final = """
a an the my our some any new old this that self is are was and or in to on off for not no yes missing invalid
wrong empty always never
"""
_OF_SENTENCES: Final = frozenset(_SENTENCES.split())
_FIRST_WORD: Final = re.compile(r"[a-z]+")
_NAMES: Final = re.compile(r"passw|pwd|secret|token|key|cred|auth", re.IGNORECASE)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9]+")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
"""A word, also in camel case, or a number."""
_LONGEST_WORD: Final = 24
_LONGEST_NUMBER: Final = 4
_LETTERS_OF_WORDS: Final = 3
"""The average number of letters in words; random letters change their case more often."""
_LETTERS_OF_NAMES: Final = 5
"""The average number of letters in the words of a long name without separators."""
_HEX: Final = re.compile(r"[0-9a-fA-F-]+")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BITS_OF_HEX: Final = 3.0
_BITS: Final = 3.8
"""Entropy in bits per character; from this value on, 20 or more characters count as random."""


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first used; most texts need few patterns."""
    return re.compile(pattern)


class Span(NamedTuple):
    """A secret; ``doubt`` is 0 for a shape, 1 for a name, 2 for context."""

    first: int
    last: int
    kind: str
    doubt: int = 0


def stands_for_another(value: str) -> bool:
    """Return whether a value is a template or an example, such as ``${TOKEN}`` or ``xxxxx``."""
    if len(set(value)) == 1 or _TEMPLATE.fullmatch(value):
        return True
    first = _FIRST_WORD.match(value.lower())
    word = "" if first is None else first[0]
    return (word in _OF_EXAMPLES or (word in _OF_SENTENCES and not has_digit(value))) and is_wordy(value)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a template, or a name such as ``db_password``."""
    is_name = _NAMES.search(value) is not None and not has_digit(value) and is_wordy(value)
    return is_name or stands_for_another(value)


def is_wordy(value: str) -> bool:
    """Return whether a value consists of words and small numbers, as names do."""
    words: list[str] = []
    for segment in _SEGMENT.findall(value):
        parts = _PART.findall(segment)
        numbers = [part for part in parts if part.isdigit()]
        if len(numbers) > 1 or len("".join(numbers)) > _LONGEST_NUMBER:
            return False
        words += [part for part in parts if part.isalpha()]
    return all(len(word) <= _LONGEST_WORD for word in words) and sum(
        map(len, words)
    ) >= _LETTERS_OF_WORDS * len(words)


def is_name(value: str) -> bool:
    """Return whether a value may be a name in code."""
    words = _PART.findall(value)
    is_long = not has_digit(value) and sum(map(len, words)) >= _LETTERS_OF_NAMES * len(words)
    return is_long or (not value.isalnum() and is_wordy(value))


def has_digit(value: str) -> bool:
    """Return whether a value has a digit."""
    return any(map(str.isdigit, value))


def is_token(value: str) -> bool:
    """Return whether the part after a prefix may be a token and no filler."""
    return len(set(value)) >= _LEAST_LETTERS and not stands_for_another(value)


def is_random(value: str) -> bool:
    """Return whether a value of 20 or more characters looks random; UUIDs do not count."""
    if _UUID.fullmatch(value) or not has_digit(value) or value.isdigit() or is_wordy(value):
        return False
    return entropy(value) >= (_BITS_OF_HEX if _HEX.fullmatch(value) else _BITS)


def entropy(value: str) -> float:
    """Return the entropy of a value in bits per character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
