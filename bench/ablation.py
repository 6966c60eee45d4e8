"""What each special rule earns: the sets of `bench quality`, with one rule left out after the other.

A rule is a signal of memories and messages, the mean of the vectors, the correction of spelling, the words of
pages by coverage, or what a session knows of its neighbours. Above nothing, a set loses without the rule;
below, it gains.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from bench import quality
from bench.harness import Plan, Report, Table
from bench.present_state import embedders
from greenroom.actors.search.ranking import meaning, signals, weights
from greenroom.actors.search.ranking.sums import SignalSum
from greenroom.actors.sessions.search import scores
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from bench.harness import Value
    from bench.ranked_corpus import Remembering

LEAST: Final = 0.05
"""A difference of fewer points is left out."""
VECTORS: Final = {"words": "words", "static": "static", "MiniLM": "tokens"}


def run(plan: Plan) -> Report:
    """Measure each embedder with all rules, and without each."""
    tables: list[Table] = []
    with plan.folder() as models:
        for name, embedder in embedders(plan, models):
            whole = _means(plan, embedder)
            without: dict[str, Mapping[str, float]] = {}
            for rule in rules(name)[:: plan.size(1, 30)]:
                with left_out(rule):
                    without[rule] = _means(plan, embedder)
            rows: list[list[Value]] = [
                [each, whole[each], *(_lost(whole[each] - found[each]) for found in without.values())]
                for each in whole
            ]
            columns = ["set", "all rules %", *(f"-{rule}" for rule in without)]
            tables.append(Table(title=f"points lost without a rule, {name}", columns=columns, rows=rows))
    return Report(tables=tables)


def rules(embedder: str) -> list[str]:
    """Return the rules that count with an embedder."""
    column = weights.VECTOR_SETS.index(VECTORS[embedder])
    named = [name for name in weights.SIGNALS if any(table.get(name, _NONE)[column] for table in _tables())]
    return [*named, *_OTHERS]


@contextmanager
def left_out(rule: str) -> Iterator[None]:
    """Rank without a rule."""
    if rule in _OTHERS:
        where, name, instead = _OTHERS[rule]
        with patch.object(where, name, instead):
            yield
        return
    tables = {
        kind: {name: row for name, row in table.items() if name != rule}
        for kind, table in weights._TABLES.items()  # noqa: SLF001 - what is left out is nowhere else
    }
    with patch.object(weights, "_TABLES", tables):
        _forget()
        yield
    _forget()


def _forget() -> None:
    weights.weights.cache_clear()
    weights.message_weights.cache_clear()


def _tables() -> Sequence[Mapping[str, tuple[float, float, float, float]]]:
    return list(weights._TABLES.values())  # noqa: SLF001 - as above


def _means(plan: Plan, embedder: Remembering | None) -> dict[str, float]:
    found = quality.by_set(quality.marks(plan, embedder))
    return {name: 100 * statistics.fmean(values) for name, values in found.items()}


def _lost(points: float) -> float:
    return round(points, 1) if abs(points) >= LEAST else 0.0


def _no_corrections(*_: Any) -> Slices[list[Any]]:
    yield from ()
    return []


_NONE: Final = (0.0, 0.0, 0.0, 0.0)
_OTHERS: Final[Mapping[str, tuple[Any, str, Callable[..., Any]]]] = {
    "mean": (meaning, "mean_of", lambda _: None),
    "spelling": (signals, "find_corrections", _no_corrections),
    "pages by coverage": (SignalSum, "scale", lambda _, __: None),
    "neighbours alike": (scores, "weigh_neighbours", lambda table, _: table),
}
