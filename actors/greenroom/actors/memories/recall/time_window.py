"""The times of a search as instants: pure functions."""

from __future__ import annotations

import datetime as dt
import functools
import re
from typing import NamedTuple

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.validation.times import parse_time_argument

_ISO = re.compile(
    r"\b(?:\d{4}-\d\d-\d\d|\d{8}|\d{4}-?w\d\d-?[1-7])"
    r"(?:[t ]\d\d(?::?\d\d){0,2}(?:[.,]\d+)?(?:z|[+-]\d\d:?\d\d)?)?\b",
    re.IGNORECASE | re.ASCII,
)
"""A date as `after` takes it, with or without a time of day."""
_BESIDE_DATES = """
after and before between by earlier from in later newer no not of older on onward onwards or prior
since starting than the through thru till to until up
"""
"""Words beside dates that do not depend on where a day begins."""
_OF_THE_MACHINE = frozenset({"localtime", "posixrules"})
"""Time zone files that stand for the setting of the server's machine."""


class Window(NamedTuple):
    """From ``after`` (included) until ``before`` (not included), in UTC; None for no bound."""

    after: dt.datetime | None
    before: dt.datetime | None


def time_window(
    now: dt.datetime,
    zone: dt.tzinfo,
    *,
    time_expr: str | None,
    after: str | None,
    before: str | None,
    bounds: dt.tzinfo = dt.UTC,
) -> Window:
    """Return the intersection of all given times.

    Args:
        now: The present instant, aware.
        zone: The time zone of ``time_expr``.
        time_expr: Words such as "last week".
        after: A date, which begins at its midnight in ``bounds``, or a time.
        before: A date or a time as in ``after``; it is not included.
        bounds: The time zone of ``after`` and ``before``.

    Raises:
        Refusal: ``VALIDATION_ERROR``: A time is not understood, or ``after`` is later than ``before``.
    """
    start = None if after is None else parse_time_argument("after", after, bounds)
    end = None if before is None else parse_time_argument("before", before, bounds)
    if start is not None and end is not None:
        auth_errors.check_span("after", start, end)
    if time_expr is not None:
        first, last = _resolved(time_expr, now, zone)
        start = first if start is None else start if first is None else max(start, first)
        end = last if end is None else end if last is None else min(end, last)
    return Window(start, end)


def is_in_words(expression: str) -> bool:
    """Return whether an expression has more than dates in the form of `after` and `before`."""
    words = re.findall(r"\w+", _ISO.sub(" ", expression.casefold()))
    return not set(_BESIDE_DATES.split()).issuperset(words)


def time_zone(name: str | None) -> tuple[dt.tzinfo, str]:
    """Return a time zone and its name; None means the machine's time zone."""
    import zoneinfo  # noqa: PLC0415 - few searches name a time

    if name is None:
        name = machine_zone()
    try:
        if name.casefold() not in _OF_THE_MACHINE:
            return zoneinfo.ZoneInfo(name), name
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        pass
    raise auth_errors.invalid(
        "timezone", f"timezone: it takes a name such as Europe/Berlin or UTC and got {name[:100]!r}"
    )


@functools.cache
def machine_zone() -> str:
    """Return the name of the machine's time zone; UTC if it is unknown."""
    import zoneinfo  # noqa: PLC0415 - as above

    import tzlocal  # noqa: PLC0415

    try:
        name = tzlocal.get_localzone_name()
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return "UTC"
    return name


def days_come_first() -> bool:
    """Return whether 3/4/2026 is in April: true if texts are not in English."""
    return "english" not in current_rules().languages


def _resolved(
    expression: str, now: dt.datetime, zone: dt.tzinfo
) -> tuple[dt.datetime | None, dt.datetime | None]:
    from greenroom.actors.content.times import EXAMPLES, resolve  # noqa: PLC0415 - few searches name a time

    try:
        return resolve(expression, now, zone, day_first=days_come_first())
    except ValueError as error:
        raise auth_errors.invalid("time_expr", f"time_expr: {error}", examples=list(EXAMPLES)) from None
