"""Sequences of commands that come again and again, also with another command in between.

None has a command twice: there it begins anew.

They are grown from their beginnings, and each is looked for only where its beginning was found (PrefixSpan:
Pei and others, "Mining sequential patterns by pattern-growth", 2004), heaviest first. What is part of a
longer one that came nearly as often is left out (closed sequences: Yan, Han and Afshar, "CloSpan", 2003).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count
from typing import Final, NamedTuple

from greenroom.actors.sessions.workflows.shapes import NAMELESS
from greenroom.actors.sessions.workflows.timeline import Step, Timeline
from greenroom.runtime import Slices

LEAST: Final = 2
"""How often a sequence has to come."""
LONGEST: Final = 8
"""Commands of a sequence."""
MOST_GAPS: Final = 1
"""Other commands within one occurrence."""
MOST_FOUND: Final = 500
"""Sequences that are kept, the heaviest ones."""
_MOST_VISITS: Final = 200_000
"""Occurrences that are looked at in all; what is lighter than all that is not found."""
LEFT_OPEN: Final = 0.5
"""How many times as much as Witten and Bell say a beginning leaves open.

Fitted by `bench/workflows.py`: what comes behind it after another command is among its kinds.
"""
_NEARLY: Final = 0.8
_DIGITS: Final = 6
_SLICE: Final = 256
_ID_BYTES: Final = 8


class _Occurrence(NamedTuple):
    """Where a sequence came: its steps, and how many others are between them."""

    steps: tuple[Step, ...]
    gaps: int


class Pattern(NamedTuple):
    """A sequence of commands.

    Attributes:
        commands: Their shapes.
        times: How often it came.
        weight: The same, where less counts what is long ago.
        chances: By how many of its commands were done, how probable it was that all others followed.
        success_rate: In how many occurrences every step passed, from 0 to 1.
        duration_ms: How long its steps took together on average, where that is known.
        last_seen: When it came last (microseconds since 1970).
        goes_on: Whether one with more behind it came nearly as often.
        is_part: Whether one with more behind or before it did.
    """

    commands: tuple[str, ...]
    times: int
    weight: float
    chances: tuple[float, ...]
    success_rate: float
    duration_ms: float | None
    last_seen: int
    goes_on: bool = False
    is_part: bool = False

    @property
    def id(self) -> str:
        """What it is known by: 16 hexadecimal digits of its commands."""
        return blake2b("\n".join(self.commands).encode(), digest_size=_ID_BYTES).hexdigest()


class _Node(NamedTuple):
    """A sequence on its way to longer ones, and for each of its beginnings what its chance is a part of."""

    commands: tuple[str, ...]
    places: Sequence[_Occurrence]
    weight: float
    grounds: tuple[float, ...]


def mined(timeline: Timeline, now: int, should_yield: Callable[[], bool]) -> Slices[list[Pattern]]:
    """Return the sequences that come again and again, heaviest first.

    Args:
        timeline: Where they are looked for.
        now: The time (microseconds since 1970).
        should_yield: Says that the slice is over.
    """
    numbers = count()
    waiting: list[tuple[float, int, _Node]] = []
    for command in timeline.commands:
        places = [_Occurrence((step,), 0) for step in timeline.of(command)]
        if len(places) >= LEAST and command != NAMELESS:
            weight = sum(timeline.weight(step, now) for step in timeline.of(command))
            heapq.heappush(waiting, (-weight, next(numbers), _Node((command,), places, weight, ())))
        if should_yield():
            yield
    found: list[Pattern] = []
    visits = 0
    while waiting and len(found) < MOST_FOUND and visits < _MOST_VISITS:
        node = heapq.heappop(waiting)[2]
        visits += len(node.places)
        if len(node.commands) > 1 and (pattern := _pattern(node)).success_rate > 0:
            found.append(pattern)
        if len(node.commands) < LONGEST:
            for longer in (yield from _grown(node, timeline, now, should_yield)):
                heapq.heappush(waiting, (-longer.weight, next(numbers), longer))
        if should_yield():
            yield
    return _marked(found)


def _grown(
    node: _Node, timeline: Timeline, now: int, should_yield: Callable[[], bool]
) -> Slices[list[_Node]]:
    """Return the sequences that have one command more."""
    ends: defaultdict[str, dict[int, _Occurrence]] = defaultdict(dict)
    ground = 0.0
    for number, place in enumerate(node.places, 1):
        after = place.steps[-1].after
        if after is not None:
            ground += timeline.weight(place.steps[-1], now)
        gaps = place.gaps
        while after is not None and gaps <= MOST_GAPS:
            known = ends[after.command].get(after.number)
            if known is None or known.gaps > gaps:
                ends[after.command][after.number] = _Occurrence((*place.steps, after), gaps)
            after, gaps = after.after, gaps + 1
        if number % _SLICE == 0 and should_yield():
            yield
    longer: list[_Node] = []
    for command, places in ends.items():
        if len(places) >= LEAST and command not in {NAMELESS, *node.commands}:
            weight = sum(timeline.weight(place.steps[-1], now) for place in places.values())
            grounds = (*node.grounds, ground + LEFT_OPEN * len(ends))
            longer.append(_Node((*node.commands, command), list(places.values()), weight, grounds))
        if should_yield():
            yield
    return longer


def _pattern(node: _Node) -> Pattern:
    durations = [
        sum(step.duration_ms for step in place.steps if step.duration_ms is not None)
        for place in node.places
        if all(step.duration_ms is not None for step in place.steps)
    ]
    passed = sum(all(step.passed for step in place.steps) for place in node.places)
    return Pattern(
        commands=node.commands,
        times=len(node.places),
        weight=node.weight,
        chances=tuple(min(1.0, node.weight / ground) for ground in node.grounds),
        success_rate=passed / len(node.places),
        duration_ms=sum(durations) / len(durations) if durations else None,
        last_seen=max(place.steps[-1].at for place in node.places),
    )


class Match(NamedTuple):
    """A pattern whose beginning is done: how much of it, and how probable it is that the rest follows."""

    pattern: Pattern
    done: int
    confidence: float


def matched(patterns: Sequence[Pattern], context: Sequence[str], limit: int) -> list[Match]:
    """Return the patterns that go on from a context, by the longest beginning that is done, surest first.

    Without a context it is all of them, those first that save most steps, and all but the last is done.
    One that leaves out commands of another one before it adds nothing, and is passed over; so is, without a
    context, what goes round the same circle from another command on.

    Args:
        patterns: All there are.
        context: Shapes of the last commands, oldest first.
        limit: How many are wanted.
    """
    found: list[Match] = []
    for pattern in patterns:
        done = _done(pattern.commands, context) if context else len(pattern.commands) - 1
        if done and not (pattern.goes_on if context else pattern.is_part):
            found.append(Match(pattern, done, pattern.chances[done - 1]))
    if context:
        found.sort(key=_by_confidence)
    else:
        found.sort(key=lambda each: (-each.pattern.weight * each.done, each.pattern.commands))
    kept: list[Match] = []
    for match in found:
        if len(kept) == limit:
            break
        commands = match.pattern.commands
        is_turned = not context and any(set(commands) == set(other.pattern.commands) for other in kept)
        if not is_turned and not any(_leaves_out(commands, other.pattern.commands) for other in kept):
            kept.append(match)
    return kept


def _by_confidence(match: Match) -> tuple[int, float, int, tuple[str, ...]]:
    commands = match.pattern.commands
    return -match.done, -round(match.confidence, _DIGITS), -len(commands), commands


def _leaves_out(commands: Sequence[str], longer: Sequence[str]) -> bool:
    """Return whether all commands come in a longer sequence in their order."""
    following = iter(longer)
    return len(commands) < len(longer) and all(command in following for command in commands)


def _done(commands: Sequence[str], context: Sequence[str]) -> int:
    """Return how many of a pattern's first commands the last ones of a context are; never all."""
    for done in range(min(len(commands) - 1, len(context)), 0, -1):
        if tuple(context[-done:]) == tuple(commands[:done]):
            return done
    return 0


def _marked(found: Sequence[Pattern]) -> list[Pattern]:
    """Return patterns that know whether a longer one came nearly as often."""
    behind: defaultdict[tuple[str, ...], float] = defaultdict(float)
    before: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for pattern in found:
        first, last = pattern.commands[:-1], pattern.commands[1:]
        behind[first] = max(behind[first], pattern.weight)
        before[last] = max(before[last], pattern.weight)
    return [
        pattern._replace(
            goes_on=behind[pattern.commands] >= _NEARLY * pattern.weight,
            is_part=max(behind[pattern.commands], before[pattern.commands]) >= _NEARLY * pattern.weight,
        )
        for pattern in found
    ]
