"""Signs that a newer note contradicts an older one on the same matter.

Two notes on one matter mostly both hold. A newer one contradicts an older one if it

- says that something ended or was replaced, and the older note has what it names there: "moved from Jenkins";
- denies what the older note has: "not resized on upload any more", "never in AsyncStorage";
- gives another value for the same measure: 30 days instead of 90, Tuesday instead of Thursday.

What happened twice contradicts nothing: notes that begin with the same word and different numbers or months
are a series. No rule understands sentences, so a contradiction without such a sign is not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import STOP_WORDS, tokens
from greenroom.actors.search.ranking.supersession import find_changes

_NEAR: Final = 6
"""What a phrase of change is about is among this many words before and behind it, what is denied behind."""
_LIKELY, _ALIKE, _SAME = -0.6, 0.28, 0.45
"""The log-odds, or else the share of a note's rarity that the other has; a value needs more of that."""
_PAST: Final = re.compile(
    r"\b(?:was|were|went|got|had|did|came|found|broke|reached|fixed|failed|war|waren|wurde|hatte)\b",
    re.IGNORECASE,
)
"""A note about what happened is contradicted by nothing that happens later."""
_NEGATION: Final = re.compile(
    r"\b(?:not|never|no need to|do(?:es)?n't|isn't|aren't|without|nicht|nie|kein\w*|jamais|nunca)\b",
    re.IGNORECASE,
)
_TAKES: Final = re.compile(r"t(?:ook|akes?n?) over", re.IGNORECASE)
"""Before it stands who is new."""
_NUMBERS: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_UNITS: Final = frozenset({"euro", "euros", "dollar", "dollars", "percent", "%"})
_DAY: Final = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_MONTH: Final = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_SERIES: Final = re.compile(r"\W*(\w+) #?\d")
_WORD: Final = re.compile(r"\d+:\d\d|\d[\d.,]*\d|[^\W_](?:[\w'-]*[^\W_])?|%|€|\$")
_CLAUSE: Final = re.compile(r"[,;:.()](?:\s|$)")
_AN_HOUR: Final = re.compile(r"\d+:\d\d")


class _Word(NamedTuple):
    spelling: str
    start: int
    terms: frozenset[str]


class Note(NamedTuple):
    """A note to compare: words, values by measure, and the terms of its matter."""

    text: str
    words: Sequence[_Word]
    values: Mapping[str, set[float | str]]
    names: frozenset[str]

    @classmethod
    def read(cls, text: str) -> Note:
        """Read a note with the text ``text``."""
        words = [_Word(found[0], found.start(), _terms(found[0])) for found in _WORD.finditer(text)]
        values: dict[str, set[float | str]] = {}
        for measure, value in _values(words):
            values.setdefault(measure, set()).add(value)
        names = {term for word in words if not _is_value(word.spelling) for term in word.terms}
        return cls(text, words, values, frozenset(names))


def contradicts(newer: Note, older: Note, rarity: Callable[[str], float], logit: float) -> bool:
    """Return whether a note contradicts an older one on the same matter.

    Args:
        newer: The newer note.
        older: The older note.
        rarity: How rare a term is in the store; 0 for one that shows no common matter.
        logit: How likely the newer note is about the same matter and later, as its log-odds.
    """
    shared = {term for term in newer.names & older.names if rarity(term)}
    if not shared or _PAST.search(older.text) or _is_series(newer, older):
        return False
    whole = min(sum(map(rarity, note.names)) for note in (newer, older))
    part = sum(map(rarity, shared)) / whole
    if (logit >= _LIKELY or part >= _ALIKE) and (_ends(newer, shared) or _denies(newer, older, shared)):
        return True
    return (
        part >= _SAME and _has_other_value(newer, older, shared) and not _are_two_things(newer, older, shared)
    )


def _terms(word: str) -> frozenset[str]:
    return frozenset(term for token in tokens(word) for term in token.posted)


