"""What changed in a work tree since its last commit, told by git, which runs nothing of the repository's.

See `work_tree` for how. Besides, git gets an environment of ours alone, so many seconds and so many bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.ingest.files.exclusions import (
    SECRET,
    content_reason,
    file_reason,
    folder_reason,
)
from greenroom.actors.knowledge.ingest.files.places import is_below, never_read
from greenroom.actors.knowledge.workspaces.work_tree import (
    KEPT,
    NotAWorkTreeError,
    WorkTree,
    find_work_tree,
    make_stand_in,
)

SECONDS: Final = 10.0
"""How long git may take, all in all."""
MAX_NAMES: Final = 1 << 20
MAX_DIFF: Final = 2 << 20
"""Bytes that are read of it."""
MAX_FILES: Final = 300
"""Changed files whose differences are asked for."""
_EMPTY_TREE: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_HEADER: Final = re.compile(r"^diff --git ", re.MULTILINE)
_OPTIONS: Final = (
    "--no-pager",
    "--no-optional-locks",
    "--no-replace-objects",
    "--literal-pathspecs",
    *("-c", "core.quotePath=false"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "protocol.allow=never"),
)
_DIFF: Final = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class FileChange(msgspec.Struct, frozen=True):
    """A file that differs from the last commit.

    Attributes:
        path: Below the workspace's folder.
        diff: In git's unified form; empty for a new file, which git does not know yet.
    """

    path: str
    diff: str = ""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in a folder since the last commit.

    Attributes:
        files: The files, those first that git knows.
        left_out: Why some are missing; sentences.
    """

    files: list[FileChange]
    left_out: list[str]


class _Git(NamedTuple):
    """How git is run for one work tree."""

    command: list[str]
    environment: dict[str, str]
    folder: Path

    async def output(self, *arguments: str, limit: int, may_fail: bool = False) -> tuple[str, bool]:
        """Return what a command prints, and whether that was cut.

        Raises:
            NotAWorkTreeError: git says that it cannot.
        """
        errors = self.folder / "errors"
        with errors.open("wb") as said:
            process = await trio.lowlevel.open_process(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=self.folder,
                env=self.environment,
            )
        assert process.stdout is not None, "it is piped"
        data = bytearray()
        try:
            while len(data) <= limit and (piece := await process.stdout.receive_some(65_536)):
                data += piece
            is_cut = len(data) > limit
            if not is_cut and await process.wait() and not may_fail:
                raise NotAWorkTreeError(f"git: {_first_line(errors)}")
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
                await process.stdout.aclose()
        return bytes(data[:limit]).decode(errors="replace"), is_cut


async def changes_in(root: str, path: str, closed: Sequence[str]) -> Changes:
    """Return what changed of a workspace's file or folder since the last commit.

    Args:
        root: The workspace's folder, without links.
        path: Below that; empty for all of it.
        closed: Folders that nobody reads.

    Raises:
        NotAWorkTreeError: git cannot tell, and why.
    """
    tree = await read_in_thread(find_work_tree, root)
    program = await read_in_thread(_program, tree)
    below = "".join(f"{part}/" for part in Path(root).relative_to(tree.top).parts)
    with TemporaryDirectory(prefix="greenroom-git-") as temporary:
        with trio.move_on_after(SECONDS):
            git = await _opened(tree, program, Path(temporary))
            return await _changes(git, below, path, (root, *closed))
    raise NotAWorkTreeError(f"git did not answer within {SECONDS:g} s")


async def _opened(tree: WorkTree, program: str, temporary: Path) -> _Git:
    """Return git for a work tree, by a stand-in of its git directory."""
    environment = {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "HOME": str(temporary),
        "XDG_CONFIG_HOME": str(temporary),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(temporary.parent),
    }
    reading = _Git([program], environment, temporary)
    wanted = "|".join(re.escape(key) for key in KEPT)
    file = f"{tree.common}/config"
    asked = ("config", "--file", file, "--no-includes", "--null", "--get-regexp", f"^({wanted})$")
    said, _ = await reading.output(*asked, limit=MAX_NAMES, may_fail=True)
    settings = dict(each.partition("\n")[::2] for each in said.split("\0") if each)
    stand_in = temporary / "git"
    await read_in_thread(stand_in.mkdir)
    try:
        await read_in_thread(make_stand_in, tree, stand_in, settings)
    except OSError as error:
        raise NotAWorkTreeError(f"{tree.git} is not read: {error.strerror}") from None
    places = {"GIT_DIR": str(stand_in), "GIT_WORK_TREE": tree.top, "GIT_INDEX_FILE": f"{tree.git}/index"}
    return _Git([program, "-C", tree.top, *_OPTIONS], environment | places, temporary)


