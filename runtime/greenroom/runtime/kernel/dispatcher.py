"""The dispatcher: give ready actors their turns on the event loop.

One task does this for all actors, so that a million actors do not need a million stacks. A turn ends early
when the slice is used up. Between two passes every other task of the program runs.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import trio

from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.options import CURRENT
from greenroom.runtime.kernel.mailbox import Activation


class Dispatcher:
    """The queue of ready actors; each pass may hold the event loop for ``slice_seconds``.

    Invariant: an activation is queued at most once, and then ``activation.ready`` is true.
    """

    def __init__(
        self,
        clock: Clock,
        slice_seconds: float,
        turn: Callable[[Activation], None],
        after_pass: Callable[[], None],
        settings: Any = None,
    ) -> None:
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._turn = turn
        self._after_pass = after_pass
        self.settings = settings
        self._ready: deque[Activation] = deque()
        self._paused: list[tuple[float, int, Activation]] = []
        self._sequence = itertools.count()
        self._parked: trio.lowlevel.Task | None = None
        self._slice_end = 0.0
        self._holds = 0
        self._is_due = False
        self._stopped = False
        self.longest_slice = 0.0
        self.last_pass = -math.inf

    def __len__(self) -> int:
        return len(self._ready)

    def make_ready(self, activation: Activation) -> None:
        """Queue ``activation`` for a turn, unless it is queued already or paused."""
        if not activation.ready and not activation.paused_until:
            activation.ready = True
            self._ready.append(activation)
            if self._parked is not None and not self._holds:
                self._wake()

    def request_pass(self) -> None:
        """Request a pass, even if no actor is ready."""
        self._is_due = True
        if self._parked is not None and not self._holds:
            self._wake()

    def mailboxes(self) -> list[int]:
        """Return the length of each mailbox that is not empty."""
        paused = {activation for _, _, activation in self._paused if not activation.ready}
        return [len(activation.mailbox) for activation in (*self._ready, *paused) if activation.mailbox]

    def pause(self, activation: Activation, seconds: float) -> None:
        """Pause an actor for ``seconds``, or until a longer pause that has begun ends."""
        activation.paused_until = max(activation.paused_until, trio.current_time() + seconds)
        heapq.heappush(self._paused, (activation.paused_until, next(self._sequence), activation))
        self._wake()

    def __enter__(self) -> None:
        """Begin a block in which the dispatching task is not woken."""
        self._holds += 1

    def __exit__(self, *_: object) -> None:
        """Wake the dispatching task if actors are still ready."""
        self._holds -= 1
        if (self._ready or self._is_due) and not self._holds:
            self._wake()

    def stop(self) -> None:
        """Stop giving turns, and drop ready and paused actors."""
        self._stopped = True
        self._is_due = False
        self._ready.clear()
        self._paused.clear()

    def should_yield(self) -> bool:
        """Return whether the slice is used up."""
        return self._clock.perf() >= self._slice_end

    def start_slice(self) -> float:
        """Start a slice; return the time."""
        now = self._clock.perf()
        self._slice_end = now + self._slice_seconds
        return now

    def end_slice(self, started: float) -> None:
        """Record how long the event loop was held."""
        self.longest_slice = max(self.longest_slice, self._clock.perf() - started)

    def resume(self, slices: Iterator[Any]) -> None:
        """Run a generator until the slice is used up; raise StopIteration if it ends."""
        perf, end = self._clock.perf, self._slice_end
        while not next(slices) and perf() < end:
            pass

    def run_ready(self) -> None:
        """Give ready activations their turns, for one slice."""
        if self._stopped:
            return
        self.last_pass = trio.current_time()
        self._is_due = False
        token = CURRENT.set(self.settings)
        try:
            if self._ready:
                self._give_turns()
            self._after_pass()
        finally:
            CURRENT.reset(token)

    def _give_turns(self) -> None:
        started = self.start_slice()
        while self._ready:
            activation = self._ready.popleft()
            activation.ready = False
            self._turn(activation)
            if self.should_yield():
                break
        self.end_slice(started)

    async def run(self) -> None:
        """Give ready activations their turns, forever."""
        while True:
            self._end_pauses()
            self.run_ready()
            if self._ready or self._is_due:
                await trio.lowlevel.checkpoint()
            else:
                await self._park()

    def _wake(self) -> None:
        if self._parked is not None:
            parked, self._parked = self._parked, None
            trio.lowlevel.reschedule(parked)

    async def _park(self) -> None:
        self._parked = trio.lowlevel.current_task()
        deadline = self._paused[0][0] if self._paused else float("inf")
        with trio.CancelScope(deadline=deadline):
            await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def _unpark(self, _: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _end_pauses(self) -> None:
        now = trio.current_time()
        while self._paused and self._paused[0][0] <= now:
            _, _, activation = heapq.heappop(self._paused)
            if 0.0 < activation.paused_until <= now:
                activation.paused_until = 0.0
                self.make_ready(activation)
