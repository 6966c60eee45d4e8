"""Read what git keeps of a folder, without git: work tree, repository, branch.

Nothing else reads `.git`. Each hook of a client runs this, so it imports next to nothing.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError, open_regular_file

_MAX_POINTER: Final = 8_192
_MAX_REFS: Final = 4 << 20
"""Maximum bytes of packed references that are not sorted; git sorts its own."""
_PIECE: Final = 16_384
_MAX_BRANCH: Final = 200
MEMBER: Final = "git"
"""The member of the metadata of memories and sessions that notes where they were made."""
_LINKED: Final = re.compile(r"/worktrees/[^/]+\Z")
_MODULE: Final = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*(\S.*)$", re.MULTILINE)
COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PACKED: Final = re.compile(rb"\n(?:[0-9a-f]{40}|[0-9a-f]{64}) ([^\n]+)\n")
_BRANCH: Final = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]+)")


class NotAWorkTreeError(Exception):
    """A folder's `.git` is not followed, or not read; the text says why."""


class WorkTree(NamedTuple):
    """A git work tree; ``common`` is the git directory that work trees share, or ``git``."""

    top: str
    git: str
    common: str


class Revision(NamedTuple):
    """A branch and a commit, each empty if it is not known."""

    branch: str = ""
    commit: str = ""

    def as_member(self) -> dict[str, dict[str, str]]:
        """Return what is known as a member of a JSON object; empty if nothing is."""
        known = {name: value for name, value in self._asdict().items() if value}
        return {MEMBER: known} if known else {}


NO_REVISION: Final = Revision()


def find_tops(folder: str) -> Iterator[str]:
    """Yield the folders with a `.git` around a folder, the innermost first."""
    at = folder
    while at:
        if os.path.lexists(os.path.join(at, ".git")):  # noqa: PTH118 - keeps the given spelling
            yield at
        above = os.path.dirname(at)  # noqa: PTH120 - likewise
        at = "" if above == at else above


def find_top(folder: str) -> str | None:
    """Return the innermost folder around a folder that looks like a work tree.

    A `.git` of another user is passed over, unless the folder is that user's, too. Otherwise any user could
    make one project of all folders below a shared one. What git would not take for a repository is passed
    over as well.
    """
    owners = {0, os.geteuid()}
    with suppress(OSError):
        owners.add(os.stat(folder).st_uid)  # noqa: PTH116 - a hook imports no `pathlib`
    return next((top for top in find_tops(folder) if _may_be_work_tree(f"{top}/.git", owners)), None)


def _may_be_work_tree(pointer: str, owners: set[int]) -> bool:
    real = os.path.realpath(pointer)
    try:
        if os.lstat(pointer).st_uid not in owners:
            return False
        return _is_repository(real) or read_git_file(real).startswith(b"gitdir: ")
    except (OSError, NotAWorkTreeError):
        return False


def _is_repository(git: str) -> bool:
    """Return whether a folder has what git asks of its directory."""
    has_head = os.path.lexists(f"{git}/HEAD")
    return has_head and all(os.path.isdir(f"{git}/{each}") for each in ("objects", "refs"))  # noqa: PTH112


def open_work_tree(top: str) -> WorkTree:
    """Return the work tree of a folder with a `.git`.

    A `.git` file is believed only if the repository names the file back, and both belong to one user. So a
    folder from elsewhere cannot name a repository of the user.

    Raises:
        NotAWorkTreeError: The `.git` is not to be believed.
    """
    pointer = f"{top}/.git"
    if os.path.islink(pointer):  # noqa: PTH114
        raise NotAWorkTreeError(f"{pointer} is a symbolic link; only a folder or git's own file is followed")
    git, common = _alone(pointer) if os.path.isdir(pointer) else _follow(top, pointer)  # noqa: PTH112
    _check_same_user(pointer, git, common)
    return WorkTree(top, git, common)


def find_main_folder(tree: WorkTree) -> str:
    """Return a repository's main work tree, or the bare repository itself."""
    common = os.path.realpath(tree.common)
    if common == os.path.realpath(tree.git):
        return tree.top
    above = os.path.dirname(common)  # noqa: PTH120
    try:
        if os.path.realpath(open_work_tree(above).git) == common:
            return above
    except NotAWorkTreeError:
        pass
    return _configured_main(common) or common


def _configured_main(common: str) -> str | None:
    """Return the work tree of `core.worktree`, if it and its git directory name each other.

    Git sets it for submodules. For `git init --separate-git-dir` or a linked `.git`, a person may set it.
    """
    try:
        named = _MODULE.search(os.fsdecode(read_git_file(f"{common}/config")))
        main = None if named is None else _resolve(common, named[1].rstrip())
        return main if main and _named_by(f"{main}/.git") == common else None
    except NotAWorkTreeError:
        return None


def _named_by(pointer: str) -> str:
    if os.path.islink(pointer):  # noqa: PTH114
        return os.path.realpath(pointer)
    return _resolve(os.path.dirname(pointer), _read_line(pointer).removeprefix("gitdir: "))  # noqa: PTH120


def read_revision(tree: WorkTree) -> Revision:
    """Return the branch and the commit that a work tree has checked out."""
    try:
        head = read_git_file(f"{tree.git}/HEAD").decode().rstrip("\n")
        if COMMIT.fullmatch(head):
            return Revision(commit=head)
        named = _BRANCH.fullmatch(head)
        if named is None or not _is_branch(named[1]):
            return NO_REVISION
        return Revision(named[1], _commit_of(tree.common, f"refs/heads/{named[1]}"))
    except (NotAWorkTreeError, UnicodeDecodeError):
        return NO_REVISION


