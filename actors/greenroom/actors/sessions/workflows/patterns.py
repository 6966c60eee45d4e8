"""Frequent sequences of commands, with at most one other command in between.

No sequence has a command twice.

Sequences grow from their prefixes. Each is searched for only where its prefix occurred, the heaviest first
(PrefixSpan: Pei and others, "Mining sequential patterns by pattern-growth", 2004). A sequence is left out if
a longer one contains it and is nearly as frequent (closed sequences: Yan, Han and Afshar, "CloSpan", 2003).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from typing import Final, NamedTuple

from greenroom.actors.sessions.workflows.shapes import NAMELESS
from greenroom.actors.sessions.workflows.timeline import Step, Timeline
from greenroom.runtime import Slices

LEAST: Final = 2
"""The fewest occurrences of a sequence."""
LONGEST: Final = 8
"""The most commands of a sequence."""
MOST_GAPS: Final = 1
"""The most other commands within one occurrence."""
MOST_FOUND: Final = 500
"""At most this many sequences are found: the heaviest ones."""
_MOST_VISITS: Final = 200_000
"""At most this many occurrences are visited in all, so light sequences may not be found."""
LEFT_OPEN: Final = 0.5
"""The factor on Witten and Bell's estimate of what a prefix leaves open.

`bench/workflows.py` fitted the factor. The kinds in the estimate include commands after a gap.
"""
_NEARLY: Final = 0.8
_DIGITS: Final = 6
_SLICE: Final = 256
_ID_BYTES: Final = 8


class _Occurrence(NamedTuple):
    """An occurrence of a sequence: its steps, and the number of other steps between them."""

    steps: tuple[Step, ...]
    gaps: int


class Pattern(NamedTuple):
    """A sequence of commands.

    Attributes:
        weight: The number of occurrences, of which older ones count less.
        chances: For each number of done commands, the probability that the other commands follow.
        goes_on: Whether a longer sequence with this prefix is nearly as frequent.
        is_part: Whether a longer sequence with this prefix or suffix is nearly as frequent.
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
        """The id: 16 hexadecimal digits of a digest of its commands."""
        return blake2b("\n".join(self.commands).encode(), digest_size=_ID_BYTES).hexdigest()


class _Node(NamedTuple):
    """A sequence to grow, and for each prefix the denominator of its probability."""

    commands: tuple[str, ...]
    places: Sequence[_Occurrence]
    weight: float
    grounds: tuple[float, ...]


def mine(timeline: Timeline, now: int) -> Slices[list[Pattern]]:
    """Return the frequent sequences, heaviest first."""
    numbers = count()
    waiting: list[tuple[float, int, _Node]] = []
    for command in timeline.commands:
        places = [_Occurrence((step,), 0) for step in timeline.of(command)]
        if len(places) >= LEAST and command != NAMELESS:
            weight = sum(timeline.weight(step, now) for step in timeline.of(command))
            heapq.heappush(waiting, (-weight, next(numbers), _Node((command,), places, weight, ())))
        yield
    found: list[Pattern] = []
    visits = 0
    while waiting and len(found) < MOST_FOUND and visits < _MOST_VISITS:
        node = heapq.heappop(waiting)[2]
        visits += len(node.places)
        if len(node.commands) > 1 and (pattern := _pattern(node)).success_rate > 0:
            found.append(pattern)
        if len(node.commands) < LONGEST:
            for longer in (yield from _grow(node, timeline, now)):
                heapq.heappush(waiting, (-longer.weight, next(numbers), longer))
        yield
    return _mark(found)


def _grow(node: _Node, timeline: Timeline, now: int) -> Slices[list[_Node]]:
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
        if number % _SLICE == 0:
            yield
    longer: list[_Node] = []
    for command, places in ends.items():
        if len(places) >= LEAST and command not in {NAMELESS, *node.commands}:
            weight = sum(timeline.weight(place.steps[-1], now) for place in places.values())
            grounds = (*node.grounds, ground + LEFT_OPEN * len(ends))
            longer.append(_Node((*node.commands, command), list(places.values()), weight, grounds))
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
    """A pattern with its done prefix, and the probability of the rest."""

    pattern: Pattern
    done: int
    confidence: float


def match_patterns(patterns: Sequence[Pattern], context: Sequence[str], limit: int) -> list[Match]:
    """Return the patterns that continue a context, by longest done prefix and confidence.

    Without a context all patterns match, with all but the last command done, and those that save most steps
    come first. A subsequence of an earlier pattern is skipped. Without a context a rotation of an earlier
    pattern is skipped too.
    """
    found: list[Match] = []
    for pattern in patterns:
        done = _count_done(pattern.commands, context) if context else len(pattern.commands) - 1
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
    """Return whether the commands are a proper subsequence of a longer sequence."""
    following = iter(longer)
    return len(commands) < len(longer) and all(command in following for command in commands)


def _count_done(commands: Sequence[str], context: Sequence[str]) -> int:
    """Return the length of the longest proper prefix of a pattern that ends a context."""
    for done in range(min(len(commands) - 1, len(context)), 0, -1):
        if tuple(context[-done:]) == tuple(commands[:done]):
            return done
    return 0


def _mark(found: Sequence[Pattern]) -> list[Pattern]:
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
