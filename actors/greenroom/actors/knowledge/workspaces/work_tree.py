"""Finding the git repository of a folder, and a stand-in through which git reads it and runs nothing of it.

Whoever wrote a repository wrote its configuration, attributes and hooks, which name programs that git runs:
for differences, filters, pagers, connections, a watcher of files. None of that can be turned off as a
whole, and each version of git brings more. So git is not shown that repository. It gets a git directory of
ours, which has the real one's objects, references and index, and a configuration that we wrote.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded
from greenroom.actors.knowledge.ingest.files.places import is_below

_MAX_POINTER: Final = 8_192
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
"""What the stand-in takes over of a repository's configuration: how its files are stored, a word each."""
_NO_ATTRIBUTES: Final = "* !diff !filter !text !eol !crlf !ident !working-tree-encoding !whitespace\n"
"""What a git directory says of attributes goes before what files in the work tree say."""


class NotAWorkTreeError(Exception):
    """A folder's changes are not read; the sentence says why."""


class WorkTree(NamedTuple):
    """A folder that git keeps versions of.

    Attributes:
        top: The folder.
        git: Its git directory.
        common: The one that it shares with other work trees, or the same.
    """

    top: str
    git: str
    common: str


def find_work_tree(folder: str) -> WorkTree:
    """Return the work tree that a folder is in, which must be all of the user's that this process runs as.

    Args:
        folder: The folder, without links.

    Raises:
        NotAWorkTreeError: it is in none, or in one that is not to be read.
    """
    for place in (Path(folder), *Path(folder).parents):
        pointer = place / ".git"
        if os.path.lexists(pointer):
            break
    else:
        raise NotAWorkTreeError(f"{folder} is in no git repository")
    _check_owner(place, pointer)
    if pointer.is_symlink():
        raise NotAWorkTreeError(f"{pointer} is a symbolic link; only a folder or git's own file is followed")
    git = pointer if pointer.is_dir() else _pointed_to(pointer)
    common = _common_of(git)
    _check_owner(git, common, common / "objects")
    if not all((common / each).is_dir() for each in ("objects", "refs")):
        raise NotAWorkTreeError(f"{git} is no git repository")
    _check_objects(common / "objects")
    if (common / "reftable").exists():
        raise NotAWorkTreeError(f"{git} keeps its references in the format reftable, which is not read")
    return WorkTree(str(place), str(git), str(common))


def make_stand_in(tree: WorkTree, folder: Path, settings: dict[str, str]) -> None:
    """Make the git directory in whose place git is run.

    Args:
        tree: The work tree.
        folder: An empty folder.
        settings: What the repository's configuration says of `KEPT`; what is no plain word is left out.

    Raises:
        NotAWorkTreeError: the repository's HEAD is none.
        OSError: it cannot be made.
    """
    head = _read(Path(tree.git, "HEAD"))
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


def _pointed_to(pointer: Path) -> Path:
    """Return the git directory that a file names, which must name the file in turn.

    Or else a repository that somebody sent could name any other one of the user's, and have it read.
    """
    named = _read(pointer).decode(errors="replace")
    if not named.startswith("gitdir: "):
        raise NotAWorkTreeError(f"{pointer} is not one that git writes")
    git = Path(os.path.realpath(pointer.parent / named.removeprefix("gitdir: ").rstrip("\n")))
    inside = is_below(str(git), str(pointer.parent))
    if not inside and Path(git.parent / _line(git / "gitdir")) != pointer:
        raise NotAWorkTreeError(
            f"{pointer} names {git}, which does not name it in turn, as that of a work tree made by "
            "`git worktree add` does; submodules are not read on their own"
        )
    return git


def _common_of(git: Path) -> Path:
    named = _line(git / "commondir") if os.path.lexists(git / "commondir") else "."
    common = Path(os.path.realpath(git / named))
    if common != Path(os.path.realpath(git)) and git.parent != common / "worktrees":
        raise NotAWorkTreeError(f"{git} shares with {common}, which does not know it")
    return common


def _check_objects(objects: Path) -> None:
    """Refuse objects that are another repository's: with them and a link for a branch its files are shown."""
    if os.path.lexists(objects / "info/alternates"):
        raise NotAWorkTreeError(
            f"{objects} has alternates: it borrows from another repository, which is not read"
        )
    link = str(objects) if objects.is_symlink() else _link_below(objects)
    if link is not None:
        raise NotAWorkTreeError(f"{link} is a symbolic link, which may lead to another repository")


def _link_below(folder: Path) -> str | None:
    """Return a symbolic link in a folder of objects, which git makes none in; None where there is none."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(f"{place}/{name}"):  # noqa: PTH114  (there may be many thousands)
                return f"{place}/{name}"
    return None


def _line(path: Path) -> str:
    return _read(path).decode(errors="replace").rstrip("\n")


def _read(path: Path) -> bytes:
    try:
        return read_bounded(str(path), _MAX_POINTER)
    except (OSError, UnreadableFileError) as error:
        raise NotAWorkTreeError(f"{path} is not read: {error}") from None


def _check_owner(*places: Path) -> None:
    """Refuse what belongs to somebody else: git reads no such repository unless told so, and nor do we."""
    for place in places:
        try:
            owner = place.lstat().st_uid
        except OSError as error:
            raise NotAWorkTreeError(f"{place} is not read: {error.strerror}") from None
        if owner != os.geteuid():
            raise NotAWorkTreeError(
                f"{place} belongs to another user (uid {owner}), whose repository is not read"
            )
