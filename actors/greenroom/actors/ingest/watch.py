"""What changes below some roots, as the system tells it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final

import trio

from greenroom.actors.ingest.ignore_files import NAMES
from greenroom.actors.ingest.places import is_below

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

SETTLE_MS: Final = 40
"""How long after a change others are waited for that belong to it, such as a rename after writing."""
STEP_MS: Final = 20
RESCAN_SECONDS: Final = 600
"""After so long without a change everything is looked at again: what the system tells may get lost."""
_RULES: Final = tuple(f"/{name}" for name in NAMES)


class NotWatchedError(Exception):
    """The system does not tell of changes here; the sentence says why."""


@asynccontextmanager
async def watching(roots: Sequence[str]) -> AsyncIterator[Changes]:
    """Watch some roots from now on, also while nobody asks what changed.

    Raises:
        NotWatchedError: the system watches no more.
    """
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415  `awatch` begins when it is first asked

    folders = _folders(roots)
    is_recursive = not folders.isdisjoint(roots)
    try:
        watcher = await trio.to_thread.run_sync(
            RustNotify, sorted(folders), False, False, 300, is_recursive, True
        )
    except OSError as error:
        raise NotWatchedError(
            f"the system does not tell of changes: {error}; on Linux, fs.inotify.max_user_watches may be too "
            "low for so many folders"
        ) from None
    changes = Changes(watcher, roots)
    try:
        yield changes
    finally:
        changes.close()


class Changes:
    """What changed below some roots since it was last asked."""

    def __init__(self, watcher: RustNotify, roots: Sequence[str]) -> None:
        self._watcher = watcher
        self._roots = roots
        self._end = Event()

    async def next(self) -> frozenset[str]:
        """Wait until something changes, and return the paths; none where everything is to be looked at."""
        while True:
            wait = partial(self._watcher.watch, SETTLE_MS, STEP_MS, RESCAN_SECONDS * 1_000, self._end)
            told = await trio.to_thread.run_sync(wait, abandon_on_cancel=True)
            if not isinstance(told, set):
                return frozenset()
            paths = (path for _, path in told)
            wanted = frozenset(path for path in paths if any(is_below(path, root) for root in self._roots))
            if any(path.endswith(_RULES) for path in wanted):
                return frozenset()
            if wanted:
                return wanted

    def close(self) -> None:
        """Watch no more."""
        self._end.set()
        self._watcher.close()


def _folders(roots: Sequence[str]) -> set[str]:
    """Return the folders to watch: for a file its folder, where a new one takes its place."""
    return {root if os.path.isdir(root) else os.path.dirname(root) for root in roots}  # noqa: PTH112, PTH120
