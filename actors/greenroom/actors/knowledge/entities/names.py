"""Names as they are compared: case, compatible letters, and what joins words make no difference."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_JOINTS: Final = re.compile(r"[\s_-]+")
_SHORTEST_PLURAL: Final = 3
_HISSING: Final = ("s", "x", "z", "ch", "sh")


def plain(text: str) -> str:
    """Return a text in which names are looked for: case folded, any space a blank."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _SPACE.sub(" ", text.casefold())


def folded(name: str) -> str:
    """Return what is the same for spellings of one name, such as ``React-Native`` and ``react native``."""
    return _JOINTS.sub(" ", plain(name)).strip()


def spellings(name: str) -> set[str]:
    """Return what a name may look like in a `plain` text: joined in other ways, or in its plural.

    Of several words in small letters also the singular is a spelling: ``vector databases`` are found as
    ``vector database``. A word alone is left as it is, for ``rails`` are no rail.
    """
    exact = plain(name).strip()
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
