"""Entities by what somebody calls them: their names, a part of one, a pattern, or one mistyped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from greenroom.actors.knowledge.entities.names import folded
from greenroom.runtime import Slices

_ANY: Final = re.compile(r"\*+")
_LIKENESS: Final = 0.74
"""One typing error in four letters, two in eight."""
_SHORTEST: Final = 4
"""Names of fewer letters are one error away from too many others."""
_AT_ONCE: Final = 2_000
_NEXT_BEST: Final = 0.05
"""How much less likely than the likeliest the others may be."""


class EntityName(NamedTuple):
    """A name, `folded`, and what tells the entity from others that has it."""

    name: str
    key: int


def look_up(
    names: Sequence[EntityName], wanted: str, should_yield: Callable[[], bool]
) -> Slices[list[tuple[int, float]]]:
    """Return the keys of entities that may be meant, the likeliest first, with how likely each is (0-1).

    With ``*`` or ``?`` in it, what is wanted is also a pattern for whole names. Typing errors are looked
    for where nothing else is found. Anything else in it is text.
    """
    sought = folded(wanted)
    fits = _pattern(sought) if "*" in sought or "?" in sought else None
    found: dict[int, float] = {}
    for start in range(0, len(names), _AT_ONCE):
        for name, key in names[start : start + _AT_ONCE]:
            if name == sought:
                found[key] = 1.0
            elif fits(name) if fits is not None else sought in name:
                found[key] = max(found.get(key, 0.0), _likeness(name, sought, is_pattern=fits is not None))
        if should_yield():
            yield
    if not found and len(sought) >= _SHORTEST:
        found = yield from _misspelled(names, sought, should_yield)
    return sorted(found.items(), key=lambda each: (-each[1], each[0]))


def _likeness(name: str, sought: str, *, is_pattern: bool) -> float:
    if is_pattern:
        return 0.9
    starts = name.startswith(sought) or f" {sought}" in name
    return (0.8 if starts else 0.6) * (0.9 + 0.1 * len(sought) / len(name))


def _pattern(sought: str) -> Callable[[str], bool]:
    """Return what tells whether a name is like a pattern, in time that grows with neither's power."""
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
    """Return what finds a part of a pattern that has no ``*``: each of its letters is one of the name."""
    return re.compile("".join("." if letter == "?" else re.escape(letter) for letter in part), re.DOTALL)


def _misspelled(
    names: Sequence[EntityName], sought: str, should_yield: Callable[[], bool]
) -> Slices[dict[int, float]]:
    from rapidfuzz import process  # noqa: PLC0415 - not before somebody mistypes
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
        if should_yield():
            yield
    best = max(found.values(), default=0.0)
    return {key: likeness for key, likeness in found.items() if likeness >= best - _NEXT_BEST}
