"""Progress bars of long commands, on standard error, and only where it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from greenroom.transports.cli.support.terminal import understands_escapes

ProgressDisplay = Callable[[str, int, int], None]
"""Shows how much is done of a step, and of how much; 0 of 0 where that is not known."""


@contextmanager
def show_progress() -> Iterator[ProgressDisplay]:
    """Show bars on a terminal, and nothing where nobody watches."""
    if not understands_escapes(sys.stderr):
        yield lambda _step, _done, _total: None
        return
    from rich import progress as bars  # noqa: PLC0415 - a tenth of a second, for somebody who watches
    from rich.console import Console  # noqa: PLC0415 - likewise

    columns = (
        bars.TextColumn("{task.description:>10}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    tasks: dict[str, bars.TaskID] = {}
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step)
            progress.update(tasks[step], completed=done, total=total or None)

        yield show
