"""Units of messages for summaries: sentences, list items, rows, informative lines.

A block of code or of a log is reduced to at most three lines: the last lines that name an error, each kind of
error once. Four consecutive lines that look like a log are a log, even without a fence. Patterns read at most
`LOOKED_AT` characters of a line, so that no long token makes them slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from greenroom.actors.content.text.analyze import sentences

Kind = Literal["prose", "row", "block"]

LOOKED_AT: Final = 300
"""The most characters of a line that patterns read."""
LONGEST: Final = 400
"""The most characters of a unit; longer ones are truncated."""
MOST_TEXT: Final = 100_000
"""The most characters of a message to read, from its two ends."""
_MAX_LINES: Final = 3
_LOG_RUN: Final = 4
"""At least this many consecutive lines that look like a log are a log."""
_LETTERS: Final = 0.62
"""A line of a log has a smaller share of letters than this; prose hardly ever does."""
_SHORT: Final = 12
_FENCE: Final = re.compile(r"\s{0,8}(?:[-*+>]\s+)?(`{3,}|~{3,})")
_ROW: Final = re.compile(r"\s*\|")
_RULE: Final = re.compile(r"[\s|:+=_*-]+")
_LOG: Final = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|at \S+[( ]|File \"|Traceback|[$#>%] \S|\+{1,3}\s"
    r"|-{1,3}\s\S+[=({]|@@ |diff --git|\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|E  )"
)
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[[ xX]\])\s+")
_ERROR: Final = re.compile(
    r"error|exception|fail|fatal|panic|denied|refused|not found|cannot|timed? ?out|undefined|assert|abort"
    r"|segfault|killed|\bE\d{3,}|fehler|错误|エラー|失敗",
    re.IGNORECASE,
)
_DIGITS: Final = re.compile(r"[0-9a-fA-F]*\d[0-9a-fA-F]*")


class Unit(NamedTuple):
    """A span of a message."""

    text: str
    kind: Kind


def units(text: str) -> Iterator[Unit]:
    """Yield the units of a message in order."""
    for is_block, lines in _blocks(_bounded(text)):
        if is_block:
            for line in _find_informative(lines):
                yield Unit(_cut(line), "block")
            continue
        for line in lines:
            if _ROW.match(line):
                if not _RULE.fullmatch(line[:LOOKED_AT]):
                    yield Unit(_cut(line), "row")
            else:
                item = _ITEM.match(line[:LOOKED_AT])
                mark = line[: item.end()].strip() + " " if item is not None else ""
                for sentence in sentences(line if item is None else line[item.end() :]):
                    yield Unit(_cut(mark + sentence), "prose")
                    mark = ""


def _bounded(text: str) -> str:
    half = MOST_TEXT // 2
    return text if len(text) <= MOST_TEXT else f"{text[:half]}\n{text[-half:]}"


def _blocks(text: str) -> Iterator[tuple[bool, Sequence[str]]]:
    """Yield spans of lines; True marks a block of code or of a log."""
    plain: list[str] = []
    block: list[str] | None = None
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line[:LOOKED_AT])
        if block is None and found is not None:
            yield from _with_logs(plain)
            plain, block, fence = [], [], found[1]
        elif block is not None and found is not None and found[1].startswith(fence):
            yield True, block
            block = None
        else:
            (plain if block is None else block).append(line)
    if block:
        yield True, block
    yield from _with_logs(plain)


def _with_logs(lines: Sequence[str]) -> Iterator[tuple[bool, Sequence[str]]]:
    begin = at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and _looks_logged(lines[end]):
            end += 1
        if end - at >= _LOG_RUN:
            if at > begin:
                yield False, lines[begin:at]
            yield True, lines[at:end]
            begin = end
        at = max(end, at + 1)
    if begin < len(lines):
        yield False, lines[begin:]


def _looks_logged(line: str) -> bool:
    seen = line[:LOOKED_AT].strip()
    if not seen or _ROW.match(seen):
        return False
    if _LOG.match(seen):
        return True
    if _ITEM.match(seen) or not seen.isascii():
        return False
    return len(seen) >= _SHORT and sum(map(str.isalpha, seen)) < _LETTERS * len(seen.replace(" ", ""))


def _find_informative(lines: Iterable[str]) -> list[str]:
    there = [line for line in lines if line.strip()]
    if len(there) <= _MAX_LINES and sum(map(len, there)) <= LOOKED_AT:
        return there
    chosen: dict[str, int] = {}
    for place, line in reversed(list(enumerate(there))):
        seen = line[:LOOKED_AT]
        if len(chosen) < _MAX_LINES and _ERROR.search(seen):
            chosen.setdefault(_DIGITS.sub("0", seen.strip()), place)
    if not chosen and there:
        return [there[-1]]
    return [there[place] for place in sorted(chosen.values())]


def _cut(line: str) -> str:
    short = " ".join(line[: 2 * LONGEST].split())
    return short if len(short) <= LONGEST else f"{short[: LONGEST - 1].rstrip()}…"
