"""What changes below folders where the system is not Linux, as the library watchfiles tells it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from threading import Event
from typing import Final

import trio
from watchfiles._rust_notify import RustNotify

SETTLE_MS: Final = 40
"""How long after a change others are waited for that belong to it, such as a rename after writing."""
STEP_MS: Final = 20
_NEVER_MS: Final = 0


class FsEvents:
    """The watches of some folders, and of all below them.

    Args:
        roots: Folders, and files, of which the folder is watched.

    Raises:
        OSError: a folder is not there, or the system watches no more.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        folders = {root if os.path.isdir(root) else os.path.dirname(root) for root in roots}  # noqa: PTH112, PTH120
        is_recursive = not folders.isdisjoint(roots)
        self._watcher = RustNotify(sorted(folders), False, False, 300, is_recursive, True)
        self._end = Event()

    @property
    def is_pending(self) -> bool:
        """Whether something changed that was not taken; the system does not say so before it is told."""
        return False

    async def take(self) -> set[str] | None:
        """Wait until something changes, and return the paths; None where some were lost."""
        wait = partial(self._watcher.watch, SETTLE_MS, STEP_MS, _NEVER_MS, self._end)
        told = await trio.to_thread.run_sync(wait, abandon_on_cancel=True)
        return {path for _, path in told} if isinstance(told, set) else None

    def close(self) -> None:
        """Watch no more."""
        self._end.set()
        self._watcher.close()
