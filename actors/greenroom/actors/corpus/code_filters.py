"""Which files of a workspace a search looks at, and what of a passage it shows: pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import Final

from greenroom.actors.base.times import DAY
from greenroom.actors.schemas.code import CodeFilters

EXCERPT_LINES: Final = 12
EXCERPT_CHARACTERS: Final = 800
HALF_LIFE: Final = 30 * DAY
"""After so long a change counts half, in microseconds."""
_WORD: Final = re.compile(r"[^\W_]{2,}")


def wanted(folder: str, filters: CodeFilters) -> Callable[[str], bool] | None:
    """Return which paths are looked at; None for all."""
    if not (folder or filters.file_types or filters.exclude_paths):
        return None
    base = f"{folder}/" if folder else ""
    endings = tuple(f".{each.lower().lstrip('*.')}" for each in filters.file_types)
    patterns = [translate(each.strip("/")) for each in filters.exclude_paths]
    excluded = re.compile("|".join(patterns)) if patterns else None

    def is_wanted(path: str) -> bool:
        if not path.startswith(base) or (endings and not path.lower().endswith(endings)):
            return False
        return excluded is None or not any(excluded.match(part) for part in _parts(path))

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


def excerpt(text: str, query: str) -> str:
    """Return the lines of a passage that have most words of a query."""
    lines = text.splitlines()
    words = {word.lower() for word in _WORD.findall(query)}
    said = [words & {word.lower() for word in _WORD.findall(line)} for line in lines]
    last = max(0, len(lines) - EXCERPT_LINES)
    best = max(
        range(last + 1), key=lambda at: (len(set().union(*said[at : at + EXCERPT_LINES])), -at), default=0
    )
    return "\n".join(lines[best : best + EXCERPT_LINES])[:EXCERPT_CHARACTERS]
