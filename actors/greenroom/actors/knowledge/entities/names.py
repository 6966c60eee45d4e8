"""Normalise names for comparison: case, compatible letters, and joints between words."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_JOINTS: Final = re.compile(r"[\s_-]+")
_SHORTEST_PLURAL: Final = 3
_HISSING: Final = ("s", "x", "z", "ch", "sh")


def normalise(text: str) -> str:
    """Normalise a text for matching: fold case, and make any space a blank."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _SPACE.sub(" ", text.casefold())


def fold(name: str) -> str:
    """Normalise a name: ``React-Native`` and ``react native`` become equal."""
    return _JOINTS.sub(" ", normalise(name)).strip()


def list_spellings(name: str) -> set[str]:
    """Return a name's forms in a `normalise` text: other joints, and the plural.

    Several words in small letters also match their singular: ``vector databases`` matches
    ``vector database``. A single word does not, for ``rails`` are no rail.
    """
    exact = normalise(name).strip()
    parts = [part for part in _JOINTS.split(exact) if part]
    joined = {exact, *(joint.join(parts) for joint in (" -_" if len(parts) > 1 else ""))}
    found: set[str] = set()
    for each in joined:
        found |= {each, *_plural(each)}
        if len(parts) > 1 and name == name.casefold():
            found |= _singular(each)
    return found


def _plural(word: str) -> set[str]:
    if len(word) < _SHORTEST_PLURAL or not word[-1].isalpha():
        return set()
    if word.endswith("y") and word[-2] not in "aeiou":
        return {word + "s", word[:-1] + "ies"}
    return {word + "es"} if word.endswith(_HISSING) else {word + "s"}


def _singular(words: str) -> set[str]:
    if words.endswith("ies"):
        return {words[:-3] + "y"}
    if words.endswith("s") and not words.endswith(("ss", "us", "is")):
        ends = words.removesuffix("es")
        return {words[:-1], ends} if ends.endswith(_HISSING) else {words[:-1]}
    return set()
