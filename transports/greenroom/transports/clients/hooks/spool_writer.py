"""The spool for its writers: hook events for the next owner, and read offsets.

Invariants, even if a process is killed at any point:

* A file gets its public name only after its bytes are durable; `Spool.put` returns after the name is durable.
* Each part of a transcript is enqueued once. While the event still has a hidden name, the new read offset is
  written and refers to it. The next process that holds the spool publishes the event, or removes it if no
  offset refers to it. Only one process at a time holds the spool.
* A file is removed only after the owner has committed its event; the owner knows the ids of committed events.

Hooks import this module, so it does without msgspec.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.runtime.base.errors import GreenroomError
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.transports.clients.hooks.spool_folder import (
    READ_FLAGS,
    closed_after,
    open_private,
    open_spool_folder,
    write_synced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES: Final = 1_000
MAX_BYTES: Final = 64 << 20
MAX_ENTRY: Final = 4 << 20
"""The most waiting files, the most bytes of all of them, and the most bytes of one."""
MAX_KEPT: Final = 1_000
"""The most transcripts with a read offset."""
_OFFSETS: Final = "offsets"
_NO_KEY: Final = "-"
_NAME: Final = re.compile(r"(\d{20})-[0-9a-f]{32}\.json")


class SpoolError(GreenroomError):
    """An event cannot be written or read; the sentence says why."""


class ReadOffset(NamedTuple):
    """The read offset of a transcript."""

    offset: int
    mark: str  # a digest of the bytes before the offset, to detect a rewritten file
    pending: str = ""  # the public name of the event with the last part


class Spool:
    """A spool held by this process."""

    def __init__(self, descriptor: int, offsets: int) -> None:
        self._folder = descriptor
        self._offsets = offsets

    def read_offset(self, key: str) -> ReadOffset | None:
        """Return the read offset of a transcript; None if it is missing or unreadable."""
        try:
            found = json.loads(read_file(key, self._offsets, 1 << 10))
            offset, mark, pending = found["offset"], found["mark"], found.get("pending", "")
        except (OSError, SpoolError, ValueError, LookupError, TypeError, AttributeError):
            return None
        is_known = type(offset) is int and offset >= 0 and isinstance(mark, str) and isinstance(pending, str)
        return ReadOffset(offset, mark, pending) if is_known else None

    def put(self, event_id: str, data: bytes, key: str | None = None, kept: ReadOffset | None = None) -> None:
        """Write an event durably; it survives a power cut once this returns.

        Args:
            event_id: The event's id.
            data: The event and its principal, as JSON.
            key: The key of its transcript, 32 hexadecimal digits.
            kept: The new read offset.

        Raises:
            SpoolError: The event is too large, or too many events wait.
            OSError: The event cannot be written.
        """
        self._check_room(len(data))
        name = f"{time.time_ns():020d}-{event_id}.json"
        hidden = f".{key or _NO_KEY}.{name}"
        write_synced(hidden, data, self._folder)
        if key is not None and kept is not None:
            try:
                sync_descriptor(self._folder)
                offset = kept._replace(pending=name)._asdict()
                write_synced(".new", json.dumps(offset).encode(), self._offsets)
                os.rename(".new", key, src_dir_fd=self._offsets, dst_dir_fd=self._offsets)
                sync_descriptor(self._offsets)
            except BaseException:
                self.complete_pending()  # what a new offset refers to is not lost
                raise
        os.rename(hidden, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        sync_descriptor(self._folder)

    def complete_pending(self) -> None:
        """Publish or remove events that a killed or failed process left hidden."""
        for name in list_entries(self._folder):
            if not name.startswith("."):
                continue
            key, _, public = name[1:].partition(".")
            kept = None if key == _NO_KEY else self.read_offset(key)
            if kept is not None and kept.pending == public:
                os.rename(name, public, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                unlink_file(name, self._folder)

    def forget_old(self) -> None:
        """Remove the least recently used read offsets beyond `MAX_KEPT`."""
        with os.scandir(self._offsets) as found:
            ages = sorted(((each.stat().st_mtime_ns, each.name) for each in found), reverse=True)
        for _, name in ages[MAX_KEPT:]:
            unlink_file(name, self._offsets)

    def _check_room(self, size: int) -> None:
        if size > MAX_ENTRY:
            raise SpoolError(f"the event has {size:,} bytes; at most {MAX_ENTRY:,} are kept")
        sizes = [size_of(name, self._folder) for name in list_names(self._folder)]
        if len(sizes) >= MAX_FILES or sum(sizes) + size > MAX_BYTES:
            raise SpoolError(
                f"{len(sizes):,} events of {sum(sizes):,} bytes wait already, and no more are kept; "
                "start `greenroom serve` on the folder, which takes them"
            )


@contextmanager
def hold_spool(folder: Path | str, *, create: bool = True) -> Iterator[Spool]:
    """Hold the spool of a data folder; other processes wait.

    Args:
        folder: The data folder.
        create: Whether to create the spool if it is missing.

    Raises:
        FileNotFoundError: The spool does not exist, and `create` is false.
        OSError: The spool is a link, belongs to another user, or cannot be created.
        StoreError: The data folder is not usable.
    """
    with closed_after(open_spool_folder(folder, create=create)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # released with the descriptor, and with the process
        with closed_after(open_private(_OFFSETS, descriptor, create=True)) as offsets:
            spool = Spool(descriptor, offsets)
            spool.complete_pending()
            yield spool


def list_entries(descriptor: int) -> list[str]:
    """Return the names of all entries of an open folder."""
    return os.listdir(descriptor)


def list_names(descriptor: int) -> list[str]:
    """Return the names of waiting files, oldest first."""
    return sorted(filter(_NAME.fullmatch, list_entries(descriptor)))


def unlink_file(name: str, above: int) -> None:
    """Remove a file; ignore folders, which are not ours."""
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=above)


def size_of(name: str, above: int) -> int:
    """Return the size of a file, 0 without it."""
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_size
    except FileNotFoundError:  # the owner has removed it meanwhile
        return 0


def read_file(name: str, above: int, limit: int) -> bytes:
    """Read a plain file of this user.

    Raises:
        SpoolError: It is no such file, or larger than ``limit`` bytes.
        OSError: It cannot be read.
    """
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SpoolError(f"the file {name} of the spool is a symbolic link") from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)  # before `fdopen`, which would fail for a folder
        raise SpoolError(f"the file {name} of the spool is no plain file of this user")
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        data = b"".join(iter(lambda: file.read(1 << 20), b"")) if status.st_size <= limit else None
    if data is None or len(data) > limit:
        raise SpoolError(f"the file {name} of the spool is larger than {limit:,} bytes")
    return data
