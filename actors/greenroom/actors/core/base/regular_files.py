"""Open regular files safely while other programs change them: no devices, no symbolic links."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Sequence
from typing import Final

FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER_FLAGS: Final = (
    getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
"""If the system has `O_PATH`, folders on the way need not be readable."""

NOT_REGULAR: Final = "it is not a regular file"
BELOW_A_LINK: Final = "a folder above it is a symbolic link"


class UnreadableFileError(Exception):
    """A file cannot be read; the sentence begins with "it" and says why."""


def open_regular_file(path: str) -> io.FileIO:
    """Open a regular file from the root down, each folder relative to its parent.

    So no folder on the way can be replaced by a link at the same time.
    """
    *folders, name = (part for part in path.split("/") if part)
    above = open_folder_path(folders)
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError(NOT_REGULAR)
    return io.FileIO(descriptor)


def open_folder_path(folders: Sequence[str]) -> int:
    """Open a folder from the root down; return its descriptor."""
    above = os.open("/", FOLDER_FLAGS)
    for each in folders:
        try:
            below = open_folder(each, above, FOLDER_FLAGS)
        finally:
            os.close(above)
        above = below
    return above


def open_folder(name: str, above: int, flags: int) -> int:
    """Open a folder within an open folder; return its descriptor."""
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        raise UnreadableFileError(BELOW_A_LINK) from None
