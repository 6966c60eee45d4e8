"""Read the lock file of a folder without locking or changing it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal, NamedTuple

from greenroom.runtime.lmdb import lock_file
from greenroom.runtime.lmdb.files import DATA_FILE, OWNER_FILE

Left = Literal["in order", "changed", "lost", "died", "other files", "fault", "doubt"]

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_LINE_BYTES: Final = 200


class LockState(NamedTuple):
    """The owner of a folder, or how its last owner left it.

    Attributes:
        owner: The id of the owning process; 0 if the process is on another machine or in another container,
            None if there is no owner.
        left: How the last owner left the folder; None while there is an owner. ``in order``; ``changed``: the
            store changed later, without an owner; ``lost``: the store was removed later; ``died``: the owner
            died; ``other files``: it died, and these are copies of its files, or the system was restarted;
            ``fault``: it died of a fault; ``doubt``: the store may be damaged.
        fault: The fault of which the last owner died.
    """

    owner: int | None
    left: Left | None = None
    fault: str = ""


def lock_state(folder: Path) -> LockState | None:
    """Return the state of a folder's lock file; None if there was never an owner.

    This function acquires no lock, so a starting server finds the folder free.
    """
    status = folder.stat()
    with lock_file.FolderLock._guard:  # noqa: SLF001  closing the file would release a lock of this process
        if (status.st_dev, status.st_ino) in lock_file.FolderLock._held:  # noqa: SLF001  likewise
            return LockState(os.getpid())
        try:
            descriptor = os.open(folder / OWNER_FILE, _FLAGS)
        except FileNotFoundError:
            return None
        try:
            owner = lock_file.holder_of(descriptor)
            line = os.pread(descriptor, _LINE_BYTES, 0)
            is_same = lock_file.is_as_left(descriptor, folder, line)
        finally:
            os.close(descriptor)
    if owner is not None:
        return LockState(owner)
    if line.startswith(lock_file.FAULT):
        return LockState(
            None, "fault", line.removeprefix(lock_file.FAULT).partition(b"\n")[0].decode(errors="replace")
        )
    left = _left(folder, line)
    return LockState(None, "other files" if left == "died" and is_same is False else left)


def _left(folder: Path, line: bytes) -> Left:
    if line[lock_file.END].startswith(lock_file.DOUBT.encode()):
        return "doubt"
    look = lock_file.look_of(folder)
    word = line[lock_file.WORD].decode(errors="replace").strip()
    if line.split(maxsplit=1)[:1] != [b"0"]:
        return "died" if line.strip() and look != lock_file.NO_STORE else "in order"
    if word == look:
        return "in order"
    return "lost" if look == lock_file.NO_STORE else "changed"


def is_byte_for_byte(folder: Path) -> bool | None:
    """Return whether a store without an owner is as it was left; None if unknown."""
    line = (folder / OWNER_FILE).read_bytes()[:_LINE_BYTES]
    if line[lock_file.WORD].decode(errors="replace").strip() != lock_file.look_of(folder):
        return None
    return lock_file.matches_line(folder / DATA_FILE, line)
