"""Compare a reply's files with the disk, where the client is connected.

It checks only documents that were read from files, never texts that were sent. And it checks only files that
the caller may ingest.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.base.threads import get_or_make
from greenroom.actors.knowledge.corpora.requests.corpus_requests import FreshnessView, IndexedFile
from greenroom.actors.knowledge.ingest.files.places import Reach, may_look

SECONDS: Final = 0.25
"""Files that are not checked within this time are left out."""
_AT_ONCE: Final = 2
"""At most this many replies are checked at once, so that a hanging file system blocks no other threads."""
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("files looked at")


async def add_changes(freshness: FreshnessView, files: Sequence[IndexedFile], reach: Reach) -> FreshnessView:
    """Add the changed files to a freshness view, if the files may be checked."""
    if not files or (reach.roots == () and not reach.takes_client_folders):
        return freshness
    return add_states(freshness, await check_files(files, reach))


async def check_files(files: Sequence[IndexedFile], reach: Reach) -> dict[str, bool | None]:
    """Return whether each checked file has changed since it was read; None if gone."""
    look = _FileCheck(files, reach)
    limiter = get_or_make(_limiter, lambda: trio.CapacityLimiter(_AT_ONCE))
    with trio.move_on_after(SECONDS):
        await trio.to_thread.run_sync(look.run, limiter=limiter, abandon_on_cancel=True)
    return look.end()


def add_states(freshness: FreshnessView, states: Mapping[str, bool | None]) -> FreshnessView:
    """Return a freshness view with the result of `check_files`."""
    return msgspec.structs.replace(
        freshness,
        files_checked=len(states),
        changed_files=[path for path, differs in states.items() if differs] or UNSET,
        missing_files=[path for path, differs in states.items() if differs is None] or UNSET,
    )


class _FileCheck:
    """A check of files in a thread; the caller may abandon this thread."""

    def __init__(self, files: Sequence[IndexedFile], reach: Reach) -> None:
        self._files = files
        self._reach = reach
        self._is_over = threading.Event()
        self._states: dict[str, bool | None] = {}

    def run(self) -> None:
        """Check the files until `end` is called."""
        from greenroom.actors.knowledge.ingest.files.file_content import differs  # noqa: PLC0415 - slow, but this runs in a thread

        for file in self._files:
            if self._is_over.is_set():
                return
            if not may_look(file.path, self._reach):
                continue
            try:
                self._states[file.path] = differs(file)
            except OSError as error:
                if error.errno in _GONE:
                    self._states[file.path] = None

    def end(self) -> dict[str, bool | None]:
        """End the check, and return the states found so far."""
        self._is_over.set()
        return dict(self._states)
