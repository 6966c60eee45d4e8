"""`greenroom`, with its event loop watched: `python -m bench.watched_server FILE ARGUMENT...`.

Whenever it gets SIGUSR1 it writes a line into a file: the milliseconds of processor time of each step of a
task since the last one. While a task makes a step, the event loop answers nobody.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import FrameType

import trio

from greenroom.transports.ops.cli.main import main


def watched(file: Path, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of `greenroom` as one of this program."""
    python, _, _, *arguments = command
    return (python, "-m", "bench.watched_server", str(file), *arguments)


class Watch(trio.abc.Instrument):
    """Takes the time of every step."""

    def __init__(self) -> None:
        self._began = 0.0
        self._steps: list[float] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 (trio's)
        """Begin to take the time."""
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 (trio's)
        """Keep it."""
        self._steps.append((time.thread_time() - self._began) * 1e3)

    def write(self, file: Path, _signal: int, _frame: FrameType | None) -> None:
        """Write what was kept, and begin anew."""
        steps, self._steps = self._steps, []
        with file.open("a") as lines:
            lines.write(json.dumps(steps) + "\n")


if __name__ == "__main__":
    watch = Watch()
    signal.signal(signal.SIGUSR1, partial(watch.write, Path(sys.argv.pop(1))))
    trio.run = partial(trio.run, instruments=[watch])  # type: ignore[assignment]  # as it is called there
    sys.exit(main())
