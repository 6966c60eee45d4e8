"""Standard input and output as a private pipe.

While the pipe is claimed, descriptor 0 is the null device and descriptor 1 is stderr, so that a library's
print or a child process cannot corrupt a message. Claim it before imports that may print; this module needs
neither trio nor the SDK.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

FIRST_PRIVATE = 3  # above the three standard descriptors


class StdioPipe(NamedTuple):
    """Private descriptors of the original standard input and output."""

    input: int
    output: int


@contextmanager
def claim_stdio() -> Iterator[StdioPipe]:
    """Take standard input and output away from the process while the block runs.

    Both are restored on exit with their blocking mode, because that belongs to the open file, which the
    parent shell may share. Output printed meanwhile goes to stderr.

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
    """Return a duplicate above the three standard descriptors; no child inherits it."""
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
    """Flush Python's and C's buffers of standard output to the current descriptor 1."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
