"""Words that a query's word may have meant: words that it begins, words around it, and typing errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from greenroom.actors.search._text import is_unspaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from greenroom.actors.search._view import View
    from greenroom.runtime import Slices

MOST = 24
"""Words that one word of a query may stand for."""

_SURE = 4  # characters from which a word is long enough to be a part or a misspelling of another
_TYPO_CUTOFF = 75.0  # per cent; three letters of four
_START, _START_SHARE = 0.6, 0.3
_INSIDE, _INSIDE_SHARE = 0.5, 0.35


def similar(
    view: View, word: str, *, known: bool, pace: Callable[[], bool]
) -> Slices[list[tuple[float, str]]]:
    """Return words of the view that are like ``word`` but not it, each with its likeness (0-1), best first.

    A ``known`` word, one that messages hold as it is, also finds the longer words
    around it. An unknown one may be short for more, may be the long form of what is
    there (authentication, auth), and is taken for a typing error as well.
    Yields when ``pace`` says so.
    """
    if is_unspaced(word):
        return []
    # A stem may have lost its last "e": "base" is a part of "databas".
    part = word.removesuffix("e") if len(word) >= _SURE else word
    partly = len(word) >= (_SURE if known else 2)
    mistyped = not known and len(word) >= _SURE and not word.isdigit()
    alike: dict[str, float] = {}
    for field in view.fields:
        for number in range(field.blocks()):
            if partly:
                _keep_best(
                    alike, ((term, _part_likeness(part, term)) for term in field.containing(part, number))
                )
            if mistyped:
                _keep_best(alike, _misspelt(word, field.block(number)))
            if pace():
                yield
    if mistyped:
        _keep_best(alike, ((word[:end], _part_likeness(word[:end], word)) for end in range(_SURE, len(word))))
    alike.pop(word, None)
    return (yield from _present(view, alike, pace))


def _present(
    view: View, alike: dict[str, float], pace: Callable[[], bool]
) -> Slices[list[tuple[float, str]]]:
    """Return the best of the words that the view holds; a shelf knows those of older messages too."""
    chosen: list[tuple[float, str]] = []
    for term, likeness in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if len(chosen) == MOST:
            break
        if view.holds(term):
            chosen.append((likeness, term))
        if pace():
            yield
    return chosen


def _misspelt(word: str, terms: list[str]) -> Iterator[tuple[str, float]]:
    found = process.extract(word, terms, scorer=fuzz.ratio, score_cutoff=_TYPO_CUTOFF, limit=None)
    return ((term, ratio / 100) for term, ratio, _ in found)


def _keep_best(alike: dict[str, float], found: Iterable[tuple[str, float]]) -> None:
    for term, likeness in found:
        alike[term] = max(alike.get(term, 0.0), likeness)


def _part_likeness(part: str, whole: str) -> float:
    share = len(part) / len(whole)
    return _START + _START_SHARE * share if whole.startswith(part) else _INSIDE + _INSIDE_SHARE * share
