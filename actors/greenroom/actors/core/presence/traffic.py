"""Traffic of all processes together: rates and times of requests; pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from greenroom.actors.core.presence.requests import OperationRate, Rates, RatesOfMinute, Traffic
from greenroom.actors.core.validation.times import to_datetime

_MINUTE: Final = 60 * 1_000_000
_MINUTES: Final = 60
_SECONDS: Final = 60.0

K = TypeVar("K")


def rates_of(traffic: Iterable[Traffic], now: int) -> Rates:
    """Return the rates and times of the requests of several processes.

    Histograms are left out if their bounds differ from the first one's.
    """
    all_of_them = list(traffic)
    bounds = all_of_them[0].bounds if all_of_them else ()
    alike = [each for each in all_of_them if each.bounds == bounds]
    minutes: dict[int, tuple[list[int], int]] = {}
    operations: dict[str, tuple[list[int], int]] = {}
    for each in alike:
        for counted in each.minutes:
            _add(minutes, counted.minute, counted.buckets, counted.failed)
        for operation in each.operations:
            _add(operations, operation.operation, operation.buckets, operation.failed)
    present = now // _MINUTE
    nothing = [0] * (len(bounds) + 1)
    history = []
    for minute in range(present - _MINUTES + 1, present + 1):
        buckets, failed = minutes.get(minute, (nothing, 0))
        history.append(
            RatesOfMinute(
                minute=to_datetime(minute * _MINUTE),
                per_second=sum(buckets) / _SECONDS,
                failed=failed,
                median_ms=quantile(bounds, buckets, 0.5),
                p99_ms=quantile(bounds, buckets, 0.99),
            )
        )
    rows = [
        OperationRate(
            operation=name,
            calls=sum(buckets),
            failed=failed,
            median_ms=quantile(bounds, buckets, 0.5),
            p99_ms=quantile(bounds, buckets, 0.99),
        )
        for name, (buckets, failed) in operations.items()
    ]
    return Rates(
        calls=sum(row.calls for row in rows),
        minutes=history,
        operations=sorted(rows, key=lambda row: (-row.calls, row.operation)),
    )


def quantile(bounds: Sequence[float], buckets: Sequence[int], share: float) -> float | None:
    """Return an interpolated quantile of times, in milliseconds; None beyond the last bound."""
    wanted, seen, low = share * sum(buckets), 0, 0.0
    if not wanted:
        return None
    for bound, calls in zip(bounds, buckets, strict=False):
        if calls and seen + calls >= wanted:
            return 1_000 * (low + (bound - low) * (wanted - seen) / calls)
        seen, low = seen + calls, bound
    return None


def _add(sums: dict[K, tuple[list[int], int]], key: K, buckets: Sequence[int], failed: int) -> None:
    known, failures = sums.get(key, ([0] * len(buckets), 0))
    sums[key] = [one + more for one, more in zip(known, buckets, strict=True)], failures + failed
