"""Similar names for an unknown symbol: other spellings, parts of names, typing errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from greenroom.actors.content.text.analyze import code_rules
from greenroom.actors.content.text.words import MAX_TERM, symbol_name

_LIKENESS: Final = 0.74
"""This allows one typing error in four letters, two in eight."""
_SHORTEST: Final = 4
"""Shorter names are one error away from too many others."""
_IN_PART: Final = 0.9
"""The likeness of a name that has all words of the other name; further words reduce it."""


def find_similar_names(wanted: str, paths: Iterable[str], most: int) -> list[str]:
    """Return the names that the caller may mean, the likeliest first.

    If some differ only in how words are joined, such as `dropAnchor` and `drop_anchor`, only these count.
    """
    parts = wanted.split(".")
    tails = {tuple(path.split(".")[-len(parts) :]) for path in paths}
    likeness: dict[tuple[str, ...], float] = dict.fromkeys(
        (tail for tail in tails if len(tail) == len(parts)), 1.0
    )
    for place, part in enumerate(parts):
        known = _likenesses(part, {tail[place] for tail in likeness})
        likeness = {
            tail: min(value, known[tail[place]]) for tail, value in likeness.items() if tail[place] in known
        }
    is_spelled = any(value == 1 for value in likeness.values())
    best = sorted(
        (tail for tail, value in likeness.items() if value == 1 or not is_spelled),
        key=lambda tail: (-likeness[tail], len(".".join(tail)), tail),
    )
    return [".".join(tail) for tail in best[:most]]


def _likenesses(wanted: str, names: set[str]) -> dict[str, float]:
    """Return the likeness of similar names, above 0 and up to 1."""
    sought, words = symbol_name(wanted), _words(wanted)
    spelled: dict[str, list[str]] = {}
    found: dict[str, float] = {}
    for name in names:
        spelled.setdefault(symbol_name(name), []).append(name)
        theirs = _words(name)
        if words and words <= theirs:
            found[name] = _IN_PART * len(words) / len(theirs)
    if len(sought) >= _SHORTEST:
        near = process.extract(
            sought, list(spelled), scorer=OSA.normalized_similarity, score_cutoff=_LIKENESS, limit=None
        )
        for form, value, _ in near:
            for name in spelled[form]:
                found[name] = max(found.get(name, 0.0), _IN_PART * value)
    found.update(dict.fromkeys(spelled.get(sought, ()), 1.0))
    return found


def _words(name: str) -> frozenset[str]:
    """Return the words of a name in any form; none if it is too long."""
    if len(name) > MAX_TERM:
        return frozenset()
    first, *parts = code_rules().token(name).posted or ("",)
    return frozenset(parts or (first,)) - {""}
