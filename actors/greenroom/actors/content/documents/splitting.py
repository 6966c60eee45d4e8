"""Split long texts at blank lines, else ends of sentences or lines, else words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_CHARACTERS: Final = 2_000
"""Characters of a chunk at most, about 500 tokens."""

MAX_INDENT: Final = 200
"""White space before the first word that belongs to a piece at most; less than half of any piece."""

_NO_SPACE: Final = re.compile(r"\S")
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n\s*")
_SENTENCE: Final = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_`]*\s+|[\u3002\uff01\uff1f]")
_LINE: Final = re.compile(r"\n")
_SPACE: Final = re.compile(r"\s")
_TOP_LEVEL: Final = re.compile(r"\n[ \t\r]*\n(?=[^\s})\]])")

PROSE: Final = (_BLANK_LINE, _SENTENCE, _LINE, _SPACE)
CODE: Final = (_TOP_LEVEL, _BLANK_LINE, _LINE, _SPACE)
"""Separators, the best first; in code first blank lines before unindented ones."""


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
    """Trim white space, but no indentation, around a part; None if it is empty."""
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
