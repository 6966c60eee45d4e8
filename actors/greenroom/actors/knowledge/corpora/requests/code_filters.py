"""Filter the files that a search reads, and cut excerpts; all functions are pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from textwrap import dedent
from typing import Final

import msgspec

from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFilters

HALF_LIFE: Final = 30 * DAY
"""The age, in microseconds, at which the recency of a change is 0.5."""
_MOST_ESCAPED: Final = 6  # maximum bytes of a character in JSON
_WORD: Final = re.compile(r"[^\W_]{2,}")


def make_filter(folder: str, filters: CodeFilters) -> Callable[[str], bool] | None:
    """Return a filter of paths; None if all paths are wanted."""
    if not (folder or filters.file_types or filters.exclude_paths):
        return None
    base = f"{folder}/" if folder else ""
    endings = tuple(f".{each.lower().lstrip('*.')}" for each in filters.file_types)
    patterns = [translate(compose(each).strip("/")) for each in filters.exclude_paths]
    excluded = re.compile("|".join(patterns)) if patterns else None

    def is_wanted(path: str) -> bool:
        if not path.startswith(base) or (endings and not path.lower().endswith(endings)):
            return False
        return excluded is None or not any(excluded.match(part) for part in _list_parts(compose(path)))

    return is_wanted


def _list_parts(path: str) -> list[str]:
    """Return what a pattern may match: the path, its folders and its names."""
    names = path.split("/")
    return [*names, *("/".join(names[: count + 1]) for count in range(1, len(names)))]


def compute_recency(modified_at: int, now: int) -> float:
    """Return the recency of a change: 1 for now; it halves with every `HALF_LIFE`."""
    late: float = 0.5 ** (max(0, now - modified_at) / HALF_LIFE)
    return late


def add_recency(score: float, weight: float, late: float) -> float:
    """Return the weighted mean of a score and a file's recency."""
    return score * (1 - weight) + late * weight


def cut_excerpt(text: str, query: str, room: int) -> str:
    """Return the lines with most words of a query, up to ``room`` bytes of JSON."""
    lines = [line.rstrip() for line in text.expandtabs(4).splitlines() if line.strip()]
    words = {word.lower() for word in _WORD.findall(query)}
    words_of_line = [words & {word.lower() for word in _WORD.findall(line)} for line in lines]
    sizes = [_json_bytes(line.lstrip()) for line in lines]

    def worth(start: int) -> tuple[int, bool]:
        return len(set().union(*words_of_line[start : _find_end(start, sizes, room)])), bool(
            words_of_line[start]
        )

    best = max(range(len(lines)), key=worth, default=0)
    shown = lines[best : _find_end(best, sizes, room)]
    while len(shown) > 1 and _json_bytes(dedent("\n".join(shown))) > room:  # `sizes` are without indentation
        shown.pop()
    return _cut(dedent("\n".join(shown)), room)


def _find_end(start: int, sizes: Sequence[int], room: int) -> int:
    for at in range(start, len(sizes)):
        room -= sizes[at]
        if room < 0:
            return max(at, start + 1)
    return len(sizes)


def _cut(text: str, room: int) -> str:
    while (over := _json_bytes(text) - room) > 0:
        text = text[: -max(1, over // _MOST_ESCAPED)]
    return text


def _json_bytes(text: str) -> int:
    return len(msgspec.json.encode(text))
