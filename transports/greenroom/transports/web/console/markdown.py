"""Renders the Markdown of agents as a few HTML elements around escaped text.

Invariants:

- Only the names of elements, a list item's number and our own classes are not text. No link leads anywhere,
  no picture is fetched, and raw HTML is text.
- A reader sees every word that an agent sees, in the same order. Where Markdown would hide or move one, that
  part is shown as it was written.
- Each part is short, so that a page is rendered in slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PART: Final = 1_000
"""A part may end after this many characters, where a block begins."""
_LONGEST: Final = 3_000
"""A longer part, such as one huge line, is shown as it was written: parsing it could take too long."""
_MOST_CELLS: Final = 1_000
"""A table of more cells is no table: rows are filled up to the width of its head."""
_MOST_BRACKETS: Final = 200
"""A part with more brackets is shown as it was written: each may begin a link and is tried with others."""
_GROWTH: Final = 10
"""HTML that is so many times as long as its part is not shown: most of it is elements without a text."""
_CACHED: Final = 512
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_BEGINS_BLOCK: Final = re.compile(r"[-*+#>]|\d+[.)]")
_MARKS: Final = re.compile(r"[\s!-/:-@\[-`{-~]+")
"""Spaces and ASCII punctuation: what Markdown consists of besides words."""
_ANY_MARK: Final = re.compile(r"[*_`\[\\<>#|~]|^\s*(?:[-+=]|\d+[.)])|^(?: {4}|\t)", re.MULTILINE)
"""What a text without Markdown has nowhere."""
_LINE_MARKS: Final = re.compile(r"\s*(?:#{1,6}|>|[-*+]|\d{1,9}[.)]|`{3,}\S*|~{3,}\S*)(?:\s+|$)")
_SENTENCE: Final = re.compile(r".{12,}?[.!?](?=\s|$)")
_INLINE_MARKS: Final = re.compile(r"\*\*|`+|~~|(?<!\w)__(?=\w)|(?<=\w)__(?!\w)")


def markdown(text: str) -> Iterator[Markup]:
    """Return the HTML of a text, part by part."""
    return map(_html, _parts(text))


class Beginning(NamedTuple):
    """A text without marks of Markdown, in two."""

    title: str
    rest: str  # the words after the title, on one line


def beginning(text: str, length: int = 80) -> Beginning:
    """Return the title of a text: its first line, sentence, or part of a sentence."""
    lines = [line for line in map(_plain, text[:_LONGEST].split("\n")) if line]
    first, rest = (lines[0], " ".join(lines[1:])) if lines else ("", "")
    end = _SENTENCE.match(first)
    if end is not None and end.end() <= length:
        return Beginning(first[: end.end()], f"{first[end.end() :]} {rest}".strip())
    if len(first) <= length + length // 2:  # rather a long title than a word or two left over
        return Beginning(first, rest)
    head, space, _ = first[:length].rpartition(" ")
    if not space or len(head) < length // 2:
        head = first[: length - 1]
    return Beginning(
        f"{head}\N{HORIZONTAL ELLIPSIS}", f"\N{HORIZONTAL ELLIPSIS}{first[len(head) :]} {rest}".strip()
    )


def _plain(line: str) -> str:
    """Return a line's words; empty for a rule, or for the bars of a table."""
    while (mark := _LINE_MARKS.match(line)) is not None and mark.end():
        line = line[mark.end() :]
    words = " ".join(_INLINE_MARKS.sub("", line).split()).strip("| ")
    return words if _words(words) else ""


def _parts(text: str) -> Iterator[str]:
    """Yield parts of a text that begin with a block, outside of fenced code."""
    part: list[str] = []
    size, fence, before = 0, "", ""
    for line in text.split("\n"):
        begins = not before.strip() or _BEGINS_BLOCK.match(line) is not None
        if size >= _PART and not fence and begins and line and not line[0].isspace():
            yield "\n".join(part)
            part, size = [], 0
        mark = _FENCE.match(line)
        if mark is not None:
            fence = _fence_after(fence, line, mark[1])
        part.append(line)
        size += len(line) + 1
        before = line
    yield "\n".join(part)


def _fence_after(fence: str, line: str, mark: str) -> str:
    """Return the fence that is open after a fence's line, or an empty text."""
    if not fence:
        return mark
    return "" if line.strip() == mark and mark.startswith(fence) else fence


@lru_cache(_CACHED)
def _html(part: str) -> Markup:
    if _ANY_MARK.search(part) and len(part) <= _LONGEST and part.count("[") <= _MOST_BRACKETS:
        shown = _Renderer()
        shown.blocks(_parser().parse(part))
        html = Markup("").join(shown.html)
        if len(html) <= _GROWTH * (len(part) + 100) and _words(part) == _words("".join(shown.texts)):
            return html
    return Markup("<div class='text' dir='auto'>{}</div>").format(part)


