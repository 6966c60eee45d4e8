"""The order in which a workspace's files are read: what matters is found while it is being indexed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.knowledge.ingest.files.walk import Found, LeftOut

_DATA: Final = (".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties")
_PROSE: Final = frozenset({"markdown", "rst"})


class Arranged(NamedTuple):
    """Files in the order in which they are read, after what is left out; and how many files there are."""

    files: list[Found | LeftOut]
    total: int


def arranged(found: Iterable[Found | LeftOut], most: int) -> Arranged:
    """Return what is left out, then source code, documents and the rest, of each kind small files first.

    It looks at their sizes, so it runs in a thread.

    Args:
        found: What is there.
        most: How many of them are looked at, however many there are; one more shows that there are more.
    """
    files: list[Found | LeftOut] = []
    total = 0
    for each in found:
        total += isinstance(each, Found)
        if isinstance(each, LeftOut) or total <= most + 1:
            files.append(each)
    return Arranged(sorted(files, key=_place), total)


def _place(each: Found | LeftOut) -> tuple[int, int]:
    if isinstance(each, LeftOut):
        return 0, 0
    try:
        size = os.stat(each.path, follow_symlinks=False).st_size  # noqa: PTH116  (a million of them)
    except OSError:
        size = 0
    return rank_of(each.path), size


def rank_of(path: str) -> int:
    """Return how soon a file is read by its name: source code 1, documents 2, anything else 3."""
    kind = kind_by_name(path)
    if kind == "code" and not path.lower().endswith(_DATA):
        return 1
    return 2 if kind in _PROSE else 3
