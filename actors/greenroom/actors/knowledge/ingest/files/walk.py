"""Walk a folder: yield the files that may be documents, and the left-out entries.

Links are not followed. Only the entries of the folders on the current path are in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.git.attributes import drop_slow
from greenroom.actors.core.git.git_files import is_linked
from greenroom.actors.knowledge.ingest.files.exclusions import (
    COPIED,
    HIDDEN,
    IGNORED,
    MADE,
    MARKS_OF_MADE,
    MARKS_OF_VENDORED,
    SECRET,
    closed_reason,
    file_reason,
    folder_reason,
    is_made,
)
from greenroom.actors.knowledge.ingest.files.file_content import Entry, list_folder, read_bounded
from greenroom.actors.knowledge.ingest.files.places import Identity, find_innermost, identities_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAMES: Final = (".gitignore", ".greenroomignore")
"""Files of rules; if a folder has both, the second takes precedence."""
MAX_BYTES: Final = 262_144
_DEEPEST: Final = 100
MAX_ENTRIES: Final = 100_000
"""Maximum number of entries of one folder."""
MAX_DEPTH: Final = 64
_SPECIAL: Final = (*NAMES, ".git", *MARKS_OF_MADE, *MARKS_OF_VENDORED)
LINK: Final = "it is a symbolic link"
UNPRINTABLE: Final = "its name cannot be shown"
OUR_OWN: Final = "it belongs to Greenroom"
UNREADABLE: Final = "it cannot be read"
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that end a line, change the direction of text, or have no encoding."""


class Found(NamedTuple):
    """A file that may be a document."""

    path: str


class LeftOut(NamedTuple):
    """A file or folder that is not read.

    Attributes:
        reason: Why it is left out; begins with "it" or with the source of the rule.
        is_known: Whether older documents there are surely gone; false if the place cannot be read.
    """

    path: str
    reason: str
    is_known: bool = True
    is_folder: bool = False


def walk(root: str, closed: Collection[str] = (), within: Sequence[str] = ()) -> Iterator[Found | LeftOut]:
    """Yield the files below a root.

    The root's own name excludes nothing. If the root is a file, it yields this file.

    Args:
        root: An absolute path without links.
        closed: Folders that are never read, such as the store's.
        within: The allowed roots; ``root`` may be a part of one. Folder names below these may reveal secrets.
    """
    top = find_innermost(root, within)
    if not _is_printable(root):
        yield _leave_out(root, UNPRINTABLE, is_folder=os.path.isdir(root))  # noqa: PTH112
        return
    if not os.path.isdir(root):  # noqa: PTH112  (paths are texts here, a million of them)
        top = top or os.path.dirname(os.path.dirname(root))  # noqa: PTH120
        yield _leave_out(root, SECRET) if file_reason(root, top) == SECRET else Found(root)
        return
    waiting = [(root, find_rules_above(root), 0)]
    while waiting:
        yield from _entries(*waiting.pop(), top or root, closed, waiting)


def walk_below(root: str, path: str, closed: Collection[str] = ()) -> Iterator[Found | LeftOut]:
    """Yield the files at a path below a root; apply the rules on the way."""
    rules, at = find_rules_above(root), root
    names = os.path.relpath(path, root).split("/")
    for depth, name in enumerate(names):
        there = _find_special(at)
        if depth and (whole := _whole_reason(at, there)) is not None:
            yield _leave_out(at, whole, is_folder=True)
            return
        # A repository's rules do not apply in a nested repository, such as a submodule.
        rules = _add_rules(at, there, () if depth and ".git" in there else rules)
        at = f"{at}/{name}"
        is_folder = depth < len(names) - 1 or os.path.isdir(at)  # noqa: PTH112
        if os.path.islink(at):  # noqa: PTH114
            yield _leave_out(at, LINK, is_folder=is_folder)
            return
        if (reason := _reason(at, name, root, rules, closed, is_folder=is_folder)) is not None:
            if os.path.lexists(at):
                yield _leave_out(at, reason, is_folder=is_folder)
            return
        if is_folder and not identities_of([at]).isdisjoint(identities_of(closed)):
            yield _leave_out(at, OUR_OWN, is_folder=True)
            return
    if not os.path.isdir(at):  # noqa: PTH112
        if os.path.lexists(at):
            yield Found(at)
        return
    waiting = [(at, rules, len(names))]
    while waiting:
        yield from _entries(*waiting.pop(), root, closed, waiting)


