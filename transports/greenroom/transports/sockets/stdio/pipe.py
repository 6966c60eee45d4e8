"""Standard input and output as a pipe, with everything else kept off it.

While the pipe is claimed, descriptor 0 is the null device and descriptor 1 is stderr, so
a library's stray print or a child process cannot break a frame. Claim it before the
imports that may print; this module needs neither trio nor the SDK.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

FIRST_PRIVATE = 3  # none of the standard three


class StdioPipe(NamedTuple):
    """Private descriptors of what standard input and output were."""

    input: int
    output: int


@contextmanager
def claim_stdio() -> Iterator[StdioPipe]:
    """Take standard input and output away from the process for as long as the block runs.

    Both come back on exit in the blocking mode they had: that mode belongs to the open file,
    which the shell that started us may share. What was printed meanwhile has gone to stderr.

    Raises:
        OSError: standard input or output is closed.
    """
    with ExitStack() as restored:
        pipe = StdioPipe(
            restored.enter_context(_moved(0, _null_input)),
            restored.enter_context(_moved(1, _stderr)),
        )
        restored.callback(_flush)  # while descriptor 1 is still stderr
        yield pipe


def duplicate(fd: int) -> int:
    """Return a duplicate that is none of the standard three and that no child inherits."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE)


@contextmanager
def _moved(fd: int, open_diversion: Callable[[], int]) -> Iterator[int]:
    private = duplicate(fd)
    blocking = os.get_blocking(private)
    try:
        diversion = open_diversion()
        os.dup2(diversion, fd)
        os.close(diversion)
        try:
            yield private
        finally:
            os.dup2(private, fd)
            os.set_blocking(fd, blocking)
    finally:
        os.close(private)


def _null_input() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _stderr() -> int:
    try:
        return duplicate(2)
    except OSError:  # closed
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _flush() -> None:
    """Empty Python's and C's buffers of standard output to wherever descriptor 1 points now."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
