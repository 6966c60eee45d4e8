"""Names in files without a parser: lines with a name, and blocks by their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from greenroom.actors.content.syntax.patterns import is_like

MAX_LINE: Final = 200
_MOST_LINES: Final = 400
"""A block has at most this many lines."""
_WORD: Final = re.compile(r"[\w$]+")
_COMMENT: Final = re.compile(r"--|//|#|/?\*|;|%|<!--|\"\"\"")
_CLOSER: Final = re.compile(r"[)\]}]|end\b|</", re.IGNORECASE)


class TextLine(NamedTuple):
    """A line of a text, counted from 1."""

    line: int
    text: str


def lines_with(name: str, text: str) -> Iterator[TextLine]:
    """Yield the lines with the last name of a path; ``*`` means anything."""
    last = name.rpartition(".")[2]
    rest = last.replace("*", "")
    for number, line in enumerate(text.split("\n"), 1):
        if (not rest or "*" in last or rest in line) and any(
            is_like(last, each) for each in _WORD.findall(line)
        ):
            yield TextLine(number, line.strip()[:MAX_LINE])


def block_of(name: str, text: str) -> tuple[int, int] | None:
    """Return the lines of the block that the least indented line with a name begins."""
    lines = text.split("\n")
    having = [each.line for each in lines_with(name, text)]
    if not having:
        return None
    first = min(
        having, key=lambda number: (_is_comment(lines[number - 1]), _indent(lines[number - 1]), number)
    )
    indent, last = _indent(lines[first - 1]), first
    for number in range(first + 1, min(len(lines), first + _MOST_LINES) + 1):
        line = lines[number - 1]
        if line.strip():
            is_closer = bool(_CLOSER.match(line.strip()))
            if _indent(line) < indent or (_indent(line) == indent and not is_closer):
                break
            last = number
            if _indent(line) == indent:
                break
    return first, last


def first_lines(text: str, room: int) -> tuple[list[TextLine], int]:
    """Return unindented lines within ``room`` bytes, and how many were left out."""
    found = [
        TextLine(number, line.strip()[:MAX_LINE])
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line[0].isspace() and not _is_comment(line) and not _CLOSER.match(line)
    ]
    kept = 0
    for each in found:
        room -= len(each.text.encode()) + len(f"  {each.line} \n")
        if room < 0:
            break
        kept += 1
    return found[:kept], len(found) - kept


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_comment(line: str) -> bool:
    return bool(_COMMENT.match(line.lstrip()))
