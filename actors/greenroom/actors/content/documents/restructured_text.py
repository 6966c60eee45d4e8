"""The sections of reStructuredText, by a scan for underlined and overlined lines.

The character of the line determines the level of a heading: the first character in the text is the highest.
Lines in literal blocks and directives are indented, so they are not headings.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.sections import Outline, Section, Sections

_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SHORT: Final = 4
"""An underline of at least this length may be shorter than its words."""


def read(source: SourceText) -> Sections:
    """Return the sections of a text in reStructuredText."""
    starts = [*source.line_starts, len(source.text)]
    outline = Outline()
    sections = [Section(0, 0)]
    levels: dict[tuple[str, bool], int] = {}
    above = ["", "", ""]
    for number, line in enumerate(source.text[first:last].rstrip() for first, last in pairwise(starts)):
        if (heading := _heading_above(above, line)) is not None:
            over = above[1] == line
            level = levels.setdefault((line[0], over), len(levels) + 1)
            first = starts[number - (2 if over else 1)]
            sections.append(Section(first, starts[number + 1], outline.enter(level, heading)))
            line = ""  # noqa: PLW2901  (an underline counts only once)
        above = [*above[1:], line]
    return Sections(outline.top, sections)


def _heading_above(above: list[str], line: str) -> str | None:
    """Return the heading above an underline, given the three lines before it; else None."""
    before, words = above[1], above[2]
    if not _is_ruler(line) or not words.strip() or _is_ruler(words):
        return None
    over = before == line
    if words[0].isspace() and not over:
        return None
    if len(words) > len(line) and (over or len(line) < _SHORT):
        return None
    return words.strip() if over or not before.strip() or before.startswith(".. ") else None


def _is_ruler(line: str) -> bool:
    return len(line) > 1 and line[0] in _PUNCTUATION and line == line[0] * len(line)
