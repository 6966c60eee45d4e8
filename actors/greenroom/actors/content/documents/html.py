"""The text of HTML: blocks with their headings and offsets in the source.

Invisible elements such as scripts are left out. The parser is Python's own, because that reports positions in
the source.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.sections import Block, Blocks, Outline, strip_markup

_HIDDEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BLOCK_TAGS: Final = """
address article aside blockquote body br dd details dialog div dl dt fieldset figcaption figure footer
form header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul
"""
_BLOCKS: Final = frozenset(_BLOCK_TAGS.split())
_IN_HEAD: Final = frozenset(
    {"base", "head", "link", "meta", "noscript", "script", "style", "template", "title"}
)
_CELLS: Final = frozenset({"td", "th"})


def read(source: SourceText) -> Blocks:
    """Return the blocks of an HTML text."""
    reader = _Reader(source)
    reader.feed(source.text)
    reader.close()
    reader.end_block(len(source.text))
    return Blocks(reader.title or reader.outline.top, reader.blocks)


class _Reader(HTMLParser):
    """Collects the text between tags."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.outline = Outline()
        self.blocks: list[Block] = []
        self._starts = [0]
        for line in source.text.split("\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._words: list[str] = []
        self._first = 0
        self._hidden: list[str] = []
        self._level = 0
        self._is_title = False
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a heading, or a hidden element."""
        del attrs
        if self._hidden == ["head"] and tag not in _IN_HEAD:
            self._hidden.clear()  # the tags `</head>` and `<body>` are optional
        if tag == "title" and not self.title and "svg" not in self._hidden:
            self._is_title = True
        elif tag in _HIDDEN:
            self.end_block(self._place)
            self._hidden.append(tag)
        elif tag == "body":
            self._hidden.clear()
        elif tag in _HEADINGS:
            self.end_block(self._place)
            self._level = _HEADINGS[tag]
        elif tag in _CELLS and self._words:
            self._words.append(" \t")
        elif tag in _BLOCKS:
            self.end_block(self._place)
        self._preformatted += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        """End a block, a heading, or a hidden element."""
        if tag == "title":
            self._is_title = False
        elif tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in _HEADINGS and self._level:
            self._end_heading()
        elif tag in _BLOCKS - _CELLS:
            self.end_block(self._place)
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self._is_title:
            self.title = strip_markup(self.title + data)
        elif not self._hidden and (self._words or data.strip()):
            if not self._words:
                self._first = self._place
            self._words.append(data if self._preformatted else _folded(data))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skip marked sections such as ``<![if IE]>``, even those that the library does not know."""
        del report
        return self.rawdata.find(">", i) + 1 or -1

    def end_block(self, place: int) -> None:
        """End the current block."""
        if self._level:
            self._end_heading()
            return
        text = "".join(self._words).strip()
        self._words = []
        if text:
            self.blocks.append(Block(text, self._first, place, self.outline.headings))

    def _end_heading(self) -> None:
        words, level = "".join(self._words), self._level
        self._words, self._level = [], 0
        if strip_markup(words):
            self.outline.enter(level, words)

    @property
    def _place(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column


def _folded(data: str) -> str:
    """Collapse white space into single blanks, also at the ends."""
    words = " ".join(data.split())
    return f"{' ' * data[:1].isspace()}{words}{' ' * data[-1:].isspace()}" if words else " "
