"""Who holds the lock of a file, asked without taking it; each system has its numbers and layout for it."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Final, NamedTuple

from greenroom.runtime.base.system import is_macos


class _Flock(NamedTuple):
    """`struct flock` of <sys/fcntl.h>, and the numbers of its command and of its types of locks."""

    layout: struct.Struct
    members: tuple[str, ...]
    get: int
    read: int
    unlocked: int


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


def lock_holder(descriptor: int) -> int | None:
    """Return the id of the process that holds a write lock of a file; None where no other process does.

    It is 0 for a process of another machine or container.

    Raises:
        OSError: the file system has no locks.
    """
    system = _MACOS if is_macos() else _LINUX
    wanted = {"type": system.read, "whence": os.SEEK_SET, "start": 0, "length": 0, "process": 0}
    asked = system.layout.pack(*(wanted[name] for name in system.members))
    answer = system.layout.unpack(fcntl.fcntl(descriptor, system.get, asked))
    told = dict(zip(system.members, answer, strict=True))
    return None if told["type"] == system.unlocked else max(int(told["process"]), 0)