def _find_special(folder: str) -> frozenset[str]:
    """Return the special names in a folder; the folder may be too large to list."""
    return frozenset(name for name in _SPECIAL if os.path.lexists(f"{folder}/{name}"))


def _entries(
    folder: str,
    rules: tuple[Rules, ...],
    depth: int,
    top: str,
    closed: Collection[str],
    waiting: list[tuple[str, tuple[Rules, ...], int]],
) -> Iterator[Found | LeftOut]:
    try:
        found = list_folder(folder, MAX_ENTRIES)
    except UnreadableFileError:  # replaced since its parent was listed
        yield _leave_out(folder, LINK, is_folder=True)
        return
    except OSError as error:
        yield LeftOut(folder, f"{UNREADABLE}: {error.strerror}", is_known=False, is_folder=True)
        return
    if len(found) > MAX_ENTRIES:
        sentence = f"it has more than {MAX_ENTRIES:,} entries"
        yield LeftOut(folder, sentence, is_known=False, is_folder=True)
        return
    if depth and (whole := _whole_reason(folder, found)) is not None:
        yield LeftOut(folder, whole, is_folder=True)
        return
    rules = _add_rules(folder, found, () if depth and ".git" in found else rules)
    own = identities_of(closed)
    below = []
    for name in sorted(found):
        entry, path = found[name], f"{folder.rstrip('/')}/{name}"
        by_name = _reason(path, name, top, rules, closed, is_folder=entry.is_folder)
        reason = by_name or _entry_reason(entry, own, depth)
        if reason is not None:
            yield _leave_out(path, reason, is_folder=entry.is_folder)
        elif entry.is_folder:
            below.append((path, rules, depth + 1))
        else:
            yield Found(path)
    waiting += reversed(below)


def _entry_reason(entry: Entry, own: Collection[Identity], depth: int) -> str | None:
    if entry.is_link:
        return LINK
    if entry.identity in own:
        return OUR_OWN
    return f"it is more than {MAX_DEPTH} folders deep" if entry.is_folder and depth == MAX_DEPTH else None


def _whole_reason(folder: str, names: Collection[str]) -> str | None:
    if is_made(folder, names):
        return MADE
    return COPIED if ".git" in names and is_linked(folder) else None


def _add_rules(folder: str, names: Collection[str], rules: tuple[Rules, ...]) -> tuple[Rules, ...]:
    own = read_rules(folder) if any(name in names for name in NAMES) else None
    return rules if own is None else (*rules, own)


def printable_path(path: str) -> str:
    """Return a path as reports show it: unprintable characters are replaced."""
    return _UNPRINTABLE.sub("\ufffd", path)


def _leave_out(path: str, reason: str, *, is_folder: bool = False) -> LeftOut:
    return LeftOut(printable_path(path), reason, is_folder=is_folder)


def _is_printable(name: str) -> bool:
    return _UNPRINTABLE.search(name) is None


def _reason(
    path: str, name: str, top: str, rules: tuple[Rules, ...], closed: Collection[str], *, is_folder: bool
) -> str | None:
    reason = folder_reason(name) if is_folder else file_reason(path, top)
    if reason in {SECRET, HIDDEN}:
        return reason
    if closed_reason(path) is not None:
        return SECRET
    if path in closed:
        return OUR_OWN
    if not _is_printable(name) or len(path.encode()) > 4_096:  # noqa: PLR2004
        return UNPRINTABLE
    return reason or (IGNORED if is_ignored(path, rules, is_folder=is_folder) else None)


class Rules(NamedTuple):
    """The rules in the files of one folder; they apply below it."""

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
    """Return the rules from above a folder, up to the top of its repository."""
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
    """Return the rules in a folder's files; None if no rules can be read."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  only ingestion of folders needs it

    lines: list[str] = []
    for name in NAMES:
        try:
            text = compose(read_bounded(f"{folder}/{name}", MAX_BYTES).decode(errors="replace"))
            GitIgnoreSpec.from_lines(drop_slow(text.splitlines()))
        except (OSError, UnreadableFileError, ValueError):  # ValueError: git rejects the rule, too
            continue
        lines += text.splitlines()
    return Rules(folder, GitIgnoreSpec.from_lines(drop_slow(lines))) if lines else None
