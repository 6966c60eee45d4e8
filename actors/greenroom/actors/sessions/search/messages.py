"""The messages of a session as a corpus for ranking, and the expansion of queries.

A word of a query also finds longer words, short and long forms, and typing errors. The similarity of a found
word, 0-1, depends on how much of it the query's word covers. Ranking uses the similarity as term count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from greenroom.actors.content.text.analyze import is_unspaced
from greenroom.actors.search.index.corpus import Corpus, Neighbours
from greenroom.actors.search.ranking.query import Term, match_names
from greenroom.actors.search.ranking.spelling import find_corrections
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import Slices

MOST = 24
"""The most words that one word of a query expands to."""

_SURE = 4  # a word needs at least this many characters to be found as a part of another word
_START, _START_SHARE = 0.6, 0.3
_INSIDE, _INSIDE_SHARE = 0.5, 0.35
_NEAR, _BEGINNING = 55.0, 3  # least likeness (per cent), or equal first letters, of a misspelt word
_INSTEAD = 0.9  # similarity of the separate parts of a compound, and of the name of a month

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Postings = tuple[Rows, npt.NDArray[Any]]

_NO_POSTINGS = np.empty(0, np.int32), np.empty(0, np.float32)


class Messages:
    """The messages of a session, in the form that ranking reads.

    Messages are neighbours in the order of ids. They belong to no conversation, since one conversation for
    all would not distinguish them. Metadata is searched like text, but adds no length and no times.

    The object is valid until the corpus changes.
    """

    def __init__(self, corpus: Corpus, *, metadata: bool) -> None:
        self._corpus = corpus
        self.size = corpus.size
        self.author = corpus.author
        self.authors = corpus.authors
        self.conversation = corpus.conversation
        self.created = corpus.created
        self.flags = corpus.flags
        self._names = frozenset(chain.from_iterable(corpus.vocabulary("author")))
        self._metadata = metadata and any(corpus.vocabulary("tags"))
        self._learned: dict[str, Postings] = {}
        self._lines: list[str] = []

    def learn(self, term: str, found: Iterable[Postings]) -> int:
        """Merge posting lists into one for ``term``, with the highest counts; return its length."""
        some = [(rows, times) for rows, times in found if len(rows)]
        if len(some) == 1:
            rows, times = some[0]
            self._learned[term] = rows, times.astype(np.float32)
            return len(rows)
        most = np.zeros(self.size, np.float32)
        for rows, times in some:
            most[rows] = np.maximum(most[rows], times)
        rows = np.flatnonzero(most).astype(np.int32)
        self._learned[term] = rows, most[rows]
        return len(rows)

    def forget(self) -> None:
        """Drop the learned terms."""
        self._learned.clear()

    # -- what ranking reads ------------------------------------------------

    def lengths(self, field: Any) -> npt.NDArray[np.uint32]:
        """Return the number of terms by row."""
        return self._corpus.lengths(field)

    def postings(self, field: Any, term: str) -> Postings:
        """Return the rows with ``term``, and its counts."""
        if field == "author":  # a fast path: most words of a query name no sender
            return self._corpus.postings("author", term) if term in self._names else _NO_POSTINGS
        if field != "text":
            return _NO_POSTINGS
        learned = self._learned.get(term)
        if learned is not None:
            return learned
        rows, times = self._corpus.postings("text", term)
        if self._metadata:
            more, more_times = self._corpus.postings("tags", term)
            if not len(rows):
                return more, more_times
            if len(more):
                rows, place = np.unique(np.concatenate((rows, more)), return_inverse=True)
                times = np.bincount(place, np.concatenate((times, more_times))).astype(np.float32)
        return rows, times

    def vocabulary(self, field: Any) -> Iterator[Sequence[str]]:
        """Yield the terms in blocks."""
        yield from self._corpus.vocabulary(field)
        if field == "text" and self._metadata:
            yield from self._corpus.vocabulary("tags")

    def lines(self) -> Iterator[str]:
        """Yield blocks of the terms of texts, one term a line; blocks are cached."""
        for place, block in enumerate(self.vocabulary("text")):
            if place == len(self._lines):
                self._lines.append("\n".join(block))
            yield self._lines[place]

    def neighbours(self, mask: Mask) -> Neighbours:
        """Return the neighbours and places of rows among those of ``mask``."""
        rows = np.flatnonzero(mask).astype(np.int32)
        # Rows are in runs of ascending or descending ids, on which a stable sort is fast.
        rows = rows[np.argsort(self._corpus.position[rows], kind="stable")]
        previous, following, place = (np.full(self.size, -1, np.int32) for _ in range(3))
        previous[rows[1:]] = rows[:-1]
        following[rows[:-1]] = rows[1:]
        place[rows] = np.arange(len(rows), dtype=np.int32)
        return Neighbours(previous, following, place, rows)

    def vectors(self, space: str) -> tuple[npt.NDArray[np.int8], Floats, Mask] | None:
        """Return the vectors of messages in a space, if there are any."""
        return self._corpus.vectors(space)

    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]:
        """Return token vectors; messages have none."""
        return self._corpus.token_vectors(space, rows)


class ExpandedQuery(NamedTuple):
    """Terms for ranking, and the number of query terms that no visible message has."""

    terms: tuple[Term, ...]
    unknown: int


def expand(messages: Messages, view: View, terms: Sequence[Term]) -> Slices[ExpandedQuery]:
    """Make ``messages`` learn which rows have each of ``terms``, in any form."""
    names = yield from _find_full_names(view, terms)
    wanted = [term for term in terms if term.term not in names]
    known = {term.term: view.postings("text", term.term) for term in wanted}
    likenesses = yield from _find_containing(
        messages, {term: len(rows) > 0 for term, (rows, _) in known.items()}
    )
    learned: list[tuple[Term, list[Postings]]] = []
    for term in wanted:
        rows, times = known[term.term]
        alike = likenesses[term.term]
        if not len(rows):
            _keep_best(alike, (yield from _find_misspellings(view, term)))
            _keep_best(alike, _shorten(term.term))
        found = [(rows, times), _part_of_name(view, term)]
        if term.instead:
            found.append(_intersect(view, term.instead))
        alike.pop(term.term, None)
        found += yield from _find_present(view, alike)
        learned.append((term, found))
    there = set(names)
    for term, found in learned:
        # Ranking looks for the parts of a compound that is only partly present.
        if messages.learn(term.term, found) or term.instead:
            there.add(term.term)
        yield
    kept = tuple(term for term in terms if term.term in there)
    return ExpandedQuery(kept, len(terms) - len(kept))


def _find_full_names(view: View, terms: Sequence[Term]) -> Slices[set[str]]:
    """Return the terms of senders' names that are complete in the query, in any order."""
    wanted = dict.fromkeys(term.term for term in terms)
    names = yield from match_names(view, wanted)
    return {term for name in names.values() if set(name) <= wanted.keys() for term in name}


