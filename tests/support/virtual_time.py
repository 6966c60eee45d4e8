"""Virtual time that waits for threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio
from trio.testing import MockClock, active_thread_count


def run_in_virtual_time(function: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
    """Run a program on the autojump clock, as `trio.run` does on a real one.

    Args:
        function: The program.
        arguments: Its arguments.
        options: Of `trio.run`; a ``clock`` is a `MockClock`.
    """
    clock = options.pop("clock", None) or MockClock(autojump_threshold=0)
    instruments = [*options.pop("instruments", ()), ThreadsTakeNoTime(clock)]
    return trio.run(function, *arguments, clock=clock, instruments=instruments, **options)


class ThreadsTakeNoTime(trio.abc.Instrument):
    """Hold the autojump clock while a task waits for a thread.

    The clock jumps to the next deadline once all tasks are blocked, and a task that waits for its thread is:
    on a busy machine a request would meet a deadline of 30 s in no time.
    """

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock
        self._is_held = False

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Hold the clock, or let it go: a task begins to wait for a thread, and goes on, in a step."""
        del task
        if self._is_held != (active_thread_count() > 0):
            self._is_held = not self._is_held
            self._clock.autojump_threshold = inf if self._is_held else 0
