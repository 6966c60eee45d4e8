"""When a subscriber hears of which topic: a pure function of the times of changes and of takings.

Rules:

1. The first change of a quiet topic is told at once.
2. A topic that was told rests for a window. Changes meanwhile become one, told when the rest is over.
3. A topic is told when the subscriber takes it, so one that does not come costs one entry a topic.

It knows no event loop and no clock; times are seconds on any clock that does not go back.
"""

from __future__ import annotations


class Debounce:
    """What one subscriber has not taken yet, and what it took lately.

    Invariant: a topic is ready or resting or neither, never both. Rests are in the order of their ends,
    since they begin in the order of takings and are equally long.

    Args:
        window: How long a topic rests, in seconds.
    """

    __slots__ = ("_changed", "_ready", "_resting", "_window")

    def __init__(self, window: float) -> None:
        self._window = window
        self._ready: dict[str, None] = {}
        self._resting: dict[str, tuple[float, bool]] = {}
        self._changed = 0

    def change(self, topic: str, now: float) -> float:
        """Note a change; return when there will be something to take."""
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
        """Return the topic that is ready for longest and let it rest, or None when none is ready."""
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
        """Return when to `take` next, unless something changes before; infinity for not at all."""
        if self._ready:
            return 0.0
        return next(iter(self._resting.values()))[0] if self._changed else float("inf")

    def forget(self, topic: str) -> None:
        """Keep nothing of a topic."""
        self._ready.pop(topic, None)
        self._end_rest(topic)

    def _end_rest(self, topic: str) -> None:
        _, changed = self._resting.pop(topic, (0.0, False))
        self._changed -= changed
