"""When a failed actor restarts, who restarts with it, and when it is set aside.

Pure decisions: they read values and return what is to be done; the kernel does it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from greenroom.runtime.base.errors import ConfigurationError


class Strategy(enum.Enum):
    """Which siblings restart when one actor fails. Siblings are the actors of a group that share a key."""

    ONE_FOR_ONE = "one_for_one"
    """Only the failed actor."""
    ONE_FOR_ALL = "one_for_all"
    """Every sibling."""
    REST_FOR_ONE = "rest_for_one"
    """The failed actor and the siblings of the kinds named after its own."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Kinds that are supervised together.

    Attributes:
        kinds: The kinds, in the order in which they depend on each other.
        strategy: Who restarts with whom.
        intensity: Failures of one actor within ``period`` after which it is set aside.
        period: In seconds.
        backoff: Pause before the second restart within a period, in seconds; it doubles with each more.
        backoff_limit: The longest pause, in seconds.
    """

    kinds: tuple[str, ...]
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: int = 5
    period: float = 60.0
    backoff: float = 0.05
    backoff_limit: float = 30.0


class Restart(NamedTuple):
    """Rebuild the actor after ``delay`` seconds."""

    delay: float


class Quarantine(NamedTuple):
    """Stop rebuilding it until an operator lets it in again, after so many ``failures`` in a period."""

    failures: int


def recent(failures: Sequence[float], now: float, group: Group) -> list[float]:
    """Return the failure times (seconds, monotonic) that still count at ``now``."""
    return [at for at in failures if now - at < group.period]


def decide(failures: Sequence[float], group: Group, jitter: float) -> Restart | Quarantine:
    """Decide about an actor whose `recent` failures include the present one.

    The first failure in a period restarts at once; then the pause doubles,
    scaled by 0.5-1.5 so that actors which failed together do not return together.

    Args:
        failures: Recent failure times, the present one last.
        group: The supervising group.
        jitter: A random number in [0, 1).
    """
    if len(failures) >= group.intensity:
        return Quarantine(len(failures))
    if len(failures) <= 1:
        return Restart(0.0)
    pause = min(group.backoff * 2.0 ** (len(failures) - 2), group.backoff_limit)
    return Restart(pause * (0.5 + jitter))


def restarted_kinds(failed: str, group: Group) -> tuple[str, ...]:
    """Return the kinds whose actor of the same key restarts when the actor of kind ``failed`` does."""
    match group.strategy:
        case Strategy.ONE_FOR_ONE:
            return (failed,)
        case Strategy.ONE_FOR_ALL:
            return group.kinds
        case Strategy.REST_FOR_ONE:
            return group.kinds[group.kinds.index(failed) :]


def groups_by_kind(kinds: Iterable[str], groups: Iterable[Group]) -> dict[str, Group]:
    """Return each kind's group; a kind in no group is supervised on its own.

    Raises:
        ConfigurationError: a group names a kind that was not given, or two groups name one kind.
    """
    table: dict[str, Group] = {}
    known = set(kinds)
    for group in groups:
        for kind in group.kinds:
            if kind not in known or kind in table:
                raise ConfigurationError(
                    f"the group {group.kinds} names {kind!r}, which is unknown or in another group"
                )
            table[kind] = group
    return {kind: table.get(kind, Group(kinds=(kind,))) for kind in known}
