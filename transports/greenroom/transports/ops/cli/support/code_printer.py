"""The terminal of `greenroom console`: it prints codes that confirm actions in its browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

import trio

from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.terminal import is_ours

_LINE: Final = 4_096
_BACKGROUND: Final = 1.0  # seconds between checks of a background process whether it is in front again

NewCode = Callable[[], str]


def has_terminal() -> bool:
    """Return whether input and output are a terminal that this process may read from."""
    streams = sys.stdin, sys.stdout
    return all(stream is not None and stream.isatty() for stream in streams) and is_ours(sys.stdin.fileno())


def print_code(code: str) -> None:
    """Print a code to standard output like the link, not to a log."""
    say(f"Code: {code}")


def explain_codes() -> None:
    """Print what codes are for."""
    remark(
        "greenroom console: type the code in the browser to make a key, export, or read as another agent; "
        "it works once, within ten minutes, and Enter prints a new one"
    )


def print_at_enter(new_code: NewCode) -> None:
    """Print a code at each Enter, until the end of input."""
    while _has_line(sys.stdin.fileno()):
        print_code(new_code())


async def print_at_enter_while_serving(new_code: NewCode) -> None:
    """Print a code at each Enter, in a process that also serves."""
    descriptor = sys.stdin.fileno()
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        if not is_ours(descriptor):  # reading in the background would stop this process
            await trio.sleep(_BACKGROUND)
        elif _has_line(descriptor):
            print_code(new_code())
        else:
            return


def _has_line(descriptor: int) -> bool:
    """Read a line; return whether there was one."""
    try:
        return bool(os.read(descriptor, _LINE))
    except OSError:  # the terminal is gone
        return False
