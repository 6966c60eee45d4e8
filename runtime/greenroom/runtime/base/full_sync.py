"""Sync files to the disk itself; all durable writes use this module.

On macOS fsync stops at the drive's cache, which a power cut empties.
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
"""Errors of file systems on macOS without a full sync, such as network disks."""


def sync_descriptor(descriptor: int) -> None:
    """Make an open file's bytes, or an open folder's names, durable."""
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
    """Make LMDB's last commit with ``metasync`` durable.

    LMDB syncs a commit's pages in full, then writes the meta page through a descriptor with O_DSYNC. On Linux
    the meta page is then on the disk; on macOS it may stay in the drive's cache until the next commit.
    """
    if is_macos():
        environment.sync(True)
