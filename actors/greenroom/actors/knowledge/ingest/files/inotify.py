"""What changes below folders as Linux tells it: at once, through no link, and with what was lost."""

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
"""How long after a change others are waited for that belong to it, such as a rename after writing."""
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
    """The watches of some folders, and of all below them but those that nobody reads by their names.

    Args:
        roots: Folders, and files, of which the folder alone is watched, as it is of what is not there.
        closed: Folders below them that are not watched.

    Raises:
        OSError: a folder is not there, or the system watches no more.
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
        """Whether something changed that was not taken: so for whatever is asked after the change."""
        return self._settling

    async def take(self) -> set[str] | None:
        """Wait until something changes, and return the paths; None where some were lost, or a root came.

        Raises:
            OSError: the system watches no more.
        """
        await trio.lowlevel.wait_readable(self._notify.fileno())
        self._settling = True  # and that stays so where it fails
        await trio.sleep(SETTLE_SECONDS)
        taken = await trio.to_thread.run_sync(self._taken, abandon_on_cancel=True)
        self._settling = False
        return taken

    def close(self) -> None:
        """Watch no more."""
        self._notify.close()

    def _taken(self) -> set[str] | None:
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
        """Watch a folder that came, and no more one that was moved away."""
        if event.mask & flags.MOVED_FROM:
            for watch, folder in list(self._paths.items()):
                if folder == path or folder.startswith(f"{path}/"):
                    del self._paths[watch]
                    with suppress(OSError):  # it is gone meanwhile
                        self._notify.rm_watch(watch)
        elif event.mask & _IS_NEW and self._is_watched(event.name, path):
            self._watch([path])

    def _watch(self, waiting: list[str]) -> None:
        """Watch some folders before they are looked into, so that nothing comes between."""
        while waiting:
            folder = waiting.pop()
            try:
                self._paths[self._notify.add_watch(folder, _WATCHED)] = folder
                if folder not in self._shallow:
                    with os.scandir(folder) as entries:
                        waiting += self._folders(entries)
            except OSError as error:  # mostly it is gone again, or may not be looked into
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
