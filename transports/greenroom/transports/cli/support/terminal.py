"""A terminal: colours, a key that ends a command, and texts of others without what would command it."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from threading import Event
from typing import Final, TextIO

_PICTURES: Final = 0x2400  # the Unicode block that pictures the control characters 0-31 in order
_DELETE: Final = 0x7F
_DELETE_PICTURE: Final = "\N{SYMBOL FOR DELETE}"
_JOINERS: Final = frozenset("\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")  # part of many a word and emoji
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_CODES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def printable(text: str) -> str:
    """Return the text on one line, with every character that would not be seen as itself shown.

    A control character becomes its picture (an escape is ``␛``, a line end ``␊``). Any other
    invisible character, such as those that turn the direction of writing, becomes its number.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


@lru_cache(maxsize=256)
def _shown(character: str) -> str:
    code = ord(character)
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
        return f"<U+{code:04X}>"
    return character


def understands_escapes(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that understands more than text."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", ""}


def shows_colours(stream: TextIO | None) -> bool:
    """Whether what goes to a stream is to be coloured; ``NO_COLOR`` says no (no-color.org)."""
    return understands_escapes(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, *styles: str) -> str:
    """Return a text in these styles; the text must hold no control characters."""
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m" if styles else text


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
