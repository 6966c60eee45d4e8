"""How far a long command is, on standard error, and only for somebody who watches."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from greenroom.transports._commands._paint import draws
from greenroom.transports._output import remark

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_EVERY: Final = 1.0
"""Seconds between two lines, where there are no bars."""


class Shows(Protocol):
    """Shows how far a step is."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` is done of a step; 0 of 0 where that is not known."""


@contextmanager
def metered(command: str) -> Iterator[Shows]:
    """Show bars on a terminal, lines where `rich` is not installed, and nothing where nobody watches."""
    if not draws(sys.stderr):
        yield _nothing
        return
    try:
        from rich import progress as bars  # noqa: PLC0415 - an extra
        from rich.console import Console  # noqa: PLC0415 - an extra
    except ImportError:
        yield _Lines(command)
        return
    columns = (
        bars.TextColumn("{task.description:>10}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bars(progress)


def _nothing(step: str, done: int, total: int) -> None:
    """Show nothing."""


class _Bars:
    """A bar for each step."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(step)
        self._progress.update(self._tasks[step], completed=done, total=total or None)


class _Lines:
    """A line now and then."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._said: tuple[str, float] = ("", 0.0)

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if step == self._said[0] and now < self._said[1] + LINE_EVERY:
            return
        self._said = (step, now)
        remark(f"greenroom {self._command}: {step}" + (f" {done:,} of {total:,}" if total else ""))
