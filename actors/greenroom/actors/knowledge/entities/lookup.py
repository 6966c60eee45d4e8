"""Look up entities by a name, a part of one, a pattern, or a misspelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from greenroom.actors.knowledge.entities.names import fold
from greenroom.runtime import Slices

_ANY: Final = re.compile(r"\*+")
_LIKENESS: Final = 0.74
"""Least similarity: one typing error in four letters, two in eight."""
_SHORTEST: Final = 4
"""With fewer letters, too many other names are one error away."""
_AT_ONCE: Final = 2_000
_NEXT_BEST: Final = 0.05
"""How much below the best likeness others may be."""


class EntityName(NamedTuple):
    """A `fold` name, and the key of its entity."""

    name: str
    key: int


def look_up(names: Sequence[EntityName], wanted: str) -> Slices[list[tuple[int, float]]]:
    """Return the keys of matching entities with their likelihood (0-1), best first.

    ``*`` and ``?`` make the text also a pattern for whole names; all else in it is literal. If nothing is
    found for a text that is no pattern, misspellings are tried.
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
    if not found and fits is None and len(sought) >= _SHORTEST:
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
    """Compile a part of a pattern without ``*``; each letter matches itself."""
    return re.compile("".join("." if letter == "?" else re.escape(letter) for letter in part), re.DOTALL)


def _misspelled(names: Sequence[EntityName], sought: str) -> Slices[dict[int, float]]:
    from rapidfuzz import process  # noqa: PLC0415 - not before a name is misspelled
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
