"""Phrases for whole days: "last week", "March 3", "the first Monday of May".

`FORMS` is the grammar: patterns over the simplified text, and their meanings. Patterns may contain
``{names}`` of `_PARTS`; the text of a group ``rest`` is parsed by the same grammar.

A name without a year or week, such as "March" or "Monday", means the newest occurrence that has begun.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from typing import Final

from greenroom.actors.content.times.calendar import (
    ONE_DAY,
    Days,
    add_months,
    add_units,
    day_of_month,
    enclosing,
)
from greenroom.actors.content.times.reader import (
    AND_A_HALF,
    COUNT,
    HOLIDAYS,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SEASONS,
    UNITS,
    VAGUE,
    WEEKDAYS,
    DaysMeaning,
    Reader,
    alternatives,
)

Occurrence = Callable[[int], Days | None]
"""A function that returns the days of a name in a year, if there are any."""

WEEK_DAYS: Final = 7
MONTHS_A_YEAR: Final = 12
QUARTERS: Final = 4
LEAP_YEARS_APART: Final = 8
"""The longest time without a 29th of February was from 1896 to 1904."""

_LAST: Final = "last|past|previous|most recent"
_THIS: Final = "this|current"
_NEXT: Final = "next|coming|following"
_PARTS: Final = {
    "weekday": rf"(?P<weekday>{alternatives(WEEKDAYS)})s?",
    "month": rf"(?P<month>{alternatives(MONTHS)})",
    "season": rf"(?P<season>{alternatives(SEASONS)})",
    "holiday": rf"(?P<holiday>{alternatives(HOLIDAYS)})",
    "unit": rf"(?P<unit>{alternatives(UNITS)})",
    "count": COUNT,
    "vague": rf"(?P<vague>{alternatives(VAGUE)})",
    "ordinal": rf"(?P<ordinal>{alternatives(ORDINALS)})",
    "day": r"(?P<day>\d{1,2})(?:st|nd|rd|th)?",
    "nth": r"(?P<day>\d{1,2})(?:st|nd|rd|th)",
    "year": r"(?P<year>\d{4})",
    "which": rf"(?P<which>{_LAST}|{_THIS}|{_NEXT})",
    "rest": r"(?P<rest>.+)",
}


def expand(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a table of forms, with its named parts inserted."""
    return re.compile(re.sub(r"\{([a-z]+)\}", lambda part: _PARTS[part[1]], pattern), re.ASCII)


# -- plain days, weeks, months … --------------------------------------------


def _shifted(days: int) -> DaysMeaning:
    def meaning(reader: Reader, _: re.Match[str]) -> Days:
        return enclosing(reader.today + timedelta(days=days), "day")

    return meaning


def _direction(which: str) -> int:
    return -1 if re.fullmatch(_LAST, which) else 0 if re.fullmatch(_THIS, which) else 1


