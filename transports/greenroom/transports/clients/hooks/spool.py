"""The spool: events of hooks that wait for the next owner of a folder, and how far transcripts were told.

Invariants, wherever a process is killed:

* A file has its public name only when its bytes are durable, and its name is when `Spool.put` returns.
* A stretch of a transcript is told once. How far it was told is written while the event still has a hidden
  name, and names it; whoever opens the spool next gives the event its public name, or removes an event of
  which nothing is written. One process at a time holds the spool.
* A file is removed only after the owner has its event in the store; the owner knows the ids of those.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.runtime.base.errors import GreenroomError
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.transports.clients.hooks.spool_folder import (
    READ_FLAGS,
    open_private,
    open_spool_folder,
    write_synced,
)

MAX_FILES: Final = 1_000
MAX_BYTES: Final = 64 << 20
MAX_ENTRY: Final = 4 << 20
"""Most files that wait, most bytes of them, and most of one."""
MAX_REFUSED: Final = 100
MAX_KEPT: Final = 1_000
"""Most files that could not be read, and most transcripts of which it is known how far they were told."""
REFUSED: Final = "refused"
_OFFSETS: Final = "offsets"
_NO_KEY: Final = "-"
_NAME: Final = re.compile(r"(\d{20})-[0-9a-f]{32}\.json")


class SpoolError(GreenroomError):
    """An event cannot be kept or read; the sentence says why."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of the spool holds: an event, and whose it is."""

    principal: Principal
    event: HookEvent


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a transcript was told.

    Attributes:
        offset: Bytes from its beginning.
        mark: A digest of the bytes before that, by which a file that was written anew is told.
        pending: The public name of the event that tells it so far.
    """

    offset: int
    mark: str
    pending: str = ""


class Waiting(NamedTuple):
    """What waits in a spool.

    Attributes:
        files: Events that wait.
        bytes: Their size.
        oldest_at: When the first of them was put there.
        refused: Files that could not be read and were put aside.
    """

    files: int = 0
    bytes: int = 0
    oldest_at: datetime | None = None
    refused: int = 0


class Spool:
    """A spool that this process holds.

    Args:
        descriptor: Its folder, opened.
        offsets: The folder in it that has how far transcripts were told.
    """

    def __init__(self, descriptor: int, offsets: int) -> None:
        self._folder = descriptor
        self._offsets = offsets

    def kept(self, key: str) -> Kept | None:
        """Return how far the transcript of this key was told; None if nothing that can be read says so."""
        try:
            return msgspec.json.decode(_read(key, self._offsets, 1 << 10), type=Kept)
        except (OSError, SpoolError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def put(self, entry: Entry, key: str | None = None, kept: Kept | None = None) -> None:
        """Keep an event until the owner has it; when this returns it outlives a power cut.

        Args:
            entry: The event.
            key: That of the transcript which it tells, 32 hexadecimal digits.
            kept: How far.

        Raises:
            SpoolError: It is too large, or too much waits.
            OSError: It cannot be written.
        """
        data = msgspec.json.encode(entry)
        self._check_room(len(data))
        name = f"{time.time_ns():020d}-{entry.event.id}.json"
        hidden = f".{key or _NO_KEY}.{name}"
        write_synced(hidden, data, self._folder)
        if key is not None and kept is not None:
            try:
                sync_descriptor(self._folder)
                self._keep(key, msgspec.structs.replace(kept, pending=name))
            except BaseException:
                os.unlink(hidden, dir_fd=self._folder)
                raise
        os.rename(hidden, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        sync_descriptor(self._folder)

    def settle(self) -> None:
        """Give events that a killed process left hidden their public names, or remove what is not told."""
        for name in _listed(self._folder):
            if not name.startswith("."):
                continue
            key, _, public = name[1:].partition(".")
            kept = None if key == _NO_KEY else self.kept(key)
            if kept is not None and kept.pending == public:
                os.rename(name, public, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                _unlink_file(name, self._folder)

    def forget_old(self) -> None:
        """Forget how far the transcripts were told that nobody told for longest, beyond `MAX_KEPT`."""
        with os.scandir(self._offsets) as found:
            ages = sorted(((each.stat().st_mtime_ns, each.name) for each in found), reverse=True)
        for _, name in ages[MAX_KEPT:]:
            _unlink_file(name, self._offsets)

    def _keep(self, key: str, kept: Kept) -> None:
        write_synced(".new", msgspec.json.encode(kept), self._offsets)
        os.rename(".new", key, src_dir_fd=self._offsets, dst_dir_fd=self._offsets)
        sync_descriptor(self._offsets)

    def _check_room(self, size: int) -> None:
        if size > MAX_ENTRY:
            raise SpoolError(f"the event has {size:,} bytes; at most {MAX_ENTRY:,} are kept")
        sizes = [_size(name, self._folder) for name in _names(self._folder)]
        if len(sizes) >= MAX_FILES or sum(sizes) + size > MAX_BYTES:
            raise SpoolError(
                f"{len(sizes):,} events of {sum(sizes):,} bytes wait already, and no more are kept; "
                "start `greenroom serve` on the folder, which takes them"
            )


@contextmanager
def held(folder: Path, *, create: bool = True) -> Iterator[Spool]:
    """Hold the spool of a data folder; whoever else wants it waits.

    Args:
        folder: The data folder.
        create: Whether it is made where it is missing.

    Raises:
        FileNotFoundError: There is none, and none is to be made.
        OSError: It is a link, or another user's, or cannot be made.
        StoreError: The data folder can be none.
    """
    descriptor = open_spool_folder(folder, create=create)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, and with the process
        offsets = open_private(_OFFSETS, descriptor, create=True)
        try:
            spool = Spool(descriptor, offsets)
            spool.settle()
            yield spool
        finally:
            os.close(offsets)
    finally:
        os.close(descriptor)


def settle(folder: Path) -> None:
    """Do what `Spool.settle` does, if there is a spool.

    Raises:
        OSError: as `held`.
    """
    with suppress(FileNotFoundError), held(folder, create=False):
        pass


def waiting(folder: Path) -> Waiting:
    """Return what waits in the spool of a data folder; nothing where there is none.

    Raises:
        OSError: It is a link, or another user's, or cannot be read.
    """
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        names = _names(descriptor)
        sizes = [_size(name, descriptor) for name in names]
        return Waiting(len(names), sum(sizes), _time_of(names[0]) if names else None, _refused(descriptor))
    return Waiting()


def names_in(folder: Path) -> list[str]:
    """Return the names of what waits, the oldest first.

    Raises:
        OSError: as `waiting`.
    """
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        return _names(descriptor)
    return []


def read_entry(folder: Path, name: str) -> Entry:
    """Return what a file of the spool holds.

    Raises:
        FileNotFoundError: It is gone.
        SpoolError: It cannot be read, and never will.
        OSError: It cannot be read now.
    """
    with _opened(folder) as descriptor:
        try:
            return msgspec.json.decode(_read(name, descriptor, MAX_ENTRY), type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SpoolError(f"the file {name} of the spool holds no event: {error}") from None


def remove(folder: Path, name: str) -> None:
    """Remove a file of the spool, whose event is in the store. It may be gone already.

    It may come back after a power cut, for this is not synced; the owner knows events that it has.
    """
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        os.unlink(name, dir_fd=descriptor)


def names_of(folder: Path, user: str, agents: Sequence[str]) -> list[str]:
    """Return the names of what waits of a user, or of agents that work for none.

    Raises:
        OSError: The spool cannot be read.
    """
    return [name for name in names_in(folder) if _is_of(folder, name, user, agents)]


def remove_refused(folder: Path) -> None:
    """Remove what was put aside: nobody can tell whose it is."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        aside = open_private(REFUSED, descriptor, create=False)
        try:
            for each in _listed(aside):
                _unlink_file(each, aside)
        finally:
            os.close(aside)


