"""Times that a question names in passing: "what did we decide two weeks ago about the deploy?".

The grammar is that of the time filter. It is tried on runs of words that may belong to a time, the longest
first, if one of them is a sign of a time:

1. "last", "past" and "this" want a unit, a weekday, a month or a season behind them; and "second" and
   "minute" a number, for "last minute changes" are no time.
2. "may", "march" and "spring" are also other words. They are times when a word before says so ("in March",
   "last spring") or a day or a year stands beside.
3. "every Monday" comes again and "by Friday" is a deadline: neither says when something was told. "in five
   minutes" and "tomorrow" are ahead, and nothing was told there yet.
4. "today" alone is when something was told if the question is about what was ("what did we decide today").
   "Which database do we use today" asks for the present state.
5. "Monday", "Q2", "Christmas" and "16.01.2024" alone are times, but may also be what it is about: "the Monday
   standup". Their words are looked for, too, unless the question is about what was.
6. A plain date ("16 January 2024", "in March") is not among them: `greenroom.actors.search.ranking.dates` reads it,
   for it means the same whenever somebody asks, and without a year that month of any year.

A filter takes "three weeks ago" for that calendar week. Here it is the day three weeks before now, and some
days around, for nobody who says it has looked at a calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final, NamedTuple

from greenroom.actors.content.times.calendar import ONE_DAY, add, day_of_month, midnight, seconds_of
from greenroom.actors.content.times.days import number
from greenroom.actors.content.times.reader import (
    COUNT,
    DAYTIMES,
    HOLIDAYS,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SEASONS,
    UNITS,
    VAGUE,
    WEEKDAYS,
    alternatives,
    halves_first,
)
from greenroom.actors.content.times.resolve import Window, resolve

MOST: Final = 4
"""Times that are told of one text."""
_READ: Final = 32
"""Runs of words that are read of one text (0.1 ms each)."""
_CHARACTERS: Final = 10_000  # of a longer text the beginning
_LONGEST: Final = 8  # words of one expression


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD: Final = re.compile(r"[^\s()\[\]{}\"\u201c\u201d,]+,?")
_NUMBER: Final = re.compile(r"\d{1,4}(?:\.\d|st|nd|rd|th)?|\d{1,2}(?::\d\d)?(?:am|pm)?")
_QUARTER: Final = re.compile(r"q[1-4]")
_EDGES: Final = ".,;:!?'\u2019`"
_SENTENCE_ENDS: Final = ".;:!?"
_POSSESSIVE: Final = re.compile(r"['\u2019`]s?$")
_WHICH: Final = _set("last past previous this these recent current earlier")
_RELATIVE: Final = _WHICH | _set("ago back since until till yesterday today recently lately")
_JOINING: Final = _set("in on at of the and to from since until till through before after between")
_BESIDE: Final = _set(
    "ago back over during within throughout around about early mid late beginning start end few most other"
)
_SURE: Final = _set("ago yesterday today recently lately christmas halloween")
_NAMES: Final = frozenset((*MONTHS, *WEEKDAYS, *SEASONS))
_OTHER_WORDS: Final = _set("may march mar spring fall sun sat mon wed second sec dec")
_INTRODUCES: Final = _WHICH | _set("in since during early mid late until before after on of from")
_AT_WEEKEND: Final = _set("at over on during")
_NO_BEGINNING: Final = _set("and to from of")
_AGAIN: Final = _set("every each any by per next half")
_TODAY: Final = re.compile(r"(?<!earlier )\btoday\b", re.IGNORECASE)
_WAS: Final = re.compile(r"\b(?:did|was|were|had|been|happened|came|got|went|said)\b", re.IGNORECASE)
_SHORT: Final = frozenset(word for word, unit in UNITS.items() if unit in {"second", "minute"})
_COUNTS: Final = frozenset(word for table in (NUMBERS, VAGUE) for phrase in table for word in phrase.split())
_KNOWN: Final = frozenset(
    word
    for table in (UNITS, ORDINALS, DAYTIMES, HOLIDAYS, _COUNTS, _NAMES, _SURE, _WHICH, _JOINING, _BESIDE)
    for phrase in table
    for word in phrase.split()
)
_TRIGGER: Final = re.compile(
    rf"\b(?:{alternatives(dict.fromkeys(_SURE | _WHICH | _NAMES))}|weekend|q[1-4])\b", re.IGNORECASE
)
_PLAIN: Final = re.compile(
    rf"(?:(?:in|on|at|of|the|from) )*(?:(?:{alternatives(MONTHS)}|\d{{1,4}}(?:st|nd|rd|th)?|of)(?: |$))+"
)
_FULL_DATE: Final = re.compile(rf"\b(?:{alternatives(MONTHS)})\b.*\b(?:19|20)\d\d\b")
_MONTH_NAMES: Final = frozenset(MONTHS)
_SAID: Final = frozenset((*MONTHS, *SEASONS))
_AGO: Final = re.compile(rf"{COUNT} (?P<unit>{alternatives(UNITS)}) (?:ago|back)")
_NUMERIC_DATE: Final = re.compile(
    r"(?<![\w./-])(?P<first>\d{1,2})(?P<sign>[./])(?P<other>\d{1,2})(?P=sign)(?P<year>\d{4})(?![\w/-]|\.\w)"
)
_MONTHS: Final = 12
_OUTSIDE: Final = 0.3  # of its length a time fades
_LEAST: Final = timedelta(hours=3)
_OPEN: Final = timedelta(days=30)  # the length of what has no end
_UNSURE: Final = 0.6  # of its unit "three weeks ago" fades
_UNSURE_MOST: Final = timedelta(days=100)
_FORGOTTEN: Final = 0.15  # ... or of how long ago it was


class NamedTime(NamedTuple):
    """A time that a text names.

    Attributes:
        start: Where its words begin in the text.
        end: Where they end.
        after: The first instant that is meant; None: any until ``before``.
        before: The instant after the last; None: any since ``after``.
        fading: How far outside something is hardly meant any more.
        is_subject: Whether its words may also be what the text is about, or hold a plain date.
    """

    start: int
    end: int
    after: datetime | None
    before: datetime | None
    fading: timedelta
    is_subject: bool


class _Word(NamedTuple):
    """A word of the text; ``core`` is it in small letters, without what stands around it."""

    start: int
    end: int
    core: str
    is_capital: bool
    ends: bool


def times_in(text: str, now: datetime, zone: tzinfo, *, day_first: bool = False) -> list[NamedTime]:
    """Return the times that a text names and that have begun, in order, `MOST` at most.

    Args:
        text: Anything.
        now: The present instant, aware.
        zone: Where days begin.
        day_first: Whether 3/4/2026 is in April; if not, it may be either.
    """
    text = text[:_CHARACTERS]
    was = _WAS.search(text) is not None
    dates = _numeric(text, zone, day_first=day_first)
    found = [each._replace(is_subject=not was) for each in islice(dates, MOST)]
    if _TRIGGER.search(text) is None:
        return found
    words = _words(text if was else _TODAY.sub(_blank, text))
    reads = start = 0
    while start < len(words) and reads < _READ and len(found) < MOST:
        for end in _ends(words, start):
            if not _may_be_one(words, start, end):
                continue
            reads += 1
            first, last = words[start].start, words[end - 1].end
            read = _read(text[first:last], now, zone)
            if read is not None:
                cores = {word.core for word in words[start:end]}
                # What was in "the week before 3 June" or "last summer" is told later, too, by the same words.
                is_subject = (not was and _RELATIVE.isdisjoint(cores)) or not cores.isdisjoint(_SAID)
                found.append(NamedTime(first, last, *read[0], read[1], is_subject))
                start = end - 1
                break
        start += 1
    return sorted(found, key=lambda each: each.start)


def without(text: str, times: Sequence[NamedTime]) -> str:
    """Return a text without the words that only name a time; the whole of it if it has no others."""
    times = [each for each in times if not each.is_subject]
    ends = [0, *(each.end for each in times)]  # of two readings of the same words the second cuts nothing
    starts = [*(each.start for each in times), len(text)]
    parts = (text[end:start].strip() for end, start in zip(ends, starts, strict=True))
    rest = " ".join(filter(None, parts))
    return rest if any(map(str.isalnum, rest)) else text


def _words(text: str) -> list[_Word]:
    words = []
    for each in _WORD.finditer(text):
        bare = each[0].strip(_EDGES)
        if bare:
            start = each.start() + each[0].index(bare)
            core = _POSSESSIVE.sub("", bare.casefold())
            words.append(
                _Word(start, start + len(bare), core, bare[0].isupper(), each[0][-1] in _SENTENCE_ENDS)
            )
    return words


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _ends(words: Sequence[_Word], start: int) -> Iterator[int]:
    """Return where runs that begin here may end, the longest first."""
    end = start
    while end < min(len(words), start + _LONGEST) and _is_known(words[end].core):
        end += 1
        if words[end - 1].ends:
            break
    return iter(range(end, start, -1))


def _is_known(core: str) -> bool:
    return core in _KNOWN or _NUMBER.fullmatch(core) is not None or _QUARTER.fullmatch(core) is not None


def _may_be_one(words: Sequence[_Word], start: int, end: int) -> bool:
    """Return whether words may be an expression that says when something was told; see the module."""
    cores = [word.core for word in words[start:end]]
    if (start and words[start - 1].core in _AGAIN) or cores[-1] in _JOINING or cores[0] in _NO_BEGINNING:
        return False
    if start > 1 and words[start - 1].core == "and" and words[start - 2].core in UNITS:
        return False  # half of "two weeks and three days ago"
    if end < len(words) and words[end].core[:1].isdigit() and not _MONTH_NAMES.isdisjoint(cores[-2:]):
        return False  # half of a date
    counts = not _COUNTS.isdisjoint(cores) or any(core[:1].isdigit() for core in cores)
    if not counts and not _SHORT.isdisjoint(cores):
        return False
    return any(_is_sign(words, at, start, end) for at in range(start, end))


def _is_sign(words: Sequence[_Word], at: int, start: int, end: int) -> bool:
    core, before = words[at].core, words[at - 1].core if at else ""
    if core == "weekend":
        return start < at and words[start].core in _AT_WEEKEND
    if core in _WHICH:
        return at + 1 < end or before == "before"
    if core not in _OTHER_WORDS:
        return core in _SURE or core in _NAMES or _QUARTER.fullmatch(core) is not None
    if before in _INTRODUCES or (at and words[at].is_capital and core in MONTHS):
        # Not "in Spring Boot".
        return not (words[at].is_capital and at + 1 < len(words) and words[at + 1].is_capital)
    return any(words[beside].core.isdigit() for beside in (at - 1, at + 1) if start <= beside < end)


def _read(text: str, now: datetime, zone: tzinfo) -> tuple[Window, timedelta] | None:
    """Return what an expression means that is no plain date and not ahead, and how it fades; or None."""
    simple = halves_first(" ".join(text.casefold().replace(",", " ").split()))
    if _PLAIN.fullmatch(simple) or _FULL_DATE.search(simple):
        return None
    try:
        after, before = resolve(text, now, zone)
        ago = _AGO.search(simple)
        if ago:
            return _around(number(ago["count"]), UNITS[ago["unit"]], now.astimezone(zone))
    except (ValueError, OverflowError):
        return None
    if after is not None and after > now:
        return None
    length = _OPEN if after is None or before is None else before - after
    return (after, before), max(length * _OUTSIDE, _LEAST)


def _around(count: float, unit: str, now: datetime) -> tuple[Window, timedelta]:
    """Return the moment that was so long ago, or its day; the longer ago, the less exactly it is meant."""
    unit, count = ("week", 2 * count) if unit == "fortnight" else (unit, count)
    if (seconds := seconds_of(unit)) is not None:
        # In UTC, for a clock may have been put forward meanwhile.
        moment = now.astimezone(UTC) - timedelta(seconds=count * seconds)
        return (moment, moment), max(timedelta(seconds=_UNSURE * seconds), _LEAST)
    whole, part = divmod(12 * count if unit == "year" else count, 1)
    day = add(now.date(), -int(whole), "month" if unit == "year" else unit)
    day -= (day - add(day, -1, unit)) * part
    first, one = midnight(day, now.tzinfo or UTC), add(now.date(), -1, unit)
    unsure = min(now.date() - one, _UNSURE_MOST) * _UNSURE
    return (first, first + ONE_DAY), max(unsure, (now.date() - day) * _FORGOTTEN)


def _numeric(text: str, zone: tzinfo, *, day_first: bool) -> Iterator[NamedTime]:
    """Return dates as "16.01.2024" and "16/01/2024"; of the second form both that it may be."""
    for found in _NUMERIC_DATE.finditer(text):
        first, other, year = int(found["first"]), int(found["other"]), int(found["year"])
        readings = {(first, other)}
        if found["sign"] == "/" and not (day_first and other <= _MONTHS):
            readings.add((other, first))
        for day, month in sorted(readings):
            real = day_of_month(year, month, day) if 1 <= month <= _MONTHS and year else None
            if real is not None:
                span = midnight(real, zone), midnight(real + ONE_DAY, zone)
                yield NamedTime(found.start(), found.end(), *span, ONE_DAY, is_subject=True)
