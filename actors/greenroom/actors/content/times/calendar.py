"""Calendar arithmetic: days and instants in a time zone.

`Days` are whole local days without a time zone; a `Span` is an interval of instants. Days begin and end at
local midnight, whatever their length in hours.

When clocks are set back, a local time occurs twice: a span begins with the first and ends with the second.
When clocks are set forward, a skipped local time means the instant at which an unchanged clock shows it.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

ONE_DAY: Final = timedelta(days=1)
_LENGTHS: Final = {"second": 1, "minute": 60, "hour": 3600}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DAYS: Final = {"day": 1, "week": 7, "weekend": 7, "fortnight": 14}


@dataclass(frozen=True)
class Days:
    """Whole days until before `end`; ``floating`` if the phrase gave no year or week."""

    first: date
    end: date
    floating: bool = False

    @property
    def is_one(self) -> bool:
        """Whether this is a single day."""
        return self.end - self.first == ONE_DAY


@dataclass(frozen=True)
class Span:
    """Instants from `start` until before `end`, in UTC.

    Attributes:
        stop: The end of a range "until" this span; equal to `end`, except for a time of day.
        day: The local day on which the span begins, for relative expressions.
        begin: The begin of a range "since" this span; `start` by default.
    """

    start: datetime
    end: datetime
    stop: datetime
    day: date
    floating: bool = False
    begin: datetime | None = None


def instant(day: date, at: time, zone: tzinfo, *, last: bool = False) -> datetime:
    """Return the instant of a local time; if it occurs twice, the first or last."""
    local = datetime.combine(day, at, zone)
    first = local.astimezone(UTC)
    return max(first, local.replace(fold=1).astimezone(UTC)) if last else first


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the start of a day."""
    return instant(day, time(), zone)


def span_of(days: Days, zone: tzinfo) -> Span:
    """Return the instants of whole days."""
    end = midnight(days.end, zone)
    return Span(midnight(days.first, zone), end, end, days.first, days.floating)


def clock_span(day: date, begin: timedelta, end: timedelta, zone: tzinfo) -> Span:
    """Return the span between two times of day, given as clock time since midnight.

    The times may lie beyond the day. A range that ends with this span ends at the first time.
    """
    start = _on_clock(day, begin, zone, last=False)
    until = _on_clock(day, end, zone, last=end % ONE_DAY != timedelta(0))
    if until <= start:  # clocks were set forward over the whole span
        until = start + (end - begin)
    return Span(start, until, start, day)


def _on_clock(day: date, passed: timedelta, zone: tzinfo, *, last: bool) -> datetime:
    moment = datetime.combine(day, time()) + passed
    return instant(moment.date(), moment.time(), zone, last=last)


def day_of_month(year: int, month: int, day: int) -> date | None:
    """Return a date, or None if the month has no such day."""
    return date(year, month, day) if 1 <= day <= calendar.monthrange(year, month)[1] else None


def add_months(day: date, months: int) -> date:
    """Return the same day some months later, or the last day of that month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError("the calendar has no such year")
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def add_units(day: date, count: int, unit: str) -> date:
    """Return the day that is some calendar units later."""
    if unit in _MONTHS:
        return add_months(day, count * _MONTHS[unit])
    return day + timedelta(days=count * _DAYS[unit])


def seconds_of(unit: str) -> int | None:
    """Return the seconds in a clock unit; None for a calendar unit."""
    return _LENGTHS.get(unit)


def enclosing(day: date, unit: str) -> Days:
    """Return the calendar day, week, month … that contains a day; weeks begin on Monday."""
    match unit:
        case "day":
            first = day
        case "week" | "fortnight":
            first = day - timedelta(days=day.weekday())
        case "weekend":
            first = day + timedelta(days=5 - day.weekday())
            return Days(first, first + 2 * ONE_DAY)
        case "month":
            first = day.replace(day=1)
        case "quarter":
            first = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            first = day.replace(month=1, day=1)
        case _:
            first = date(max(day.year - day.year % 10, 1), 1, 1)
    return Days(first, add_units(first, 1, unit))
