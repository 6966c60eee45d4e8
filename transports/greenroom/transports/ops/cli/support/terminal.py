"""A terminal: colours, a key that ends a command, and texts of others without what would command it."""

from __future__ import annotations

import os
import select
import shutil
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

CLEAR_LINE: Final = "\r\x1b[2K"
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


def painted(stream: TextIO | None, text: str, *styles: str) -> str:
    """Return a printable text in these styles, if the stream shows colours."""
    return paint(text, *styles) if shows_colours(stream) else text


def width(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def folded(text: str, columns: int) -> list[str]:
    """Return a printable text in lines of so many columns at most; there is one at least."""
    lines, room = [""], columns
    for character in text:
        taken = _columns(character)
        if taken > room:
            lines.append("")
            room = columns
        lines[-1] += character
        room -= taken
    return lines


@contextmanager
def whole_screen() -> Iterator[Callable[[list[str]], None]]:
    """Return what draws lines on the whole terminal, on a screen of its own, until the block ends.

    A line that is too long or too many goes unseen. They may be painted.
    """

    def draw(lines: list[str]) -> None:
        rows = shutil.get_terminal_size().lines
        sys.stdout.write("\x1b[H" + "\x1b[K\r\n".join(lines[:rows]) + "\x1b[J")
        sys.stdout.flush()

    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l")  # another screen, no cursor, no line goes on in the next
    try:
        sys.stdout.flush()
        yield draw
    finally:
        sys.stdout.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


@contextmanager
def wait_for_key(key: str, over: Event) -> Iterator[Callable[[float], object]]:
    """Return what waits for some seconds, and no longer than until a key is pressed, which sets `over`.

    Where standard input is no terminal of ours nobody presses anything, and it only waits. The terminal is
    left as it was found.
    """
    if sys.stdin is None or not sys.stdin.isatty() or not is_ours(sys.stdin.fileno()):
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


def is_ours(descriptor: int) -> bool:
    """Whether we may read from a terminal: a program in the background would be stopped by it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # nobody's
        return True
