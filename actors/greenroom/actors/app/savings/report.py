"""The report of savings, and savings over time; pure functions of the stored counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import reduce
from itertools import groupby
from typing import Any, Final, Literal, cast

from greenroom.actors.app.savings.baselines import BASELINES, CACHES, NONE
from greenroom.actors.app.savings.requests import (
    BOUNDS,
    CacheSavings,
    DaySavings,
    OperationSavings,
    PeriodSavings,
    SavingsCount,
    SavingsReport,
    SavingsRow,
)
from greenroom.actors.core.replies.sources import CacheLevel

_EPOCH: Final = date(1970, 1, 1)
_MILLION: Final = 1_000_000
_HALF: Final = 0.5
_MOST: Final = 0.95


def report(
    rows: Sequence[SavingsRow], whose: Literal["mine", "all"], since: int, today: int, token_price: float
) -> SavingsReport:
    """Return the report of rows."""
    by_operation: dict[tuple[str, str], SavingsCount] = {}
    by_day: dict[int, SavingsCount] = {}
    for row in rows:
        which = row.operation, row.baseline
        by_operation[which] = by_operation.get(which, SavingsCount()).plus(row.count)
        by_day[row.day] = by_day.get(row.day, SavingsCount()).plus(row.count)
    total = _sum(by_day.values())
    operations = [_operation(*which, count, token_price) for which, count in by_operation.items()]
    return SavingsReport(
        whose=whose,
        since=_EPOCH + timedelta(since),
        until=_EPOCH + timedelta(today),
        **_tokens(total, token_price),
        token_price=token_price,
        operations=sorted(operations, key=lambda each: (-each.saved_tokens, each.operation, each.baseline)),
        caches=list(_caches(rows)),
        days=[
            DaySavings(day=_EPOCH + timedelta(day), **_tokens(count, token_price))
            for day, count in sorted(by_day.items())
        ],
    )


def _sum(counts: Iterable[SavingsCount]) -> SavingsCount:
    return reduce(SavingsCount.plus, counts, SavingsCount())


def cost(count: SavingsCount, token_price: float) -> float:
    """Return the cost of the saved tokens."""
    return round((count.baseline - count.answered) * token_price / _MILLION, 6)


def within(count: SavingsCount, share: float) -> float | None:
    """Return the milliseconds within which a share of the calls ended; None if unknown."""
    wanted, seen = share * sum(count.times), 0
    for bound, calls in zip(BOUNDS, count.times, strict=False):
        seen += calls
        if seen >= wanted:
            return bound * 1_000
    return None


def _operation(operation: str, baseline: str, count: SavingsCount, token_price: float) -> OperationSavings:
    return OperationSavings(
        operation=operation,
        baseline=baseline,
        would_have_read=BASELINES.get(baseline, BASELINES[NONE]).would_have_read,
        **_tokens(count, token_price),
        half_within_ms=within(count, _HALF),
        most_within_ms=within(count, _MOST),
    )


def _tokens(count: SavingsCount, token_price: float) -> dict[str, Any]:
    return {
        "calls": count.calls,
        "baseline_tokens": count.baseline,
        "answer_tokens": count.answered,
        "saved_tokens": count.baseline - count.answered,
        "saved_cost": cost(count, token_price),
    }


def _caches(rows: Iterable[SavingsRow]) -> Iterable[CacheSavings]:
    by_operation: dict[str, SavingsCount] = {}
    for row in rows:
        by_operation[row.operation] = by_operation.get(row.operation, SavingsCount()).plus(row.count)
    found = {
        (level, name): each for name, count in by_operation.items() for level, each in count.caches.items()
    }
    for (level, operation), (hits, misses) in sorted(found.items()):
        yield CacheSavings(
            level=cast("CacheLevel", level),
            operation=operation,
            cache=CACHES[level, operation],
            hits=hits,
            misses=misses,
            rate=round(hits / (hits + misses), 4),
        )


def periods(rows: Iterable[SavingsRow], begins: Callable[[int], datetime]) -> list[PeriodSavings]:
    """Return the savings of each hour or day with counts, oldest first."""
    found: list[PeriodSavings] = []
    total = 0
    for time, of_period in groupby(sorted(rows, key=lambda row: row.day), key=lambda row: row.day):
        by_operation: dict[str, SavingsCount] = {}
        for row in of_period:
            by_operation[row.operation] = by_operation.get(row.operation, SavingsCount()).plus(row.count)
        saved = {name: count.baseline - count.answered for name, count in by_operation.items()}
        total += sum(saved.values())
        found.append(
            PeriodSavings(
                begins=begins(time),
                saved_tokens=sum(saved.values()),
                total_tokens=total,
                by_operation=saved,
                hit_rates={
                    level: hits / (hits + misses)
                    for level, (hits, misses) in _sum(by_operation.values()).caches.items()
                    if hits + misses
                },
            )
        )
    return found
