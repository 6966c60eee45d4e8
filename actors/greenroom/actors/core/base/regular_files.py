"""Opening files that others may change meanwhile: plain ones, and none below a link."""

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
"""A folder on the way need not be readable, where the system can open it for nothing but that."""

NO_PLAIN_FILE: Final = "it is no plain file"
BELOW_A_LINK: Final = "a folder above it is a symbolic link"


class UnreadableFileError(Exception):
    """A file is not read; the sentence says why, beginning with "it"."""


def opened(path: str) -> io.FileIO:
    """Open a plain file from the root down, each folder in the one above it: so none can become a link.

    Raises:
        UnreadableFileError: it is none.
        OSError: it cannot be opened.
    """
    *folders, name = (part for part in path.split("/") if part)
    above = descended(folders)
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError(NO_PLAIN_FILE)
    return io.FileIO(descriptor)


def descended(folders: Sequence[str]) -> int:
    """Open a folder from the root down."""
    above = os.open("/", FOLDER_FLAGS)
    for each in folders:
        try:
            below = opened_folder(each, above, FOLDER_FLAGS)
        finally:
            os.close(above)
        above = below
    return above


def opened_folder(name: str, above: int, flags: int) -> int:
    """Open a folder in an opened one.

    Raises:
        UnreadableFileError: it is a link.
        OSError: it cannot be opened.
    """
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        raise UnreadableFileError(BELOW_A_LINK) from None
