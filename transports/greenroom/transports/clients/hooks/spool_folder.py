"""The spool's folder, opened so that no other user's folder can be used instead."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.runtime.lmdb.files import (
    DATA_FILE,
    FILE_MODE,
    FOLDER_MODE,
    OWNER_FILE,
    SPOOL_FOLDER,
    prepare_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of a block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_spool_folder(folder: Path | str, *, create: bool) -> int:
    """Open the spool of a data folder."""
    known = (f"{folder}/{each}" for each in (DATA_FILE, OWNER_FILE, SPOOL_FOLDER))
    if create and not any(map(os.path.exists, known)):
        from pathlib import Path  # noqa: PLC0415 - takes long to import, for once

        prepare_folder(Path(folder))
    with closed_after(os.open(folder, FOLDER_FLAGS & ~os.O_NOFOLLOW)) as above:
        return open_private(SPOOL_FOLDER, above, create=create)


def open_private(name: str, above: int, *, create: bool) -> int:
    """Open a folder of this user in an open folder; ``create`` makes a private one."""
    try:
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=above)
    except FileNotFoundError:
        if not create:
            raise
        try:
            os.mkdir(name, FOLDER_MODE, dir_fd=above)
            sync_descriptor(above)
        except FileExistsError:  # another hook created it
            pass
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=above)
    try:
        _check_own(descriptor, name, makes_private=create)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_own(descriptor: int, name: str, *, makes_private: bool) -> None:
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", name)
    if makes_private and stat.S_IMODE(status.st_mode) != FOLDER_MODE:
        os.fchmod(descriptor, FOLDER_MODE)


def write_synced(name: str, data: bytes, above: int) -> None:
    """Write a private file durably, or leave no file behind."""
    descriptor = os.open(name, _NEW_FLAGS, FILE_MODE, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, FILE_MODE)
            file.write(data)
            file.flush()
            sync_descriptor(descriptor)
    except BaseException:
        os.unlink(name, dir_fd=above)
        raise