async def _changes(git: _Git, below: str, path: str, closed: Sequence[str]) -> Changes:
    """Return what changed below a folder of a work tree, the first of `closed` being the workspace's."""
    root, *never = closed
    base = (await git.output("rev-parse", "--verify", "--quiet", "HEAD", limit=100, may_fail=True))[0].strip()
    if not base:  # nothing is committed yet
        said, _ = await git.output("rev-parse", "--show-object-format", limit=100)
        base = _EMPTY_TREE[64 if said.strip() == "sha256" else 40]
    where = f"{below}{path}" or "."
    named, names_cut = await git.output(*_DIFF, "--name-only", "-z", base, "--", where, limit=MAX_NAMES)
    others, others_cut = await git.output(
        "ls-files", "--others", "--exclude-standard", "-z", "--", where, limit=MAX_NAMES
    )
    changed, new = _names(named, names_cut), [each for each in _names(others, others_cut) if each[-1] != "/"]
    notes = ["there are more changed files than are looked at"] if names_cut or others_cut else []
    seen = [name for name in changed if _may_be_read(root, name.removeprefix(below), never)]
    seen_new = [name for name in new if _may_be_read(root, name.removeprefix(below), never)]
    hidden = len(changed) + len(new) - len(seen) - len(seen_new)
    if hidden:
        notes.append(f"{hidden} changed files are not read: they may hold secrets")
    if len(seen) + len(seen_new) > MAX_FILES:
        notes.append(f"of {len(seen) + len(seen_new):,} changed files {MAX_FILES} are looked at")
    seen, seen_new = seen[:MAX_FILES], seen_new[: max(0, MAX_FILES - len(seen))]
    files: list[FileChange] = []
    if seen:
        text, is_cut = await git.output(*_DIFF, base, "--", *seen, limit=MAX_DIFF)
        files = _by_file(text, seen, below)
        if is_cut:
            notes.append(f"the differences are more than {MAX_DIFF:,} bytes, and cut there")
        if withheld := len([each for each in files if content_reason(each.diff.encode()) is not None]):
            files = [each for each in files if content_reason(each.diff.encode()) is None]
            notes.append(f"{withheld} differences are not shown: there are keys in them")
    return Changes(files=files + [FileChange(each.removeprefix(below)) for each in seen_new], left_out=notes)


def _by_file(text: str, names: list[str], below: str) -> list[FileChange]:
    """Return the differences of each file; what git tells of a file begins with a line that names it."""
    headers = {f"a/{name} b/{name}": name for name in names}
    files: list[FileChange] = []
    for each in _HEADER.split(text)[1:]:
        header = each.partition("\n")[0]
        name = headers.get(header, header)
        files.append(FileChange(name.removeprefix(below), f"diff --git {each}"))
    return files


def _names(listed: str, is_cut: bool) -> list[str]:  # noqa: FBT001
    names = [each for each in listed.split("\0") if each]
    return names[:-1] if is_cut else names


def _may_be_read(root: str, name: str, closed: Sequence[str]) -> bool:
    """Return whether a changed file may be shown, which need not be there any more."""
    *folders, base = name.split("/")
    if file_reason(base) == SECRET or any(folder_reason(each) == SECRET for each in folders):
        return False
    return never_read(f"{root}/{name}", closed) is None


def _program(tree: WorkTree) -> str:
    """Return where git is, which must not be in the repository itself."""
    program = shutil.which("git")
    if program is None:
        raise NotAWorkTreeError("git is not installed here")
    if not os.path.isabs(program) or is_below(os.path.realpath(program), tree.top):  # noqa: PTH117
        raise NotAWorkTreeError(f"{program} is not run: it is not one that the system brings")
    return program


def _first_line(errors: Path) -> str:
    with errors.open("rb") as file:
        return file.read(300).decode(errors="replace").partition("\n")[0]
