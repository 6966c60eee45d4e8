"""Questions of commands that destroy something."""

from __future__ import annotations

import os
import sys
from typing import Final

import trio

from greenroom.transports.ops.cli.output import remark

_MOST_BYTES: Final = 4096
"""The most bytes of a line that a terminal hands over."""


async def is_typed(wanted: str, question: str) -> bool:
    """Ask a person at the terminal to type something; False without a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(question)
    # Ctrl-C abandons the thread, which must not hold a lock of `sys.stdin` when the interpreter ends.
    typed = await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), _MOST_BYTES, abandon_on_cancel=True)
    return typed.decode(errors="replace").partition("\n")[0] == wanted
