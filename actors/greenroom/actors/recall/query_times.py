"""The times that a query names in its own words: "two weeks ago". They choose nothing, they rank."""

from __future__ import annotations

import datetime as dt
import functools
from typing import NamedTuple

import trio

from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.memories.recall.time_window import days_come_first, time_zone

_MICROSECOND = dt.timedelta(microseconds=1)


class QueryTimes(NamedTuple):
    """A query's text without its times, and the times."""

    text: str | None
    times: tuple[TimeSpan, ...] = ()


async def times_of(text: str, now: int, zone: str | None) -> QueryTimes:
    """Return what a query names as a time, relative to now, and the rest of it.

    Args:
        text: The query.
        now: Microseconds since 1970.
        zone: The name of the time zone in which days begin; None: the machine's.
    """
    await warmed()
    from greenroom.actors.timeexpr import times_in, without  # noqa: PLC0415 - loaded by now

    found = times_in(text, to_datetime(now), time_zone(zone)[0], day_first=days_come_first())
    spans = tuple(
        TimeSpan(_microseconds(each.after), _microseconds(each.before), each.fading // _MICROSECOND)
        for each in found
    )
    return QueryTimes(without(text, found), spans)


def _microseconds(time: dt.datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


async def warmed() -> None:
    """Return when expressions of time are read at once; the first time that takes a thread a moment."""
    if not _warm.cache_info().currsize:
        await trio.to_thread.run_sync(_warm)


@functools.cache
def _warm() -> None:
    from greenroom.actors.timeexpr import warm  # noqa: PLC0415 - few searches name a time

    warm()
