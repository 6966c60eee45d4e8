"""Work that is killed at each of its commits in turn; what is left is looked at.

It forks, so that nothing has to be imported for each kill. Prints a JSON line for each commit.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import trio

from greenroom.runtime import Store, WriteBatch


def kill_at_each(
    home: Path,
    work: Callable[[Path], Awaitable[None]],
    look: Callable[[Path], Awaitable[dict[str, Any]]],
    *,
    begun: Path | None = None,
) -> None:
    """Kill at every commit until one is never reached.

    Args:
        home: Where the folders are made, one for each commit.
        work: What is killed, in a folder.
        look: Says what is in the folder then.
        begun: The folder that each is a copy of.
    """
    commit, was_killed = 0, True
    while was_killed:
        commit += 1
        folder = home / str(commit)
        if begun is not None:
            copytree(begun, folder)
        child = os.fork()
        if not child:
            _dies_at(commit, after=bool(commit % 2))
            trio.run(work, folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status)
        found = trio.run(look, folder)
        print(json.dumps({"commit": commit, "killed": was_killed, **found}), flush=True)  # noqa: T201


def _dies_at(commit: int, *, after: bool) -> None:
    """Have the process killed at this commit, counted from 1."""
    commits = 0
    original = Store.commit

    def counted(store: Store, works: Sequence[WriteBatch]) -> None:
        nonlocal commits
        commits += 1
        if commits == commit and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        original(store, works)
        if commits == commit and after:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.commit = counted  # type: ignore[assignment, method-assign]
