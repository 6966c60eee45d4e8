"""The sections of Markdown: one for each heading, and one before the first heading.

Headings within lists or quotations do not begin a section. Front matter belongs to the part before the first
heading; its ``title`` becomes the document's title.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.sections import Outline, Section, Sections, strip_markup

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

    Rule = Callable[[StateBlock, int, int, bool], bool]

_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
MAX_FRONT_MATTER: Final = 65_536
_TITLE: Final = re.compile(r"^title[ \t]*:(.*)$", re.MULTILINE)
_QUOTED: Final = re.compile(r"""(["'])(.*)\1$""")


def read(source: SourceText, outline: Outline | None = None) -> Sections:
    """Return the sections of a Markdown text; they may continue an outline."""
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
    return strip_markup(quoted[2] if quoted else words)


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks only; inline markup does not matter here."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  slow to import, and not always needed

    options: Any = {"maxNesting": 20}
    parser = MarkdownIt("commonmark", options)
    parser.core.ruler.enableOnly(["normalize", "block"])
    _look_at_first_characters(parser)
    return parser


def _look_at_first_characters(parser: MarkdownIt) -> None:
    """Try only the rules for the first character of a line, for speed.

    Most lines are plain, and each line of a paragraph is tried twice as the beginning of another block. The
    result has the same headings as CommonMark.
    """
    from markdown_it import rules_block as rules  # noqa: PLC0415  as in _parser

    marks: dict[str, tuple[Rule, ...]] = {"`": (rules.fence,), "~": (rules.fence,), ">": (rules.blockquote,)}
    ruler = parser.block.ruler
    # A list item does not end another. "fence" stands for all rules here, and "blockquote" adds nothing.
    within = _by_first_character(marks | dict.fromkeys("-*_", (rules.hr,)))
    marks |= dict.fromkeys("-*", (rules.hr, rules.list_block))
    marks |= dict.fromkeys("+0123456789", (rules.list_block,))
    marks |= {"_": (rules.hr,), "<": (rules.html_block,), "#": (rules.heading,)}
    ruler.at("fence", _by_first_character(marks), {"alt": ["paragraph", "reference", "blockquote"]})
    ruler.at("blockquote", within, {"alt": ["list"]})
    ruler.at("reference", _by_first_character({"[": (rules.reference,)}))
    ruler.at("lheading", _underlined)
    ruler.at("paragraph", _paragraph)
    ruler.enableOnly(["code", "fence", "blockquote", "reference", "lheading", "paragraph"])


def _by_first_character(rules: dict[str, tuple[Rule, ...]]) -> Rule:
    """Return a rule that tries only the rules for a line's first character."""

    def begins(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  the library's signature
        place = state.bMarks[line] + state.tShift[line]
        for rule in rules.get(state.src[place : place + 1], ()):  # noqa: SIM110  for each line of a text
            if rule(state, line, end, silent):
                return True
        return False

    return begins


class _Ahead(NamedTuple):
    """A cached search for the next underline, valid for all lines up to its ``stop``."""

    level: int
    end: int
    begin: int
    stop: int
    is_marked: bool


def _underlined(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Read a heading with an underline; return whether there was one."""
    from markdown_it.rules_block import lheading  # noqa: PLC0415  as in _parser

    ahead: _Ahead | None = state.env.get("ahead")
    # Without the cache, many short blocks without empty lines between them would take quadratic time.
    if ahead is None or ahead[:2] != (state.level, end) or not ahead.begin <= line < ahead.stop:
        ahead = state.env["ahead"] = _look_ahead(state, line, end)
    return ahead.is_marked and lheading(state, line, end, silent)


def _look_ahead(state: StateBlock, line: int, end: int) -> _Ahead:
    for following in range(line + 1, end):
        place = state.bMarks[following] + state.tShift[following]
        is_empty = place >= state.eMarks[following]
        if is_empty or state.src[place] in "-=":
            return _Ahead(state.level, end, line, following, not is_empty)
    return _Ahead(state.level, end, line, end, False)


def _paragraph(state: StateBlock, line: int, _end: int, _silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Skip a paragraph; it begins no section."""
    rules = state.md.block.ruler.getRules("paragraph")
    outer, state.parentType = state.parentType, "paragraph"
    following = line + 1
    while following < state.lineMax and not state.isEmpty(following):
        is_near = 0 <= state.sCount[following] <= state.blkIndent + 3
        if is_near and any(rule(state, following, state.lineMax, True) for rule in rules):
            break
        following += 1
    state.line, state.parentType = following, outer
    return True
