"""The order of the memories for a query: values of signals, added up by the table in `weights`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.ranking.weights import KINDS, VectorSet, weights
from greenroom.actors.search.ranking import signals as ranking_signals
from greenroom.actors.search.ranking.relevance import A_FEW, RIVALS, SCALES, log_odds
from greenroom.actors.search.ranking.view import is_nothing
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.query import RankQuery
    from greenroom.actors.search.ranking.signals import QueryReading, Values
    from greenroom.actors.search.ranking.view import Floats, View

    Mask = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.intp]

FINALISTS = 100
"""How many of the best rows are compared token by token, at least."""


class Ranked(NamedTuple):
    """The best rows, best first.

    Attributes:
        rows: Their numbers in the corpus.
        log_odds: The logarithm of each one's odds against nothing, which do not depend on the other rows.
        strengths: The sum of each one's signals, each times its weight.
        signals: By name, the value of each signal for each of the rows.
        visible: How many rows the caller sees.
        total: How many rows have anything to do with the query at all.
        vectors: Which of the vectors decided, and so which column of the weights.
        kinds: The place of each row's kind in `weights.KINDS`, and so whose weights.
        corrected: What was looked for instead of terms that no visible memory holds.
        unknown: Terms that no visible memory holds, and that nothing is like.
        reading: What became of the query's terms.
        gains: What rows were raised or lowered by afterwards, by the reason.
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
        """The chance of each against nothing, 0 to 1."""
        return (1 / (1 + np.exp(-self.log_odds))).astype(np.float32)

    @property
    def is_nothing(self) -> bool:
        """Whether all of it is so weak that nothing can be taken for an answer."""
        if not len(self.rows):
            return True
        scale = SCALES[KINDS[self.kinds[0]]][self.vectors]
        floor = scale.floor if self.visible <= A_FEW else scale.floor_of_many
        return bool(self.scores[0] < floor) and not self._says_all()

    def _says_all(self) -> bool:
        """Return whether one of the best has every word of the query, be they as common as they may."""
        best = self.rows[:RIVALS]
        says = np.full(len(best), not self.unknown)
        for group in self.reading.groups:
            places = np.searchsorted(group.rows, best)
            says &= np.append(group.rows, -1)[places] == best
        return bool(says.any())

    @property
    def shares(self) -> dict[str, Floats]:
        """By name, what each signal adds to the strength: its value times its weight."""
        return self.shares_of(np.arange(len(self.rows)))

    def shares_of(self, places: Places) -> dict[str, Floats]:
        """Return `shares` of the rows at some places alone."""
        tables = [weights(kind, self.vectors) for kind in KINDS]
        kinds = self.kinds[places]
        gained = {name: each[places] for name, each in self.gains.items()}
        return gained | {
            name: found[places] * np.array([table.get(name, 0) for table in tables], np.float32)[kinds]
            for name, found in self.signals.items()
            if any(name in table for table in tables)
        }

    def moved(self, order: Places, why: str) -> Ranked:
        """Return the rows in another order; each place keeps its score, which says how well the subject fits.

        Args:
            order: The place at which each row is now.
            why: The reason; under it stands what a row gains or loses.
        """
        gained = (self.strengths - self.strengths[order]).astype(np.float32)
        return self._replace(
            rows=self.rows[order],
            kinds=self.kinds[order],
            signals={name: values[order] for name, values in self.signals.items()},
            gains={name: each[order] for name, each in self.gains.items()} | {why: gained},
        )


