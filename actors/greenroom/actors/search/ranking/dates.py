"""Days, months and years in a query, and a memory's distance from them.

This module reads dates: "in March", "on 7 May 2023", "2023-05-07", "in 2022". Words such as "last week" mean
another time each day; `greenroom.actors.content.times` turns them into instants.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.replies.memory_types import TimeSpan

Floats = npt.NDArray[np.float32]

_YEAR_OF_NAMES = "january february march april may june july august september october november december"
_NAMES = tuple(_YEAR_OF_NAMES.split())
_MONTHS = {name[:3]: number for number, name in enumerate(_NAMES, 1)}
_MONTH = "(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in _NAMES) + r"|sept)\b\.?"
_DAY = r"(?P<day>[12]?[0-9]|3[01])(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})\b"
_FORMS = (
    re.compile(r"\b(?P<year>(?:19|20)[0-9]{2})-(?P<month>[01][0-9])(?:-(?P<day>[0-3][0-9]))?\b"),
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}(?:,?\s+{_YEAR})?", re.IGNORECASE),
    re.compile(rf"\b{_YEAR}(?!-[0-9])"),
)
_OTHER_WORDS = {"may", "march", "mar", "dec"}  # in small letters they rarely mean months
_BEFORE_DATES = re.compile(
    r"\b(?:on|in|of|the|by|at|for|from|since|until|till|before|after|around|about|between|and|through|dated"
    r"|last|this|next|early|mid|late)\W+$",
    re.IGNORECASE,
)
_END = re.compile(r"\W*$")
_AFTER = 14.0  # this many days after an event, a memory of it is only 1/e as likely
_BEFORE = 7.0  # the same for the days before an event that was planned
_FAR = 2.0  # from this many times `TimeSpan.fading` away on, a memory is unrelated to a time


class Date(NamedTuple):
    """A day, month or year; None for each part that the query leaves open."""

    year: int | None
    month: int | None
    day: int | None


def find_dates(text: str) -> tuple[Date, ...]:
    """Return the dates that ``text`` names, each once, in their most exact form."""
    found: dict[Date, None] = {}
    for form in _FORMS:
        rest = []
        start = 0
        for match in form.finditer(text):
            date = _read(match)
            if date is not None:
                found[date] = None
                rest.append(text[start : match.start()])
                start = match.end()
        text = " ".join((*rest, text[start:])) if rest else text
    return tuple(found)


def _read(match: re.Match[str]) -> Date | None:
    named = match.groupdict()
    year = int(named["year"]) if named.get("year") else None
    day = int(named["day"]) if named.get("day") else None
    month = named.get("month")
    if month is None:
        return Date(year, None, None)
    if month.isdigit():
        return Date(year, int(month), day) if 1 <= int(month) <= len(_NAMES) else None
    if month in _OTHER_WORDS and year is None and not (day is not None and _is_date(match)):
        return None
    return Date(year, _MONTHS[month[:3].lower()], day)


def _is_date(match: re.Match[str]) -> bool:
    """Return whether "may 5" or the like is a date, unlike "may 5 users"."""
    is_ordinal = match.string[match.end("day") :][:1].isalpha()
    before = _BEFORE_DATES.search(match.string, 0, match.start())
    return is_ordinal or before is not None or _END.match(match.string, match.end()) is not None


class Calendar:
    """Creation times as calendar days of a clock that is ``offset`` ahead of UTC."""

    def __init__(self, times: npt.NDArray[np.int64], offset: int) -> None:
        days = (times + offset).astype("datetime64[us]").astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        self._days = days.astype(np.int64)
        self._month = months.astype(np.int64) % 12 + 1
        self._year = months.astype("datetime64[Y]").astype(np.int64) + 1970

    def within(self, dates: tuple[Date, ...]) -> Floats:
        """Return 1 for times in a month, or else a year, of ``dates``."""
        found = np.zeros(len(self._days), np.bool_)
        for date in dates:
            is_year = date.year is None or self._year == date.year
            found |= is_year & (date.month is None or self._month == date.month)
        return found.astype(np.float32)

    def close_to(self, dates: tuple[Date, ...]) -> Floats:
        """Return 1 on a day of ``dates``, and less before and after."""
        best = np.zeros(len(self._days), np.float32)
        for date in dates:
            if date.day is None or date.month is None:
                continue
            for year in [date.year] if date.year else np.unique(self._year).tolist():
                first = np.datetime64(f"{year:04}-{date.month:02}", "D").astype(np.int64)
                away = (self._days - (first + date.day - 1)).astype(np.float32)
                np.maximum(best, np.exp(np.where(away >= 0, away / -_AFTER, away / _BEFORE)), out=best)
        return best


def closeness(made: npt.NDArray[np.int64], times: tuple[TimeSpan, ...]) -> Floats:
    """Return 1 for instants within one of ``times``; outside, less with growing distance."""
    best = np.zeros(len(made), np.float32)
    for each in times:
        outside = np.zeros(len(made), np.float64)
        if each.after is not None:
            np.maximum(outside, each.after - made.astype(np.float64), out=outside)
        if each.before is not None:
            np.maximum(outside, made.astype(np.float64) - each.before, out=outside)
        away = np.minimum(outside / max(1, each.fading), _FAR)
        np.maximum(best, np.where(away < _FAR, np.exp(-(away**2)), 0), out=best, casting="same_kind")
    return best
