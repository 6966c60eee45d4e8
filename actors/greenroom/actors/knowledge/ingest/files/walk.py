"""The files of a folder that may be documents, one after the other, and what is left out.

Links are not followed. What is in memory at once are the entries of the folders on the way down.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.ingest.identities import Identity, identities_of
from greenroom.actors.knowledge.ingest.files.exclusions import (
    COPIED,
    HIDDEN,
    IGNORED,
    MADE,
    MARKS_OF_MADE,
    MARKS_OF_VENDORED,
    SECRET,
    file_reason,
    folder_reason,
    is_made,
    place_reason,
)
from greenroom.actors.knowledge.ingest.files.file_content import Entry, listed
from greenroom.actors.knowledge.ingest.files.ignore_files import (
    NAMES,
    Rules,
    is_copy,
    is_ignored,
    rules_above,
    rules_in,
)

MAX_ENTRIES: Final = 100_000
"""The most entries of one folder that are looked at."""
MAX_DEPTH: Final = 64
_TELLING: Final = (*NAMES, ".git", *MARKS_OF_MADE, *MARKS_OF_VENDORED)
LINK: Final = "it is a symbolic link"
UNSHOWN: Final = "its name cannot be shown"
OUR_OWN: Final = "it belongs to Greenroom"
UNREADABLE: Final = "it cannot be read"
_UNSHOWN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What ends a line, turns its order round or is in no encoding."""


class Found(NamedTuple):
    """A file that may be a document."""

    path: str


class LeftOut(NamedTuple):
    """A file or a folder that is not read.

    Attributes:
        path: Where it is.
        reason: Why, beginning with "it" or naming who said so.
        is_known: Whether what was there before is gone for sure; not where it cannot be looked at.
        is_folder: Whether all below it is meant.
    """

    path: str
    reason: str
    is_known: bool = True
    is_folder: bool = False


def walk(root: str, closed: Collection[str] = ()) -> Iterator[Found | LeftOut]:
    """Yield what is below a folder, or a file itself; its names say nothing against what was named itself.

    Args:
        root: An absolute path without links.
        closed: Folders that nobody reads, such as our own.
    """
    if not _is_shown(root):
        yield _left_out(root, UNSHOWN, is_folder=os.path.isdir(root))  # noqa: PTH112
        return
    if not os.path.isdir(root):  # noqa: PTH112  (paths are texts here, a million of them)
        name = os.path.basename(root)  # noqa: PTH119
        secret = file_reason(name) == SECRET
        yield _left_out(root, SECRET) if secret else Found(root)
        return
    waiting = [(root, rules_above(root), 0)]
    while waiting:
        folder, rules, depth = waiting.pop()
        yield from _entries(folder, rules, depth, closed, waiting)


def walk_below(root: str, path: str, closed: Collection[str] = ()) -> Iterator[Found | LeftOut]:
    """Yield what is at one path below a root, by the rules that hold on the way there."""
    rules, at = rules_above(root), root
    names = os.path.relpath(path, root).split("/")
    for depth, name in enumerate(names):
        there = _telling_in(at)
        if depth and (whole := _whole_reason(at, there)) is not None:
            yield _left_out(at, whole, is_folder=True)
            return
        # The rules of a repository do not hold in one that is in it, such as a sub-module.
        rules = _rules_within(at, there, () if depth and ".git" in there else rules)
        at = f"{at}/{name}"
        is_folder = depth < len(names) - 1 or os.path.isdir(at)  # noqa: PTH112
        if os.path.islink(at):  # noqa: PTH114
            yield _left_out(at, LINK, is_folder=is_folder)
            return
        if (reason := _reason(at, name, rules, closed, is_folder=is_folder)) is not None:
            if os.path.lexists(at):
                yield _left_out(at, reason, is_folder=is_folder)
            return
        if is_folder and not identities_of([at]).isdisjoint(identities_of(closed)):
            yield _left_out(at, OUR_OWN, is_folder=True)
            return
    if not os.path.isdir(at):  # noqa: PTH112
        if os.path.lexists(at):
            yield Found(at)
        return
    waiting = [(at, rules, len(names))]
    while waiting:
        folder, rules, depth = waiting.pop()
        yield from _entries(folder, rules, depth, closed, waiting)


def _telling_in(folder: str) -> frozenset[str]:
    """Return what is in a folder of the names that say something of it; it may have very many."""
    return frozenset(name for name in _TELLING if os.path.lexists(f"{folder}/{name}"))


def _entries(
    folder: str,
    rules: tuple[Rules, ...],
    depth: int,
    closed: Collection[str],
    waiting: list[tuple[str, tuple[Rules, ...], int]],
) -> Iterator[Found | LeftOut]:
    try:
        found = listed(folder, MAX_ENTRIES)
    except UnreadableFileError:  # since it was found in the one above
        yield _left_out(folder, LINK, is_folder=True)
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
    rules = _rules_within(folder, found, () if depth and ".git" in found else rules)
    own = identities_of(closed)
    below = []
    for name in sorted(found):
        entry, path = found[name], f"{folder.rstrip('/')}/{name}"
        said = _reason(path, name, rules, closed, is_folder=entry.is_folder)
        reason = said or _entry_reason(entry, own, depth)
        if reason is not None:
            yield _left_out(path, reason, is_folder=entry.is_folder)
        elif entry.is_folder:
            below.append((path, rules, depth + 1))
        else:
            yield Found(path)
    waiting += reversed(below)


def _entry_reason(entry: Entry, own: Collection[Identity], depth: int) -> str | None:
    """Return why something is left out by what it is, whatever it is called."""
    if entry.is_link:
        return LINK
    if entry.identity in own:
        return OUR_OWN
    return f"it is more than {MAX_DEPTH} folders deep" if entry.is_folder and depth == MAX_DEPTH else None


def _whole_reason(folder: str, names: Collection[str]) -> str | None:
    """Return why a folder in which there is this is left out as a whole."""
    if is_made(folder, names):
        return MADE
    return COPIED if ".git" in names and is_copy(folder) else None


def _rules_within(folder: str, names: Collection[str], rules: tuple[Rules, ...]) -> tuple[Rules, ...]:
    """Return the rules that hold for what is in a folder."""
    own = rules_in(folder) if any(name in names for name in NAMES) else None
    return rules if own is None else (*rules, own)


def shown_path(path: str) -> str:
    """Return a path as it can be shown: by it is known what was left out."""
    return _UNSHOWN.sub("\ufffd", path)


def _left_out(path: str, reason: str, *, is_folder: bool = False) -> LeftOut:
    return LeftOut(shown_path(path), reason, is_folder=is_folder)


def _is_shown(name: str) -> bool:
    return _UNSHOWN.search(name) is None


def _reason(
    path: str, name: str, rules: tuple[Rules, ...], closed: Collection[str], *, is_folder: bool
) -> str | None:
    reason = folder_reason(name) if is_folder else file_reason(name)
    if reason in {SECRET, HIDDEN}:
        return reason
    if place_reason(path) is not None:
        return SECRET
    if path in closed:
        return OUR_OWN
    if not _is_shown(name) or len(path.encode()) > 4_096:  # noqa: PLR2004
        return UNSHOWN
    return reason or (IGNORED if is_ignored(path, rules, is_folder=is_folder) else None)
