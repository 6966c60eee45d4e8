"""What tells folders from one another, by whatever names: if mounted twice, or where case says nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable

Identity = tuple[int, int]


def identity_in(status: os.stat_result) -> Identity:
    """Return what tells the folder of a status from others."""
    return status.st_dev, status.st_ino


def identities_of(folders: Iterable[str]) -> set[Identity]:
    """Return what tells some folders from others, of those that are there."""
    found: set[Identity] = set()
    for each in folders:
        try:
            found.add(identity_in(os.stat(each)))  # noqa: PTH116  (paths are texts here)
        except OSError:
            continue
    return found
