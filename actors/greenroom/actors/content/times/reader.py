"""The recursive parser of an expression of time, and the tables of its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, tzinfo
from typing import Final, NamedTuple

from greenroom.actors.content.times.calendar import ONE_DAY, Days, Span, day_of_month, seconds_of, span_of

MAX_WORDS: Final = 16
"""A phrase has at most this many words, because nested forms are tried at every place."""


DaysMeaning = Callable[["Reader", re.Match[str]], Days | None]
SpanMeaning = Callable[["Reader", re.Match[str]], Span | None]
MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tues tue",
            "wednesday weds wed",
            "thursday thurs thur thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season of three months, in the northern hemisphere."""
HOLIDAYS: Final = {
    "new year": (1, 1),
    "new years": (1, 1),
    "new years day": (1, 1),
    "valentines day": (2, 14),
    "halloween": (10, 31),
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
    "new years eve": (12, 31),
}
DAYTIMES: Final = {
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 29),
}
"""The first and last hour of each; a night lasts until five on the next day."""
UNITS: Final = {
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "second"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "minute"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("week", "weeks", "wk", "wks"), "week"),
    **dict.fromkeys(("fortnight", "fortnights"), "fortnight"),
    **dict.fromkeys(("weekend", "weekends"), "weekend"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("quarter", "quarters"), "quarter"),
    **dict.fromkeys(("year", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("decade", "decades"), "decade"),
}
ORDINALS: Final = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "5th": 5,
    "last": -1,
    "final": -1,
}
_SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS: Final = {
    **{word: number for number, word in enumerate(_SMALL)},
    **{word: number * 10 for number, word in enumerate(_TENS, start=2)},
    **{
        f"{tens} {ones}": number * 10 + one
        for number, tens in enumerate(_TENS, start=2)
        for one, ones in enumerate(_SMALL[1:10], start=1)
    },
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "a couple": 2,
    "couple of": 2,
    "couple": 2,
    "a dozen": 12,
    "half a": 0.5,
    "half an": 0.5,
    **{
        f"{words}{of} {one}": share
        for words, share in {"a quarter": 0.25, "quarter": 0.25, "three quarters": 0.75}.items()
        for of in (" of", "")
        for one in ("a", "an")
    },
}
AND_A_HALF: Final = " and a half"
VAGUE: Final = {"a few": (2, 5), "few": (2, 5), "several": (3, 7)}
"""Vague counts: at least and at most."""


class Grammar(NamedTuple):
    """Patterns, and what a match means; `spans`, for instants, are tried first."""

    days: tuple[tuple[re.Pattern[str], DaysMeaning], ...]
    spans: tuple[tuple[re.Pattern[str], SpanMeaning], ...]


class Reader:
    """Parses phrases relative to a current time and a time zone.

    A name without a year or week means the newest occurrence until ``anchor``; with ``forward``, the next one
    from there. ``reasons`` collects why well-formed phrases have no meaning. 3/4/2026 needs ``day_first``.
    """

    def __init__(
        self,
        grammar: Grammar,
        now: datetime,
        zone: tzinfo,
        *,
        anchor: date | None = None,
        forward: bool = False,
        reasons: list[str] | None = None,
        day_first: bool = False,
    ) -> None:
        self.grammar = grammar
        self.now = now
        self.zone = zone
        self.today = now.astimezone(zone).date()
        self.anchor = self.today if anchor is None else anchor
        self.forward = forward
        self.day_first = day_first
        self.reasons: list[str] = [] if reasons is None else reasons
        self._days: dict[str, Days | None] = {}
        self._spans: dict[str, Span | None] = {}

    def anchored(self, anchor: date, *, forward: bool) -> Reader:
        """Return a reader like this one with another reference day."""
        return Reader(
            self.grammar,
            self.now,
            self.zone,
            anchor=anchor,
            forward=forward,
            reasons=self.reasons,
            day_first=self.day_first,
        )

    def span(self, text: str) -> Span | None:
        """Return the instants that a phrase means, or None."""
        if text not in self._spans:
            self._spans[text] = None  # a phrase that contains itself has no meaning
            self._spans[text] = self._read_span(text)
        return self._spans[text]

    def days(self, text: str) -> Days | None:
        """Return the whole days that a phrase means, or None."""
        if text not in self._days:
            self._days[text] = None
            self._days[text] = self._read_days(text)
        return self._days[text]

    def _read_span(self, text: str) -> Span | None:
        if len(text.split()) > MAX_WORDS:
            return None
        for pattern, meaning in self.grammar.spans:
            found = pattern.fullmatch(text)
            if found is not None and (span := meaning(self, found)) is not None:
                return span
        days = self.days(text)
        return None if days is None else span_of(days, self.zone)

    def _read_days(self, text: str) -> Days | None:
        for pattern, meaning in self.grammar.days:
            found = pattern.fullmatch(text)
            if found is not None:
                try:
                    days = meaning(self, found)
                except (OverflowError, ValueError):
                    self.reasons.append("the calendar has no such year")
                    continue
                if days is not None:
                    return days
        return None

    def real_day(self, year: int, month: int, day: int) -> Days | None:
        """Return a date given in numbers; record a reason if the date does not exist."""
        real = day_of_month(year, month, day) if 1 <= month <= 12 and year else None  # noqa: PLR2004
        if real is None:
            self.reasons.append(f"there is no day {year:04}-{month:02}-{day:02}")
            return None
        return Days(real, real + ONE_DAY)

    def is_clock(self, unit: str) -> bool:
        """Return whether a unit is a clock unit."""
        return seconds_of(unit) is not None


def halves_first(text: str) -> str:
    """Rewrite "two hours and a half" as "two and a half hours"."""
    return _HALVES_LAST.sub(rf"\g<count>{AND_A_HALF} \g<unit>", text)


def alternatives(words: object) -> str:
    """Return a pattern that matches one of the words of a table, the longest first."""
    assert isinstance(words, dict)
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


COUNT: Final = rf"(?P<count>(?:\d{{1,6}}(?:\.\d)?|{alternatives(NUMBERS)})(?:{AND_A_HALF})?)"
_HALVES_LAST: Final = re.compile(rf"\b{COUNT} (?P<unit>{alternatives(UNITS)}){AND_A_HALF}\b")
