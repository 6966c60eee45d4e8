"""The order of the memories for a query: the sum of weighed signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking import signals as ranking_signals
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.relevance import A_FEW, RIVALS, SCALES, log_odds
from greenroom.actors.search.ranking.signals import QueryReading, Values
from greenroom.actors.search.ranking.sums import is_nothing, weigh
from greenroom.actors.search.ranking.view import Floats, Mask, View
from greenroom.actors.search.ranking.weights import KINDS, VectorSet, weights
from greenroom.runtime import Slices

Places = npt.NDArray[np.intp]

FINALISTS = 100
"""At least this many of the best rows are compared token by token."""


_MATCHING = ("words", "mention", "nearby", "conversation", "tags", "key", "author", "month", "day", "time")
"""Signals of rows that have something in common with the query."""


class Ranked(NamedTuple):
    """The best rows, best first.

    Attributes:
        log_odds: The logarithm of each row's odds against no answer; independent of the other rows.
        strengths: For each row, the sum of its signals, each times its weight.
        signals: For each signal, by name, its values for the rows.
        total: How many rows have anything in common with the query.
        kinds: The place of each row's kind in `weights.KINDS`; it selects the table of weights.
        corrected: For each term that no visible memory holds, the terms that were looked up instead.
        unknown: Terms that no visible memory holds and that resemble no known term.
        gains: For each reason, by how much it raised or lowered rows afterwards.
    """

    rows: Places
    log_odds: Floats
    strengths: Floats
    signals: Mapping[str, Floats]
    visible: int
    total: int
    vectors: VectorSet
    kinds: npt.NDArray[np.uint8]
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    reading: QueryReading
    gains: Mapping[str, Floats] = MappingProxyType({})

    @property
    def scores(self) -> Floats:
        """The probability of each row against no answer, 0 to 1."""
        return (1 / (1 + np.exp(-self.log_odds))).astype(np.float32)

    @property
    def is_nothing(self) -> bool:
        """Whether all rows are too weak to be an answer."""
        if not len(self.rows):
            return True
        scale = SCALES[KINDS[self.kinds[0]]][self.vectors]
        floor = scale.floor if self.visible <= A_FEW else scale.floor_of_many
        return bool(self.scores[0] < floor) and not self._has_all()

    def _has_all(self) -> bool:
        """Return whether one of the best rows has every word of the query."""
        best = self.rows[:RIVALS]
        has = np.full(len(best), not self.unknown)
        for group in self.reading.groups:
            places = np.searchsorted(group.rows, best)
            has &= np.append(group.rows, -1)[places] == best
        return bool(has.any())

    @property
    def parts(self) -> dict[str, Floats]:
        """What each signal adds to the strength of each row: its value times its weight."""
        return self.parts_of(np.arange(len(self.rows)))

    def parts_of(self, places: Places) -> dict[str, Floats]:
        """Return the `parts` of the rows at some places."""
        tables = [weights(kind, self.vectors) for kind in KINDS]
        kinds = self.kinds[places]
        of_rows = {
            name: np.array([table.get(name, 0) for table in tables], np.float32)[kinds]
            for name in self.signals
            if any(name in table for table in tables)
        }
        gained = {name: each[places] for name, each in self.gains.items()}
        return gained | dict(weigh(self.signals, of_rows, places))

    def reorder(self, order: Places, reason: str) -> Ranked:
        """Return another order; each place keeps its score, and `gains` shows the reason."""
        gained = (self.strengths - self.strengths[order]).astype(np.float32)
        return self._replace(
            rows=self.rows[order],
            kinds=self.kinds[order],
            signals={name: values[order] for name, values in self.signals.items()},
            gains={name: each[order] for name, each in self.gains.items()} | {reason: gained},
        )


def rank(view: View, query: RankQuery, wanted: Mask, *, limit: int) -> Slices[Ranked]:
    """Return the ``limit`` best rows among those that are visible and ``wanted``.

    All statistics are of the visible rows alone, so filters change no score.
    """
    yield from view.prepare()
    reading = yield from ranking_signals.read(view, query)
    values = yield from ranking_signals.lexical_signals(view, query, reading)
    of_vectors = yield from ranking_signals.vector_signals(view, query, reading)
    vectors = _vectors(query, of_vectors)
    values |= of_vectors
    matched = wanted & view.visible & _matches(values)
    rows = np.flatnonzero(matched)
    yield
    first: VectorSet = "sentences" if vectors == "tokens" else vectors
    kinds = view.kinds_for(dated=_names_time(values, view.visible))
    strength = yield from _strengths(values, kinds, first, rows)
    found, places = values, rows
    if vectors == "tokens":
        odds = log_odds(strength, kinds[rows], first, view.count)
        rows = rows[_best(odds, rows, max(FINALISTS, limit))]
        more = yield from ranking_signals.token_signals(view, query, reading, rows)
        vectors = "tokens" if more else "sentences"
        found, places = {name: each[rows] for name, each in values.items()} | more, np.arange(len(rows))
        strength = yield from _strengths(found, kinds[rows], vectors, places)
    kinds = kinds[rows]
    odds = log_odds(strength, kinds, vectors, view.count)
    chosen = _best(odds, rows, limit)
    return Ranked(
        rows=rows[chosen],
        log_odds=odds[chosen],
        strengths=strength[chosen],
        signals={name: each[places[chosen]] for name, each in found.items()},
        visible=view.count,
        total=int(np.count_nonzero(matched)),
        vectors=vectors,
        kinds=kinds[chosen],
        corrected=reading.corrected,
        unknown=reading.unknown,
        reading=reading,
    )


def signals(view: View, query: RankQuery) -> Slices[dict[str, Floats]]:
    """Return every signal for every row, to fit weights to; `rank` needs fewer."""
    reading = yield from ranking_signals.read(view, query)
    values = yield from ranking_signals.lexical_signals(view, query, reading)
    values |= yield from ranking_signals.vector_signals(view, query, reading)
    if _vectors(query, values) == "tokens":
        rows = np.arange(len(view.visible))
        values |= yield from ranking_signals.token_signals(view, query, reading, rows)
    return values


def _vectors(query: RankQuery, of_vectors: Values) -> VectorSet:
    if query.vectors is None or "meaning" not in of_vectors:
        return "words"
    if query.vectors.sentence is None:
        return "static"
    return "tokens" if query.vectors.words else "sentences"


def _names_time(values: Values, visible: Mask) -> bool:
    """Return whether the query names a time, and a visible memory is from that time."""
    found = (values[name] for name in ("month", "day", "time"))
    return any(bool((each[visible] > 0).any()) for each in found if not is_nothing(each))


def _matches(values: Values) -> Mask:
    """Return which rows have anything in common with the query; with vectors, all rows have."""
    if "meaning" in values:
        return np.ones(len(values["meaning"]), np.bool_)
    matches = np.zeros(len(values["words"]), np.bool_)
    for name in _MATCHING:
        if not is_nothing(values[name]):
            matches |= values[name] > 0
    return matches


def _strengths(
    values: Values,
    kinds: npt.NDArray[np.uint8],
    vectors: VectorSet,
    rows: Places,
) -> Slices[Floats]:
    """Return the strength of each of ``rows``, with the weights of its kind."""
    of_rows = kinds[rows]
    total = np.empty(len(rows), np.float32)
    for number, kind in enumerate(KINDS):
        places = np.flatnonzero(of_rows == number)
        if len(places):
            total[places] = yield from _add_up(values, weights(kind, vectors), rows[places])
    return total


def _add_up(values: Values, table: Mapping[str, float], rows: Places) -> Slices[Floats]:
    size = len(next(iter(values.values())))
    few = 2 * len(rows) < size  # selecting rows costs more than adding some that are not wanted
    total = np.zeros(len(rows) if few else size, np.float32)
    for _, part in weigh(values, table, rows if few else None):
        total += part
        yield
    return total if few or len(rows) == size else total[rows]


def _best(strength: Floats, rows: Places, limit: int) -> Places:
    """Return the places of the ``limit`` strongest, in order; among equals, the newest row first."""
    if len(strength) > limit:
        bound = np.partition(strength, len(strength) - limit)[len(strength) - limit]
        places = np.flatnonzero(strength >= bound)
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((-rows[places], -strength[places]))][:limit]
