"""Requests of the last hour by minute, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from greenroom.actors.core.presence.requests import MinuteTraffic, OperationTraffic, Traffic
from greenroom.transports.base.observability.meter import (
    API,
    BUCKET_BOUNDS,
    OTHER,
    RequestCounts,
    RequestMeter,
)

MINUTES: Final = 60
_CLASSES: Final = len(BUCKET_BOUNDS) + 1
_FAILED: Final = frozenset({"error", "tool_error"})


class RequestHistory:
    """The counts of a meter for each minute of the last hour.

    A count belongs to the minute of the `look` that saw it first, so `look` must be called often.

    Args:
        now: Returns the wall clock in seconds since 1970 UTC.
    """

    def __init__(self, meter: RequestMeter, now: Callable[[], float]) -> None:
        self._meter = meter
        self._now = now
        self._before: dict[str, list[int]] = self._totals()
        self._minutes: dict[int, dict[str, list[int]]] = {}

    def look(self) -> None:
        """Record what was counted since the last look."""
        minute = int(self._now() // 60)
        totals = self._totals()
        for name, total in totals.items():
            known = self._before.get(name, [0] * (_CLASSES + 1))
            if total != known:
                new = self._minutes.setdefault(minute, {}).setdefault(name, [0] * (_CLASSES + 1))
                for place, count in enumerate(total):
                    new[place] += count - known[place]
        self._before = totals
        for old in [each for each in self._minutes if not minute - MINUTES < each <= minute]:
            del self._minutes[old]

    def traffic(self) -> Traffic:
        """Return the traffic of the last hour, until now."""
        self.look()
        operations: dict[str, list[int]] = {}
        minutes = []
        for minute, kinds in sorted(self._minutes.items()):
            sums = [0] * (_CLASSES + 1)
            for name, counts in kinds.items():
                of_kind = operations.setdefault(name, [0] * (_CLASSES + 1))
                for place, count in enumerate(counts):
                    sums[place] += count
                    of_kind[place] += count
            minutes.append(MinuteTraffic(minute, tuple(sums[:-1]), sums[-1]))
        return Traffic(
            bounds=BUCKET_BOUNDS,
            minutes=minutes,
            operations=[
                OperationTraffic(name, tuple(counts[:-1]), counts[-1]) for name, counts in operations.items()
            ],
        )

    def _totals(self) -> dict[str, list[int]]:
        """Return the totals of each kind since the start: its time classes, then its failures."""
        totals: dict[str, list[int]] = {}
        for row in self._meter.snapshot(with_idle=False):
            name = _named(row)
            sums = totals.setdefault(name, [0] * (_CLASSES + 1))
            for place, count in enumerate(row.buckets):
                sums[place] += count
            if row.outcome in _FAILED:
                sums[-1] += sum(row.buckets)
        return totals


def _named(row: RequestCounts) -> str:
    """Return the display name of a kind of request: its tool, else its method."""
    if row.tool in {"", OTHER}:
        return "pages of the console" if row.method == API else row.method
    return row.tool
