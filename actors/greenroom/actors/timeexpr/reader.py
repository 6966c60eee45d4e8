"""The recursive parser of one expression: it tries the grammar's forms in turn, and parses what they hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, tzinfo
from typing import Final, NamedTuple

from greenroom.actors.timeexpr.calendar import ONE_DAY, Days, Span, day_of_month, seconds_of, span_of

MAX_WORDS: Final = 16
"""Longer phrases are refused, since what is inside of a form is tried at every place."""


DaysMeaning = Callable[["Reader", re.Match[str]], Days | None]
SpanMeaning = Callable[["Reader", re.Match[str]], Span | None]


class Grammar(NamedTuple):
    """The forms of expressions: patterns and what a match of each means.

    Attributes:
        days: The forms that mean whole days.
        spans: The forms that mean instants; they are tried first.
    """

    days: tuple[tuple[re.Pattern[str], DaysMeaning], ...]
    spans: tuple[tuple[re.Pattern[str], SpanMeaning], ...]


class Reader:
    """Parses phrases relative to a present time and a time zone.

    Args:
        grammar: The forms that are tried.
        now: The present instant, in UTC.
        zone: Whose days count.
        anchor: What names without a year or week are relative to; the present day unless given.
        forward: Whether they mean the next one from there, not the newest one until there.
        reasons: Collects why phrases that looked right mean nothing.
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
    ) -> None:
        self.grammar = grammar
        self.now = now
        self.zone = zone
        self.today = now.astimezone(zone).date()
        self.anchor = self.today if anchor is None else anchor
        self.forward = forward
        self.reasons: list[str] = [] if reasons is None else reasons
        self._days: dict[str, Days | None] = {}
        self._spans: dict[str, Span | None] = {}

    def anchored(self, anchor: date, *, forward: bool) -> Reader:
        """Return a reader to which names mean those next to another day."""
        return Reader(self.grammar, self.now, self.zone, anchor=anchor, forward=forward, reasons=self.reasons)

    def span(self, text: str) -> Span | None:
        """Return the instants that a phrase means, or None."""
        if text not in self._spans:
            self._spans[text] = None  # what holds itself means nothing
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
        """Return a date that was written in numbers, or record that there is none such as a reason."""
        real = day_of_month(year, month, day) if 1 <= month <= 12 and year else None  # noqa: PLR2004
        if real is None:
            self.reasons.append(f"there is no day {year:04}-{month:02}-{day:02}")
            return None
        return Days(real, real + ONE_DAY)

    def is_clock(self, unit: str) -> bool:
        """Return whether a unit is one of the clock, not of the calendar."""
        return seconds_of(unit) is not None
