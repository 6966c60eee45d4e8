"""Find times in a question: "what did we decide two weeks ago about the deploy?".

The grammar is the same as in the time filter. It is tried on runs of words that may belong to a time, the
longest run first, if a word in the run indicates a time:

1. "last", "past" and "this" need a unit, a weekday, a month or a season after them. "second" and "minute"
   need a number: "last minute changes" are no time.
2. "may", "march" and "spring" also have other meanings. They are times only after certain words ("in March",
   "last spring") or beside a day or a year.
3. "every Monday" recurs and "by Friday" is a deadline: neither is a time of messages. "in five minutes" and
   "tomorrow" are in the future, which has no messages yet.
4. "today" alone is a time of messages if the question is about the past ("what did we decide today"). "Which
   database do we use today" means the present state.
5. "Monday", "Q2", "Christmas" and "16.01.2024" alone are times, but may also be the subject: "the Monday
   standup". Their words are searched, too, unless the question is about the past.
6. `greenroom.actors.search.ranking.dates` reads plain dates ("16 January 2024", "in March"), because they
   mean the same at any time. Without a year, they mean that month of any year.

In a filter "three weeks ago" means that calendar week. Here it means the day three weeks before now and some
days around it, since people do not look in a calendar for such words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final, NamedTuple

from greenroom.actors.content.times.calendar import ONE_DAY, add_units, day_of_month, midnight, seconds_of
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
"""At most this many times are found in one text."""
_READ: Final = 32
"""At most this many runs of words in one text are parsed (0.1 ms each)."""
_CHARACTERS: Final = 10_000  # only these are read, at the beginning of a text
_LONGEST: Final = 8  # the most words in one expression


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
_OUTSIDE: Final = 0.3  # fading of a time, as a share of its length
_LEAST: Final = timedelta(hours=3)
_OPEN: Final = timedelta(days=30)  # the assumed length of a time without an end
_UNSURE: Final = 0.6  # fading of "three weeks ago", as a share of its unit
_UNSURE_MOST: Final = timedelta(days=100)
_FORGOTTEN: Final = 0.15  # ... or as a share of its distance


class NamedTime(NamedTuple):
    """A time that a text names.

    Attributes:
        fading: The distance from the time at which relevance has mostly faded.
        is_subject: Whether the words may also be the subject of the text, or contain a plain date.
    """

    start: int
    end: int
    after: datetime | None
    before: datetime | None
    fading: timedelta
    is_subject: bool


class _Word(NamedTuple):
    """A word of the text; ``core`` is the word in lower case, without punctuation."""

    start: int
    end: int
    core: str
    is_capital: bool
    ends: bool


def times_in(text: str, now: datetime, zone: tzinfo, *, day_first: bool = False) -> list[NamedTime]:
    """Return the times in a text that have begun, in order; at most `MOST`."""
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
                # Later messages mention "the week before 3 June" or "last summer" in the same words.
                is_subject = (not was and _RELATIVE.isdisjoint(cores)) or not cores.isdisjoint(_SAID)
                found.append(NamedTime(first, last, *read[0], read[1], is_subject))
                start = end - 1
                break
        start += 1
    return sorted(found, key=lambda each: each.start)


def remove_times(text: str, times: Sequence[NamedTime]) -> str:
    """Remove the words that only name a time, unless nothing else is left."""
    times = [each for each in times if not each.is_subject]
    ends = [0, *(each.end for each in times)]  # a second reading of the same words cuts nothing more
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
    """Yield the possible ends of a run of words, the longest run first."""
    end = start
    while end < min(len(words), start + _LONGEST) and _is_known(words[end].core):
        end += 1
        if words[end - 1].ends:
            break
    return iter(range(end, start, -1))


def _is_known(core: str) -> bool:
    return core in _KNOWN or _NUMBER.fullmatch(core) is not None or _QUARTER.fullmatch(core) is not None


def _may_be_one(words: Sequence[_Word], start: int, end: int) -> bool:
    """Return whether words may be a time of messages; the module's docstring has the rules."""
    cores = [word.core for word in words[start:end]]
    if (start and words[start - 1].core in _AGAIN) or cores[-1] in _JOINING or cores[0] in _NO_BEGINNING:
        return False
    if start > 1 and words[start - 1].core == "and" and words[start - 2].core in UNITS:
        return False  # this is half of "two weeks and three days ago"
    if end < len(words) and words[end].core[:1].isdigit() and not _MONTH_NAMES.isdisjoint(cores[-2:]):
        return False  # this is half of a date
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
        # "in Spring Boot" is no time.
        return not (words[at].is_capital and at + 1 < len(words) and words[at + 1].is_capital)
    return any(words[beside].core.isdigit() for beside in (at - 1, at + 1) if start <= beside < end)


def _read(text: str, now: datetime, zone: tzinfo) -> tuple[Window, timedelta] | None:
    """Return an expression's window and fading; None for plain dates and the future."""
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
    """Return a past moment or its day; the fading grows with the distance from now."""
    unit, count = ("week", 2 * count) if unit == "fortnight" else (unit, count)
    if (seconds := seconds_of(unit)) is not None:
        # In UTC, since clocks may have been set forward between the moment and now.
        moment = now.astimezone(UTC) - timedelta(seconds=count * seconds)
        return (moment, moment), max(timedelta(seconds=_UNSURE * seconds), _LEAST)
    whole, part = divmod(12 * count if unit == "year" else count, 1)
    day = add_units(now.date(), -int(whole), "month" if unit == "year" else unit)
    day -= (day - add_units(day, -1, unit)) * part
    first, one = midnight(day, now.tzinfo or UTC), add_units(now.date(), -1, unit)
    unsure = min(now.date() - one, _UNSURE_MOST) * _UNSURE
    return (first, first + ONE_DAY), max(unsure, (now.date() - day) * _FORGOTTEN)


def _numeric(text: str, zone: tzinfo, *, day_first: bool) -> Iterator[NamedTime]:
    """Yield dates such as "16.01.2024" and "16/01/2024"; for an ambiguous date, both readings."""
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
