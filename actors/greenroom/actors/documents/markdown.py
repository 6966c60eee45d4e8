"""The sections of Markdown: one for each heading, and what stands before the first.

A heading within a list or a quotation begins none. Front matter belongs to what stands before the first
heading; its ``title`` is that of the document.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from greenroom.actors.documents.decode import SourceText
from greenroom.actors.documents.sections import Outline, Section, Sections, plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
MAX_FRONT_MATTER: Final = 65_536
_TITLE: Final = re.compile(r"^title[ \t]*:(.*)$", re.MULTILINE)
_QUOTED: Final = re.compile(r"""(["'])(.*)\1$""")


def read(source: SourceText, outline: Outline | None = None) -> Sections:
    """Return the sections of a Markdown text, which may follow others."""
    text = source.text
    front = _FRONT_MATTER.match(text, 0, MAX_FRONT_MATTER)
    begin = 0 if front is None else front.end()
    skipped = source.line_of(begin) - 1
    starts = [*source.line_starts, len(text)]
    outline = outline or Outline()
    sections = [Section(0, 0, outline.headings)]
    tokens = _parser().parse(text[begin:])
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            first, behind = (starts[skipped + line] for line in token.map)
            headings = outline.enter(int(token.tag[1:]), inline.content)
            sections.append(Section(first, behind, headings))
    return Sections(_title_of(front) or outline.top, sections)


def _title_of(front: re.Match[str] | None) -> str:
    found = None if front is None else _TITLE.search(front[1])
    if found is None:
        return ""
    words = found[1].strip()
    quoted = _QUOTED.match(words)
    return plain(quoted[2] if quoted else words)


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks: what stands within a paragraph is of no interest here."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  only who ingests Markdown waits for it

    options: Any = {"maxNesting": 20}
    parser = MarkdownIt("commonmark", options)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
