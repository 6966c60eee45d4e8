"""Normalise names, and look up entities by names, parts of names, patterns or misspellings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from greenroom.runtime import Slices

_SPACE: Final = re.compile(r"\s+")
_JOINTS: Final = re.compile(r"[\s_-]+")
_SHORTEST_PLURAL: Final = 3
_HISSING: Final = ("s", "x", "z", "ch", "sh")
_ANY: Final = re.compile(r"\*+")
_LIKENESS: Final = 0.74
"""Minimum similarity: it allows one typing error in four letters, two in eight."""
_SHORTEST_MISSPELT: Final = 4
"""Names with fewer letters are not tried: too many other names are one error away."""
_AT_ONCE: Final = 2_000
_NEXT_BEST: Final = 0.05
"""Results whose likeness is at most this much below the best are kept, too."""


def normalise(text: str) -> str:
    """Normalise a text for matching: fold case, make each run of white space a blank."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _SPACE.sub(" ", text.casefold())


def fold(name: str) -> str:
    """Normalise a name: ``React-Native`` and ``react native`` become equal."""
    return _JOINTS.sub(" ", normalise(name)).strip()


def list_spellings(name: str) -> set[str]:
    """Return the forms that a name may have in normalised text: other joints, the plural.

    Several words in small letters also match their singular: ``vector databases`` matches
    ``vector database``. A single word does not, since ``rails`` does not mean ``rail``.
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


class EntityName(NamedTuple):
    """A name as `fold` returns it, and the key of its entity."""

    name: str
    key: int


def look_up(names: Sequence[EntityName], wanted: str) -> Slices[list[tuple[int, float]]]:
    """Return the keys of matching entities with their likelihood (0-1), best first.

    A text with ``*`` or ``?`` is also a pattern for whole names; its other characters are literal. If
    nothing is found for a text without these, misspellings are tried.
    """
    sought = fold(wanted)
    fits = _pattern(sought) if "*" in sought or "?" in sought else None
    found: dict[int, float] = {}
    for start in range(0, len(names), _AT_ONCE):
        for name, key in names[start : start + _AT_ONCE]:
            if name == sought:
                found[key] = 1.0
            elif fits(name) if fits is not None else sought in name:
                found[key] = max(found.get(key, 0.0), _likeness(name, sought, is_pattern=fits is not None))
        yield
    if not found and fits is None and len(sought) >= _SHORTEST_MISSPELT:
        found = yield from _misspelled(names, sought)
    return sorted(found.items(), key=lambda each: (-each[1], each[0]))


def _likeness(name: str, sought: str, *, is_pattern: bool) -> float:
    if is_pattern:
        return 0.9
    starts = name.startswith(sought) or f" {sought}" in name
    return (0.8 if starts else 0.6) * (0.9 + 0.1 * len(sought) / len(name))


def _pattern(sought: str) -> Callable[[str], bool]:
    """Return a matcher of names by a pattern, without exponential backtracking."""
    parts = _ANY.split(sought)
    first, *rest = map(_part, parts)
    tail = len(parts[-1])

    def fits(name: str) -> bool:
        if not rest:
            return first.fullmatch(name) is not None
        start = first.match(name)
        if start is None:
            return False
        at = start.end()
        for part in rest[:-1]:
            found = part.search(name, at)
            if found is None:
                return False
            at = found.end()
        return len(name) - tail >= at and rest[-1].fullmatch(name, len(name) - tail) is not None

    return fits


def _part(part: str) -> re.Pattern[str]:
    return re.compile("".join("." if letter == "?" else re.escape(letter) for letter in part), re.DOTALL)


def _misspelled(names: Sequence[EntityName], sought: str) -> Slices[dict[int, float]]:
    from rapidfuzz import process  # noqa: PLC0415 - needed only for misspelled names
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - as above

    found: dict[int, float] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        near = process.extract(
            sought,
            [name for name, _ in some],
            scorer=OSA.normalized_similarity,
            processor=None,
            score_cutoff=_LIKENESS,
            limit=None,
        )
        for _, likeness, at in near:
            key = some[at].key
            found[key] = max(found.get(key, 0.0), 0.5 * likeness)
        yield
    best = max(found.values(), default=0.0)
    return {key: likeness for key, likeness in found.items() if likeness >= best - _NEXT_BEST}
