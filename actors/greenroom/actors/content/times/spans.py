"""Phrases for instants: "this morning", "two hours ago", "yesterday at 3pm".

A time of day means the hour or minute that begins then; as an end of a range it is exact.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final

from greenroom.actors.content.times.calendar import (
    ONE_DAY,
    Days,
    Span,
    add_units,
    clock_span,
    midnight,
    seconds_of,
)
from greenroom.actors.content.times.days import expand, number
from greenroom.actors.content.times.reader import DAYTIMES, UNITS, VAGUE, Reader, SpanMeaning, alternatives

INSTANT: Final = timedelta(microseconds=1)
"""This is added to now, so that "the last hour" includes what was written just now."""
DAWN: Final = 5
"""Until this hour, a night belongs to the previous day."""
JUST_NOW: Final = timedelta(minutes=15)
RECENT_DAYS: Final = 7
HOURS_A_DAY: Final = 24

_CLOCK: Final = r"(?:\d{1,2}(?::\d\d){0,2} ?[ap]m|\d{1,2}(?::\d\d){1,2}|noon|midday|midnight)"
_DAYTIME: Final = rf"(?P<daytime>{alternatives(DAYTIMES)})"


def _now(reader: Reader, _: re.Match[str]) -> Span:
    return Span(reader.now - timedelta(minutes=1), reader.now + INSTANT, reader.now + INSTANT, reader.today)


def _until_now(reader: Reader, start: datetime) -> Span:
    end = reader.now + INSTANT
    return Span(min(start, end), end, end, start.astimezone(reader.zone).date())


def _iso(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve a time in RFC 3339 to its second or minute."""
    days = reader.real_day(int(found["year"]), int(found["m"]), int(found["d"]))
    hours, minutes, seconds = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if days is None or hours >= HOURS_A_DAY or max(minutes, seconds) >= 60:  # noqa: PLR2004
        return None
    fraction = (found["fraction"] or "")[:6]
    length = timedelta(minutes=1) if found["second"] is None else timedelta(seconds=1)
    if fraction:
        length = timedelta(microseconds=10 ** (6 - len(fraction)))
    begin = timedelta(
        hours=hours, minutes=minutes, seconds=seconds, microseconds=int(fraction.ljust(6, "0") or 0)
    )
    if found["offset"] is None:
        return clock_span(days.first, begin, begin + length, reader.zone)
    start = datetime.combine(days.first, time(), UTC) + begin - _offset(found["offset"])
    return Span(start, start + length, start, start.astimezone(reader.zone).date())


def _offset(text: str) -> timedelta:
    if text == "z":
        return timedelta(0)
    size = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return -size if text[0] == "-" else size


