"""Replies in the words of Anthropic's own memory tool, and edits of a file's text."""

from __future__ import annotations

from typing import Any, NamedTuple

from anthropic.lib.tools import ToolError

MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
MOST_PLACES = 1_000
"""A reply names at most this many places of a repeated text."""
_DEPTH = 2
_AROUND = 2
_KILO = 1_024
_UNITS = "BKMG"


class Edited(NamedTuple):
    """A file's new text, and the reply."""

    text: str
    answer: str


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def render_file(path: str, text: str, view_range: Any) -> str:
    """Render the numbered lines of a file or a range; its end may be -1."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first = 1
    if view_range:
        if not isinstance(view_range, list) or not all(type(each) is int for each in view_range):
            raise ToolError(f"Invalid `view_range` parameter: {view_range}. It takes two line numbers.")
        if len(view_range) == 2:  # noqa: PLR2004  a first and a last line
            first, last = max(1, view_range[0]), view_range[1]
            lines = lines[first - 1 : None if last == -1 else last]
    return f"Here's the content of {path} with line numbers:\n" + _number_lines(lines, first)


def _size(size: int) -> str:
    step = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    scaled = size / _KILO**step
    return f"{scaled:.0f}{_UNITS[step]}" if scaled == int(scaled) else f"{scaled:.1f}{_UNITS[step]}"


def render_directory(path: str, sizes: dict[str, int]) -> str:
    """Render a directory, two levels deep and without hidden names.

    Args:
        path: The directory.
        sizes: The bytes of each file below it, by relative path; a directory has the sum of its files.
    """
    listed: dict[tuple[str, ...], int] = {}
    is_directory: set[tuple[str, ...]] = set()
    for name, size in sizes.items():
        parts = tuple(name.split("/"))
        for depth in range(1, min(len(parts), _DEPTH) + 1):
            if parts[depth - 1].startswith("."):
                break
            listed[parts[:depth]] = listed.get(parts[:depth], 0) + size
            if depth < len(parts):
                is_directory.add(parts[:depth])
    lines = [f"{_size(sum(sizes.values()))}\t{path}"]
    lines += [
        f"{_size(listed[parts])}\t{path}/{'/'.join(parts)}{'/' if parts in is_directory else ''}"
        for parts in sorted(listed)
    ]
    header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([header, *lines])


def replace(path: str, text: str, old: str, new: str) -> Edited:
    """Replace a text that occurs once."""
    count = text.count(old)
    if count == 0:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(_lines_with(text, old))}. Please ensure it is unique"
        )
    at = text.count("\n", 0, text.index(old))
    edited = text.replace(old, new)
    first = max(0, at - _AROUND)
    snippet = _number_lines(edited.split("\n")[first : at + _AROUND + 1], first + 1)
    return Edited(
        edited,
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        + snippet,
    )


def _lines_with(text: str, old: str) -> list[str]:
    lines: list[str] = []
    line, after, at = 1, 0, text.find(old)
    while at != -1 and len(lines) < MOST_PLACES:
        line += text.count("\n", after, at)
        lines.append(str(line))
        after, at = at, text.find(old, at + 1)
    return lines


def insert(path: str, text: str, line: int, added: str) -> Edited:
    """Insert lines after a line; line 0 means before the first line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, added.rstrip("\n"))
    edited = "\n".join(lines)
    return Edited(edited if edited.endswith("\n") else edited + "\n", f"The file {path} has been edited.")
