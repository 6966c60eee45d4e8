"""Lock a whole file, and find the lock's holder, on Linux and macOS.

If the system has locks of an open file description (`F_OFD_SETLK`), such a lock is used: the process may open
and close the file elsewhere without losing it. Otherwise `lockf` is used. The two exclude each other, also
between versions of Greenroom; a process never holds both.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import Final, NamedTuple

from greenroom.runtime.base.system import is_macos


class _Flock(NamedTuple):
    """`struct flock` of <sys/fcntl.h>, with the numbers of its command and lock types."""

    layout: struct.Struct
    members: tuple[str, ...]
    get: int
    read: int
    unlocked: int

    def request(self, kind: int) -> bytes:
        """Return the structure for a lock of this kind on the whole file."""
        wanted = {"type": kind, "whence": os.SEEK_SET, "start": 0, "length": 0, "process": 0}
        return self.layout.pack(*(wanted[name] for name in self.members))


_LINUX: Final = _Flock(
    struct.Struct("@hhqqi"),
    ("type", "whence", "start", "length", "process"),
    fcntl.F_GETLK,
    fcntl.F_RDLCK,
    fcntl.F_UNLCK,
)
_MACOS: Final = _Flock(
    struct.Struct("@qqihh"), ("start", "length", "process", "type", "whence"), get=7, read=1, unlocked=2
)


_OFD_SETLK: Final[int | None] = getattr(fcntl, "F_OFD_SETLK", None)


def lock_file(descriptor: int) -> None:
    """Acquire the write lock of a file without waiting, for this open file or process.

    A forked child inherits an open file's lock and must close it.

    Raises:
        OSError: another process holds the lock (`EACCES`, `EAGAIN`), or the file system has no locks.
    """
    if _OFD_SETLK is not None and not is_macos():
        try:
            fcntl.fcntl(descriptor, _OFD_SETLK, _LINUX.request(fcntl.F_WRLCK))
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: a kernel or a sandbox that has only the older locks
                raise
        else:
            return
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_holder(descriptor: int) -> int | None:
    """Return the id of the other process that holds a file's write lock, or None.

    The id is 0 for a process of another machine or container, and for the lock of an open file.
    """
    system = _MACOS if is_macos() else _LINUX
    answer = system.layout.unpack(fcntl.fcntl(descriptor, system.get, system.request(system.read)))
    reply = dict(zip(system.members, answer, strict=True))
    return None if reply["type"] == system.unlocked else max(int(reply["process"]), 0)