def rank(
    view: View, query: RankQuery, wanted: Mask, should_yield: Callable[[], bool], *, limit: int
) -> Slices[Ranked]:
    """Return the ``limit`` best of the rows that are visible and ``wanted``; yields when ``should_yield()``.

    Args:
        view: The rows that the caller may see. All statistics are theirs.
        query: What is looked for.
        wanted: What the filters leave. They change no score.
        should_yield: Whether to yield.
        limit: How many rows are returned at most.
    """
    yield from view.prepare(should_yield)
    reading = yield from ranking_signals.read(view, query, should_yield)
    values = yield from ranking_signals.lexical_signals(view, query, reading, should_yield)
    of_vectors = yield from ranking_signals.vector_signals(view, query, reading, should_yield)
    vectors = _vectors(query, of_vectors)
    values |= of_vectors
    matched = wanted & view.visible & _touched(values)
    rows = np.flatnonzero(matched)
    if should_yield():
        yield
    first: VectorSet = "sentences" if vectors == "tokens" else vectors
    kinds = view.kinds_asked(dated=_is_of_time(values, view.visible))
    strength = yield from _strengths(values, kinds, first, rows, should_yield)
    found, places = values, rows
    if vectors == "tokens":
        odds = log_odds(strength, kinds[rows], first, view.count)
        rows = rows[_best(odds, rows, max(FINALISTS, limit))]
        more = yield from ranking_signals.token_signals(view, query, reading, rows, should_yield)
        vectors = "tokens" if more else "sentences"
        found, places = {name: each[rows] for name, each in values.items()} | more, np.arange(len(rows))
        strength = yield from _strengths(found, kinds[rows], vectors, places, should_yield)
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


def signals(view: View, query: RankQuery, should_yield: Callable[[], bool]) -> Slices[dict[str, Floats]]:
    """Return every signal for every row, which is more than `rank` needs: for fitting the weights."""
    reading = yield from ranking_signals.read(view, query, should_yield)
    values = yield from ranking_signals.lexical_signals(view, query, reading, should_yield)
    values |= yield from ranking_signals.vector_signals(view, query, reading, should_yield)
    if _vectors(query, values) == "tokens":
        rows = np.arange(len(view.visible))
        values |= yield from ranking_signals.token_signals(view, query, reading, rows, should_yield)
    return values


def _vectors(query: RankQuery, of_vectors: Values) -> VectorSet:
    if query.vectors is None or "meaning" not in of_vectors:
        return "words"
    if query.vectors.sentence is None:
        return "static"
    return "tokens" if query.vectors.words else "sentences"


def _is_of_time(values: Values, visible: Mask) -> bool:
    """Return whether the query names a time of which there is anything visible."""
    found = (values[name] for name in ("month", "day", "time"))
    return any(bool((each[visible] > 0).any()) for each in found if not is_nothing(each))


def _touched(values: Values) -> Mask:
    """Return which rows have anything to do with the query: all, once meaning is compared."""
    if "meaning" in values:
        return np.ones(len(values["meaning"]), np.bool_)
    touched = np.zeros(len(values["words"]), np.bool_)
    for name in (
        "words",
        "mention",
        "nearby",
        "conversation",
        "tags",
        "key",
        "author",
        "month",
        "day",
        "time",
    ):
        if not is_nothing(values[name]):
            touched |= values[name] > 0
    return touched


def _strengths(
    values: Values,
    kinds: npt.NDArray[np.uint8],
    vectors: VectorSet,
    rows: Places,
    should_yield: Callable[[], bool],
) -> Slices[Floats]:
    """Return the strength of each of ``rows``, by the weights of its kind."""
    of_rows = kinds[rows]
    total = np.empty(len(rows), np.float32)
    for number, kind in enumerate(KINDS):
        places = np.flatnonzero(of_rows == number)
        if len(places):
            total[places] = yield from _added(values, weights(kind, vectors), rows[places], should_yield)
    return total


def _added(
    values: Values, table: Mapping[str, float], rows: Places, should_yield: Callable[[], bool]
) -> Slices[Floats]:
    size = len(next(iter(values.values())))
    few = 2 * len(rows) < size  # picking rows costs more than adding some that are not wanted
    total = np.zeros(len(rows) if few else size, np.float32)
    for name, weight in table.items():
        found = values.get(name)
        if found is not None and not is_nothing(found):
            total += np.float32(weight) * (found[rows] if few else found)
            if should_yield():
                yield
    return total if few or len(rows) == size else total[rows]


def _best(strength: Floats, rows: Places, limit: int) -> Places:
    """Return the places of the ``limit`` strongest, strongest first; of equals the newest row first."""
    if len(strength) > limit:
        bound = np.partition(strength, len(strength) - limit)[len(strength) - limit]
        places = np.flatnonzero(strength >= bound)
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((-rows[places], -strength[places]))][:limit]
