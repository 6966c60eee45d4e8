"""The score of a message: how much of the query it says.

For each term ``t`` of the query, with ``df`` of ``n`` messages holding it:

    weight(t)    = ln(1 + (n + 50) / (df + 5))        rare words count more
    quality(t)   = 1 in the message itself; less for a misspelling or a part of a word;
                   0.5, 0.4, 0.3, 0.2 when a message 1, 2, 3, 4 places away says it,
                   0.8 when that is a question and this the message after it
    coverage     = sum(weight * quality) / sum(weight)                          (0-1)
    score        = 97 * coverage ** (1 / max(1, 0.75 * log2(number of terms)))  (0-97)

The exponent is there because a short query asks for all of its words, while few
messages hold half of a long question's (measured: the tenth best covers 0.9 / sqrt(terms)).

- The query as a phrase (stems, in order) scores 100.
- A sender named in full in the query is one term of double weight: 1 for that
  sender's messages, 0.7 for messages that mention the name.
- A message without any word of the query stays below 60, whatever its neighbours say. In a
  query of up to three terms, the name of the message's sender is no such word.
- A query without terms (stop words, symbols), or none of whose terms occur, is looked for as it stands.

Equal scores: more coverage, then the shorter message (by powers of two), then the newer.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from greenroom.actors.search._similar import similar
from greenroom.actors.search._text import Token, tokens
from greenroom.actors.search._view import STEP, View

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from greenroom.runtime import Slices

    Group = tuple[float, set[int]]  # quality and ranks

T = TypeVar("T")

PHRASE = 100.0
_SCATTERED = 97.0
_UNSHARED = 59.0
_INSIDE_WORD = 70.0
_NEAR = (0.5, 0.4, 0.3, 0.2)
_ANSWER = 0.8
_NAME_WEIGHT = 2.0
_MENTION = 0.7
_SHORT = 3
_LOOK = 250_000  # characters looked through for a phrase between two looks at the clock
_INSTEAD = 0.9  # a compound's parts are all there but not as that compound; a month has its name


@dataclass(frozen=True, slots=True)
class Query:
    """A query's text, read once.

    Attributes:
        phrase: What the phrase key of a text has to contain, without the blanks around it.
        terms: The terms of its tokens, in order, repetitions included, see `Token`.
    """

    phrase: str
    terms: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def read(cls, text: str) -> Query:
        """Read a query as the caller typed it."""
        found = tokens(text)
        return cls(phrase_key(found), tuple(term for token in found for term in token.terms))


def phrase_key(found: Sequence[Token]) -> str:
    """Return the pieces of ``found``, joined by single blanks."""
    return " ".join([piece for piece, _, _ in found if piece])


class Ranking:
    """One search over one view. Every generator here yields when ``pace`` says so."""

    def __init__(
        self,
        view: View,
        query: Query,
        keys: Sequence[Sequence[str]],
        asking: bytearray,
        pace: Callable[[], bool],
    ) -> None:
        """Prepare the ranking of ``view``.

        Args:
            view: The messages, already filled.
            query: What is looked for.
            keys: Phrase keys by row, one sequence for each part of a message that is searched.
            asking: By row, whether the message is a question.
            pace: Whether to yield.
        """
        self._view = view
        self._query = query
        self._keys = keys
        self._asking = asking
        self._pace = pace
        # Ranks -4..-1 and n..n+3, neighbours beyond the ends, share the four cells after the last.
        self._gained = [0.0] * (len(view.rows) + len(_NEAR))
        self._shared = [0] * len(view.rows)
        self._weight = 0.0
        self._terms = 0
        self._shareable = 0

    def best(self, threshold: float, limit: int) -> Slices[list[tuple[float, int]]]:
        """Return score and row of the ``limit`` best messages that reach ``threshold``, best first."""
        rest = list(self._query.terms)
        names = yield from self._names(rest)
        distinct = dict.fromkeys(rest)
        enough = not distinct or len(names) + len(distinct) > _SHORT
        for groups, weight in names:
            yield from self._credit(groups, weight, spread=False, shares=enough)
        for term, instead in distinct:
            yield from self._term(term, instead)
        found = yield from (self._phrases() if any(self._shared) else self._literal())
        return (yield from self._choose(found, threshold, limit))

    def _names(self, terms: list[tuple[str, tuple[str, ...]]]) -> Slices[list[tuple[Sequence[Group], float]]]:
        """Take the senders' names out of ``terms``; returns who wrote or mentions each, and its weight."""
        known = self._view.names()
        named: dict[tuple[str, ...], tuple[Sequence[Group], float]] = {}
        for length in sorted({len(name) for name in known}, reverse=True):
            start = 0
            while start + length <= len(terms):
                name = tuple(term for term, _ in terms[start : start + length])
                written = (yield from self._view.written_by(name, self._pace)) if name in known else None
                if not written:
                    start += 1
                    continue
                del terms[start : start + length]
                mentions = yield from self._together(name)
                weight = _NAME_WEIGHT * self._rarity(len(written))
                named[name] = [(_MENTION, mentions), (1.0, written)], weight
        return list(named.values())

    def _term(self, term: str, instead: tuple[str, ...]) -> Slices[None]:
        """Credit the messages that hold the term or something like it."""
        exact = yield from self._view.ranks(term, self._pace)
        groups: list[Group] = [(1.0, exact)]
        if instead:
            groups.append((_INSTEAD, (yield from self._together(instead))))
        for quality, word in (yield from similar(self._view, term, known=bool(exact), pace=self._pace)):
            groups.append((quality, (yield from self._view.ranks(word, self._pace))))
        weight = self._rarity(len(set().union(*(ranks for _, ranks in groups))))
        if self._pace():
            yield
        yield from self._credit(groups, weight, spread=True, shares=True)

    def _together(self, terms: Sequence[str]) -> Slices[set[int]]:
        """Return who holds all of ``terms``."""
        held: set[int] | None = None
        for term in terms:
            ranks = yield from self._view.ranks(term, self._pace)
            held = ranks if held is None else held & ranks
        return held or set()

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self._view.rows) + 50) / (holders + 5))

    def _credit(self, groups: Sequence[Group], weight: float, *, spread: bool, shares: bool) -> Slices[None]:
        """Add one term of the query.

        Args:
            groups: Messages that hold it, by quality.
            weight: The term's weight.
            spread: Whether the neighbours of these messages say it too.
            shares: Whether it is enough to share this term with the query.
        """
        self._weight += weight
        self._terms += 1
        gained, shared = self._gained, self._shared
        best = yield from self._qualities(groups, spread=spread)
        for step in _steps(best.items()):
            for rank, quality in step:
                gained[rank] += weight * quality
            if self._pace():
                yield
        if not shares:
            return
        self._shareable += 1
        for ranks in _steps(set().union(*(ranks for _, ranks in groups))):
            for rank in ranks:
                shared[rank] += 1
            if self._pace():
                yield

    def _qualities(self, groups: Sequence[Group], *, spread: bool) -> Slices[dict[int, float]]:
        """Return how well each message says a term, given who holds it how well."""
        writes = [(quality, 0, list(ranks)) for quality, ranks in groups]
        if spread:
            writes += [write for group in writes for write in self._echoes(group[0], group[2])]
        if self._pace():
            yield
        # Written by ascending quality, the last value of a message is its best.
        best: dict[int, float] = {}
        for quality, shift, ranks in sorted(writes, key=itemgetter(0)):
            for start in range(0, len(ranks), STEP):
                best.update(dict.fromkeys([rank + shift for rank in ranks[start : start + STEP]], quality))
                if self._pace():
                    yield
        return best

    def _echoes(self, quality: float, ranks: list[int]) -> Iterator[tuple[float, int, list[int]]]:
        """Yield quality and distance at which the neighbours of ``ranks`` say a term too."""
        for distance, share in enumerate(_NEAR, 1):
            yield quality * share, distance, ranks
            yield quality * share, -distance, ranks
        rows, asking = self._view.rows, self._asking
        yield quality * _ANSWER, -1, [rank for rank in ranks if asking[rows[rank]]]

    def _phrases(self) -> Slices[dict[int, float]]:
        """Return the messages that hold the query as a phrase, among those that hold all of its terms."""
        shared, all_of_it = self._shared, self._shareable
        ranks: list[int] = []
        for start in range(0, len(shared), STEP):
            ranks += [
                rank for rank, count in enumerate(shared[start : start + STEP], start) if count == all_of_it
            ]
            if self._pace():
                yield
        return (yield from self._holding(f" {self._query.phrase} ", ranks, PHRASE))

    def _literal(self) -> Slices[dict[int, float]]:
        """Return the messages that hold the query as it stands, or failing that inside their words."""
        phrase = self._query.phrase
        if not phrase:
            return {}
        ranks = range(len(self._view.rows))
        found = yield from self._holding(f" {phrase} ", ranks, PHRASE)
        return found or (yield from self._holding(phrase, ranks, _INSIDE_WORD))

    def _holding(self, phrase: str, ranks: Sequence[int], score: float) -> Slices[dict[int, float]]:
        rows = self._view.rows
        found: dict[int, float] = {}
        looked = 0
        for rank in ranks:
            for keys in self._keys:
                key = keys[rows[rank]]
                looked += 100 + len(key)
                if phrase in key:
                    found[rank] = score
            if looked > _LOOK:
                looked = 0
                if self._pace():
                    yield
        return found

    def _choose(
        self, found: dict[int, float], threshold: float, limit: int
    ) -> Slices[list[tuple[float, int]]]:
        """Score the messages and return score and row of the best."""
        exponent = 1 / max(1.0, 0.75 * math.log2(max(1, self._terms)))
        gained, shared, rows = self._gained, self._shared, self._view.rows
        best: list[tuple[float, float, int, int]] = []
        for start in range(0, len(rows), STEP):
            # What cannot be among the best is not worth scoring; rounding decides at the edge.
            least = max(threshold, best[-1][0] if len(best) == limit else 0.0)
            floor = max(1e-9, self._weight * (max(0.0, least - 0.01) / _SCATTERED) ** (1 / exponent))
            for rank in range(start, min(start + STEP, len(rows))):
                if gained[rank] < floor and rank not in found:
                    continue
                coverage = min(1.0, gained[rank] / self._weight) if self._weight else 1.0
                score = found.get(rank) or _SCATTERED * coverage**exponent
                if not shared[rank] and rank not in found:
                    score = min(score, _UNSHARED)
                score = round(score, 2)
                if score >= least:
                    best.append((score, coverage, -len(self._keys[0][rows[rank]]).bit_length(), -rank))
            best = heapq.nlargest(limit, best)
            if self._pace():
                yield
        return [(score, rows[-rank]) for score, _, _, rank in best]


def _steps(values: Collection[T]) -> Iterator[list[T]]:
    remaining = iter(values)
    while step := list(islice(remaining, STEP)):
        yield step
