"""What was saved over time, as charts want it; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import groupby

from greenroom.actors.app.administration.replies import PeriodSavings
from greenroom.actors.app.savings.requests import SavingsCount, SavingsRow


def periods(rows: Iterable[SavingsRow], begins: Callable[[int], datetime]) -> list[PeriodSavings]:
    """Return what was saved in each hour or day in which something was counted, oldest first.

    Args:
        rows: The counts, in any order.
        begins: Returns when a day, or an hour, begins.
    """
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
                hit_rates=_hit_rates(by_operation.values()),
            )
        )
    return found


def _hit_rates(counts: Iterable[SavingsCount]) -> dict[str, float]:
    sums: dict[str, tuple[int, int]] = {}
    for count in counts:
        for level, (hits, misses) in count.caches.items():
            had, lacked = sums.get(level, (0, 0))
            sums[level] = had + hits, lacked + misses
    return {level: hits / (hits + misses) for level, (hits, misses) in sums.items() if hits + misses}
