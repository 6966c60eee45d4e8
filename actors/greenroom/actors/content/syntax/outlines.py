"""Outlines: the symbols of files, a line each, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.content.syntax.source import Kind, Source, Symbol
from greenroom.actors.core.replies.paging import BYTES_PER_TOKEN, tokens_of_size

MAX_SIGNATURE: Final = 120
_SHORTEST: Final = 3
"""No line has fewer bytes."""
_ORDER: Final[tuple[tuple[Kind, ...], ...]] = (
    ("class", "interface", "trait", "struct", "module"),
    ("function", "method", "enum"),
    ("type", "macro"),
    ("constant", "variable"),
)
_KIND_RANKS: Final[Mapping[Kind, int]] = {kind: rank for rank, kinds in enumerate(_ORDER) for kind in kinds}


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """The symbols of files, a line each, below the line of their file."""

    text: str
    shown: int
    left_out: int
    tokens: int


class _Line(NamedTuple):
    """A possible line of an outline; low ranks are chosen first, scopes before their members."""

    rank: tuple[int, ...]
    file: int
    path: str
    above: str
    text: str


def outline(sources: Iterable[Source], budget_tokens: int) -> Outline:
    """Return the outline of files within a budget.

    Files are named first. Then public symbols come before others, types before functions, functions before
    values, outer before inner symbols, and long before short ones. Summaries are included only if there is
    room for all of them. The lines are in the order of the files.
    """
    files = sorted(sources, key=lambda source: source.path)
    room = budget_tokens * BYTES_PER_TOKEN
    known = sum(len(source.symbols) for source in files)
    if (known + len(files)) * _SHORTEST <= room:
        for with_sentences in (True, False):
            lines = [
                line
                for at, source in enumerate(files)
                for line in _lines(at, source, with_sentences=with_sentences)
            ]
            if sum(_size(line) for line in lines) <= room:
                return _outline(lines, known)
    return _outline(_fitting(files, room), known)


def _fitting(files: Sequence[Source], room: int) -> list[_Line]:
    """Return the lines that fit, each only with the line of its scope."""
    kept: list[tuple[int, int, _Line]] = []
    shown: set[tuple[int, str]] = set()
    heads = [(at, 0, next(_lines(at, source, with_sentences=False))) for at, source in enumerate(files)]
    for found in sorted(heads, key=lambda each: each[2].rank):
        if _size(found[2]) <= room:
            room -= _size(found[2])
            shown.add((found[0], ""))
            kept.append(found)
    members = [
        (at, place, line)
        for at, _, _ in sorted(kept, key=lambda each: each[0])
        for place, line in enumerate(_lines(at, files[at], with_sentences=False))
        if place
    ]
    for found in sorted(members, key=lambda each: each[2].rank):
        line = found[2]
        if _size(line) <= room and (line.file, line.above) in shown:
            room -= _size(line)
            shown.add((line.file, line.path))
            kept.append(found)
    return [line for _, _, line in sorted(kept, key=lambda each: each[:2])]


def _outline(kept: Sequence[_Line], known: int) -> Outline:
    shown = sum(1 for line in kept if line.path)
    return Outline(
        text="\n".join(line.text for line in kept),
        shown=shown,
        left_out=known - shown,
        tokens=tokens_of_size(sum(map(_size, kept))),
    )


def _lines(file: int, source: Source, *, with_sentences: bool) -> Iterator[_Line]:
    public = [each for each in source.symbols if each.is_public]
    length = f" ({source.chunks[-1].last_line} lines)" if source.chunks else ""  # stored ones have no chunks
    about = f": {source.summary}" if with_sentences and source.summary else ""
    yield _Line((0, -len(public)), file, "", "", f"{source.path}{length}{about}")
    above: dict[str, tuple[int, ...]] = {"": (0, 0)}
    for symbol in source.symbols:
        scope = symbol.scope if symbol.scope in above else ""
        depth = symbol.path.count(".") if scope else 0
        hidden, kind = above[scope]
        hidden, kind = max(hidden, not symbol.is_public), max(kind, _KIND_RANKS[symbol.kind])
        above.setdefault(symbol.path, (hidden, kind))
        rank = (1, hidden, kind, depth, symbol.line - symbol.last_line)
        yield _Line(rank, file, symbol.path, scope, _line_of(symbol, depth, with_sentences=with_sentences))


def _line_of(symbol: Symbol, depth: int, *, with_sentences: bool) -> str:
    lines = f"{symbol.line}" if symbol.line == symbol.last_line else f"{symbol.line}-{symbol.last_line}"
    about = f"  # {symbol.summary}" if with_sentences and symbol.summary else ""
    signature = symbol.signature or symbol.name
    cut = signature if len(signature) <= MAX_SIGNATURE else f"{signature[:MAX_SIGNATURE]}\u2026"
    return f"{'  ' * (depth + 1)}{lines} {cut}{about}"


def _size(line: _Line) -> int:
    return len(line.text.encode()) + 1