def _find_containing(messages: Messages, wanted: dict[str, bool]) -> Slices[dict[str, dict[str, float]]]:
    """Map each term to the terms that contain it, with their similarity.

    ``wanted`` says whether a message has the term itself. If so, the term needs `_SURE` characters.
    """
    alike: dict[str, dict[str, float]] = {term: {} for term in wanted}
    parts = {
        # A stem may lack its last "e": "base" is a part of "databas".
        term: term.removesuffix("e") if len(term) >= _SURE else term
        for term, known in wanted.items()
        if len(term) >= (_SURE if known else 2) and not is_unspaced(term)
    }
    for lines in messages.lines() if parts else ():
        for term, part in parts.items():
            words = _with(part, lines)
            _keep_best(
                alike[term], ((word, _part_likeness(part, word)) for word in words if not is_unspaced(word))
            )
            yield
    return alike


def _with(part: str, lines: str) -> Iterator[str]:
    at = lines.find(part)
    while at >= 0:
        end = lines.find("\n", at)
        if end < 0:
            end = len(lines)
        yield lines[lines.rfind("\n", 0, at) + 1 : end]
        at = lines.find(part, end)


def _resembles(view: View, term: Term) -> Slices[bool]:
    """Return whether some word is similar enough to an unknown word to try corrections.

    Corrections take 1 ms; in a short session, this is more than the rest of the search takes.
    """
    begins = term.word.lower()[:_BEGINNING]
    for block in view.corpus.vocabulary("text"):
        place = bisect_left(block, begins)
        if place < len(block) and block[place].startswith(begins):
            return True
        if process.extractOne(term.term, block, scorer=fuzz.ratio, score_cutoff=_NEAR) is not None:
            return True
        yield
    return False


def _find_misspellings(view: View, term: Term) -> Slices[list[tuple[str, float]]]:
    """Return the words that an unknown word may misspell."""
    if not (yield from _resembles(view, term)):
        return []
    guesses = yield from find_corrections(view, term)
    return [(guess.term, max(guess.likeness, fuzz.ratio(term.term, guess.term) / 100)) for guess in guesses]


def _shorten(word: str) -> Iterable[tuple[str, float]]:
    """Return short forms of a long word: authentication, auth."""
    return ((word[:end], _part_likeness(word[:end], word)) for end in range(_SURE, len(word)))


def _part_likeness(part: str, whole: str) -> float:
    share = len(part) / len(whole)
    return _START + _START_SHARE * share if whole.startswith(part) else _INSIDE + _INSIDE_SHARE * share


def _keep_best(alike: dict[str, float], found: Iterable[tuple[str, float]]) -> None:
    for term, likeness in found:
        alike[term] = max(alike.get(term, 0.0), likeness)


def _find_present(view: View, alike: dict[str, float]) -> Slices[list[Postings]]:
    """Return the postings of the best similar words in visible messages."""
    found: list[Postings] = []
    for term, likeness in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if len(found) == MOST:
            break
        rows, _ = view.postings("text", term)
        if len(rows):
            found.append((rows, np.full(len(rows), likeness, np.float32)))
        yield
    return found


def _part_of_name(view: View, term: Term) -> Postings:
    rows, _ = view.postings("author", term.term)
    return rows, np.ones(len(rows), np.float32)


def _intersect(view: View, terms: Sequence[str]) -> Postings:
    held: Postings | None = None
    for term in terms:
        rows, _ = view.postings("text", term)
        rows = rows if held is None else np.intersect1d(held[0], rows, assume_unique=True)
        held = rows, np.full(len(rows), _INSTEAD, np.float32)
    assert held is not None, "a term has parts or none"
    return held
