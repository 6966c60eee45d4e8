"""Output of commands: results on standard output, complaints on standard error."""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Make the standard streams safe to use.

    A standard descriptor that is closed is opened on the null device: the store's file would
    otherwise get its number, and a library's message to standard error would be written into it.
    A path may hold bytes that are no text; it is shown with escapes.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str) -> bool:
    """Print a result. The reader may have gone (`head`, a pager); then the rest is for nobody.

    Returns:
        Whether somebody may still read.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def remark(text: str) -> None:
    """Say something to whoever watches, beside the result."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def complain(command: str, sentence: str, code: int) -> int:
    """Say why a command could not be carried out; return its exit code."""
    remark(f"greenroom {command}: {sentence}")
    return code