def _words(text: str) -> str:
    return _MARKS.sub("", text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  slow to import, and not always needed
    from markdown_it.rules_block import table  # noqa: PLC0415  likewise

    class Parser(MarkdownIt):
        """A parser that leaves addresses as they were written."""

        def normalizeLink(self, url: str) -> str:  # noqa: N802  the library's name
            return url

        def normalizeLinkText(self, link: str) -> str:  # noqa: N802  likewise
            return link

    def small_table(state: Any, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  the library's signature
        columns = state.src[state.bMarks[line] : state.eMarks[line]].count("|") + 1
        return columns * (end - line) <= _MOST_CELLS and table(state, line, end, silent)

    parser = Parser("commonmark", {"html": False, "maxNesting": 20})
    parser.enable("table")
    parser.block.ruler.at("table", small_table, {"alt": ["paragraph", "reference"]})
    parser.disable(["reference", "html_block", "entity", "html_inline"])  # they hide what they stand for
    return parser


_TAGS: Final[Mapping[str, str]] = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "em": "em",
    "strong": "strong",
}
_TABLE: Final = Markup('<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>')
_FIRST_LEVEL: Final = 2
"""How many levels deeper a text's headings are than the page's own."""


class _Renderer:
    """Collects the HTML of tokens, and the texts that it shows."""

    def __init__(self) -> None:
        self.html: list[Markup] = []
        self.texts: list[str] = []
        self._links: list[Token] = []

    def blocks(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type == "inline":
                self.inline(token.children or [])
            elif token.type in {"fence", "code_block"}:
                self._code(token)
            elif token.type == "hr":
                self._tag("<hr>")
            elif not token.hidden:
                self._edge(token)

    def inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type == "text":
                self._text(token.content)
            elif token.type == "code_inline":
                self._tag("<code>")
                self._text(token.content)
                self._tag("</code>")
            elif token.type in {"softbreak", "hardbreak"}:  # agents mean the ends of their lines
                self._tag("<br>\n")
            elif token.type == "link_open":
                self._links.append(token)
            elif token.type == "link_close":
                self._address(self._links.pop(), "href")
            elif token.type == "image":
                self._text(token.content)
                self._address(token, "src")
            elif token.markup.startswith("_"):  # rather a name such as __init__ than emphasis
                self._text(token.markup)
            else:
                self._edge(token)

    def _edge(self, token: Token) -> None:
        """Add the begin or the end of an element."""
        kind, _, edge = token.type.rpartition("_")
        if kind == "table":
            self.html.append(_TABLE if edge == "open" else Markup("</table></div>\n"))
        elif edge == "close":
            self._tag(f"</{self._name(kind, token)}>\n" if token.block else f"</{self._name(kind, token)}>")
        else:
            self._tag(f"<{self._name(kind, token)}{self._attributes(kind, token)}>")

    def _name(self, kind: str, token: Token) -> str:
        if kind == "heading":
            return f"h{min(int(token.tag[1:]) + _FIRST_LEVEL, 6)}"
        return {"list_item": "li", "th": "th", "td": "td", **_TAGS}[kind]

    def _attributes(self, kind: str, token: Token) -> str:
        if kind == "list_item" and token.info:
            self.texts.append(token.info)
            return f' value="{int(token.info)}"'
        if kind in {"th", "td"}:
            number = ' class="num"' if "right" in str(token.attrs.get("style")) else ""
            return f' scope="col"{number}' if kind == "th" else number
        return ""

    def _code(self, token: Token) -> None:
        if token.info.strip():
            self.texts.append(token.info)
            self.html.append(Markup("<p class='language'>{}</p>").format(token.info.strip()))
        self.texts.append(token.content)
        self.html.append(Markup("<pre dir='auto'><code>{}</code></pre>\n").format(token.content))

    def _address(self, token: Token, name: str) -> None:
        """Add the address of a link or picture behind its text."""
        address, title = str(token.attrs[name]), str(token.attrs.get("title", ""))
        if token.markup == "autolink":  # its text is the address
            return
        shown = f'{address} "{title}"' if title else address
        self.texts.append(shown)
        self.html.append(Markup(" <bdi class='address'>({})</bdi>").format(shown))

    def _text(self, text: str) -> None:
        self.texts.append(text)
        self.html.append(escape(text))

    def _tag(self, tag: str) -> None:
        self.html.append(Markup(tag))  # noqa: S704 - made of the names above and numbers
