"""Rules of ``.gitignore`` files: of a folder and of those above it, up to where the repository begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.ingest.reading import UnreadableFileError, read_bounded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAME: Final = ".gitignore"
MAX_BYTES: Final = 262_144
_MOST_STARS: Final = 4
"""A rule becomes a pattern, and with many of these one could take for ever."""
_DEEPEST: Final = 100


class Rules(NamedTuple):
    """What one file rules, below its folder."""

    folder: str
    spec: GitIgnoreSpec


def is_ignored(path: str, rules: tuple[Rules, ...], *, is_folder: bool) -> bool:
    """Return whether a path is ignored: of the rules that speak of it the innermost decide."""
    for each in reversed(rules):
        below = path[len(each.folder) + 1 :] + ("/" if is_folder else "")
        include = each.spec.check_file(below).include
        if include is not None:
            return include
    return False


def rules_above(folder: str) -> tuple[Rules, ...]:
    """Return the rules that hold in a folder by what is above it in its repository, if it is in one."""
    above: list[str] = []
    at = folder
    for _ in range(_DEEPEST):
        if Path(at, ".git").exists():
            return tuple(found for each in reversed(above) if (found := rules_in(each)) is not None)
        parent = os.path.dirname(at)  # noqa: PTH120  (paths are texts here, a million of them)
        if parent == at:
            break
        above.append(parent)
        at = parent
    return ()


def rules_in(folder: str) -> Rules | None:
    """Return the rules of the file in a folder; None if there is none that can be read."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  only who ingests folders waits for it

    try:
        text = read_bounded(f"{folder}/{NAME}", MAX_BYTES).decode(errors="replace")
    except (OSError, UnreadableFileError):
        return None
    lines = [line for line in text.splitlines() if line.replace("**", "").count("*") <= _MOST_STARS]
    try:
        return Rules(folder, GitIgnoreSpec.from_lines(lines))
    except ValueError:  # a rule that git would not take, either
        return None