def _is_value(spelling: str) -> bool:
    """Return whether a word is a value, a unit or a stop word."""
    spelled = spelling.casefold()
    return (
        spelled in STOP_WORDS
        or spelled in _UNITS
        or spelled[0].isdigit()
        or _number(spelled) is not None
        or _DAY.fullmatch(spelled) is not None
    )


def _ends(newer: Note, shared: set[str]) -> bool:
    """Return whether a phrase of change in a note is about something shared."""
    return any(
        shared & _around(newer, span, 0 if _TAKES.match(newer.text, *span) else _NEAR)
        for span in find_changes(newer.text)
    )


def _denies(newer: Note, older: Note, shared: set[str]) -> bool:
    """Return whether a note denies something shared that the older one does not deny."""
    if len(shared) < 2 or _NEGATION.search(older.text):  # noqa: PLR2004 - what is denied, and of what
        return False
    return any(shared & _around(newer, found.span(), 0) for found in _NEGATION.finditer(newer.text))


def _around(note: Note, span: tuple[int, int], before: int) -> set[str]:
    """Return the terms of the words beside a phrase, within its clause."""
    start, end = span
    marks = [found.start() for found in _CLAUSE.finditer(note.text)]
    first = max((mark for mark in marks if mark < start), default=-1)
    last = min((mark for mark in marks if mark >= end), default=len(note.text))
    earlier = [word for word in note.words if first < word.start < start]
    later = [word for word in note.words if end <= word.start < last]
    near = (*earlier[max(0, len(earlier) - before) :], *later[:_NEAR])
    return {term for word in near for term in word.terms}


def _has_other_value(newer: Note, older: Note, shared: set[str]) -> bool:
    for measure, values in newer.values.items():
        others = older.values.get(measure, set())
        if others and values.isdisjoint(others) and len(shared - {measure}) >= 2:  # noqa: PLR2004 - more than a word
            return True
    return False


def _are_two_things(newer: Note, older: Note, shared: set[str]) -> bool:
    """Return whether two notes qualify a shared word differently: desk lamp, kitchen lamp."""
    mine, others = _qualifiers(newer, shared), _qualifiers(older, shared)
    return any(
        not mine[term] & (others[term] | older.names) and not others[term] & newer.names
        for term in mine.keys() & others.keys()
    )


def _qualifiers(note: Note, shared: set[str]) -> dict[str, frozenset[str]]:
    """Return for shared terms the terms of the word before each."""
    return {
        term: before.terms
        for before, word in pairwise(note.words)
        if not _is_value(before.spelling)
        for term in word.terms & shared
    }


def _is_series(newer: Note, older: Note) -> bool:
    """Return whether two notes are of a series: alike with other numbers or months."""
    numbers = [_SERIES.match(note.text) for note in (newer, older)]
    if numbers[0] and numbers[1] and numbers[0][1].casefold() == numbers[1][1].casefold():
        return True
    months = [{month.casefold() for month in _MONTH.findall(note.text)} for note in (newer, older)]
    return bool(months[0] and months[1] and months[0].isdisjoint(months[1]))


def _values(words: Sequence[_Word]) -> Iterator[tuple[str, float | str]]:
    """Yield what a note measures, and each value."""
    for at, word in enumerate(words):
        spelled = word.spelling.casefold()
        if _AN_HOUR.fullmatch(spelled):
            yield ":clock", spelled
        elif _DAY.fullmatch(spelled):
            yield ":day", spelled.removesuffix("s")
        elif (value := _number(spelled)) is not None:
            for beside in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2]):
                if _number(beside.spelling) is None and beside.spelling.casefold() not in STOP_WORDS:
                    yield min(beside.terms, default=beside.spelling), value


def _number(spelled: str) -> float | None:
    if spelled in _NUMBERS:
        return float(_NUMBERS.index(spelled))
    plain = spelled.replace(",", "")
    return float(plain) if re.fullmatch(r"\d+(?:\.\d+)?", plain) else None
