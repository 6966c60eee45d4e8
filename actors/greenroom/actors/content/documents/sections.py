"""The sections of a text: their offsets and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from greenroom.actors.content.documents.splitting import trim

MAX_HEADING: Final = 200
_LINK: Final = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\n]*\)|\[[^\[\]\n]*\])")
_ROLE: Final = re.compile(r":[a-zA-Z][\w+.-]*:(?=`)")
_TARGET: Final = re.compile(r"<[^<>`]*>(?=`)")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_ANCHOR: Final = re.compile(r"\{#[^{}]*\}$")
_MARKS: Final = re.compile(r"[`*]|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_MOST_READ: Final = 2_000


class Section(NamedTuple):
    """A part of a text.

    Attributes:
        first: Its start, with its heading.
        body: The offset after its heading.
    """

    first: int
    body: int
    headings: tuple[str, ...] = ()


class Sections(NamedTuple):
    """All sections of a text in order, and its title, which may be empty."""

    title: str
    all: list[Section]


class Outline:
    """The headings above the present place.

    Attributes:
        headings: The headings of the present section; the same tuple object until another begins.
    """

    def __init__(self) -> None:
        self._above: list[tuple[int, str]] = []
        self.top = ""
        self.headings: tuple[str, ...] = ()

    def enter(self, level: int, heading: str) -> tuple[str, ...]:
        """Begin a section of a level, 1 for the highest; return its headings."""
        words = strip_markup(heading)
        self.top = self.top or words
        self._above = [each for each in self._above if each[0] < level]
        self._above.append((level, words))
        self.headings = tuple(heading for _, heading in self._above if heading)
        return self.headings


def strip_markup(heading: str) -> str:
    """Return the words of a heading, without markup."""
    text = " ".join(heading[:_MOST_READ].split())
    for mark in (_LINK, _ROLE, _TARGET, _TAG, _ANCHOR, _MARKS):
        text = mark.sub(r"\1" if mark is _LINK else "", text)
    return " ".join(text.split())[:MAX_HEADING]


def bodies(text: str, sections: list[Section]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start and end of each section's body, and its headings.

    A heading without text or subsections is its own body, so that searches find it. A heading that is too
    long is part of its body, too.
    """
    last = len(text)
    for section, follower in pairwise([*sections, Section(last, last)]):
        begin = section.body
        if section.headings and len(section.headings[-1]) == MAX_HEADING:
            begin = section.first
        if trim(text, begin, follower.first) is None:
            above = follower.headings[: len(section.headings)]
            if above == section.headings and (not above or above != follower.headings):
                continue
            begin = section.first
        yield begin, follower.first, section.headings
