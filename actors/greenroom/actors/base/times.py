"""Microseconds since 1970 inside, aware UTC datetimes in replies, and times as somebody writes them."""

from __future__ import annotations

import datetime as dt

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST = (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)
_LAST = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR


def to_datetime(microseconds: int) -> dt.datetime:
    """Return the aware UTC time; one outside the years 1 to 9999 reads as their end that is nearer."""
    if not _FIRST <= microseconds <= _LAST:
        microseconds = _FIRST if microseconds < _FIRST else _LAST
    return _EPOCH + dt.timedelta(0, 0, microseconds)  # by position, which is faster


def to_microseconds(time: dt.datetime) -> int:
    """Return microseconds since 1970, exactly."""
    return (time - _EPOCH) // dt.timedelta(microseconds=1)


def optional_datetime(microseconds: int | None) -> dt.datetime | None:
    """Return the aware UTC time, or None for None."""
    return None if microseconds is None else to_datetime(microseconds)


def read_time(text: str, zone: dt.tzinfo = dt.UTC, *, ends_day: bool = False) -> dt.datetime:
    """Return a time written as ISO 8601, in UTC.

    Args:
        text: A date, or a time with or without an offset.
        zone: Where a date, and a time without offset, is meant.
        ends_day: Whether a date means the midnight at its end, and not that at its beginning.

    Raises:
        ValueError: it is none.
        OverflowError: in UTC it lies outside of the years 1 to 9999.
    """
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        local = dt.datetime.fromisoformat(text)
    else:
        if ends_day and day == dt.date.max:
            return dt.datetime.max.replace(tzinfo=dt.UTC)
        local = dt.datetime.combine(day + dt.timedelta(days=ends_day), dt.time())
    return (local.replace(tzinfo=zone) if local.tzinfo is None else local).astimezone(dt.UTC)