def has_branch(tree: WorkTree, branch: str) -> bool:
    """Return whether a repository has a branch of this name."""
    return _is_branch(branch) and bool(_commit_of(tree.common, f"refs/heads/{branch}"))


def is_linked(top: str) -> bool:
    """Return whether a folder calls itself an additional work tree (see `git worktree add`).

    A submodule in an additional work tree is not: its git folder is `.git/worktrees/tree/modules/module`.
    """
    try:
        named = read_git_file(f"{top}/.git").decode(errors="replace").rstrip()
        return _LINKED.search(named) is not None
    except NotAWorkTreeError:  # usually a folder: the main work tree
        return False


def read_git_file(path: str, limit: int = _MAX_POINTER) -> bytes:
    """Return the content of a plain file of at most ``limit`` bytes.

    Raises:
        NotAWorkTreeError: There is no such file, or it is larger.
    """
    try:
        with open_regular_file(path) as file:
            data = bytearray()
            while piece := file.read(limit + 1 - len(data)):
                data += piece
    except (OSError, UnreadableFileError) as error:
        raise NotAWorkTreeError(f"{path} is not read: {error}") from None
    if len(data) > limit:
        raise NotAWorkTreeError(f"{path} is not read: it has more than {limit:,} bytes")
    return bytes(data)


def _alone(git: str) -> tuple[str, str]:
    if os.path.lexists(f"{git}/commondir"):
        raise NotAWorkTreeError(f"{git} shares with a repository that names no such work tree")
    return git, git


def _follow(top: str, pointer: str) -> tuple[str, str]:
    """Return the git directory that a `.git` file names, and the one that it shares."""
    named = _read_line(pointer)
    if not named.startswith("gitdir: "):
        raise NotAWorkTreeError(f"{pointer} is not one that git writes")
    git = _resolve(top, named.removeprefix("gitdir: "))
    if git.startswith(f"{os.path.realpath(top)}/"):  # a repository in the folder itself
        return _alone(git)
    back = os.path.join(git, _read_line(f"{git}/gitdir"))  # noqa: PTH118
    try:
        is_back = os.path.basename(back) == ".git" and os.path.samefile(os.path.dirname(back), top)  # noqa: PTH119, PTH120, PTH121
    except (OSError, ValueError):
        is_back = False
    if not is_back:
        raise NotAWorkTreeError(
            f"{pointer} names {git}, which does not name it in turn, as that of a work tree made by "
            "`git worktree add` does; submodules are not read on their own"
        )
    _check_same_user(pointer, f"{git}/gitdir")
    return git, _common_of(git)


def _common_of(git: str) -> str:
    named = _read_line(f"{git}/commondir") if os.path.lexists(f"{git}/commondir") else "."
    common, real = _resolve(git, named), os.path.realpath(git)
    if common == real:
        return git
    if os.path.dirname(real) != f"{common}/worktrees" or not _is_repository(common):  # noqa: PTH120
        raise NotAWorkTreeError(f"{git} shares with {common}, which does not know it")
    return common


def _check_same_user(*places: str) -> None:
    owners = {}
    for place in places:
        try:
            owners[os.lstat(place).st_uid] = place
        except OSError as error:
            raise NotAWorkTreeError(f"{place} is not read: {error.strerror}") from None
    if len(owners) > 1:
        raise NotAWorkTreeError(f"of {', '.join(owners.values())} each belongs to another user")


def _is_branch(name: str) -> bool:
    """Return whether git allows the name; a repository with `reftable` has the branch `.invalid`."""
    is_short = len(name) <= _MAX_BRANCH and name.isprintable()
    return is_short and not any(not part or part.startswith(".") for part in name.split("/"))


def _commit_of(common: str, ref: str, *, is_named: bool = False) -> str:
    """Return the commit of a reference, which may name another; empty without commits."""
    try:
        commit = _read_line(f"{common}/{ref}")
    except NotAWorkTreeError:
        try:
            commit = _packed_commit(f"{common}/packed-refs", ref.encode())
        except (OSError, UnreadableFileError):
            return ""
    named = None if is_named else _BRANCH.fullmatch(commit)
    if named is not None and _is_branch(named[1]):
        return _commit_of(common, f"refs/heads/{named[1]}", is_named=True)
    return commit if COMMIT.fullmatch(commit) else ""


def _packed_commit(path: str, ref: bytes) -> str:
    """Return a packed reference's commit; of a sorted file little is read."""
    with open_regular_file(path) as file:
        start, end = 0, file.seek(0, os.SEEK_END)
        file.seek(0)
        if b" sorted" in file.read(_PIECE).partition(b"\n")[0]:
            start, end = _narrow(file, ref, end)
        elif end > _MAX_REFS:
            return ""
        file.seek(start)
        lines = file.read(end - start)
    before, _, _ = lines.partition(b" %b\n" % ref)
    return "" if before == lines else os.fsdecode(before.rpartition(b"\n")[2])


def _narrow(file: io.FileIO, ref: bytes, end: int) -> tuple[int, int]:
    """Return between which offsets a sorted file has a reference, if it has it."""
    start = 0
    while end - start > _PIECE:
        middle = file.seek((start + end) // 2)
        line = _PACKED.search(file.read(_PIECE // 4))
        if line is None:  # git wrote no such file
            return 0, 0
        if line[1] <= ref:
            start = middle + line.start() + 1
        else:
            end = middle + line.start() + 1
    return start, end


def _resolve(folder: str, named: str) -> str:
    if "\0" in named:
        raise NotAWorkTreeError(f"a path in {folder} has a NUL")
    return os.path.realpath(os.path.join(folder, named))  # noqa: PTH118


def _read_line(path: str) -> str:
    return os.fsdecode(read_git_file(path)).rstrip("\n")
