"""Progress bars of long commands on standard error, if it is a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from greenroom.transports.ops.cli.support.terminal import CLEAR_LINE, understands_escapes

ProgressDisplay = Callable[[str, int, int], None]
"""Shows the progress of a step: done, and total; 0 of 0 if unknown."""

_BETWEEN: Final = 0.1  # seconds between two updates of the same step
_WIDTH: Final = 40  # characters of a bar


@contextmanager
def show_progress() -> Iterator[ProgressDisplay]:
    """Show progress bars on a terminal, and nothing elsewhere."""
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
