"""Words that a query's word may have meant: words that it begins, words around it, and typing errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.search._text import is_unspaced
from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from greenroom.actors.search._view import View

MOST = 24
"""Words that one word of a query may stand for."""

_SURE = 4  # characters from which a word is long enough to be a part or a misspelling of another
_TYPO_CUTOFF = 75.0
_START, _START_SHARE = 0.6, 0.3
_INSIDE, _INSIDE_SHARE = 0.45, 0.35


def similar(
    view: View, word: str, *, known: bool, slice_over: Callable[[], bool]
) -> Generator[None, None, list[tuple[float, str]]]:
    """Return words of the view that are like ``word`` but not it, each with its likeness (0-1), best first.

    A ``known`` word, one that messages hold as it is, also finds the longer words
    around it. An unknown one may be shorter, may be an abbreviation's long form
    (authentication, auth), and is taken for a typing error as well.
    Yields when ``slice_over`` says so.
    """
    likeness: dict[str, float] = {}
    partly = len(word) == 1 if is_unspaced(word) else len(word) >= (_SURE if known else 2)
    mistyped = not known and len(word) >= _SURE and not word.isdigit()
    for field in view.fields:
        for number in range(field.blocks()):
            if partly:
                for term in field.containing(word, number):
                    likeness[term] = _part_likeness(word, term)
            if mistyped:
                found = process.extract(
                    word, field.block(number), scorer=fuzz.ratio, score_cutoff=_TYPO_CUTOFF, limit=None
                )
                for term, ratio, _ in found:
                    likeness[term] = max(likeness.get(term, 0.0), ratio / 100)
            if slice_over():
                yield
    if mistyped:
        for end in range(_SURE, len(word)):
            likeness[word[:end]] = max(likeness.get(word[:end], 0.0), _part_likeness(word[:end], word))
    likeness.pop(word, None)
    best = sorted(((value, term) for term, value in likeness.items() if value), reverse=True)
    chosen: list[tuple[float, str]] = []
    for value, term in best:
        if len(chosen) == MOST:
            break
        if view.holds(term):
            chosen.append((value, term))
        if slice_over():
            yield
    return chosen


def _part_likeness(part: str, whole: str) -> float:
    if is_unspaced(part):
        return 1.0
    share = len(part) / len(whole)
    if whole.startswith(part):
        return _START + _START_SHARE * share
    return _INSIDE + _INSIDE_SHARE * share if len(part) >= 3 else 0.0  # noqa: PLR2004  # two letters are in every word
