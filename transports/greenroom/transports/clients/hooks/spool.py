"""The spool: hook events for the next owner, and read offsets of transcripts.

Invariants, even if a process is killed at any point:

* A file gets its public name only after its bytes are durable; `Spool.put` returns after the name is durable.
* Each part of a transcript is enqueued once. While the event still has a hidden name, the new read offset is
  written and refers to it. The next process that holds the spool publishes the event, or removes it if no
  offset refers to it. Only one process at a time holds the spool.
* A file is removed only after the owner has committed its event; the owner knows the ids of committed events.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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
    closed_after,
    open_private,
    open_spool_folder,
    write_synced,
)

MAX_FILES: Final = 1_000
MAX_BYTES: Final = 64 << 20
MAX_ENTRY: Final = 4 << 20
"""The most waiting files, the most bytes of all of them, and the most bytes of one."""
MAX_REFUSED: Final = 100
MAX_KEPT: Final = 1_000
"""The most unreadable files, and the most transcripts with a read offset."""
REFUSED: Final = "refused"
_OFFSETS: Final = "offsets"
_NO_KEY: Final = "-"
_NAME: Final = re.compile(r"(\d{20})-[0-9a-f]{32}\.json")


class SpoolError(GreenroomError):
    """An event cannot be written or read; the sentence says why."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file in the spool: an event and its principal."""

    principal: Principal
    event: HookEvent


class ReadOffset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The read offset of a transcript."""

    offset: int
    mark: str  # a digest of the bytes before the offset, to detect a rewritten file
    pending: str = ""  # the public name of the event with the last part


class Waiting(NamedTuple):
    """The state of a spool."""

    files: int = 0  # the number of waiting events
    bytes: int = 0
    oldest_at: datetime | None = None
    refused: int = 0  # the number of unreadable files that were set aside


class Spool:
    """A spool held by this process."""

    def __init__(self, descriptor: int, offsets: int) -> None:
        self._folder = descriptor
        self._offsets = offsets

    def read_offset(self, key: str) -> ReadOffset | None:
        """Return the read offset of a transcript; None if it is missing or unreadable."""
        try:
            return msgspec.json.decode(_read(key, self._offsets, 1 << 10), type=ReadOffset)
        except (OSError, SpoolError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def put(self, entry: Entry, key: str | None = None, kept: ReadOffset | None = None) -> None:
        """Write an event durably; it survives a power cut once this returns.

        Args:
            entry: The event.
            key: The key of its transcript, 32 hexadecimal digits.
            kept: The new read offset.

        Raises:
            SpoolError: The event is too large, or too many events wait.
            OSError: The event cannot be written.
        """
        data = msgspec.json.encode(entry)
        self._check_room(len(data))
        name = f"{time.time_ns():020d}-{entry.event.id}.json"
        hidden = f".{key or _NO_KEY}.{name}"
        write_synced(hidden, data, self._folder)
        if key is not None and kept is not None:
            try:
                sync_descriptor(self._folder)
                offset = msgspec.structs.replace(kept, pending=name)
                write_synced(".new", msgspec.json.encode(offset), self._offsets)
                os.rename(".new", key, src_dir_fd=self._offsets, dst_dir_fd=self._offsets)
                sync_descriptor(self._offsets)
            except BaseException:
                os.unlink(hidden, dir_fd=self._folder)
                raise
        os.rename(hidden, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        sync_descriptor(self._folder)

    def complete_pending(self) -> None:
        """Publish or remove events that a killed process left hidden."""
        for name in _listed(self._folder):
            if not name.startswith("."):
                continue
            key, _, public = name[1:].partition(".")
            kept = None if key == _NO_KEY else self.read_offset(key)
            if kept is not None and kept.pending == public:
                os.rename(name, public, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                _unlink_file(name, self._folder)

    def forget_old(self) -> None:
        """Remove the least recently used read offsets beyond `MAX_KEPT`."""
        with os.scandir(self._offsets) as found:
            ages = sorted(((each.stat().st_mtime_ns, each.name) for each in found), reverse=True)
        for _, name in ages[MAX_KEPT:]:
            _unlink_file(name, self._offsets)

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
def hold_spool(folder: Path, *, create: bool = True) -> Iterator[Spool]:
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


def complete_pending(folder: Path) -> None:
    """Complete events of killed processes, if there is a spool."""
    with suppress(FileNotFoundError), hold_spool(folder, create=False):
        pass


def waiting(folder: Path) -> Waiting:
    """Return the state of a data folder's spool; zeros if there is none."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        names = _names(descriptor)
        sizes = [_size(name, descriptor) for name in names]
        return Waiting(len(names), sum(sizes), _time_of(names[0]) if names else None, _refused(descriptor))
    return Waiting()


