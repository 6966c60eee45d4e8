"""Comments, decorators, attributes and template heads directly above a definition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from greenroom.actors.content.syntax.source import Lines

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SUMMARY: Final = 200
_MOST_READ: Final = 2_000
_WORDS: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\s\w]*")
_MARKS: Final = re.compile(
    r"^\s*(?:/\*[*!]*|--+(?:\[=*\[|(?=[\s@]))|\*+/|//[/!]*|\*+|#+(?!\[))?\s?|\s*\*+/\s*$"
)
_QUOTES: Final = re.compile(r"^[a-zA-Z]*(?:\"\"\"|'''|[\"'])\s*|\s*(?:\"\"\"|'''|[\"'])$")
_NO_PROSE: Final = re.compile(r"\s*(?:[@\\:](?!brief)|#!?\[|template\b|[-=*#~/]*$)")
_TAGS: Final = re.compile(r"</?(?:summary|remarks|returns|value|para|inheritdoc)\b[^>]*>")
_NAMED: Final = re.compile(r"<(?:see|paramref|typeparamref)\b[^>\"]*\"([^\"]*)\"[^>]*>")
_BRIEF: Final = re.compile(r"^[@\\]brief\s+")
_SENTENCE: Final = re.compile(r".*?[.!?](?=\s|$)")


class Above:
    """The comments and decorators that stand above lines in which a definition may begin."""

    def __init__(self, data: bytes, lines: Lines, nodes: Iterable[Node]) -> None:
        self._data = data
        self._lines = lines
        self._by_last_line: dict[int, int] = {}
        for node in nodes:
            first = self.beginning(node.start_byte)
            last = node.end_byte - 1 if data[node.end_byte - 1 : node.end_byte] == b"\n" else node.end_byte
            if first is not None:
                self._by_last_line.setdefault(lines.of(last), first)

    def beginning(self, offset: int) -> int | None:
        """Return the start of a place's line; None if more than words precede the place."""
        begin = self._lines.start_of(self._lines.of(offset))
        is_first = offset - begin <= MAX_SUMMARY and _WORDS.fullmatch(self._data, begin, offset)
        return begin if is_first else None

    def first_of(self, begin: int) -> int:
        """Return the start of everything that belongs to the definition that begins a line."""
        line = self._lines.of(begin)
        while (above := self._by_last_line.get(line - 1)) is not None:
            begin, line = above, self._lines.of(above)
        return begin


def summary_of(text: bytes) -> str:
    """Return the first sentence of a comment or a docstring, without its markup."""
    words: list[str] = []
    quoted = _QUOTES.sub("", text[:_MOST_READ].decode("utf-8-sig", "replace").strip())
    for line in quoted.splitlines():
        plain = _BRIEF.sub("", _NAMED.sub(r"\1", _TAGS.sub("", _MARKS.sub("", line)))).strip()
        if plain and not _NO_PROSE.match(plain):
            words.append(plain)
        elif words:
            break
    prose = " ".join(words)
    sentence = _SENTENCE.match(prose)
    return (sentence[0] if sentence else prose)[:MAX_SUMMARY]
