"""Rules of ``.gitignore`` and ``.greenroomignore`` of a folder and those above it in its repository.

In one folder ``.greenroomignore`` takes precedence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAMES: Final = (".gitignore", ".greenroomignore")
MAX_BYTES: Final = 262_144
_MOST_STARS: Final = 3
_MOST_OF_SEVERAL: Final = 100
"""Rules become patterns; many stars could take exponential time, while nothing else runs."""
_DEEPEST: Final = 100
_WORK_TREE: Final = re.compile(rb"/worktrees/[^/]+\s*\Z")


class Rules(NamedTuple):
    """The rules of one folder's files, which hold below it."""

    folder: str
    spec: GitIgnoreSpec


def is_ignored(path: str, rules: tuple[Rules, ...], *, is_folder: bool) -> bool:
    """Return whether a path is ignored; the innermost matching rules decide."""
    for each in reversed(rules):
        below = compose(path[len(each.folder) + 1 :]) + ("/" if is_folder else "")
        include = each.spec.check_file(below).include
        if include is not None:
            return include
    return False


def find_rules_above(folder: str) -> tuple[Rules, ...]:
    """Return the rules from above a folder in its repository, if it is in one."""
    above: list[str] = []
    at = folder
    for _ in range(_DEEPEST):
        if Path(at, ".git").exists():
            return tuple(found for each in reversed(above) if (found := read_rules(each)) is not None)
        parent = os.path.dirname(at)  # noqa: PTH120  (paths are texts here, a million of them)
        if parent == at:
            break
        above.append(parent)
        at = parent
    return ()


def read_rules(folder: str) -> Rules | None:
    """Return the rules of the files in a folder, None for no readable ones."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  only ingestion of folders needs it

    lines: list[str] = []
    for name in NAMES:
        try:
            text = compose(read_bounded(f"{folder}/{name}", MAX_BYTES).decode(errors="replace"))
            GitIgnoreSpec.from_lines(_drop_slow(text.splitlines()))
        except (OSError, UnreadableFileError, ValueError):  # ValueError: a rule that git rejects, too
            continue
        lines += text.splitlines()
    return Rules(folder, GitIgnoreSpec.from_lines(_drop_slow(lines))) if lines else None


def is_copy(folder: str) -> bool:
    """Return whether a folder is an additional work tree, see `git worktree add`.

    A sub-module in one is not: its git folder is `.git/worktrees/tree/modules/module`.
    """
    try:
        return _WORK_TREE.search(read_bounded(f"{folder}/.git", MAX_BYTES)) is not None
    except (OSError, UnreadableFileError):  # usually a folder: the main work tree
        return False


def _drop_slow(lines: Iterable[str]) -> Iterator[str]:
    """Yield the rules that are fast to match, and a limited number of slower ones."""
    of_several = 0
    for line in lines:
        stars = line.replace("**", "*").count("*")
        of_several += stars > 1
        if stars <= 1 or (stars <= _MOST_STARS and of_several <= _MOST_OF_SEVERAL):
            yield line