def names_in(folder: Path) -> list[str]:
    """Return the names of waiting files, oldest first."""
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        return _names(descriptor)
    return []


def read_entry(folder: Path, name: str) -> Entry:
    """Read a file of the spool.

    Raises:
        FileNotFoundError: The file no longer exists.
        SpoolError: It is invalid, permanently.
        OSError: It cannot be read now.
    """
    with _opened(folder) as descriptor:
        try:
            return msgspec.json.decode(_read(name, descriptor, MAX_ENTRY), type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SpoolError(f"the file {name} of the spool holds no event: {error}") from None


def remove(folder: Path, name: str) -> None:
    """Remove a file after the commit of its event; the file may be missing.

    This is not synced, so the file may reappear after a power cut; the owner skips events that it has.
    """
    with suppress(FileNotFoundError), _opened(folder) as descriptor:
        os.unlink(name, dir_fd=descriptor)


def names_of(folder: Path, user: str, agents: Sequence[str]) -> list[str]:
    """Return the names of a user's waiting files, or those of agents without a user."""
    return [name for name in names_in(folder) if _is_of(folder, name, user, agents)]


def remove_refused(folder: Path) -> None:
    """Remove all files that were set aside, because their user is unknown."""
    with suppress(FileNotFoundError), _opened(folder) as above, _aside(above) as aside:
        for each in _listed(aside):
            _unlink_file(each, aside)


def refuse(folder: Path, name: str) -> None:
    """Set a file aside that cannot be stored, and remove the oldest beyond `MAX_REFUSED`."""
    with suppress(FileNotFoundError), _opened(folder) as above, _aside(above, create=True) as aside:
        os.rename(name, name, src_dir_fd=above, dst_dir_fd=aside)
        for each in sorted(_listed(aside), reverse=True)[MAX_REFUSED:]:
            _unlink_file(each, aside)


def _is_of(folder: Path, name: str, user: str, agents: Sequence[str]) -> bool:
    try:
        principal = read_entry(folder, name).principal
    except (SpoolError, FileNotFoundError):
        return False
    return principal.user == user or (principal.user is None and principal.agent_id in agents)


def _opened(folder: Path) -> AbstractContextManager[int]:
    return closed_after(open_spool_folder(folder, create=False))


def _aside(descriptor: int, *, create: bool = False) -> AbstractContextManager[int]:
    return closed_after(open_private(REFUSED, descriptor, create=create))


def _listed(descriptor: int) -> list[str]:
    return os.listdir(descriptor)


def _names(descriptor: int) -> list[str]:
    return sorted(filter(_NAME.fullmatch, _listed(descriptor)))


def _unlink_file(name: str, above: int) -> None:
    """Remove a file; ignore folders, which are not ours."""
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=above)


def _size(name: str, above: int) -> int:
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_size
    except FileNotFoundError:  # the owner has removed it meanwhile
        return 0


def _time_of(name: str) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(name[:20]) / 1e9, UTC)
    return None


def _refused(descriptor: int) -> int:
    with suppress(FileNotFoundError), _aside(descriptor) as aside:
        return len(_listed(aside))
    return 0


def _read(name: str, above: int, limit: int) -> bytes:
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
