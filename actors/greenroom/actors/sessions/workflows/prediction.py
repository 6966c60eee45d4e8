"""The next command of a session, by a Markov model of variable order with back-off.

The longest context that occurred before counts most; what it leaves open is given to the next shorter
one, down to how often commands come at all. How much it leaves open is Witten and Bell's estimate: as
many times as it had something new after it. It is method C of prediction by partial matching (Moffat,
"Implementing the PPM data compression scheme", 1990; Witten and Bell, "The zero-frequency problem", 1991;
Cleary and Witten, "Data compression using adaptive coding and partial string matching", 1984), interpolated
as Chen and Goodman do ("An empirical study of smoothing techniques for language modeling", 1998). Steps
count less the older they are, and those that failed count against what they would have done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from greenroom.actors.sessions.workflows.shapes import NAMELESS
from greenroom.actors.sessions.workflows.timeline import Step, Timeline
from greenroom.runtime import Slices

MOST_ORDER: Final = 4
"""Commands of the longest context."""
ESCAPES: Final = (1.0, 1.0, 4.0, 4.0, 4.0)
"""By the length of a context, how many times as much it leaves open as Witten and Bell say.

Fitted by `bench/workflows.py`: contexts of several commands are rarer and promise too much.
"""
_SLICE: Final = 256


class Prediction(NamedTuple):
    """A command that may come next.

    Attributes:
        command: Its shape.
        probability: That it comes next and passes, from 0 to 1.
        order: How many commands of the context it was seen after.
    """

    command: str
    probability: float
    order: int


class _Followers(NamedTuple):
    """What came after a context: by command what passed of it, what all of it weighs, how many there are."""

    passed: dict[str, float]
    total: float
    kinds: int


def predicted(
    timeline: Timeline, context: Sequence[str], now: int, should_yield: Callable[[], bool]
) -> Slices[list[Prediction]]:
    """Return what may come after a context, most probable first.

    A command is left out that never passed, or never after the last one of the context.

    Args:
        timeline: What came before.
        context: Shapes of the last commands, oldest first.
        now: The time (microseconds since 1970).
        should_yield: Says that the slice is over.
    """
    followers = yield from _weighed(timeline, list(timeline), now, should_yield)
    probabilities = {
        command: followers.passed.get(command, 0.0) / (followers.total + followers.kinds)
        for command in timeline.commands
    }
    orders = dict.fromkeys(probabilities, 0)
    useless = {command for command in probabilities if not timeline.ever_passed(command)} | {NAMELESS}
    places: list[Step] = list(timeline.of(context[-1])) if context else []
    for order in range(1, min(MOST_ORDER, len(context)) + 1):
        if order > 1:
            places = [step for step in places if _is_after(step, order - 1, context[-order])]
        following = [step.after for step in places if step.after is not None]
        if not following:
            break
        followers = yield from _weighed(timeline, following, now, should_yield)
        if order == 1:
            useless |= {step.command for step in following} - followers.passed.keys()
        left_open = followers.kinds * ESCAPES[order]
        kept = 1 / (followers.total + left_open)
        for command in probabilities:
            probabilities[command] *= left_open * kept
        for command, weight in followers.passed.items():
            probabilities[command] += weight * kept
            orders[command] = order
    found = [
        Prediction(command, probability, orders[command])
        for command, probability in probabilities.items()
        if probability > 0 and command not in useless
    ]
    return sorted(found, key=lambda each: (-each.probability, each.command))


def _is_after(step: Step, distance: int, command: str) -> bool:
    """Return whether a command came so many steps before a step in its session."""
    before: Step | None = step
    for _ in range(distance):
        if before is None:
            return False
        before = before.before
    return before is not None and before.command == command


def _weighed(
    timeline: Timeline, steps: Sequence[Step], now: int, should_yield: Callable[[], bool]
) -> Slices[_Followers]:
    passed: defaultdict[str, float] = defaultdict(float)
    kinds: set[str] = set()
    total = 0.0
    for place, step in enumerate(steps):
        weight = timeline.weight(step, now)
        total += weight
        kinds.add(step.command)
        if step.passed:
            passed[step.command] += weight
        if place % _SLICE == _SLICE - 1 and should_yield():
            yield
    return _Followers(passed, total, len(kinds))
