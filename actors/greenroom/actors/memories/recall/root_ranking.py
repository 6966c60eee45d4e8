"""Rank namespace roots for a search, if there are more than it can ask.

The terms and days in their summaries show which roots may have a match. Of these, the roots with more rare
words of the query come first.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.content.text.verbatim import build_verbatim
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import DAY, to_microseconds
from greenroom.actors.memories.reading.search import whole_terms
from greenroom.actors.memories.recall.summary_index import SummaryIndex
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.search.embedding.vectors import QueryVectors
from greenroom.actors.search.ranking.dates import Calendar
from greenroom.actors.search.ranking.lexical import idf
from greenroom.actors.search.ranking.meaning import query_vector, word_weights
from greenroom.actors.search.ranking.query import RankQuery, Term
from greenroom.actors.search.ranking.spelling import find_corrections
from greenroom.runtime import Slices

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.intp]


_BLOCK = 4_096  # vectors compared without a pause
WORD, DAYS, MONTH, MEANING = 0.6, 9.5, 3.5, 4.8
"""The weights of rarity, a day, a month and a cosine: about those of ranking."""
_SLIGHT = 0.1


class VisibleRoots:
    """The roots and units that one reader sees, until the summary index changes.

    Attributes:
        roots: Which roots the reader sees.
        holding: Which roots have a visible memory, according to their summaries.
        known: Which roots have a summary.
        newest: When the newest visible memory of each root was made; 0 if unknown.
    """

    def __init__(self, overview: SummaryIndex, principal: Principal) -> None:
        seen = overview.visibility(principal)
        listing = _numbers(overview.listing)
        self.roots: Mask = (listing >= 0) & _flags(seen.listings)[listing]
        self.known: Mask = _flags(overview.complete)
        self._overview = overview
        self._root = _numbers(overview.unit_root)
        self._units: Mask = (self._root >= 0) & _flags(seen.partitions)[_numbers(overview.unit_partition)]
        self.holding: Mask = np.zeros(len(listing), np.bool_)
        self.holding[self._root[self._units]] = True
        self.newest = np.zeros(len(listing), np.int64)
        newest = np.array(overview.newest, np.int64)
        np.maximum.at(self.newest, self._root[self._units], newest[self._units])

    def with_term(self, term: str) -> Numbers:
        """Return the roots with a visible memory that has a term, each once."""
        return self._roots_of(self._overview.terms.get(term))

    def with_day(self, day: int) -> Numbers:
        """Return the roots with a visible memory of a day, counted from 1970."""
        return self._roots_of(self._overview.days.get(day))

    def closest(self, space: str, query: Floats) -> Slices[Floats | None]:
        """Return the highest cosine of a query with each root's visible vectors.

        It is None for an unknown space.
        """
        found = self._overview.spaces.get(space)
        if found is None or found.dimensions != len(query):
            return None
        units = _numbers(found.units)
        scales = np.frombuffer(bytes(found.scales), np.float32)
        values = np.frombuffer(bytes(found.values), np.int8).reshape(len(units), -1)
        rows = np.flatnonzero(units < len(self._units))
        rows = rows[self._units[units[rows]]]
        best = np.zeros(len(self.roots), np.float32)
        for start in range(0, len(rows), _BLOCK):
            some = rows[start : start + _BLOCK]
            cosine = np.vecdot(values[some].astype(np.float32), query) * scales[some]
            np.maximum.at(best, self._root[units[some]], cosine)
            yield
        return best

    def _roots_of(self, units: array[int] | None) -> Numbers:
        if units is None:
            return np.empty(0, np.intp)
        numbers = _numbers(units)
        numbers = numbers[numbers < len(self._units)]  # the others are newer
        held = np.zeros(len(self.roots), np.bool_)
        held[self._root[numbers[self._units[numbers]]]] = True
        return np.flatnonzero(held & self.roots)


def _numbers(values: array[int]) -> Numbers:
    """Return a copy: an `array` cannot grow while numpy views it."""
    return np.array(values, np.intp)


def _flags(values: bytearray) -> Mask:
    return np.frombuffer(bytes(values), np.bool_)


class RootQuery(NamedTuple):
    """What the roots are ranked by; as in `ChooseRoots`."""

    below: str | None
    text: str | None
    is_exact: bool
    filters: MemoryFilters
    vectors: QueryVectors | None


class RootRanking:
    """One choice among the roots that a reader sees.

    Attributes:
        visible: The names of all visible roots that the search covers.
        unknown: The names of those without a summary.
        count: How many of the others have a visible memory.
    """

    def __init__(self, overview: SummaryIndex, query: RootQuery, principal: Principal) -> None:
        self._overview = overview
        self._query = query
        self._sight = VisibleRoots(overview, principal)
        roots = self._sight.roots.copy()
        if query.below is not None:
            root = names.root_of(query.below)
            for number in np.flatnonzero(roots).tolist():
                roots[number] = names.is_below(overview.name(number), root)
        self.visible = self._names(roots)
        self.unknown = self._names(roots & ~self._sight.known)
        self._wanted: Mask = roots & self._sight.known & self._sight.holding
        self.count = int(np.count_nonzero(self._wanted))

    def rank(self) -> Slices[list[int]]:
        """Return the roots that may match, best first, then newest first."""
        text, is_exact = self._query.text, self._query.is_exact
        can = yield from self._filter(self._query.filters)
        newest = self._sight.newest
        strength = np.zeros(len(can), np.float32)
        if text is not None or self._query.vectors is not None:
            if is_exact and text is not None:
                for term in whole_terms(text):
                    can &= self._mask(self._sight.with_term(term))
            strength = yield from self._strength(text or "")
            if is_exact:
                strength = np.sign(strength)
            elif self._query.vectors is None and build_verbatim(text or "") is None:
                can &= strength > 0
        found = np.flatnonzero(can)
        best: list[int] = found[np.lexsort((-newest[found], -strength[found]))].tolist()
        return best

    def _names(self, mask: Mask) -> list[str]:
        return [self._overview.name(number) for number in np.flatnonzero(mask).tolist()]

    def _filter(self, filters: MemoryFilters) -> Slices[Mask]:
        """Return which roots may have a memory that passes the filters."""
        can = self._wanted.copy()
        if filters.tags:
            masks = [self._with_all(tag) for tag in filters.tags]
            can &= np.logical_and.reduce(masks) if filters.tag_match == "all" else np.logical_or.reduce(masks)
        if filters.author is not None:
            can &= self._with_all(filters.author)
        if filters.after is not None or filters.before is not None:
            first = None if filters.after is None else to_microseconds(filters.after) // DAY
            last = None if filters.before is None else to_microseconds(filters.before) // DAY
            inside = np.zeros(len(can), np.bool_)
            for day in list(self._overview.days):
                if (first is None or day >= first) and (last is None or day <= last):
                    inside[self._sight.with_day(day)] = True
                    yield
            can &= inside
        return can

    def _strength(self, text: str) -> Slices[Floats]:
        """Return how well each root fits the query's words, dates and vectors."""
        query = RankQuery.read(text)
        strength = np.zeros(len(self._wanted), np.float32)
        counts: dict[str, int] = {}
        for term in query.terms:
            for likeness, found in (yield from self._holding(term)):
                roots = found[self._wanted[found]]
                counts[term.term] = len(roots) if likeness == 1.0 else 0
                strength[roots] += np.float32(WORD * likeness * idf(len(roots), self.count))
            yield
        if query.dates:
            days = list(self._overview.days)
            calendar = Calendar(np.array(days, np.int64) * DAY, query.offset)
            worth = DAYS * calendar.close_to(query.dates) + MONTH * calendar.within(query.dates)
            best = np.zeros_like(strength)
            for at in np.flatnonzero(worth > _SLIGHT).tolist():
                roots = self._sight.with_day(days[at])
                best[roots] = np.maximum(best[roots], worth[at])
                yield
            strength += best
        strength += yield from self._meaning(counts)
        return strength

    def _meaning(self, counts: Mapping[str, int]) -> Slices[Floats]:
        """Return the weighed similarity of each root's vectors to the query."""
        best = np.zeros(len(self._wanted), np.float32)
        vectors = self._query.vectors
        for each in () if vectors is None else (vectors, *vectors.older):
            weights = word_weights(self.count, each.words, set(), counts, in_context=False)
            query = query_vector(each, weights)
            found = None if query is None else (yield from self._sight.closest(each.space, query))
            if found is not None:
                best = np.maximum(best, found)
        return best * np.float32(MEANING)

    def _holding(self, term: Term) -> Slices[list[tuple[float, Numbers]]]:
        """Return the roots that hold a term or its corrections, each with its likelihood."""
        found = self._sight.with_term(term.term)
        if len(found):
            return [(1.0, found)]
        instead = [(1.0, self._sight.with_term(part)) for part in term.instead]
        if any(len(roots) for _, roots in instead):
            return instead
        view: Any = _Vocabulary(self._overview, self._sight)
        meant = yield from find_corrections(view, term)
        return [(guess.likeness, self._sight.with_term(guess.term)) for guess in meant]

    def _with_all(self, text: str) -> Mask:
        """Return which roots hold all terms of a text."""
        found = self._wanted.copy()
        for token in tokens(text):
            for term in token.posted:
                found &= self._mask(self._sight.with_term(term))
        return found

    def _mask(self, roots: Numbers) -> Mask:
        found = np.zeros(len(self._wanted), np.bool_)
        found[roots] = True
        return found


class _Vocabulary:
    """The terms of all roots, in the form of a `View`, for spelling correction."""

    def __init__(self, overview: SummaryIndex, sight: VisibleRoots) -> None:
        self.corpus = self
        self._overview = overview
        self._sight = sight

    def vocabulary(self, field: str) -> Iterator[Sequence[str]]:
        """Yield the terms in blocks, each sorted."""
        return self._overview.words() if field == "text" else iter(())

    def postings(self, field: str, term: str) -> tuple[Numbers, None]:
        """Return the roots that hold a term."""
        return (self._sight.with_term(term) if field == "text" else np.empty(0, np.intp)), None
