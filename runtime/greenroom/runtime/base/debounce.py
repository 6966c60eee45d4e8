"""Debounce notifications of topics: a pure function of the times of changes and takes.

Rules:

1. The first change of a quiet topic is ready at once.
2. A topic that was taken rests for a window. Changes during the rest become one, ready at its end.
3. A subscriber takes topics itself. If it never takes any, it costs one entry for each topic.

This module uses no event loop and no clock; times are seconds on any monotonic clock.
"""

from __future__ import annotations


class Debounce:
    """The topics that one subscriber has not taken yet, and those it took lately.

    Invariant: a topic is never both ready and resting. Rests are in the order of their ends, because they
    are equally long.
    """

    __slots__ = ("_changed", "_ready", "_resting", "_window")

    def __init__(self, window: float) -> None:
        self._window = window
        self._ready: dict[str, None] = {}
        self._resting: dict[str, tuple[float, bool]] = {}
        self._changed = 0

    def change(self, topic: str, now: float) -> float:
        """Record a change; return when `take` will return a topic."""
        if topic in self._ready:
            return now
        until, changed = self._resting.get(topic, (now, False))
        if until <= now:
            self._end_rest(topic)
            self._ready[topic] = None
            return now
        if not changed:
            self._resting[topic] = (until, True)
            self._changed += 1
        return until

    def take(self, now: float) -> str | None:
        """Return the topic that has been ready longest and let it rest; else return None."""
        while self._resting:
            topic, (until, changed) = next(iter(self._resting.items()))
            if until > now:
                break
            self._end_rest(topic)
            if changed:
                self._ready[topic] = None
        if not self._ready:
            return None
        topic = next(iter(self._ready))
        del self._ready[topic]
        if self._window:
            self._resting[topic] = (now + self._window, False)
        return topic

    def due(self) -> float:
        """Return when to `take` next, unless a topic changes earlier; infinity for never."""
        if self._ready:
            return 0.0
        return next(iter(self._resting.values()))[0] if self._changed else float("inf")

    def forget(self, topic: str) -> None:
        """Drop a topic."""
        self._ready.pop(topic, None)
        self._end_rest(topic)

    def _end_rest(self, topic: str) -> None:
        _, changed = self._resting.pop(topic, (0.0, False))
        self._changed -= changed
