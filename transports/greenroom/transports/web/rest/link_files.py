"""Files that redirect a browser to a one-time link.

All users of a machine can read the arguments of programs, so the browser gets the path of a file instead.

Invariants:

- From a file's creation on, only its user can read it. No other user can replace it or its folder.
- A file is removed when its link is used or expires, and when its server ends. The next server removes the
  files of a killed server.
"""

from __future__ import annotations

import html
import logging
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

import trio

from greenroom.runtime.lmdb.files import FOLDER_MODE, create_file
from greenroom.transports.web.rest.terminal_codes import digest_of

FOLDER: Final = "links"
"""The folder of the files, next to the secrets of stores."""
_MOST: Final = 64
_NAME: Final = re.compile(r"[0-9a-f]{32}\.html")
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta http-equiv="refresh" content="0; url={url}">
<title>Greenroom</title>
<p><a href="{url}">To the console</a></p>
</html>
"""
logger = logging.getLogger(__name__)


class _File(NamedTuple):
    path: Path
    until: float


class LinkFiles:
    """The redirect files of one server's links."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder.absolute()  # the browser may have another working folder
        self._seconds = seconds
        self._files: dict[bytes, _File] = {}
        self._written = trio.Event()

    def write(self, url: str) -> Path | None:
        """Write a file that redirects to a link; None if others could read the file."""
        while len(self._files) >= _MOST:
            self._remove(next(iter(self._files)))
        path = self._folder / f"{secrets.token_hex(16)}.html"
        try:
            self._folder.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            self._folder.mkdir(FOLDER_MODE, exist_ok=True)
            _check(self._folder)
            create_file(path, _PAGE.format(url=html.escape(url)).encode())
        except OSError as error:
            logger.warning("no file leads a browser to the console: %s", error)
            return None
        self._files[digest_of(url.rpartition("/")[2])] = _File(path, trio.current_time() + self._seconds)
        self._written.set()
        return path

    def remove_used(self, token: str) -> None:
        """Remove the file of a used link, if the link has a file."""
        self._remove(digest_of(token))

    async def run(self) -> None:
        """Remove expired files, including those of killed servers, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                for path, seconds in await trio.to_thread.run_sync(_left_over, self._folder, self._seconds):
                    nursery.start_soon(_remove_later, path, seconds)
                while True:
                    await self._remove_late()
        finally:
            for digest in list(self._files):
                self._remove(digest)

    async def _remove_late(self) -> None:
        self._written = trio.Event()
        now = trio.current_time()
        for digest, file in list(self._files.items()):
            if file.until <= now:
                self._remove(digest)
        with trio.move_on_at(min((file.until for file in self._files.values()), default=inf)):
            await self._written.wait()

    def _remove(self, digest: bytes) -> None:
        file = self._files.pop(digest, None)
        if file is not None:
            _unlink(file.path)


def _unlink(path: Path) -> None:
    """Remove a file, which may be missing."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("a file that led a browser to the console stays: %s", error)


def _check(folder: Path) -> None:
    """Refuse a folder in which others could read or replace a file."""
    for place, status, rights in (
        (folder.parent, folder.parent.stat(), _OTHERS_WRITE),
        (folder, folder.lstat(), _OTHERS),
    ):
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid in {os.geteuid(), 0}
        if not is_ours or status.st_mode & rights:
            raise PermissionError(f"{place} is not a folder of yours alone (chmod 700 {place})")


def _left_over(folder: Path, seconds: float) -> list[tuple[Path, float]]:
    """Return the files of other servers, each with the seconds that it may stay."""
    found = []
    with suppress(OSError):
        _check(folder)
        for entry in os.scandir(folder):
            if _NAME.fullmatch(entry.name):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                found.append((Path(entry.path), min(seconds, max(0.0, seconds - age))))
    return found


async def _remove_later(path: Path, seconds: float) -> None:
    await trio.sleep(seconds)
    _unlink(path)