def _unit(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "last week": the week before the current one."""
    unit = UNITS[found["unit"]]
    if reader.is_clock(unit) or unit == "fortnight":
        return None
    return enclosing(add_units(reader.today, _direction(found["which"]), unit), unit)


def _weekend(reader: Reader, _: re.Match[str]) -> Days:
    """Resolve "at the weekend": the newest weekend that has begun."""
    days = enclosing(reader.today, "weekend")
    return days if days.first <= reader.today else enclosing(add_units(reader.today, -1, "week"), "weekend")


def _second_last(reader: Reader, found: re.Match[str]) -> Days | None:
    unit = UNITS[found["unit"]]
    if reader.is_clock(unit):
        return None
    return enclosing(add_units(reader.today, -2 if found["way"] == "before last" else 2, unit), unit)


def _ago(reader: Reader, found: re.Match[str]) -> Days | None:
    unit, count = UNITS[found["unit"]], number(found["count"])
    if unit == "year":
        unit, count = ("month", MONTHS_A_YEAR * count) if count % 1 else (unit, count)
    elif unit == "fortnight":
        unit, count = "week", 2 * count
    if reader.is_clock(unit):
        return None
    sign = 1 if found["way"] in {"from now", "hence"} or found[0].startswith("in ") else -1
    ends = sorted((sign * math.floor(count), sign * math.ceil(count)))  # "a week and a half" means both weeks
    first, last = (enclosing(add_units(reader.today, end, unit), unit) for end in ends)
    return Days(first.first, last.end)


def _few_ago(reader: Reader, found: re.Match[str]) -> Days | None:
    unit = UNITS[found["unit"]]
    if reader.is_clock(unit):
        return None
    least, most = VAGUE[found["vague"]]
    newest, oldest = (enclosing(add_units(reader.today, -count, unit), unit) for count in (least, most))
    return Days(oldest.first, newest.end)


def _beside(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "two days before Christmas", "the week after next Monday"."""
    unit, count = UNITS[found["unit"]], number(found["count"] or "a")
    rest = reader.days(found["rest"])
    if rest is None or reader.is_clock(unit) or count != int(count):
        return None
    if found["way"] == "before":
        return enclosing(add_units(rest.first, -int(count), unit), unit)
    return enclosing(add_units(rest.end - ONE_DAY, int(count), unit), unit)


def number(word: str) -> float:
    """Return the number that a word or digits stand for."""
    whole = word.removesuffix(AND_A_HALF)
    known = NUMBERS.get(whole)
    return (float(whole) if known is None else known) + (0 if whole == word else 0.5)


# -- weekdays ---------------------------------------------------------------


def _weekday(reader: Reader, found: re.Match[str]) -> Days:
    wanted = WEEKDAYS[found["weekday"]]
    anchor = reader.anchor
    if reader.forward:
        return enclosing(anchor + timedelta(days=(wanted - anchor.weekday()) % WEEK_DAYS), "day")
    first = anchor - timedelta(days=(anchor.weekday() - wanted) % WEEK_DAYS)
    return Days(first, first + ONE_DAY, floating=True)


def _which_weekday(reader: Reader, found: re.Match[str]) -> Days:
    today, wanted = reader.today, WEEKDAYS[found["weekday"]]
    match _direction(found["which"]):
        case -1:
            first = today - timedelta(days=(today.weekday() - wanted - 1) % WEEK_DAYS + 1)
        case 0:
            first = enclosing(today, "week").first + timedelta(days=wanted)
        case _:
            first = today + timedelta(days=(wanted - today.weekday() - 1) % WEEK_DAYS + 1)
    return enclosing(first, "day")


def _weekday_of(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "Monday of last week", or check "Monday, March 2" against the calendar."""
    rest = reader.days(found["rest"])
    if rest is None:
        return None
    wanted = WEEKDAYS[found["weekday"]]
    if rest.is_one:
        if rest.first.weekday() != wanted:
            reader.reasons.append(f"{rest.first} is not a {found['weekday']}")
            return None
        return rest
    if rest.end - rest.first == timedelta(days=WEEK_DAYS) and rest.first.weekday() == 0:
        return enclosing(rest.first + timedelta(days=wanted), "day")
    return None


def _nth_weekday(reader: Reader, found: re.Match[str]) -> Days | None:
    rest = _whole(reader, found["rest"])
    if rest is None or rest.end - rest.first <= timedelta(days=WEEK_DAYS):
        return None
    wanted, nth = WEEKDAYS[found["weekday"]], ORDINALS[found["ordinal"]]
    if nth < 0:
        last = rest.end - ONE_DAY
        day = last - timedelta(days=(last.weekday() - wanted) % WEEK_DAYS)
    else:
        ahead = (wanted - rest.first.weekday()) % WEEK_DAYS + (nth - 1) * WEEK_DAYS
        day = rest.first + timedelta(days=ahead)
    return enclosing(day, "day") if rest.first <= day < rest.end else None


# -- parts of something longer ----------------------------------------------


def _nth_unit(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "the first week of March", its days 1 to 7, or "the last month"."""
    rest, unit, nth = _whole(reader, found["rest"]), UNITS[found["unit"]], ORDINALS[found["ordinal"]]
    if rest is None or unit not in {"day", "week", "month", "quarter"}:
        return None
    first = add_units(rest.first, nth - 1, unit) if nth > 0 else add_units(rest.end, nth, unit)
    end = add_units(first, 1, unit)
    return Days(first, end) if rest.first <= first and end <= rest.end else None


def _whole(reader: Reader, text: str) -> Days | None:
    """Parse the whole of a part; in "the end of the year", this year."""
    return reader.days(f"this {text}" if text in UNITS else text)


def _half(reader: Reader, found: re.Match[str]) -> Days | None:
    rest = reader.days(found["rest"])
    nth = ORDINALS.get(found["ordinal"], 0)
    if rest is None or nth not in {1, 2, -1}:
        return None
    is_year = rest.end == add_months(rest.first, MONTHS_A_YEAR) and rest.first.day == 1
    middle = add_months(rest.first, 6) if is_year else rest.first + (rest.end - rest.first + ONE_DAY) // 2
    return Days(rest.first, middle) if nth == 1 else Days(middle, rest.end)


def _third(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "early March": the first third of it, in whole days."""
    rest = _whole(reader, found["rest"])
    if rest is None or rest.end - rest.first < timedelta(days=3):
        return None
    third = (rest.end - rest.first) // 3
    third = timedelta(days=third.days)
    match found["part"]:
        case "early" | "beginning" | "start":
            return Days(rest.first, rest.first + third)
        case "mid" | "middle":
            return Days(rest.first + third, rest.end - third)
        case _:
            return Days(rest.end - third, rest.end)


def _week_of(reader: Reader, found: re.Match[str]) -> Days | None:
    rest = reader.days(found["rest"])
    return enclosing(rest.first, "week") if rest is not None and rest.is_one else None


def _nth_day(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "the 3rd of last month", or "the 3rd" of the newest possible month."""
    wanted = int(found["day"])
    if "rest" in found.groupdict():
        rest = reader.days(found["rest"])
        if rest is None or rest != Days(rest.first, add_months(rest.first, 1), rest.floating):
            return None
        day = day_of_month(rest.first.year, rest.first.month, wanted)
        return None if day is None or rest.first.day != 1 else enclosing(day, "day")
    for back in range(3):
        month = add_months(reader.anchor.replace(day=1), back if reader.forward else -back)
        day = day_of_month(month.year, month.month, wanted)
        if day is not None and (day >= reader.anchor if reader.forward else day <= reader.anchor):
            return Days(day, day + ONE_DAY, floating=True)
    return None


# -- names that come every year ---------------------------------------------


def _name(found: re.Match[str]) -> Occurrence:
    """Return the meaning of the matched name in a year."""
    groups = found.groupdict()
    if groups.get("holiday"):
        return partial(_in_year, *HOLIDAYS[groups["holiday"]])
    if groups.get("day"):
        return partial(_in_year, MONTHS[groups["month"]], int(groups["day"]))
    if groups.get("month"):
        return partial(_months, month=MONTHS[groups["month"]], count=1)
    if groups.get("season"):
        return partial(_months, month=SEASONS[groups["season"]], count=3)
    if groups.get("half"):
        return partial(_months, month=int(groups["half"]) * 6 - 5, count=6)
    return partial(_months, month=_quarter(groups) * 3 - 2, count=3)


def _quarter(groups: dict[str, str]) -> int:
    if groups.get("quarter"):
        return int(groups["quarter"])
    nth = ORDINALS[groups["ordinal"]]
    return QUARTERS if nth < 0 else nth


def _in_year(month: int, day: int, year: int) -> Days | None:
    return _single(day_of_month(year, month, day))


def _months(year: int, *, month: int, count: int) -> Days | None:
    if month > MONTHS_A_YEAR:  # there is no fifth quarter
        return None
    first = date(year, month, 1)
    return Days(first, add_months(first, count))


def _single(day: date | None) -> Days | None:
    return None if day is None else Days(day, day + ONE_DAY)


def _bare_name(reader: Reader, found: re.Match[str]) -> Days | None:
    occurrences = _around(_name(found), reader.anchor)
    if reader.forward:
        return next((days for days in occurrences if days.end > reader.anchor), None)
    begun = [days for days in occurrences if days.first <= reader.anchor]
    return Days(begun[-1].first, begun[-1].end, floating=True) if begun else None


def _which_name(reader: Reader, found: re.Match[str]) -> Days | None:
    today, occurrences = reader.today, _around(_name(found), reader.today)
    match _direction(found["which"]):
        case -1:
            past = [days for days in occurrences if days.end <= today]
            return past[-1] if past else None
        case 0:  # the current occurrence, else the nearest in time
            return min(
                occurrences,
                key=lambda days: max((days.first - today).days, (today - days.end).days + 1, 0),
                default=None,
            )
        case _:
            return next((days for days in occurrences if days.first > today), None)


def _around(occurrence: Occurrence, day: date) -> list[Days]:
    years = range(
        max(day.year - LEAP_YEARS_APART, date.min.year),
        min(day.year + LEAP_YEARS_APART, date.max.year - 1) + 1,
    )
    return [days for year in years if (days := occurrence(year)) is not None]


def _name_in_year(reader: Reader, found: re.Match[str]) -> Days | None:
    days = _name(found)(int(found["year"]))
    if days is None:
        reader.reasons.append("there is no such day in that year")
    return days


def _name_in_rest(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "March of last year", "the summer two years ago"."""
    rest = reader.days(found["rest"])
    if rest is None or rest != Days(
        date(rest.first.year, 1, 1), add_units(rest.first, 1, "year"), rest.floating
    ):
        return None
    return _name(found)(rest.first.year)


def _winter(_: Reader, found: re.Match[str]) -> Days | None:
    year, other = int(found["year"]), int(found["other"])
    return _months(year, month=12, count=3) if other in {year + 1, (year + 1) % 100} else None


# -- numbers ----------------------------------------------------------------


def _date(reader: Reader, found: re.Match[str]) -> Days | None:
    year, month, day = int(found["year"]), int(found["m"]), int(found["d"])
    return reader.real_day(year, month, day)


def _slashed(reader: Reader, found: re.Match[str]) -> Days | None:
    year, first, second = int(found["year"]), int(found["first"]), int(found["other"])
    if first != second and max(first, second) <= MONTHS_A_YEAR and not reader.day_first:
        reader.reasons.append(
            f"it may be day/month or month/day; write {year:04}-{first:02}-{second:02} or the other way"
        )
        return None
    month, day = (first, second) if second > MONTHS_A_YEAR else (second, first)
    return reader.real_day(year, month, day)


def _year_month(_: Reader, found: re.Match[str]) -> Days | None:
    month = int(found["m"])
    return _months(int(found["year"]), month=month, count=1) if 1 <= month <= MONTHS_A_YEAR else None


def _iso_week(reader: Reader, found: re.Match[str]) -> Days | None:
    groups = found.groupdict()
    year = int(groups["year"]) if groups.get("year") else reader.today.isocalendar().year
    nth = groups.get("nth")
    try:
        return enclosing(
            date.fromisocalendar(year, int(found["week"]), int(nth or 1)), "day" if nth else "week"
        )
    except ValueError:
        reader.reasons.append("there is no such week")
        return None


def _years(reader: Reader, found: re.Match[str]) -> Days:
    first = int(found["decade"])
    if first < 100:  # noqa: PLR2004  "the nineties", without a century
        century = reader.today.year // 100 * 100
        first += century if century + first <= reader.today.year else century - 100
    return enclosing(date(first, 1, 1), "decade")


_NAMES: Final = (
    "{month} {day}",
    "{day} ?{month}",
    "{month}",
    "{season}",
    "{holiday}",
    "q(?P<quarter>[1-4])",
    "{ordinal} quarter",
    "h(?P<half>[12])",
)


def _named() -> list[tuple[str, DaysMeaning]]:
    forms: list[tuple[str, DaysMeaning]] = [("{which} {month}", _this_or_which)]
    for name in _NAMES:
        forms += [
            (name, _bare_name),
            (f"{name}[ -]{{year}}", _name_in_year),
            (f"{{year}}[ -]{name}", _name_in_year),
        ]
        if name not in {"{month}", "{ordinal} quarter"}:
            forms.append((f"{{which}} {name}", _which_name))
        forms += [(f"{name} {{rest}}", _name_in_rest), (f"{{rest}} {name}", _name_in_rest)]
    return forms


def _this_or_which(reader: Reader, found: re.Match[str]) -> Days | None:
    """Resolve "this March" to the March of the current year."""
    this_year = _direction(found["which"]) == 0
    return _name(found)(reader.today.year) if this_year else _which_name(reader, found)


FORMS: Final[list[tuple[str, DaysMeaning]]] = [
    ("today|this day", _shifted(0)),
    ("yesterday", _shifted(-1)),
    ("tomorrow", _shifted(1)),
    ("day before yesterday", _shifted(-2)),
    ("day after tomorrow", _shifted(2)),
    ("weekend", _weekend),
    ("{which} {unit}", _unit),
    ("{unit} (?P<way>before last|after next)", _second_last),
    ("{count} {unit} (?P<way>ago|back|from now|hence)", _ago),
    ("in {count} {unit}(?P<way>)", _ago),
    ("{vague} {unit} ago", _few_ago),
    ("{weekday}", _weekday),
    ("{which} {weekday}", _which_weekday),
    ("{ordinal} {weekday} {rest}", _nth_weekday),
    ("{weekday} {rest}", _weekday_of),
    ("{rest} {weekday}", _weekday_of),
    (r"{year}[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})", _date),
    (r"(?P<year>[12]\d{3})(?P<m>\d\d)(?P<d>\d\d)", _date),
    (r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.{year}", _date),
    (r"(?P<first>\d{1,2})[-/](?P<other>\d{1,2})[-/]{year}", _slashed),
    (r"{year}[-/](?P<m>\d{1,2})", _year_month),
    (r"(?P<m>\d{1,2})/{year}", _year_month),
    ("(?:year )?{year}", lambda _, found: enclosing(date(int(found["year"]), 1, 1), "year")),
    (r"{year}-?w(?P<week>\d{1,2})", _iso_week),
    (r"{year}-?w(?P<week>\d\d)-?(?P<nth>[1-7])", _iso_week),
    (r"week (?P<week>\d{1,2})(?: {year})?", _iso_week),
    (r"(?P<decade>\d{3}0|\d0)s", _years),
    *_named(),
    (r"winter {year} ?[-/] ?(?P<other>\d{2}|\d{4})", _winter),
    ("{ordinal} half {rest}", _half),
    ("{ordinal} {unit} {rest}", _nth_unit),
    ("(?P<part>early|beginning|start|mid|middle|late|end)[ -]{rest}", _third),
    ("week {rest}", _week_of),
    ("{nth}", _nth_day),
    ("{nth} {rest}", _nth_day),
    ("(?:{count} )?{unit} (?P<way>before|after) {rest}", _beside),
]


@cache
def forms() -> tuple[tuple[re.Pattern[str], DaysMeaning], ...]:
    """Return the grammar, compiled on first use."""
    return tuple((expand(pattern), meaning) for pattern, meaning in FORMS)
