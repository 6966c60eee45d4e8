"""Progress bars of long commands, on standard error, and only where it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from greenroom.transports.cli.support.terminal import understands_escapes


class ProgressDisplay(Protocol):
    """Shows how far a step is."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` is done of a step; 0 of 0 where that is not known."""


@contextmanager
def show_progress() -> Iterator[ProgressDisplay]:
    """Show bars on a terminal, and nothing where nobody watches."""
    if not understands_escapes(sys.stderr):
        yield _nothing
        return
    from rich import progress as bars  # noqa: PLC0415 - a tenth of a second, for somebody who watches
    from rich.console import Console  # noqa: PLC0415 - likewise

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
