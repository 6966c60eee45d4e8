"""Rules of ``.gitignore`` and ``.greenroomignore``: of a folder and of those above it in its repository.

In one folder what ``.greenroomignore`` says comes after what ``.gitignore`` says, and so decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAMES: Final = (".gitignore", ".greenroomignore")
MAX_BYTES: Final = 262_144
_MOST_STARS: Final = 3
_MOST_OF_SEVERAL: Final = 100
"""A rule becomes a pattern, and with many stars one could take for ever, while nothing else runs."""
_DEEPEST: Final = 100
_WORK_TREE: Final = re.compile(rb"/worktrees/[^/]+\s*\Z")


class Rules(NamedTuple):
    """What the files of one folder rule, below it."""

    folder: str
    spec: GitIgnoreSpec


def is_ignored(path: str, rules: tuple[Rules, ...], *, is_folder: bool) -> bool:
    """Return whether a path is ignored: of the rules that speak of it the innermost decide."""
    for each in reversed(rules):
        below = composed(path[len(each.folder) + 1 :]) + ("/" if is_folder else "")
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
    """Return the rules of the files in a folder; None if there are none that can be read."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  only who ingests folders waits for it

    lines: list[str] = []
    for name in NAMES:
        try:
            text = composed(read_bounded(f"{folder}/{name}", MAX_BYTES).decode(errors="replace"))
            GitIgnoreSpec.from_lines(_quick(text.splitlines()))
        except (OSError, UnreadableFileError, ValueError):  # the last: a rule that git would not take, either
            continue
        lines += text.splitlines()
    return Rules(folder, GitIgnoreSpec.from_lines(_quick(lines))) if lines else None


def is_copy(folder: str) -> bool:
    """Return whether a folder is a further work tree of a repository, as `git worktree add` makes one.

    A sub-module in such a one is none: what is git's of it lies in `.git/worktrees/tree/modules/module`.
    """
    try:
        return _WORK_TREE.search(read_bounded(f"{folder}/.git", MAX_BYTES)) is not None
    except (OSError, UnreadableFileError):  # mostly it is a folder: then this is where the repository is
        return False


def _quick(lines: Iterable[str]) -> Iterator[str]:
    """Yield the rules that take no time to compare, and some of those that take a little."""
    of_several = 0
    for line in lines:
        stars = line.replace("**", "*").count("*")
        of_several += stars > 1
        if stars <= 1 or (stars <= _MOST_STARS and of_several <= _MOST_OF_SEVERAL):
            yield line
