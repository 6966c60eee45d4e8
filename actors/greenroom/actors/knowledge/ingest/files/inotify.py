"""Watch folders on Linux with inotify: immediate, follows no links, notices lost events."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

import trio
from inotify_simple import Event, INotify, flags

from greenroom.actors.knowledge.ingest.files.exclusions import folder_reason

SETTLE_SECONDS: Final = 0.04
"""Time to collect changes that belong together, such as a rename after writing."""
_WATCHED: Final = (
    flags.CREATE
    | flags.MODIFY
    | flags.CLOSE_WRITE
    | flags.ATTRIB
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
    | flags.DONT_FOLLOW
    | flags.EXCL_UNLINK
)
_IS_GONE: Final = flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT
_IS_NEW: Final = flags.CREATE | flags.MOVED_TO
_NO_MORE: Final = frozenset({errno.ENOSPC, errno.ENOMEM})


class Inotify:
    """Watches some folders recursively, except folders that are never read because of their names.

    Raises:
        OSError: A folder does not exist, or the system's limit is reached.
    """

    def __init__(self, roots: Sequence[str], closed: Collection[str] = ()) -> None:
        self._closed = closed
        folders = {root: os.path.isdir(root) for root in roots}  # noqa: PTH112  (paths are texts here)
        deep = [root for root, is_folder in folders.items() if is_folder]
        self._missing = {root for root in roots if not os.path.lexists(root)}
        self._shallow = {os.path.dirname(root) for root in roots if not folders[root]}.difference(deep)  # noqa: PTH120
        self._tops = self._shallow.union(deep)
        self._settling = False
        self._paths: dict[int, str] = {}
        self._notify = INotify(nonblocking=True)
        try:
            self._watch([*self._shallow, *deep])
        except BaseException:
            self.close()
            raise

    @property
    def is_pending(self) -> bool:
        """Whether there are changes that `take` has not returned; a request must wait for these."""
        return self._settling

    async def take(self) -> set[str] | None:
        """Return the paths of changes; None if some were lost, or a root appeared.

        Raises:
            OSError: The system's limit of watches is reached.
        """
        await trio.lowlevel.wait_readable(self._notify.fileno())
        self._settling = True  # it stays true after a failure
        await trio.sleep(SETTLE_SECONDS)
        taken = await trio.to_thread.run_sync(self._read_events, abandon_on_cancel=True)
        self._settling = False
        return taken

    def close(self) -> None:
        """Stop watching."""
        self._notify.close()

    def _read_events(self) -> set[str] | None:
        changed: set[str] = set()
        for event in self._notify.read(timeout=0):
            above = self._paths.get(event.wd)
            if event.mask & flags.Q_OVERFLOW or (event.mask & _IS_GONE and above in self._tops):
                return None
            if event.mask & flags.IGNORED:
                self._paths.pop(event.wd, None)
            elif above is not None and not event.mask & _IS_GONE:
                path = f"{above}/{event.name}" if event.name else above
                if path in self._missing:
                    return None
                changed.add(path)
                if event.mask & flags.ISDIR and above not in self._shallow:
                    self._follow(event, path)
        return changed

    def _follow(self, event: Event, path: str) -> None:
        """Watch a new folder, and stop watching a folder that was moved away."""
        if event.mask & flags.MOVED_FROM:
            for watch, folder in list(self._paths.items()):
                if folder == path or folder.startswith(f"{path}/"):
                    del self._paths[watch]
                    with suppress(OSError):  # gone already
                        self._notify.rm_watch(watch)
        elif event.mask & _IS_NEW and self._is_watched(event.name, path):
            self._watch([path])

    def _watch(self, waiting: list[str]) -> None:
        """Watch folders before listing them, so that no change is missed."""
        while waiting:
            folder = waiting.pop()
            try:
                self._paths[self._notify.add_watch(folder, _WATCHED)] = folder
                if folder not in self._shallow:
                    with os.scandir(folder) as entries:
                        waiting += self._folders(entries)
            except OSError as error:  # usually gone again, or not readable
                if error.errno in _NO_MORE or folder in self._tops:
                    raise

    def _folders(self, entries: Iterable[os.DirEntry[str]]) -> list[str]:
        return [
            each.path
            for each in entries
            if each.is_dir(follow_symlinks=False) and self._is_watched(each.name, each.path)
        ]

    def _is_watched(self, name: str, path: str) -> bool:
        return folder_reason(name) is None and path not in self._closed
