"""The sections and blocks of a text, and how they become chunks.

A section is a part of the text itself. A block is extracted text, which may differ from the bytes of the
file. A block has its offsets in the source, or its page, and its chunk reports these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 2_000
"""A chunk has at most this many characters, about 500 tokens."""

MAX_INDENT: Final = 200
"""At most this much white space before the first word belongs to a piece; less than half of any piece."""

_NO_SPACE: Final = re.compile(r"\S")
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n\s*")
_SENTENCE: Final = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_`]*\s+|[\u3002\uff01\uff1f]")
_LINE_END: Final = re.compile(r"\n")
_SPACE: Final = re.compile(r"\s")
_TOP_LEVEL: Final = re.compile(r"\n[ \t\r]*\n(?=[^\s})\]])")

PROSE: Final = (_BLANK_LINE, _SENTENCE, _LINE_END, _SPACE)
CODE: Final = (_TOP_LEVEL, _BLANK_LINE, _LINE_END, _SPACE)
"""Separators, the best first. In code, blank lines before unindented lines come first."""


def pieces(
    text: str, first: int, last: int, separators: tuple[re.Pattern[str], ...] = PROSE
) -> Iterator[tuple[int, int]]:
    """Yield trimmed pieces of a part of a text, of about the same length."""
    while (trimmed := trim(text, first, last)) is not None:
        first, last = trimmed
        size = last - first
        if size <= MAX_CHARACTERS:
            yield first, last
            return
        cut = _cut(text, first, size, separators)
        end = trim(text, first, cut)
        assert end is not None, "a piece does not begin with white space"
        yield end
        first = cut


def trim(text: str, first: int, last: int) -> tuple[int, int] | None:
    """Trim white space around a part, but keep indentation; None if nothing remains."""
    found = _NO_SPACE.search(text, first, last)
    if found is None:
        return None
    begin = line = found.start()
    while line > max(first, begin - MAX_INDENT) and text[line - 1] in " \t":
        line -= 1
    while text[last - 1].isspace():
        last -= 1
    return (line if line == 0 or text[line - 1] in "\r\n" else begin), last


def _cut(text: str, first: int, size: int, separators: tuple[re.Pattern[str], ...]) -> int:
    aim = first + size // -(-size // MAX_CHARACTERS)
    least, most = first + (aim - first) // 2, first + MAX_CHARACTERS
    for separator in separators:
        ends = [found.end() for found in separator.finditer(text, least, most)]
        if ends:
            return min(ends, key=lambda end: abs(end - aim))
    return aim


MAX_HEADING: Final = 200
_LINK: Final = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\n]*\)|\[[^\[\]\n]*\])")
_ROLE: Final = re.compile(r":[a-zA-Z][\w+.-]*:(?=`)")
_TARGET: Final = re.compile(r"<[^<>`]*>(?=`)")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_ANCHOR: Final = re.compile(r"\{#[^{}]*\}$")
_MARKS: Final = re.compile(r"[`*]|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_MOST_READ: Final = 2_000


class Section(NamedTuple):
    """A part of a text: where it starts, and where its heading ends."""

    first: int
    body: int
    headings: tuple[str, ...] = ()


class Sections(NamedTuple):
    """All sections of a text in order, and its title, which may be empty."""

    title: str
    all: list[Section]


class Outline:
    """The headings above the current place; within a section, always the same tuple object."""

    def __init__(self) -> None:
        self._above: list[tuple[int, str]] = []
        self.top = ""
        self.headings: tuple[str, ...] = ()

    def enter(self, level: int, heading: str) -> tuple[str, ...]:
        """Begin a section of a level, 1 for the highest; return the section's headings."""
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

    A heading without text or subsections is its own body, so that searches find it. If a heading is too long,
    the body contains it, too.
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


class Block(NamedTuple):
    """A paragraph, a cell, or a similar part.

    Attributes:
        first: Where it starts in the source, or its page.
        last: Where it ends in the source (exclusive), or the same page.
        headings: The headings above it; the same tuple in all blocks of a section.
        begins: Whether it begins a section or a page.
    """

    text: str
    first: int
    last: int
    headings: tuple[str, ...] = ()
    begins: bool = False


class Blocks(NamedTuple):
    """All blocks of a document, and its title, which may be empty."""

    title: str
    all: list[Block]


def pack_blocks(blocks: list[Block]) -> Iterator[Block]:
    """Join the blocks of each section into chunk-sized ones; split long blocks."""
    taken: list[Block] = []
    size = 0
    for block in blocks:
        if taken and (
            block.begins
            or block.headings is not taken[-1].headings  # equal headings may belong to another section
            or size + len(block.text) + 2 > MAX_CHARACTERS
        ):
            yield _together(taken)
            taken, size = [], 0
        if len(block.text) > MAX_CHARACTERS:
            if taken:
                yield _together(taken)
                taken, size = [], 0
            for first, last in pieces(block.text, 0, len(block.text), PROSE):
                yield block._replace(text=block.text[first:last])
            continue
        taken.append(block)
        size += len(block.text) + 2
    if taken:
        yield _together(taken)


def _together(blocks: list[Block]) -> Block:
    first, last = blocks[0], blocks[-1]
    return Block("\n\n".join(block.text for block in blocks), first.first, last.last, first.headings)
