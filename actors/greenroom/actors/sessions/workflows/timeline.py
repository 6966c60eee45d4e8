"""The stored steps of one user and project, linked by session, indexed by command.

Predictions and patterns are computed from them. Adding a step and dropping the oldest take constant time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

MOST_STEPS: Final = 5_000
"""The most steps; beyond this number the oldest step is deleted."""
MOST_CONTEXT: Final = 20
"""The most commands of a context."""
FREQUENT: Final = 3
"""A word with at least this many occurrences may be kept; before, it is only counted."""
HALF_LIFE_DAYS: Final = 30.0
HALF_LIFE_STEPS: Final = 1_000.0
"""After this many days, or this many later steps, a step counts half; after both, a quarter."""
_DAY: Final = 86_400_000_000
_STEP_BYTES: Final = 400


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step: a command in a session.

    Attributes:
        words: Digests of words of the typed line that may be names and are not in ``command``.
        before: The step before it in its session.
        after: The step after it in its session.
    """

    number: int
    command: str
    _: KW_ONLY
    session: str
    passed: bool
    at: int
    duration_ms: float | None = None
    words: Sequence[bytes] = ()
    before: Step | None = None
    after: Step | None = None


class Timeline:
    """Steps in order of time."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque()
        self._by_command: dict[str, deque[Step]] = {}
        self._last: dict[str, Step] = {}
        self._passed: Counter[str] = Counter()
        self._words: Counter[bytes] = Counter()

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def newest(self) -> int:
        """The number of the newest step; 0 if there is no step."""
        return self._steps[-1].number if self._steps else 0

    @property
    def commands(self) -> Sequence[str]:
        """The distinct commands."""
        return list(self._by_command)

    def add(self, step: Step) -> None:
        """Add the newest step."""
        known = self._by_command.get(step.command)
        if known is None:
            known = self._by_command[step.command] = deque()
        else:
            step.command = known[0].command  # all steps of a command share one string
        known.append(step)
        self._steps.append(step)
        step.before = self._last.get(step.session)
        if step.before is not None:
            step.before.after = step
        self._last[step.session] = step
        self._passed[step.command] += step.passed
        self._words.update(step.words)

    def forget_oldest(self) -> Step:
        """Remove and return the oldest step."""
        step = self._steps.popleft()
        known = self._by_command[step.command]
        known.popleft()
        if not known:
            del self._by_command[step.command]
        if step.after is not None:
            step.after.before = None
        else:
            del self._last[step.session]
        self._passed[step.command] -= step.passed
        if not self._passed[step.command]:
            del self._passed[step.command]
        self._words.subtract(step.words)
        for word in step.words:
            if self._words[word] <= 0:
                del self._words[word]
        return step

    def of(self, command: str) -> Sequence[Step]:
        """Return the steps of a command, oldest first."""
        return self._by_command.get(command, ())

    def ever_passed(self, command: str) -> bool:
        """Return whether a command passed at least once."""
        return self._passed[command] > 0

    def success_rate(self, command: str) -> float:
        """Return the share of a command's steps that passed, 0 to 1."""
        known = self.of(command)
        return self._passed[command] / len(known) if known else 0.0

    def is_frequent(self, word: bytes) -> bool:
        """Return whether one more occurrence makes a word frequent."""
        return self._words[word] + 1 >= FREQUENT

    def last_of(self, session: str) -> list[str]:
        """Return the last commands of a session, oldest first."""
        found: list[str] = []
        step = self._last.get(session)
        while step is not None and len(found) < MOST_CONTEXT:
            found.append(step.command)
            step = step.before
        return found[::-1]

    def weight(self, step: Step, now: int) -> float:
        """Return the weight of a step: 1 when new, halved every half-life."""
        days = max(0, now - step.at) / _DAY
        return float(2.0 ** -(days / HALF_LIFE_DAYS + (self.newest - step.number) / HALF_LIFE_STEPS))

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return _STEP_BYTES * len(self._steps) + 500 * len(self._by_command)
