"""What changes below some roots, as the system tells it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

import trio

from greenroom.actors.knowledge.ingest.files.ignore_files import NAMES
from greenroom.actors.knowledge.ingest.files.places import is_below

RESCAN_SECONDS: Final = 600
"""After so long without a change everything is looked at again: what the system tells may get lost."""
_AWAY_SECONDS: Final = 1.0
"""How often it is looked whether a folder above the roots that was moved away is there again."""
_RULES: Final = tuple(f"/{name}" for name in NAMES)


class NotWatchedError(Exception):
    """The system does not tell of changes here; the sentence says why."""


class Source(Protocol):
    """Tells of changes, as `Inotify` does."""

    @property
    def is_pending(self) -> bool:
        """Whether something changed that was not taken."""

    async def take(self) -> set[str] | None:
        """Wait until something changes, and return the paths; None where some were lost."""

    def close(self) -> None:
        """Watch no more."""


@asynccontextmanager
async def watching(roots: Sequence[str], closed: Collection[str] = ()) -> AsyncIterator[Changes]:
    """Watch some roots from now on, also while nobody asks what changed.

    Args:
        roots: Folders and files, as they are without links.
        closed: Folders below them of which nobody wants to hear.

    Raises:
        NotWatchedError: the system watches no more.
    """
    try:
        changes = Changes(await _opened(roots, closed), roots, closed)
    except FileNotFoundError as error:
        raise _not_watched(error) from None
    try:
        yield changes
    finally:
        changes.close()


async def _opened(roots: Sequence[str], closed: Collection[str]) -> Source:
    try:
        return await trio.to_thread.run_sync(_source, roots, closed, abandon_on_cancel=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _not_watched(error) from None


def _source(roots: Sequence[str], closed: Collection[str]) -> Source:
    if sys.platform == "linux":
        from greenroom.actors.knowledge.ingest.files.inotify import Inotify  # noqa: PLC0415  of this system

        return Inotify(roots, closed)
    from greenroom.actors.ingest.fsevents import FsEvents  # noqa: PLC0415  of others

    return FsEvents(roots)


def _not_watched(error: OSError) -> NotWatchedError:
    return NotWatchedError(
        f"the system does not tell of changes: {error}; on Linux, fs.inotify.max_user_watches may be too "
        "low for so many folders"
    )


class Changes:
    """What changed below some roots since it was last asked."""

    def __init__(self, source: Source, roots: Sequence[str], closed: Collection[str]) -> None:
        self._source = source
        self._roots = roots
        self._closed = closed
        self._is_lost = False

    @property
    def is_pending(self) -> bool:
        """Whether something changed of which `next` did not tell."""
        return self._is_lost or self._source.is_pending

    async def next(self) -> frozenset[str]:
        """Wait until something changes, and return the paths; none where everything is to be looked at.

        Raises:
            NotWatchedError: the system watches no more.
        """
        while True:
            told = None
            with trio.move_on_after(RESCAN_SECONDS):
                try:
                    told = await self._source.take()
                except OSError as error:
                    raise _not_watched(error) from None
            if told is None:
                await self._begin_anew()
                return frozenset()
            wanted = frozenset(filter(self._is_wanted, told))
            if any(path.endswith(_RULES) for path in wanted):
                return frozenset()
            if wanted:
                return wanted

    def close(self) -> None:
        """Watch no more."""
        self._source.close()

    async def _begin_anew(self) -> None:
        """Watch everything again, as soon as it is there: of what was lost some may be new folders."""
        self._is_lost = True
        lost = self._source
        while self._source is lost:
            try:
                self._source = await _opened(self._roots, self._closed)
            except FileNotFoundError:
                await trio.sleep(_AWAY_SECONDS)
        lost.close()
        self._is_lost = False

    def _is_wanted(self, path: str) -> bool:
        return any(is_below(path, root) for root in self._roots) and not any(
            is_below(path, folder) for folder in self._closed
        )