def _ago(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "two hours ago": from half a unit before to half a unit after."""
    unit = UNITS[found["unit"]]
    seconds = seconds_of(unit)
    if seconds is None:
        return None
    groups = found.groupdict()
    if groups.get("vague"):
        least, most = VAGUE[groups["vague"]]
        return _between(
            reader, timedelta(seconds=least * seconds), timedelta(seconds=most * seconds), seconds
        )
    passed = timedelta(seconds=number(groups["count"]) * seconds)
    if found[0].startswith("in ") or found[0].endswith(("from now", "hence")):
        passed = -passed
    return _between(reader, passed, passed, min(seconds, abs(passed.total_seconds())))


def _between(reader: Reader, newest: timedelta, oldest: timedelta, unit: float) -> Span:
    half = timedelta(seconds=unit / 2)
    start, end = reader.now - oldest, reader.now - newest
    return Span(start - half, end + half, end, start.astimezone(reader.zone).date(), begin=start)


def _range_ago(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "three to five days ago"."""
    unit = found["unit"]
    ends = [reader.span(f"{found[count]} {unit} ago") for count in ("few", "many")]
    if None in ends:
        return None
    newest, oldest = sorted(
        (end for end in ends if end is not None), key=lambda span: span.start, reverse=True
    )
    return Span(oldest.start, newest.end, newest.stop, oldest.day, begin=oldest.begin)


def _last(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "the last three days": from the start of the first day until now."""
    unit = UNITS[found["unit"]]
    groups = found.groupdict()
    if groups.get("count") is None and groups.get("vague") is None:
        if found["which"] != "past" and seconds_of(unit) is None and unit != "fortnight":
            return None  # "last week" is the week before this one
        count = 1.0
    else:
        count = float(VAGUE[groups["vague"]][1]) if groups.get("vague") else number(groups["count"])
    seconds = seconds_of(unit)
    if seconds is not None:
        return _until_now(reader, reader.now - timedelta(seconds=count * seconds))
    if count != int(count) or unit == "weekend":
        return None
    return _until_now(reader, midnight(add_units(reader.today, -int(count), unit), reader.zone))


def _next(reader: Reader, found: re.Match[str]) -> Span | None:
    unit, count = UNITS[found["unit"]], number(found["count"])
    seconds = seconds_of(unit)
    if seconds is not None:
        end = reader.now + timedelta(seconds=count * seconds)
    elif count != int(count) or unit == "weekend":
        return None
    else:
        end = midnight(add_units(reader.today, int(count), unit) + ONE_DAY, reader.zone)
    return Span(reader.now, end, end, reader.today)


def _this_unit(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "this hour"."""
    unit = UNITS[found["unit"]]
    seconds = seconds_of(unit)
    if seconds is None:
        return None
    local = reader.now.astimezone(reader.zone)
    passed = timedelta(hours=local.hour, minutes=local.minute, seconds=local.second)
    begin = passed - passed % timedelta(seconds=seconds)
    return clock_span(local.date(), begin, begin + timedelta(seconds=seconds), reader.zone)


def _so_far(reader: Reader, found: re.Match[str]) -> Span | None:
    rest = reader.days(found["rest"])
    if rest is None or not rest.first <= reader.today < rest.end:
        return None
    return _until_now(reader, midnight(rest.first, reader.zone))


def _later(reader: Reader, found: re.Match[str]) -> Span | None:
    rest = reader.days(found["rest"])
    if rest is None or not rest.first <= reader.today < rest.end:
        return None
    end = midnight(rest.end, reader.zone)
    return Span(reader.now, end, end, reader.today)


# -- parts of a day ---------------------------------------------------------


def _night(reader: Reader, back: int) -> Span:
    return _daytime(reader.today - back * ONE_DAY, "night", reader)


def _tonight(reader: Reader, _: re.Match[str]) -> Span:
    is_before_dawn = reader.now.astimezone(reader.zone).hour < DAWN
    return _night(reader, 1 if is_before_dawn else 0)


def _this_daytime(reader: Reader, found: re.Match[str]) -> Span:
    if found["daytime"] == "night":
        return _tonight(reader, found)
    return _daytime(reader.today, found["daytime"], reader)


def _daytime_of(reader: Reader, found: re.Match[str]) -> Span | None:
    days = _one_day(reader, found)
    if days is None:
        return None
    return _floating(_daytime(days.first, found["daytime"], reader), days)


def _daytime(day: date, name: str, reader: Reader) -> Span:
    begin, end = (timedelta(hours=hour) for hour in DAYTIMES[name])
    span = clock_span(day, begin, end, reader.zone)
    return Span(span.start, span.end, span.end, day)


def _one_day(reader: Reader, found: re.Match[str]) -> Days | None:
    days = reader.days(found["rest"])
    return days if days is not None and days.is_one else None


def _floating(span: Span, days: Days) -> Span:
    return Span(span.start, span.end, span.stop, span.day, floating=days.floating, begin=span.begin)


def _bare_time(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "3pm" to the newest one that has begun."""
    span = _at(reader, Days(reader.anchor, reader.anchor + ONE_DAY, floating=True), found["clock"])
    if span is not None and not reader.forward and reader.anchor == reader.today and span.start > reader.now:
        return _at(reader, Days(reader.today - ONE_DAY, reader.today, floating=True), found["clock"])
    return span


def _time_of(reader: Reader, found: re.Match[str]) -> Span | None:
    days = _one_day(reader, found)
    return None if days is None else _at(reader, days, found["clock"])


def _at(reader: Reader, days: Days, text: str) -> Span | None:
    read = _clock(text)
    if read is None:
        return None
    begin, length = read
    return _floating(clock_span(days.first, begin, begin + length, reader.zone), days)


def _clock(text: str) -> tuple[timedelta, timedelta] | None:
    """Return a time of day as time since midnight, and its length."""
    if text in {"noon", "midday", "midnight"}:
        return timedelta(hours=0 if text == "midnight" else 12), timedelta(hours=1)
    half = text[-2:] if text.endswith("m") else ""
    hour, *rest = (int(part) for part in text.removesuffix(half).split(":"))
    if half and not 1 <= hour <= 12:  # noqa: PLR2004
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour >= HOURS_A_DAY or any(part >= 60 for part in rest):  # noqa: PLR2004
        return None
    minute, second = (*rest, 0, 0)[:2]
    begin = timedelta(hours=hour, minutes=minute, seconds=second)
    return begin, timedelta(seconds=(3600, 60, 1)[len(rest)])


def _clock_range(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "yesterday between 9 and 11 am"; without a day, the newest that has begun."""
    groups = found.groupdict()
    days = _one_day(reader, found) if groups.get("rest") else Days(reader.today, reader.today + ONE_DAY)
    first, last = found["first"], found["last"]
    if first.isdigit() and last.isdigit() and not re.search("between|from", found[0]):
        return None
    if first.isdigit() and last.endswith("m"):
        first += last[-2:] if last[-2:] in {"am", "pm"} else ""
    begin, end = (_clock(text if not text.isdigit() else f"{text}:00") for text in (first, last))
    if days is None or begin is None or end is None:
        return None
    stop = end[0] + (ONE_DAY if end[0] <= begin[0] else timedelta(0))
    span = clock_span(days.first, begin[0], stop, reader.zone)
    if not groups.get("rest") and span.start > reader.now:
        span = clock_span(days.first - ONE_DAY, begin[0], stop, reader.zone)
    return Span(span.start, span.end, span.end, span.day, floating=days.floating)


def _about(reader: Reader, found: re.Match[str]) -> Span | None:
    """Resolve "around March 3": as long as this day before and after it."""
    span = reader.span(found["rest"])
    if span is None:
        return None
    length = span.end - span.start
    return Span(span.start - length, span.end + length, span.end + length, span.day)


_TIMES: Final = rf"(?P<first>{_CLOCK}|\d{{1,2}}) ?(?:and|to|till|until|-) ?(?P<last>{_CLOCK}|\d{{1,2}})"
_RFC_3339: Final = (
    r"{year}-(?P<m>\d\d)-(?P<d>\d\d)[t ](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)? ?(?P<offset>z|[+-]\d\d:?\d\d)?"
)
FORMS: Final[list[tuple[str, SpanMeaning]]] = [
    ("now|right now|this moment", _now),
    ("just now|moments? ago|a moment ago", lambda reader, _: _until_now(reader, reader.now - JUST_NOW)),
    (
        "recent|recently|lately",
        lambda reader, _: _until_now(reader, midnight(reader.today - RECENT_DAYS * ONE_DAY, reader.zone)),
    ),
    (_RFC_3339, _iso),
    ("(?:in )?{count} {unit} (?:ago|back|from now|hence)", _ago),
    ("in {count} {unit}", _ago),
    ("{vague} {unit} ago", _ago),
    (
        r"(?:between |from )?(?P<few>\S+(?: \S+)?) ?(?:to|or|and|-) ?(?P<many>\S+(?: \S+)?) {unit} ago",
        _range_ago,
    ),
    ("(?P<which>last|past|previous|recent|these last)(?: {count}| {vague})? {unit}", _last),
    ("(?P<which>less than|under|newer than|within) (?:{count}|{vague}) {unit}(?: ago)?", _last),
    ("(?:next|coming) {count} {unit}", _next),
    ("(?:this|current) {unit}", _this_unit),
    ("(?:earlier|so far|sofar) {rest}", _so_far),
    ("{rest} so far", _so_far),
    ("later {rest}", _later),
    (
        "year to date|ytd",
        lambda reader, _: _until_now(reader, midnight(reader.today.replace(month=1, day=1), reader.zone)),
    ),
    ("last night", lambda reader, _: _night(reader, 1)),
    ("tonight", _tonight),
    ("night before last", lambda reader, _: _night(reader, 2)),
    (f"(?:this )?{_DAYTIME}", _this_daytime),
    (f"last {_DAYTIME}", lambda reader, found: _daytime(reader.today - ONE_DAY, found["daytime"], reader)),
    (f"{{rest}} {_DAYTIME}", _daytime_of),
    (f"{_DAYTIME} {{rest}}", _daytime_of),
    (f"(?P<clock>{_CLOCK})", _bare_time),
    (f"{{rest}} (?P<clock>{_CLOCK})", _time_of),
    (f"(?P<clock>{_CLOCK}) {{rest}}", _time_of),
    (f"(?:between |from ){_TIMES}(?: {{rest}})?", _clock_range),
    (f"{{rest}} (?:between |from ){_TIMES}", _clock_range),
    (f"{_TIMES}(?: {{rest}})?", _clock_range),
    ("(?:about|around|roughly|approximately|approx|circa|~) ?{rest}", _about),
    (
        "(?:in|during|within|over|throughout|for|all day|all|whole|entire|sometime|some time|back in) {rest}",
        lambda reader, found: reader.span(found["rest"]),
    ),
]


@cache
def forms() -> tuple[tuple[re.Pattern[str], SpanMeaning], ...]:
    """Return the grammar, compiled on first use."""
    return tuple((expand(pattern), meaning) for pattern, meaning in FORMS)
