"""Watch roots for changes by the system's notifications."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from threading import Event
from typing import Final, Protocol

import trio

from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import NAMES

RESCAN_SECONDS: Final = 600
"""After this long without changes, everything is checked again: notifications may get lost."""
_AWAY_SECONDS: Final = 1.0
"""Interval at which to check whether a moved folder above the roots is back."""
_RULES: Final = tuple(f"/{name}" for name in NAMES)


class NotWatchedError(Exception):
    """The system does not report changes here; the text says why."""


class Source(Protocol):
    """A source of change notifications, such as `Inotify`."""

    @property
    def is_pending(self) -> bool:
        """Whether there are changes that `take` has not returned."""

    async def take(self) -> set[str] | None:
        """Wait for changes, and return their paths; None if some were lost."""

    def close(self) -> None:
        """Stop watching."""


@asynccontextmanager
async def watch(roots: Sequence[str], closed: Collection[str] = ()) -> AsyncIterator[Changes]:
    """Watch some roots from now on; changes are collected until `Changes.next` returns them.

    Raises:
        NotWatchedError: The system's limit is reached.
    """
    try:
        changes = Changes(await _open_source(roots, closed), roots, closed)
    except FileNotFoundError as error:
        raise _not_watched(error) from None
    try:
        yield changes
    finally:
        changes.close()


async def _open_source(roots: Sequence[str], closed: Collection[str]) -> Source:
    try:
        return await trio.to_thread.run_sync(_source, roots, closed, abandon_on_cancel=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _not_watched(error) from None


def _source(roots: Sequence[str], closed: Collection[str]) -> Source:
    if sys.platform == "linux":
        from greenroom.actors.knowledge.ingest.files.inotify import Inotify  # noqa: PLC0415  needed only on this system

        return Inotify(roots, closed)
    return FsEvents(roots)


def _not_watched(error: OSError) -> NotWatchedError:
    return NotWatchedError(
        f"the system does not tell of changes: {error}; on Linux, fs.inotify.max_user_watches may be too "
        "low for so many folders"
    )


class Changes:
    """The changes below some roots since the last call of `next`."""

    def __init__(self, source: Source, roots: Sequence[str], closed: Collection[str]) -> None:
        self._source = source
        self._roots = roots
        self._closed = closed
        self._is_lost = False

    @property
    def is_pending(self) -> bool:
        """Whether there are changes that `next` has not returned."""
        return self._is_lost or self._source.is_pending

    async def next(self) -> frozenset[str]:
        """Wait for changes and return their paths; an empty set means: check everything.

        Raises:
            NotWatchedError: The system's limit is reached.
        """
        while True:
            changed = None
            with trio.move_on_after(RESCAN_SECONDS):
                try:
                    changed = await self._source.take()
                except OSError as error:
                    raise _not_watched(error) from None
            if changed is None:
                await self._restart()
                return frozenset()
            wanted = frozenset(filter(self._is_wanted, changed))
            if any(path.endswith(_RULES) for path in wanted):
                return frozenset()
            if wanted:
                return wanted

    def close(self) -> None:
        """Stop watching."""
        self._source.close()

    async def _restart(self) -> None:
        """Watch all roots again once they exist, because lost events may report new folders."""
        self._is_lost = True
        lost = self._source
        while self._source is lost:
            try:
                self._source = await _open_source(self._roots, self._closed)
            except FileNotFoundError:
                await trio.sleep(_AWAY_SECONDS)
        lost.close()
        self._is_lost = False

    def _is_wanted(self, path: str) -> bool:
        return any(is_below(path, root) for root in self._roots) and not any(
            is_below(path, folder) for folder in self._closed
        )


SETTLE_MS: Final = 40
"""Time to collect changes that belong together, such as a rename after writing."""
STEP_MS: Final = 20
_NEVER_MS: Final = 0


class FsEvents:
    """Watches some folders recursively; for a file, it watches the file's folder.

    Raises:
        OSError: A folder does not exist, or the system's limit is reached.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415  needed only on other systems

        folders = {root if os.path.isdir(root) else os.path.dirname(root) for root in roots}  # noqa: PTH112, PTH120
        is_recursive = not folders.isdisjoint(roots)
        self._watcher = RustNotify(sorted(folders), False, False, 300, is_recursive, True)
        self._end = Event()

    @property
    def is_pending(self) -> bool:
        """Whether changes are waiting; always false, because this system cannot tell."""
        return False

    async def take(self) -> set[str] | None:
        """Wait for changes, and return their paths; None if some were lost."""
        wait = partial(self._watcher.watch, SETTLE_MS, STEP_MS, _NEVER_MS, self._end)
        changed = await trio.to_thread.run_sync(wait, abandon_on_cancel=True)
        return {path for _, path in changed} if isinstance(changed, set) else None

    def close(self) -> None:
        """Stop watching."""
        self._end.set()
        self._watcher.close()
