"""Split a text into headings, code lines, table rows, and parts of sentences.

A unit is a stretch of the text. A pattern sees only a line, or a few thousand characters of a paragraph, at
once, so no text makes it slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from greenroom.actors.content.text.analyze import SENTENCE_END, SENTENCE_STRETCH, stretches

Kind = Literal["heading", "code", "fence", "row", "prose"]

LEAST_WORDS: Final = 4
"""A part of a sentence has at least this many words; a shorter part belongs to its neighbour."""
_BOUND_WORDS: Final = """
not no never without nor neither none cannot unless except if but although though until only when while
because than either however rather whether hardly instead
"""
BOUND: Final = frozenset(_BOUND_WORDS.split())
"""Words that bind a part of a sentence to its neighbour, because the part alone would mean something else."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)\s*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022]|\d{1,9}[.)])\s+")
_INDENTED: Final = re.compile(r"(?: {4}|\t)")
_SYMBOLS: Final = re.compile(r"[{}()\[\];=<>|&*\\$@^~]")
_SYMBOLS_OF_CODE: Final = 0.12
"""A line counts as code if at least this share of its characters are symbols."""
_PART: Final = re.compile(r"(?<=[,;:)])\s+|\s+(?=\()|\s+(?=[\u2013\u2014]\s)")


class Unit(NamedTuple):
    """A stretch of a text.

    Attributes:
        last: Its end, exclusive.
        line: Its first line, from 1.
        sentence: The number of its sentence, heading, row or line of code.
        block: The number of its paragraph, list item or block of code.
        paragraph: The number of runs of blank lines before it.
    """

    kind: Kind
    first: int
    last: int
    line: int
    last_line: int
    sentence: int
    block: int
    paragraph: int


class _Line(NamedTuple):
    text: str
    first: int
    number: int

    def is_blank(self) -> bool:
        return not self.text.strip()


def units(text: str) -> Iterator[Unit]:
    """Yield the units of a text in order; only white space stands between them."""
    return _Reader(text).read()


class _Reader:
    """Reads a text line by line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sentence = self._block = self._paragraph = 0
        self._fence = ""
        self._is_code = False
        self._prose: list[_Line] = []

    def read(self) -> Iterator[Unit]:
        place = number = 0
        while place < len(self._text):
            end = self._text.find("\n", place) + 1 or len(self._text)
            number += 1
            yield from self._take(_Line(self._text[place:end], place, number))
            place = end
        yield from self._end_of_prose()

    def _take(self, line: _Line) -> Iterator[Unit]:
        fence = _FENCE.match(line.text)
        if self._fence:
            is_end = fence is not None and fence[1].startswith(self._fence)
            if is_end:
                self._fence = ""
            if is_end or not line.is_blank():
                yield self._unit("fence" if is_end else "code", line)
            return
        if line.is_blank():
            yield from self._end_of_prose()
            self._paragraph += 1
            return
        kind = "fence" if fence is not None else self._kind_of(line)
        if kind == "prose":
            self._is_code = False
            if _ITEM.match(line.text[:SENTENCE_STRETCH]):
                yield from self._end_of_prose()
            self._prose.append(line)
            return
        if kind == "heading" and self._prose and _UNDERLINE.match(line.text):
            yield from self._underlined(line)
            return
        yield from self._end_of_prose()
        if kind != "code" or not self._is_code:
            self._block += 1
        self._is_code = kind == "code"
        if fence is not None:
            self._fence = fence[1]
        yield self._unit(kind, line)

    def _kind_of(self, line: _Line) -> Kind:
        text = line.text.strip()
        if _HEADING.match(line.text) or (
            self._prose and len(self._prose) == 1 and _UNDERLINE.match(line.text.strip())
        ):
            return "heading"
        if text.startswith("|"):
            return "row"
        if self._prose or _ITEM.match(line.text[:SENTENCE_STRETCH]):
            return "prose"
        is_indented = _INDENTED.match(line.text) is not None and self._is_code
        symbols = len(_SYMBOLS.findall(text[:SENTENCE_STRETCH]))
        if is_indented or symbols > _SYMBOLS_OF_CODE * min(len(text), SENTENCE_STRETCH):
            return "code"
        return "prose"

    def _underlined(self, line: _Line) -> Iterator[Unit]:
        head = self._prose.pop()
        yield from self._end_of_prose()
        self._block += 1
        yield self._unit("heading", head, line)

    def _unit(self, kind: Kind, line: _Line, end: _Line | None = None) -> Unit:
        end = end or line
        self._sentence += 1
        return Unit(
            kind,
            line.first,
            end.first + len(end.text.rstrip()),
            line.number,
            end.number,
            self._sentence,
            self._block,
            self._paragraph,
        )

    def _end_of_prose(self) -> Iterator[Unit]:
        """Yield the parts of sentences in the collected lines."""
        lines, self._prose = self._prose, []
        if not lines:
            return
        self._block += 1
        self._is_code = False
        begins = [line.first for line in lines]
        at = 0
        first, last = lines[0].first, lines[-1].first + len(lines[-1].text)
        for sentence in _sentences(self._text[first:last]):
            self._sentence += 1
            for start, end in sentence:
                while at + 1 < len(begins) and begins[at + 1] <= first + start:
                    at += 1
                to = at
                while to + 1 < len(begins) and begins[to + 1] < first + end:
                    to += 1
                yield Unit(
                    "prose",
                    first + start,
                    first + end,
                    lines[at].number,
                    lines[to].number,
                    self._sentence,
                    self._block,
                    self._paragraph,
                )


def _sentences(text: str) -> Iterator[Iterator[tuple[int, int]]]:
    """Yield the trimmed spans of the parts of each sentence in a paragraph."""
    place = 0
    for stretch in stretches(text, SENTENCE_STRETCH):
        first = 0
        for found in SENTENCE_END.finditer(stretch):
            yield _of_sentence(stretch, place, first, found.end())
            first = found.end()
        yield _of_sentence(stretch, place, first, len(stretch))
        place += len(stretch)


def _of_sentence(stretch: str, place: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of one sentence; bound parts stay together."""
    sentence = stretch[first:last]
    cuts = [0, *(found.end() for found in _PART.finditer(sentence)), len(sentence)]
    begin = 0
    for at, cut in enumerate(cuts[1:-1], 1):
        left, right = sentence[begin:cut].split(), sentence[cut : cuts[at + 1]].split()
        if min(len(left), len(right)) >= LEAST_WORDS and not (_is_bound(left) or _is_bound(right)):
            yield from _trimmed(sentence[begin:cut], place + first + begin)
            begin = cut
    yield from _trimmed(sentence[begin:], place + first + begin)


def _is_bound(words: list[str]) -> bool:
    return any(word.strip(",;:()").lower() in BOUND or word.endswith(("n't", "n\u2019t")) for word in words)


def _trimmed(text: str, place: int) -> Iterator[tuple[int, int]]:
    begin = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if end > begin:
        yield place + begin, place + end
