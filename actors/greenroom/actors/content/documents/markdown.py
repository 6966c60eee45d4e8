"""The sections of Markdown: one for each heading, and what stands before the first.

A heading within a list or a quotation begins none. Front matter belongs to what stands before the first
heading; its ``title`` is that of the document.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.sections import Outline, Section, Sections, plain

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
    _look_at_first_characters(parser)
    return parser


def _look_at_first_characters(parser: MarkdownIt) -> None:
    """Have a line tried by those rules only that begin with its first character, rather than by all.

    Most lines are plain, and each of a paragraph is asked twice whether another block begins there. The
    headings are CommonMark's all the same.
    """
    from markdown_it import rules_block as rules  # noqa: PLC0415  as in _parser

    marks: dict[str, tuple[Rule, ...]] = {"`": (rules.fence,), "~": (rules.fence,), ">": (rules.blockquote,)}
    ruler = parser.block.ruler
    # Another item ends none. Where all rules are asked "fence" stands for all, and "blockquote" adds nothing.
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
    """Return a rule that is those of a line's first character, one after the other."""

    def begins(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  so it is called
        place = state.bMarks[line] + state.tShift[line]
        for rule in rules.get(state.src[place : place + 1], ()):  # noqa: SIM110  for each line of a text
            if rule(state, line, end, silent):
                return True
        return False

    return begins


class _Ahead(NamedTuple):
    """Where looking for a line that may underline came to its end, which holds for all lines up to there.

    Attributes:
        level: Of nested blocks.
        end: Where the block ends.
        begin: From which line on was looked.
        stop: The first line with a mark, the first empty one, or the end.
        is_marked: Whether it was a mark.
    """

    level: int
    end: int
    begin: int
    stop: int
    is_marked: bool


def _underlined(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  so it is called
    """Return whether a heading was read whose second line or a later one underlines it."""
    from markdown_it.rules_block import lheading  # noqa: PLC0415  as in _parser

    ahead: _Ahead | None = state.env.get("ahead")
    # Else each of very many short blocks without an empty line would look through all that follow.
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


def _paragraph(state: StateBlock, line: int, _end: int, _silent: bool) -> bool:  # noqa: FBT001  so it is called
    """Go past a paragraph; what it says makes no section."""
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
