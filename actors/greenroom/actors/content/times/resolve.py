"""Resolve an English expression of time to a half-open interval, or raise an error.

Decisions where English is ambiguous:

1. A name without a year or week ("March", "Monday", "summer") is the newest one that has begun. In a
   range this is the end, and the beginning is the newest one before the end.
2. "last March" and "last Monday" have ended before today. "last week" is the calendar week before the
   current one. "the past week" and "the last 7 days" go from the start of the first day until now.
3. "3 days ago" is that whole day, and "3 weeks ago" is that calendar week; weeks begin on Monday.
   "3 hours ago" is from half an hour before that instant to half an hour after it.
4. Ranges include both ends, but a time of day is an exact end: "until Monday" contains Monday, "until 3pm"
   contains nothing after three. "after Monday" begins when Monday is over, "since Monday" begins with
   Monday, "before Monday" ends with Sunday.
5. A night goes from 18:00 to 5:00, a morning from 5:00, an afternoon from 12:00, an evening from 18:00.
6. Seasons are those of the northern hemisphere, in whole months: summer is June to August. A winter
   belongs to the year in which it begins.
7. "3/4/2026" is refused, since it has two meanings, unless the caller states that days come first.

Libraries were tried on the table of `tests/content/test_timewords.py`. None returns intervals. The best is
timefhuman 0.1.5: of 173 cases, it returns a moment inside the right interval in 73, and outside in 40. For
dateparser 1.5 these are 66 and 8, without "last Monday" or "this morning". parsedatetime 2.6 and recurrent
0.4.1 ignore the given current time in some forms. A wrong filter hides memories, so the grammar is our own:
the tables in `days` and `spans`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Final, NoReturn

from greenroom.actors.content.times import days, spans
from greenroom.actors.content.times.calendar import Span, midnight
from greenroom.actors.content.times.reader import Grammar, Reader, halves_first

Window = tuple[datetime | None, datetime | None]

MAX_CHARACTERS: Final = 200
SHOWN_CHARACTERS: Final = 60
EXAMPLES: Final = (
    "yesterday",
    "this morning",
    "last week",
    "2 days ago",
    "last 3 months",
    "in March 2026",
    "last Monday",
    "between Monday and Wednesday",
    "since 2026-03-01",
    "before last summer",
)

_SINCE: Final = re.compile(
    r"(?P<word>since|starting|after|from|later than|newer than|more recent than) (?P<a>.+)"
)
_BEFORE: Final = re.compile(
    r"(?P<word>before|prior to|earlier than|older than|until|till|up to|up until|through|by|"
    r"no later than|not later than) (?P<a>.+)"
)
_OPEN: Final = re.compile(
    r"(?P<a>.+?)(?: and| or)? (?P<word>onwards?|later|newer|after|earlier|older|before)"
)
_LONGER_AGO: Final = re.compile(r"(?:more than|over|longer than|at least) (?P<a>.+ ago)")
_TO: Final = (
    r"(?: to | till | until | up to | through | thru |(?<!\d)-(?!\d)| - | ?\.\. ?|(?<=\S) ?(?:/(?=\d{4}-)))"
)
_DAYS_OF_MONTH: Final = re.compile(
    r"(?P<before>[a-z]+ )?(?P<first>\d{1,2})(?:st|nd|rd|th)? ?(?:-|to|and|through) ?"
    r"(?P<last>\d{1,2})(?:st|nd|rd|th)?(?P<after> .+)?"
)
_SINCE_WORDS: Final = frozenset({"since", "from", "starting", "onward", "onwards", "later"})
_BEFORE_WORDS: Final = frozenset({"before", "prior to", "earlier than", "older than"})


def resolve(expression: str, now: datetime, tz: tzinfo, *, day_first: bool = False) -> Window:
    """Resolve an expression of time to its window in UTC, with an exclusive end.

    An end is None if unbounded. ``now`` needs a time zone. Days and times of day are local times of ``tz``.
    3/4/2026 is refused unless ``day_first``.

    Raises:
        ValueError: the expression is not understood; the error's sentence gives examples.
    """
    if now.tzinfo is None:
        raise TypeError("now needs a time zone")
    if len(expression) > MAX_CHARACTERS:
        raise ValueError(
            f"an expression of time has at most {MAX_CHARACTERS} characters, this {len(expression)}"
        )
    reasons: list[str] = []
    try:
        reader = Reader(_grammar(), now.astimezone(UTC), tz, reasons=reasons, day_first=day_first)
        window = _window(reader, _simplified(expression))
    except (OverflowError, ValueError):  # the calendar raises these at its ends
        window = None
        reasons.append("the calendar has no such year")
    if window is None:
        _refuse(expression, reasons)
    return window


def warm() -> None:
    """Compile the grammar's patterns. This takes 20 ms: call it in a thread."""
    _grammar()


@cache
def _grammar() -> Grammar:
    return Grammar(days.forms(), spans.forms())


def _refuse(expression: str, reasons: list[str]) -> NoReturn:
    shown = expression if len(expression) <= SHOWN_CHARACTERS else expression[:SHOWN_CHARACTERS] + "…"
    why = f" ({reasons[0]})" if reasons else ""
    examples = ", ".join(f'"{example}"' for example in EXAMPLES)
    raise ValueError(f"{shown!r} is not understood as a time{why}; examples: {examples}")


# -- what is written in many ways ---------------------------------------------


