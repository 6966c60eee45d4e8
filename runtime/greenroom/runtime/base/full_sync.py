"""Bytes of files on the disk itself: on macOS fsync stops at the drive's cache, which a power cut empties.

Whatever is to last is synced through this module alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Final

from greenroom.runtime.base.system import is_macos

if TYPE_CHECKING:
    import lmdb

F_FULLFSYNC: Final = 51  # <sys/fcntl.h> of macOS
_NOT_KNOWN: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY})
"""How a file system of macOS says that it has no full sync: those of other makers, and of network disks."""


def sync_descriptor(descriptor: int) -> None:
    """Make the bytes of an open file durable, or the names in an open folder.

    Raises:
        OSError: they could not be written.
    """
    if is_macos():
        try:
            fcntl.fcntl(descriptor, F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _NOT_KNOWN:
                raise
        else:
            return
    os.fsync(descriptor)


def sync_commit(environment: lmdb.Environment) -> None:
    """Make durable what LMDB has just committed with ``metasync``.

    LMDB syncs a commit's pages in full and then writes the page that makes them count through a descriptor
    with O_DSYNC. On Linux that page is on the disk then; on macOS it may be in the drive's cache until the
    next commit.

    Raises:
        lmdb.Error: it could not be written.
    """
    if is_macos():
        environment.sync(True)
