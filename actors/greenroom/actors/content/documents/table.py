"""The rows of CSV and TSV as sections, headed by the first row."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.sections import MAX_CHARACTERS, MAX_HEADING, Section, Sections

_SNIFFED: Final = 4_096
_DELIMITERS: Final = ",;\t|"


def read(source: SourceText) -> Sections:
    """Return chunk-sized sections of rows, headed by the names of the columns."""
    text = source.text
    offsets = _row_offsets(source)
    if len(offsets) < 2:  # noqa: PLR2004  (a row begins and ends)
        return Sections("", [Section(0, 0)])
    line = text[:_SNIFFED].split("\n", 1)[0]
    headings = (column_heading(_names(text[: offsets[1]], max(_DELIMITERS, key=line.count))),)
    sections = [Section(0, offsets[1], headings)]
    for first, last in pairwise(offsets[1:]):
        if last - sections[-1].body > MAX_CHARACTERS and first > sections[-1].body:
            sections.append(Section(first, first, headings))
    return Sections("", sections)


def column_heading(names: Iterable[str]) -> str:
    """Return the heading of table rows: the names of the columns."""
    return ", ".join(name.strip() for name in names)[:MAX_HEADING]


def _row_offsets(source: SourceText) -> list[int]:
    """Return the rows' starts and the last row's end; quoted fields may span lines."""
    text, starts = source.text, [*source.line_starts, len(source.text)]
    offsets = [0]
    quotes = 0
    for first, last in pairwise(starts):
        quotes += text.count('"', first, last)
        if quotes % 2 == 0:
            offsets.append(last)
    return offsets


def _names(row: str, delimiter: str) -> list[str]:
    """Return the names of the columns; if the row is malformed, its words."""
    try:
        return next(csv.reader(row.splitlines(keepends=True), delimiter=delimiter), [])
    except csv.Error:
        return row.split()