def refuse(folder: Path, name: str) -> None:
    """Put a file aside that cannot be taken, and remove the oldest beyond `MAX_REFUSED`."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        aside = open_private(REFUSED, descriptor, create=True)
        try:
            os.rename(name, name, src_dir_fd=descriptor, dst_dir_fd=aside)
            for each in sorted(_listed(aside), reverse=True)[MAX_REFUSED:]:
                _unlink_file(each, aside)
        finally:
            os.close(aside)


def _is_of(folder: Path, name: str, user: str, agents: Sequence[str]) -> bool:
    try:
        whose = read_entry(folder, name).principal
    except (SpoolError, FileNotFoundError):
        return False
    return whose.user == user or (whose.user is None and whose.agent_id in agents)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = open_spool_folder(folder, create=False)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _listed(descriptor: int) -> list[str]:
    return os.listdir(descriptor)


def _names(descriptor: int) -> list[str]:
    return sorted(filter(_NAME.fullmatch, _listed(descriptor)))


def _unlink_file(name: str, above: int) -> None:
    """Remove a file; what is a folder is none of ours, and in nobody's way."""
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=above)


def _size(name: str, above: int) -> int:
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_size
    except FileNotFoundError:  # the owner took it meanwhile
        return 0


def _time_of(name: str) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(name[:20]) / 1e9, UTC)
    return None


def _refused(descriptor: int) -> int:
    try:
        aside = open_private(REFUSED, descriptor, create=False)
    except FileNotFoundError:
        return 0
    try:
        return len(_listed(aside))
    finally:
        os.close(aside)


def _read(name: str, above: int, limit: int) -> bytes:
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SpoolError(f"the file {name} of the spool is a symbolic link") from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)  # nothing is made of it: of a folder that would fail
        raise SpoolError(f"the file {name} of the spool is no plain file of this user")
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        data = b"".join(iter(lambda: file.read(1 << 20), b"")) if status.st_size <= limit else None
    if data is None or len(data) > limit:
        raise SpoolError(f"the file {name} of the spool is larger than {limit:,} bytes")
    return data
