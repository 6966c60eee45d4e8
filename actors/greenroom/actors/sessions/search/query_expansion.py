"""Query expansion: words that contain a query's word, its short and long forms, typing errors.

The likeness of a word, 0-1, is by how much of it was typed. Ranking takes it for how often the
word is said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rapidfuzz import fuzz, process

from greenroom.actors.content.text.analyze import is_unspaced
from greenroom.actors.ranking import View
from greenroom.actors.search.ranking.query import Term, partly_named
from greenroom.actors.search.ranking.spelling import corrections
from greenroom.actors.sessions.search.messages import Messages, Postings
from greenroom.runtime import Slices

MOST = 24
"""Words that one word of a query may stand for."""

_SURE = 4  # characters from which a word is long enough to be a part of another
_START, _START_SHARE = 0.6, 0.3
_INSIDE, _INSIDE_SHARE = 0.5, 0.35
_NEAR, _BEGINNING = 55.0, 3  # per cent, or first letters: a slip changes less, and so do endings
_INSTEAD = 0.9  # a compound's parts are all there but not as that compound; a month has its name


class ExpandedQuery(NamedTuple):
    """The expanded terms of the query.

    Attributes:
        terms: Those that ranking is to look for, in order.
        unknown: How many others there are: no visible message has anything like them.
    """

    terms: tuple[Term, ...]
    unknown: int


def expand(
    messages: Messages, view: View, terms: Sequence[Term], should_yield: Callable[[], bool]
) -> Slices[ExpandedQuery]:
    """Let ``messages`` learn which rows say each of ``terms`` in some way; yields when ``should_yield()``."""
    names = yield from _named_in_full(view, terms, should_yield)
    asked = [term for term in terms if term.term not in names]
    known = {term.term: view.postings("text", term.term) for term in asked}
    likenesses = yield from _containing(
        messages, {term: len(rows) > 0 for term, (rows, _) in known.items()}, should_yield
    )
    learned: list[tuple[Term, list[Postings]]] = []
    for term in asked:
        rows, times = known[term.term]
        alike = likenesses[term.term]
        if not len(rows):
            _keep_best(alike, (yield from _slips(view, term, should_yield)))
            _keep_best(alike, _beginnings(term.term))
        found = [(rows, times), _part_of_name(view, term)]
        if term.instead:
            found.append(_together(view, term.instead))
        alike.pop(term.term, None)
        found += yield from _present(view, alike, should_yield)
        learned.append((term, found))
    there = set(names)
    for term, found in learned:
        # A compound of which only some parts are there is left to ranking, which looks for the parts.
        if messages.learn(term.term, found) or term.instead:
            there.add(term.term)
        if should_yield():
            yield
    kept = tuple(term for term in terms if term.term in there)
    return ExpandedQuery(kept, len(terms) - len(kept))


def _named_in_full(view: View, terms: Sequence[Term], should_yield: Callable[[], bool]) -> Slices[set[str]]:
    """Return the terms of the senders' names that the query has in full, in whatever order."""
    asked = dict.fromkeys(term.term for term in terms)
    names = yield from partly_named(view, asked, should_yield)
    return {term for name in names.values() if set(name) <= asked.keys() for term in name}


def _containing(
    messages: Messages, asked: dict[str, bool], should_yield: Callable[[], bool]
) -> Slices[dict[str, dict[str, float]]]:
    """Return, for each term, the terms that it is a part of, each with its likeness.

    Args:
        messages: Where to look.
        asked: The terms, and whether a message holds it as it is. Such a term is looked for inside
            of others only if it is long enough not to be there by accident.
        should_yield: Whether to yield.
    """
    alike: dict[str, dict[str, float]] = {term: {} for term in asked}
    parts = {
        # A stem may have lost its last "e": "base" is a part of "databas".
        term: term.removesuffix("e") if len(term) >= _SURE else term
        for term, known in asked.items()
        if len(term) >= (_SURE if known else 2) and not is_unspaced(term)
    }
    for lines in messages.lines() if parts else ():
        for term, part in parts.items():
            words = _with(part, lines)
            _keep_best(
                alike[term], ((word, _part_likeness(part, word)) for word in words if not is_unspaced(word))
            )
            if should_yield():
                yield
    return alike


def _with(part: str, lines: str) -> Iterator[str]:
    """Yield the lines of a text that have ``part`` in them."""
    at = lines.find(part)
    while at >= 0:
        end = lines.find("\n", at)
        if end < 0:
            end = len(lines)
        yield lines[lines.rfind("\n", 0, at) + 1 : end]
        at = lines.find(part, end)


def _resembles(view: View, term: Term, should_yield: Callable[[], bool]) -> Slices[bool]:
    """Return whether some word is so near to an unknown one that it is worth while to undo slips of the pen.

    That takes 1 ms, which in a short session is more than all the rest.
    """
    begins = term.word.lower()[:_BEGINNING]
    for block in view.corpus.vocabulary("text"):
        place = bisect_left(block, begins)
        if place < len(block) and block[place].startswith(begins):
            return True
        if process.extractOne(term.term, block, scorer=fuzz.ratio, score_cutoff=_NEAR) is not None:
            return True
        if should_yield():
            yield
    return False


def _slips(view: View, term: Term, should_yield: Callable[[], bool]) -> Slices[list[tuple[str, float]]]:
    """Return what an unknown word may be a misspelling of."""
    if not (yield from _resembles(view, term, should_yield)):
        return []
    guesses = yield from corrections(view, term, should_yield)
    return [(guess.term, max(guess.likeness, fuzz.ratio(term.term, guess.term) / 100)) for guess in guesses]


def _beginnings(word: str) -> Iterable[tuple[str, float]]:
    """Return what a long form may be shortened to: authentication, auth."""
    return ((word[:end], _part_likeness(word[:end], word)) for end in range(_SURE, len(word)))


def _part_likeness(part: str, whole: str) -> float:
    share = len(part) / len(whole)
    return _START + _START_SHARE * share if whole.startswith(part) else _INSIDE + _INSIDE_SHARE * share


def _keep_best(alike: dict[str, float], found: Iterable[tuple[str, float]]) -> None:
    for term, likeness in found:
        alike[term] = max(alike.get(term, 0.0), likeness)


def _present(view: View, alike: dict[str, float], should_yield: Callable[[], bool]) -> Slices[list[Postings]]:
    """Return the rows of the best of the words that a visible message holds."""
    found: list[Postings] = []
    for term, likeness in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if len(found) == MOST:
            break
        rows, _ = view.postings("text", term)
        if len(rows):
            found.append((rows, np.full(len(rows), likeness, np.float32)))
        if should_yield():
            yield
    return found


def _part_of_name(view: View, term: Term) -> Postings:
    """Return the rows of senders whose names have the term, but who are not named in full."""
    rows, _ = view.postings("author", term.term)
    return rows, np.ones(len(rows), np.float32)


def _together(view: View, terms: Sequence[str]) -> Postings:
    """Return the rows that hold all of ``terms``."""
    held: Postings | None = None
    for term in terms:
        rows, _ = view.postings("text", term)
        rows = rows if held is None else np.intersect1d(held[0], rows, assume_unique=True)
        held = rows, np.full(len(rows), _INSTEAD, np.float32)
    assert held is not None, "a term has parts or none"
    return held
