"""Run git for a work tree, but no program of the repository.

`stand_in` explains how. In addition, git runs in a minimal environment, with limits on time and output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import trio

from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import COMMIT, NotAWorkTreeError, WorkTree
from greenroom.actors.core.git.stand_in import KEPT, find_work_tree, make_stand_in

ANCESTRY_SECONDS: Final = 0.5
"""Time limit for all git commands that read the history; a client's hook waits."""
MAX_NAMES: Final = 1 << 20
"""Maximum bytes of a list of names."""
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


class Git(NamedTuple):
    """How to run git for one work tree."""

    command: list[str]
    environment: dict[str, str]
    folder: Path

    async def output(self, *arguments: str, limit: int, may_fail: bool = False) -> tuple[str, bool]:
        """Return a command's output as text, as `data` does."""
        data, is_cut = await self.data(*arguments, limit=limit, may_fail=may_fail)
        return data.decode(errors="replace"), is_cut

    async def data(self, *arguments: str, limit: int, may_fail: bool = False) -> tuple[bytes, bool]:
        """Return the output of a command, and whether it was cut.

        Raises:
            NotAWorkTreeError: git failed.
        """
        errors = self.folder / "errors"
        with errors.open("wb") as error_file:
            process = await trio.lowlevel.open_process(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=error_file,
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
        return bytes(data[:limit]), is_cut


async def prepare_git(tree: WorkTree, temporary: Path) -> Git:
    """Prepare git for a work tree, with a stand-in for its git directory.

    Raises:
        NotAWorkTreeError: There is no git, or the repository must not be read.
    """
    program = await read_in_thread(_find_git, tree)
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
    reading = Git([program], environment, temporary)
    wanted = "|".join(re.escape(key) for key in KEPT)
    file = f"{tree.common}/config"
    command = ("config", "--file", file, "--no-includes", "--null", "--get-regexp", f"^({wanted})$")
    printed, _ = await reading.output(*command, limit=MAX_NAMES, may_fail=True)
    settings = dict(each.partition("\n")[::2] for each in printed.split("\0") if each)
    stand_in = temporary / "git"
    await read_in_thread(stand_in.mkdir)
    try:
        await read_in_thread(make_stand_in, tree, stand_in, settings)
    except OSError as error:
        raise NotAWorkTreeError(f"{tree.git} is not read: {error.strerror}") from None
    places = {"GIT_DIR": str(stand_in), "GIT_WORK_TREE": tree.top, "GIT_INDEX_FILE": f"{tree.git}/index"}
    return Git([program, "-C", tree.top, *_OPTIONS], environment | places, temporary)


async def find_unmerged(folder: str, head: str, commits: Collection[str]) -> set[str]:
    """Return which commits a folder's repository has that are not in the history of ``head``.

    All are full names of commits; nothing else may be given to git. Only these names are returned, so a
    repository that borrows objects (`git clone --shared`) is read, too.

    Raises:
        NotAWorkTreeError: git cannot tell; the text says why.
    """
    if not all(map(COMMIT.fullmatch, (head, *commits))):
        raise NotAWorkTreeError(f"{head}, {', '.join(commits)}: not all are names of commits")
    tree = await read_in_thread(partial(find_work_tree, folder, may_borrow=True))
    with TemporaryDirectory(prefix="greenroom-git-") as temporary:
        with trio.move_on_after(ANCESTRY_SECONDS) as time:
            git = await prepare_git(tree, Path(temporary))
            command = ("rev-list", "--ignore-missing", *commits, f"^{head}", "--")
            printed, is_cut = await git.output(*command, limit=MAX_NAMES)
        if time.cancelled_caught or is_cut:
            raise NotAWorkTreeError("git did not tell in time which commits belong together")
    return set(commits) & set(printed.split())


def _find_git(tree: WorkTree) -> str:
    """Return the path of git, which must not be in the repository itself."""
    program = shutil.which("git")
    if program is None:
        raise NotAWorkTreeError("git is not installed here")
    if not os.path.isabs(program) or os.path.realpath(program).startswith(f"{tree.top}/"):  # noqa: PTH117
        raise NotAWorkTreeError(f"{program} is not run: it is not one that the system brings")
    return program


def _first_line(errors: Path) -> str:
    with errors.open("rb") as file:
        return file.read(300).decode(errors="replace").partition("\n")[0]
