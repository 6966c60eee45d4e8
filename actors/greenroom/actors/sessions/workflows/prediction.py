"""Prediction of the next command: a Markov model of variable order with back-off.

The longest context that occurred before counts most; its remaining probability goes to the next shorter
context, down to the plain frequency of commands. The remainder is Witten and Bell's estimate: the number of
different commands that followed. It is method C of prediction by partial matching (Moffat,
"Implementing the PPM data compression scheme", 1990; Witten and Bell, "The zero-frequency problem", 1991;
Cleary and Witten, "Data compression using adaptive coding and partial string matching", 1984), interpolated
as Chen and Goodman do ("An empirical study of smoothing techniques for language modeling", 1998). Older steps
count less, and failed steps count against their command.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from greenroom.actors.sessions.workflows.shapes import NAMELESS
from greenroom.actors.sessions.workflows.timeline import Step, Timeline
from greenroom.runtime import Slices

MOST_ORDER: Final = 4
"""The most commands of a context."""
ESCAPES: Final = (1.0, 1.0, 4.0, 4.0, 4.0)
"""The factor on Witten and Bell's estimate, by the length of the context.

`bench/workflows.py` fitted the factors: longer contexts are rare and overconfident.
"""
_SLICE: Final = 256


class Prediction(NamedTuple):
    """A command that comes next and passes with a probability, 0 to 1.

    ``order`` is the number of context commands that it followed before.
    """

    command: str
    probability: float
    order: int


class _Followers(NamedTuple):
    """Commands after a context: passed weight by command, total weight, number of kinds."""

    passed: dict[str, float]
    total: float
    kinds: int


def predict(timeline: Timeline, context: Sequence[str], now: int) -> Slices[list[Prediction]]:
    """Predict the commands after a context, most probable first.

    A command is left out if it never passed, or never passed after the last command of the context.
    """
    followers = yield from _weigh(timeline, list(timeline), now)
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
        followers = yield from _weigh(timeline, following, now)
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
    """Return whether a command came ``distance`` steps before a step in its session."""
    before: Step | None = step
    for _ in range(distance):
        if before is None:
            return False
        before = before.before
    return before is not None and before.command == command


def _weigh(timeline: Timeline, steps: Sequence[Step], now: int) -> Slices[_Followers]:
    passed: defaultdict[str, float] = defaultdict(float)
    kinds: set[str] = set()
    total = 0.0
    for place, step in enumerate(steps):
        weight = timeline.weight(step, now)
        total += weight
        kinds.add(step.command)
        if step.passed:
            passed[step.command] += weight
        if place % _SLICE == _SLICE - 1:
            yield
    return _Followers(passed, total, len(kinds))
