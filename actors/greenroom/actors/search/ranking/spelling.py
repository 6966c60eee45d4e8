"""Spelling correction: known terms that an unknown word of the query may stand for.

1. A longer word that begins with the unknown one: the user has not finished typing.
2. A word one slip away: a letter left out, inserted or replaced, or two swapped. The slip is undone in the
   word as typed, and the result is stemmed. A slip in an ending changes the stem unpredictably: `organizng`
   has the stem `organizng`, `organizing` has `organ`.
3. A stem two slips away from the word or its stem, found by rapidfuzz; only for words that are long enough.
"""

from __future__ import annotations

import string
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from greenroom.actors.content.text.analyze import current_rules, is_unspaced, tokens
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.ranking.query import Term
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import Slices

MOST = 3
"""The most corrections of one word."""

_SHORTEST = 4  # shorter words are one slip away from too many others
_LONGEST = 32
_TWO_SLIPS = 7  # a word needs this many letters to have two slips
_STARTS = 3
_MOST_SLIPS = 2
_LAST = "\U0010ffff"  # sorts after all letters
_LOOKED_UP = 8  # scanning this many terms takes as long as one look-up
_LIKENESS = {"start": 0.8, "slip": 0.9, "slips": 0.6}


class Correction(NamedTuple):
    """A possible correction: a term, its likelihood (0-1), and how many visible memories hold it."""

    term: str
    likeness: float
    rows: int


def find_corrections(view: View, term: Term) -> Slices[list[Correction]]:
    """Return the known terms that an unknown ``term`` may stand for, most likely first."""
    word = term.word.lower()
    if not word.isalpha() or is_unspaced(word) or len(word) > _LONGEST:
        return []
    found = yield from _one_slip(view, word)
    best = yield from _select_visible(view, word, found)
    if not best and len(word) >= _TWO_SLIPS:
        found = yield from _two_slips(view, word, term.term)
        best = yield from _select_visible(view, word, found)
    return best


def _one_slip(view: View, word: str) -> Slices[dict[str, float]]:
    found: dict[str, float] = {}
    slips = _slips(word, current_rules()) if len(word) >= _SHORTEST else frozenset()
    for block in _vocabulary(view):
        found.update(dict.fromkeys(_intersect(slips, block), _LIKENESS["slip"]))
        if len(word) >= _STARTS:
            start = bisect_left(block, word)
            for term in block[start : bisect_left(block, word + _LAST, start)]:
                found.setdefault(term, _LIKENESS["start"])
        yield
    return found


def _intersect(few: frozenset[str], block: Sequence[str]) -> Iterable[str]:
    """Return which of ``few`` terms are in the sorted ``block``."""
    if len(few) * _LOOKED_UP > len(block):
        return few.intersection(block)
    ordered = _sort(few)
    near = ordered[bisect_left(ordered, block[0]) : bisect_right(ordered, block[-1])]
    places = (bisect_left(block, term) for term in near)
    return [term for term, place in zip(near, places, strict=True) if block[place] == term]


@lru_cache(maxsize=4)
def _sort(terms: frozenset[str]) -> list[str]:
    """Sort terms, once for all blocks."""
    return sorted(terms)


def _two_slips(view: View, word: str, stem: str) -> Slices[dict[str, float]]:
    found: dict[str, float] = {}
    spellings = list({word, stem})
    for block in _vocabulary(view):
        slips = process.cdist(spellings, block, scorer=OSA.distance, score_cutoff=_MOST_SLIPS, dtype=np.uint8)
        near = np.flatnonzero(slips.min(axis=0) <= _MOST_SLIPS).tolist()
        found.update((block[place], _LIKENESS["slips"]) for place in near)
        yield
    return found


def _vocabulary(view: View) -> Iterator[Sequence[str]]:
    yield from view.corpus.vocabulary("text")
    yield from view.corpus.vocabulary("tags")


def _select_visible(view: View, word: str, found: dict[str, float]) -> Slices[list[Correction]]:
    """Return the best of the terms that a visible memory holds."""
    known: list[Correction] = []
    for likeness in sorted(set(found.values()), reverse=True):
        if len(known) >= MOST:  # less likely terms come after these, however frequent they are
            break
        for term in [term for term, each in found.items() if each == likeness]:
            count = len(view.postings("text", term)[0]) + len(view.postings("tags", term)[0])
            if count:
                known.append(Correction(term, likeness, count))
            yield
    # People rarely mistype the first letter, and more often mean a frequent word.
    known.sort(
        key=lambda correction: (
            -correction.likeness,
            correction.term[0] != word[0],
            -correction.rows,
            correction.term,
        )
    )
    return known[:MOST]


@lru_cache(maxsize=4)  # a search of several namespaces needs the same terms in each
def _slips(word: str, rules: TextRules) -> frozenset[str]:
    """Return the terms of all words one slip away; takes 0.25 ms."""
    letters = string.ascii_lowercase if word.isascii() else "".join(sorted(set(word)))
    lines: list[str] = []
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        # One join puts each letter between both parts, a line each: twice as fast as a loop.
        lines.append(head + f"{tail}\n{head}".join(letters) + tail)
        if tail:
            rest = tail[1:]
            lines.append(head + rest)
            lines.append(head + f"{rest}\n{head}".join(letters) + rest)
        if len(tail) > 1:
            lines.append(head + tail[1] + tail[0] + tail[2:])
    variants = set("\n".join(lines).split("\n"))
    variants.discard(word)
    if word.isascii():
        return frozenset(rules.terms(variants))
    return frozenset(term for token in tokens(" ".join(variants), rules) for term in token.posted)