def _simplified(text: str) -> str:
    """Return the expression in lower case, without articles, commas and filler words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub("[\u2010-\u2015\u2212]", "-", text)  # hyphens, dashes and the minus sign
    text = re.sub("(?<=year|tine)['\u2019`]s\\b", "s", text)  # New Year's Eve
    text = re.sub(r"(?<=[a-z] )['\u2019](\d\d)\b", r"20\1", text)  # March '25
    text = re.sub("['\u2019`]s\\b|['\u2019`]", "", text)
    text = re.sub(r"\b([ap])\.? ?m\b\.?", r"\1m", text)
    text = re.sub(r"(?<=\d) (?=[ap]m\b)", "", text)
    text = re.sub(r"(?<=[a-z])\.(?!\.)", " ", text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text)
    text = re.sub(r"[,;?!\"]|\b(?:the|of|on|at(?! least))\b", " ", text)
    text = " ".join(text.strip(" .").split())
    return halves_first(re.sub(r"\bin (?=(?:morning|afternoon|evening|night)\b)", "", text))


# -- ranges ------------------------------------------------------------------


def _window(begin: Reader, text: str) -> Window | None:
    longer = _longer_ago(begin, text)
    if longer is not None:
        return longer
    span = begin.span(text)
    if span is not None:
        return span.start, span.end
    for meaning in (_of_month, _closed, _since_until, _open):
        window = meaning(begin, text)
        if window is not None:
            return window
    return None


def _longer_ago(begin: Reader, text: str) -> Window | None:
    """Resolve "more than two weeks ago"."""
    found = _LONGER_AGO.fullmatch(text)
    if found is None or (span := begin.span(found["a"])) is None:
        return None
    return None, span.stop if text.startswith("at least") else span.begin or span.start


def _of_month(begin: Reader, text: str) -> Window | None:
    """Resolve "March 3-5", "from 3 to 5 March 2026"."""
    found = _DAYS_OF_MONTH.fullmatch(re.sub("^(?:from|between|in) ", "", text))
    if found is None:
        return None
    before, after = found["before"] or "", found["after"] or ""
    ends = [begin.days(f"{before}{found[end]}{after}") for end in ("first", "last")]
    if None in ends:
        return None
    first, last = (end for end in ends if end is not None)
    if last.floating and first.first > last.first:
        earlier = begin.anchored(last.first, forward=False).days(f"{before}{found['first']}{after}")
        assert earlier is not None, "it was understood before"
        first = earlier
    return _ordered(begin, midnight(first.first, begin.zone), midnight(last.end, begin.zone))


def _closed(begin: Reader, text: str) -> Window | None:
    """Resolve "between A and B", "from A to B", "A - B"."""
    is_between = text.startswith("between ")
    bare = re.sub("^(?:between|from|since|starting) ", "", text)
    for a, b in _splits(bare, r" and (?:before )?| & " if is_between else _TO):
        ends = _ends(begin, a, b)
        if ends is None:
            continue
        first, last = ends
        if is_between and (first.begin or first.start) > last.stop:
            first, last = last, first
        return _ordered(begin, first.begin or first.start, last.stop)
    return None


def _splits(text: str, separator: str) -> Iterator[tuple[str, str]]:
    for mark in re.finditer(separator, text):
        yield text[: mark.start()].strip(), text[mark.end() :].strip()


def _ends(begin: Reader, a: str, b: str) -> tuple[Span, Span] | None:
    """Parse both ends of a range; a name without a year depends on the other."""
    first, last = begin.span(a), begin.span(b)
    if first is None or last is None:
        return None
    if first.floating:
        first = begin.anchored(last.day, forward=False).span(a)
    elif last.floating:
        last = begin.anchored(first.day, forward=True).span(b)
    return None if first is None or last is None else (first, last)


def _since_until(begin: Reader, text: str) -> Window | None:
    """Resolve "after A and before B", "since A until B"."""
    found = _SINCE.fullmatch(text)
    if found is None:
        return None
    for a, b in _splits(found["a"], r"(?: and| but)? (?=before |until |till |up to |by |prior to )"):
        word = re.match("before|prior to|until|till|up to|by", b)
        ends = None if word is None else _ends(begin, a, b[word.end() :].strip())
        if ends is not None and word is not None:
            first, last = ends
            start = first.begin or first.start if found["word"] in _SINCE_WORDS else first.stop
            return _ordered(begin, start, last.start if word[0] in _BEFORE_WORDS else last.stop)
    return None


def _open(begin: Reader, text: str) -> Window | None:
    """Resolve "since A", "after A", "A or later", "before A", "until A"."""
    found = _SINCE.fullmatch(text)
    if (
        found is not None
        and (span := begin.span(re.sub(" (?:onwards?|forward)$", "", found["a"]))) is not None
    ):
        return (span.begin or span.start) if found["word"] in _SINCE_WORDS else span.stop, None
    found = _BEFORE.fullmatch(text)
    if found is not None and (span := begin.span(found["a"])) is not None:
        return None, (span.begin or span.start) if found["word"] in _BEFORE_WORDS else span.stop
    found = _OPEN.fullmatch(text)
    if found is not None and (span := begin.span(found["a"])) is not None:
        if found["word"] in {"earlier", "older", "before"}:
            return None, span.stop
        return span.begin or span.start, None
    return None


def _ordered(begin: Reader, start: datetime, end: datetime) -> Window | None:
    if start < end:
        return start, end
    begin.reasons.append("it ends before it begins")
    return None
