"""Terminals: colours, keys, progress bars, and safe display of foreign text."""

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
_PICTURES: Final = 0x2400  # the Unicode block with pictures of the control characters 0-31, in order
_DELETE: Final = 0x7F
_DELETE_PICTURE: Final = "\N{SYMBOL FOR DELETE}"
_JOINERS: Final = frozenset("\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")  # in words and emoji
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
    """Return the text on one line, with all invisible characters made visible.

    A control character becomes a picture (an escape becomes ``␛``, a line end ``␊``). Any other
    invisible character, such as a character that turns the direction of writing, becomes its number.
    """
    return text if text.isprintable() else "".join(map(_make_visible, text))


@lru_cache(maxsize=256)
def _make_visible(character: str) -> str:
    code = ord(character)
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
        return f"<U+{code:04X}>"
    return character


def understands_escapes(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that supports escape sequences."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", ""}


def shows_colours(stream: TextIO | None) -> bool:
    """Whether output to a stream has colours; ``NO_COLOR`` prevents them (no-color.org)."""
    return understands_escapes(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, *styles: str) -> str:
    """Return a text in these styles; the text must not contain control characters."""
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m" if styles else text


def painted(stream: TextIO | None, text: str, *styles: str) -> str:
    """Return a printable text in these styles, if the stream shows colours."""
    return paint(text, *styles) if shows_colours(stream) else text


def width(text: str) -> int:
    """Return the number of terminal columns of a printable text."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def folded(text: str, columns: int) -> list[str]:
    """Wrap a printable text to a number of columns; return at least one line."""
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
    """Yield a function that draws lines on a separate full screen until the block ends.

    Lines may be painted. The screen cuts off whatever does not fit its width and height.
    """

    def draw(lines: list[str]) -> None:
        rows = shutil.get_terminal_size().lines
        sys.stdout.write("\x1b[H" + "\x1b[K\r\n".join(lines[:rows]) + "\x1b[J")
        sys.stdout.flush()

    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l")  # alternate screen, no cursor, no line wrap
    try:
        sys.stdout.flush()
        yield draw
    finally:
        sys.stdout.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


@contextmanager
def wait_for_key(key: str, over: Event) -> Iterator[Callable[[float], object]]:
    """Yield a function that waits for some seconds, or until the key sets `over`.

    If this process has no terminal, the function only waits. At the end the terminal's state is restored.
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
    """Whether this process may read from a terminal; a background read would stop it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # no process group owns the terminal
        return True


ProgressDisplay = Callable[[str, int, int], None]
"""Shows the progress of a step: the part that is done, and the total; 0 of 0 if unknown."""

_BETWEEN: Final = 0.1  # seconds between two updates of the same step
_WIDTH: Final = 40  # characters of a bar


@contextmanager
def show_progress() -> Iterator[ProgressDisplay]:
    """Show progress bars on a terminal, and nothing if there is no terminal."""
    if not understands_escapes(sys.stderr):
        yield lambda _step, _done, _total: None
        return
    shown = ""
    begun = last = 0.0

    def show(step: str, done: int, total: int) -> None:
        nonlocal shown, begun, last
        now = time.monotonic()
        if step != shown:
            shown, begun, last = step, now, 0.0
        if now - last < _BETWEEN and done != total:
            return
        last = now
        text = progress_line(step, done, total, now - begun)
        sys.stderr.write(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(CLEAR_LINE)
        sys.stderr.flush()


def progress_line(step: str, done: int, total: int, seconds: float) -> str:
    """Return the line of a step's progress, with an estimate of the remaining time."""
    if not total:
        return f"{step:>10} {done:,}"
    filled = min(done, total) * _WIDTH // total
    left = int(seconds * max(0, total - done) / done) if done else None
    clock = "-:--" if left is None else f"{left // 60}:{left % 60:02}"
    return f"{step:>10} {'━' * filled}{'─' * (_WIDTH - filled)} {done:,}/{total:,} {clock}"
