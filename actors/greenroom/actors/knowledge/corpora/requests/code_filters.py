"""Which files of a workspace a search looks at, and what of a passage it shows: pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from textwrap import dedent
from typing import Final

import msgspec

from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.schemas.code import CodeFilters

HALF_LIFE: Final = 30 * DAY
"""After so long a change counts half, in microseconds."""
_MOST_ESCAPED: Final = 6  # bytes of a character in JSON
_WORD: Final = re.compile(r"[^\W_]{2,}")


def wanted(folder: str, filters: CodeFilters) -> Callable[[str], bool] | None:
    """Return which paths are looked at; None for all."""
    if not (folder or filters.file_types or filters.exclude_paths):
        return None
    base = f"{folder}/" if folder else ""
    endings = tuple(f".{each.lower().lstrip('*.')}" for each in filters.file_types)
    patterns = [translate(composed(each).strip("/")) for each in filters.exclude_paths]
    excluded = re.compile("|".join(patterns)) if patterns else None

    def is_wanted(path: str) -> bool:
        if not path.startswith(base) or (endings and not path.lower().endswith(endings)):
            return False
        return excluded is None or not any(excluded.match(part) for part in _parts(composed(path)))

    return is_wanted


def _parts(path: str) -> list[str]:
    """Return what a pattern may mean: the path, each folder on the way, and each name."""
    names = path.split("/")
    return [*names, *("/".join(names[: count + 1]) for count in range(1, len(names)))]


def recency(modified_at: int, now: int) -> float:
    """Return how late something was changed: 1 for now, half of it for every `HALF_LIFE` before."""
    late: float = 0.5 ** (max(0, now - modified_at) / HALF_LIFE)
    return late


def with_recency(score: float, weight: float, late: float) -> float:
    """Return a score in which a late change counts with a weight."""
    return score * (1 - weight) + late * weight


def excerpt(text: str, query: str, room: int) -> str:
    """Return the lines of a passage that have most words of a query; ``room`` is in bytes of JSON."""
    lines = [line.rstrip() for line in text.expandtabs(4).splitlines() if line.strip()]
    words = {word.lower() for word in _WORD.findall(query)}
    said = [words & {word.lower() for word in _WORD.findall(line)} for line in lines]
    sizes = [_json_bytes(line.lstrip()) for line in lines]

    def worth(start: int) -> tuple[int, bool]:
        return len(set().union(*said[start : _end(start, sizes, room)])), bool(said[start])

    best = max(range(len(lines)), key=worth, default=0)
    shown = lines[best : _end(best, sizes, room)]
    while len(shown) > 1 and _json_bytes(dedent("\n".join(shown))) > room:  # for indentation
        shown.pop()
    return _cut(dedent("\n".join(shown)), room)


def _end(start: int, sizes: Sequence[int], room: int) -> int:
    """Return the first line behind those from a line on that there is room for."""
    for at in range(start, len(sizes)):
        room -= sizes[at]
        if room < 0:
            return max(at, start + 1)
    return len(sizes)


def _cut(text: str, room: int) -> str:
    """Return as much of a line as there is room for."""
    while (over := _json_bytes(text) - room) > 0:
        text = text[: -max(1, over // _MOST_ESCAPED)]
    return text


def _json_bytes(text: str) -> int:
    return len(msgspec.json.encode(text))
