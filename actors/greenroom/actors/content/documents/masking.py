"""Mask the values of secrets in workspace files, line for line.

Every reader of a workspace file masks it first, so no chunk, term, vector or reply has a secret's value. A
mark has as many line ends as the value that it replaces.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS, spans_in_code
from greenroom.actors.content.secrets.values import Span

MASKING: Final = 1
"""The version of the masking. Raise it when the masking finds more, so that files are read again."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


class _Mark(NamedTuple):
    """The span of a mark in the masked bytes, and its value's span."""

    first: int
    last: int
    value_first: int
    value_last: int


class Masked(NamedTuple):
    """A masked file."""

    data: bytes
    lines: list[int]
    marks: list[_Mark]

    def as_marks(self) -> Marks:
        """Return the marks without the bytes."""
        places = [
            (each.value_first, each.value_last, self.data[each.first : each.last]) for each in self.marks
        ]
        return Marks(places, self.lines)

    def in_file(self, at: int) -> int:
        """Map an offset to the file's own bytes; a mark maps to its value's start."""
        number = bisect_right(self.marks, at, key=lambda mark: mark.first) - 1
        if number < 0:
            return at
        mark = self.marks[number]
        return mark.value_first if at < mark.last else at - mark.last + mark.value_last


class Marks(msgspec.Struct, frozen=True, array_like=True):
    """The marks of a file, without the file's bytes; each mark has its value's span."""

    places: list[tuple[int, int, bytes]]
    lines: list[int]

    def put_into(self, data: bytes) -> bytes:
        """Return the file's bytes with the marks."""
        parts: list[bytes] = []
        done = 0
        for first, last, mark in self.places:
            parts += (data[done:first], mark)
            done = last
        return b"".join((*parts, data[done:]))


def find_marks(data: bytes) -> Marks:
    """Return the marks for the secrets in a file."""
    return mask_bytes(data).as_marks()


def mask_bytes(data: bytes) -> Masked:
    """Mask the secrets in a file's bytes, in its own encoding."""
    source = SourceText(data)
    spans = spans_in_code(source.text)
    if not spans:
        return Masked(data, [], [])
    at = source.byte_offsets([offset for span in spans for offset in (span.first, span.last)])
    parts: list[bytes] = []
    marks: list[_Mark] = []
    lines: list[int] = []
    done = size = reached = 0
    line = 1
    for span in spans:
        mark = source.encoded(_mark(source.text, span))
        kept = data[done : at[span.first]]
        size += len(kept)
        marks.append(_Mark(size, size + len(mark), at[span.first], at[span.last]))
        parts += (kept, mark)
        size += len(mark)
        done = at[span.last]
        line += source.text.count("\n", reached, span.first)
        last = line + source.text.count("\n", span.first, span.last)
        lines += range(line, last + 1)
        line, reached = last, span.last
    return Masked(b"".join((*parts, data[done:])), list(dict.fromkeys(lines)), marks)


def mask_text(text: str) -> str:
    """Mask the secrets in a text."""
    parts: list[str] = []
    done = 0
    for span in spans_in_code(text):
        parts += (text[done : span.first], _mark(text, span))
        done = span.last
    return "".join((*parts, text[done:]))


def _mark(text: str, span: Span) -> str:
    ends = "".join(_LINE_END.findall(text, span.first, span.last))
    return f"{LEFT_OUT_BEGINS}{span.kind}]{ends}"
