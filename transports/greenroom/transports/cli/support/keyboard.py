"""A key that ends a command which draws on the terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event


@contextmanager
def wait_for_key(key: str, over: Event) -> Iterator[Callable[[float], object]]:
    """Return what waits for some seconds, and no longer than until a key is pressed, which sets `over`.

    Where standard input is no terminal of ours nobody presses anything, and it only waits. The terminal is
    left as it was found.
    """
    if sys.stdin is None or not sys.stdin.isatty() or not _is_ours(sys.stdin.fileno()):
        yield time.sleep
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    hung_up = False

    def wait(seconds: float) -> None:
        nonlocal hung_up
        if hung_up or not select.select([descriptor], [], [], seconds)[0]:
            return
        pressed = os.read(descriptor, 64)
        hung_up = not pressed
        if key.encode() in pressed.lower():
            over.set()

    tty.setcbreak(descriptor)
    try:
        yield wait
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _is_ours(descriptor: int) -> bool:
    """Whether we may read from a terminal: a program in the background would be stopped by it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # nobody's
        return True
