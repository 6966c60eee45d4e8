"""Find a folder's git repository, and make a stand-in through which git reads it safely.

The author of a repository wrote its configuration, attributes and hooks, which name programs that git runs:
for differences, filters, pagers, connections, a file watcher. These programs cannot all be turned off, and
each version of git adds more. So git never sees that repository. It gets a stand-in git directory, with the
objects, references and index of the real git directory, and with our own configuration.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from greenroom.actors.core.git.git_files import (
    NotAWorkTreeError,
    WorkTree,
    find_tops,
    open_work_tree,
    read_git_file,
)

_HEAD: Final = re.compile(rb"(ref: refs/[^\x00-\x20\x7f]{1,1000}|[0-9a-f]{40}|[0-9a-f]{64})\n?")
_HARMLESS: Final = re.compile(r"[A-Za-z0-9]{1,20}")
KEPT: Final = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
)
"""The stand-in copies these settings of a repository: how files are stored. Each value is one word."""
_NO_ATTRIBUTES: Final = "* !diff !filter !text !eol !crlf !ident !working-tree-encoding !whitespace\n"
"""Attributes in the git directory take precedence over attributes in the work tree."""


def find_work_tree(folder: str, *, may_borrow: bool = False) -> WorkTree:
    """Find the work tree of a folder; this process's user must own the work tree.

    With ``may_borrow``, it may borrow objects of another repository. Then no content may be read through it.

    Raises:
        NotAWorkTreeError: There is no work tree, or it must not be read.
    """
    top = next(find_tops(folder), None)
    if top is None:
        raise NotAWorkTreeError(f"{folder} is in no git repository")
    _check_owner(top, f"{top}/.git")
    tree = open_work_tree(top)
    common = Path(tree.common)
    _check_owner(tree.git, tree.common, f"{common}/objects")
    if not all((common / each).is_dir() for each in ("objects", "refs")):
        raise NotAWorkTreeError(f"{tree.git} is no git repository")
    _check_objects(common / "objects", may_borrow=may_borrow)
    if (common / "reftable").exists():
        raise NotAWorkTreeError(f"{tree.git} keeps its references in the format reftable, which is not read")
    return tree


def make_stand_in(tree: WorkTree, folder: Path, settings: dict[str, str]) -> None:
    """Make the stand-in git directory in an empty folder; copy the plain values of `KEPT`.

    Raises:
        NotAWorkTreeError: The repository's HEAD is invalid.
        OSError: The stand-in cannot be made.
    """
    head = read_git_file(f"{tree.git}/HEAD")
    if _HEAD.fullmatch(head) is None:
        raise NotAWorkTreeError(f"{tree.git}/HEAD is not one that git writes")
    common = Path(tree.common)
    (folder / "HEAD").write_bytes(head)
    for name in ("objects", "refs", "packed-refs"):
        (folder / name).symlink_to(common / name)
    (folder / "info").mkdir()
    (folder / "info/attributes").write_text(_NO_ATTRIBUTES)
    (folder / "info/exclude").symlink_to(common / "info/exclude")
    taken = {key: value for key, value in settings.items() if key in KEPT and _HARMLESS.fullmatch(value)}
    version = 1 if "extensions.objectformat" in taken else 0
    lines = [f"[core]\n\tbare = false\n\trepositoryformatversion = {version}\n"]
    for key, value in taken.items():
        section, name = key.split(".")
        lines.append(f"[{section}]\n\t{name} = {value}\n")
    (folder / "config").write_text("".join(lines))


def _check_objects(objects: Path, *, may_borrow: bool) -> None:
    """Reject objects of another repository, because its files could be read through them."""
    if not may_borrow and os.path.lexists(objects / "info/alternates"):
        raise NotAWorkTreeError(
            f"{objects} has alternates: it borrows from another repository, which is not read"
        )
    link = str(objects) if objects.is_symlink() else _find_link(objects)
    if link is not None:
        raise NotAWorkTreeError(f"{link} is a symbolic link, which may lead to another repository")


def _find_link(folder: Path) -> str | None:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(f"{place}/{name}"):  # noqa: PTH114  (there may be many thousands)
                return f"{place}/{name}"
    return None


def _check_owner(*places: str) -> None:
    """Reject files and folders of another user, as git itself does by default."""
    for place in places:
        try:
            owner = Path(place).lstat().st_uid
        except OSError as error:
            raise NotAWorkTreeError(f"{place} is not read: {error.strerror}") from None
        if owner != os.geteuid():
            raise NotAWorkTreeError(
                f"{place} belongs to another user (uid {owner}), whose repository is not read"
            )
