"""Split a tree into chunks: whole definitions, else parts at ends of statements.

A node that is too long is split into its children, and neighbours are joined again while they fit. A chunk
also ends where a split definition begins or ends, unless the chunk is short. So few chunks mix the end of
one definition with the beginning of another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.content.documents.sections import CODE, pieces
from greenroom.actors.content.syntax.source import CodeChunk, Lines, Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CHARACTERS: Final = 1_200
"""A chunk has at most this many characters, without blanks."""
_MOST_BYTES: Final = 8 * MAX_CHARACTERS
"""A chunk has at most this many bytes, with blanks."""
_SHORT: Final = MAX_CHARACTERS // 4
_MOST_DEPTH: Final = 200
_NOT_COUNTED: Final = b" \t\r\n\f\v\0" + bytes(range(0x80, 0xC0))
_ABOVE: Final = frozenset({"decorator", "attribute_item"})


class _Part(NamedTuple):
    """An unsplit part of a file; ``size`` is the number of characters without blanks."""

    first: int
    last: int
    size: int


def size_of(data: bytes) -> int:
    """Count the characters of UTF-8, without blanks."""
    return len(data.translate(None, _NOT_COUNTED))


def chunks_of_tree(data: bytes, root: Node, lines: Lines, symbols: list[Symbol]) -> list[CodeChunk]:
    """Return the chunks of a file with a tree; the ``symbols`` are in order."""
    return _described(data, lines, symbols, _joined(data, _parts(data, root), symbols))


def chunks_of_text(data: bytes, lines: Lines) -> list[CodeChunk]:
    """Return the chunks of a file without a tree, split at blank lines if possible."""
    return _described(data, lines, [], _spans_of_text(data.decode(errors="surrogateescape"), 0))


def _spans_of_text(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text's pieces, in bytes of UTF-8 from ``begin`` on."""
    reached = at = 0
    for first, last in pieces(text, 0, len(text), CODE):
        at += len(text[reached:first].encode(errors="surrogateescape"))
        end = at + len(text[first:last].encode(errors="surrogateescape"))
        yield begin + at, begin + end
        reached, at = last, end


def _parts(data: bytes, root: Node) -> Iterator[_Part]:
    """Yield parts of a file that fit, except long tokens; comments join the next part."""
    reached = 0
    levels: list[tuple[Iterator[Node], int]] = [(iter([root]), len(data))]
    while levels:
        nodes, last = levels[-1]
        node = next(nodes, None)
        if node is None:
            levels.pop()
        else:
            is_above = node.is_extra or node.type in _ABOVE
            if is_above and (reached == 0 or b"\n" in data[reached : node.start_byte]):
                continue
            last = node.end_byte
            is_long = last - reached > MAX_CHARACTERS and size_of(data[reached:last]) > MAX_CHARACTERS
            if is_long and node.child_count and len(levels) < _MOST_DEPTH:
                levels.append((iter(node.children), last))
                continue
        if last > reached:
            yield _Part(reached, last, size_of(data[reached:last]))
            reached = last


def _joined(data: bytes, parts: Iterator[_Part], symbols: list[Symbol]) -> Iterator[tuple[int, int]]:
    """Join parts while they fit; yield the spans of the chunks."""
    long = [each for each in symbols if each.last_byte - each.first_byte > MAX_CHARACTERS]
    ends, begins = {each.last_byte for each in long}, sorted(each.first_byte for each in long)
    first = last = size = 0
    for part in parts:
        is_full = size + part.size > MAX_CHARACTERS or part.last - first > _MOST_BYTES
        if is_full or (size >= _SHORT and (last in ends or _begins_in(part, data, begins))):
            if size:
                yield first, last
            first, size = part.first, 0
        last, size = part.last, size + part.size
        if size > MAX_CHARACTERS or last - first > _MOST_BYTES:
            yield from _spans_of_text(data[first:last].decode(errors="surrogateescape"), first)
            first, size = last, 0
    if size:
        yield first, last


def _begins_in(part: _Part, data: bytes, begins: list[int]) -> bool:
    """Return whether one of the sorted places begins a part; blanks may come before."""
    at = bisect_left(begins, part.first)
    if at == len(begins) or begins[at] >= part.last:
        return False
    return not data[part.first : begins[at]].strip()


def _described(
    data: bytes, lines: Lines, symbols: list[Symbol], spans: Iterable[tuple[int, int]]
) -> list[CodeChunk]:
    """Return chunks with their symbols and their scopes."""
    chunks: list[CodeChunk] = []
    names = deque(sorted((each.name_byte, each.path) for each in symbols))
    following = deque(sorted(symbols, key=lambda each: (each.first_byte, -each.last_byte)))
    around: list[Symbol] = []
    for begin, end in spans:
        first, last = _trimmed(data, begin, end)
        if first >= last:
            continue
        while following and following[0].first_byte < first:
            around.append(following.popleft())
        around = [each for each in around if each.last_byte > first]
        own: list[str] = []
        while names and names[0][0] < last:
            own.append(names.popleft()[1])
        chunks.append(
            CodeChunk(
                text=data[first:last].decode(errors="replace"),
                scope=next((each.path for each in reversed(around) if each.last_byte >= last), ""),
                symbols=own,
                first_line=lines.of(first),
                last_line=lines.of(last - 1),
                first_byte=first,
                last_byte=last,
            )
        )
    return chunks


def _trimmed(data: bytes, first: int, last: int) -> tuple[int, int]:
    """Trim blank lines around a span; the first line keeps its indentation."""
    last = first + len(data[first:last].rstrip())
    word = last - len(data[first:last].lstrip())
    line = data.rfind(b"\n", first, word) + 1
    return max(first, line), last
