"""Supervision: when failed actors restart, which siblings restart too, and quarantine.

The kernel carries the decisions out.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorQuarantinedError, ConfigurationError


class Strategy(enum.Enum):
    """Which siblings (actors of a group with the same key) restart with a failed actor."""

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
        intensity: After this many failures within ``period``, an actor is in quarantine.
        period: In seconds.
        backoff: Pause before the second restart within a period, in seconds; it then doubles each time.
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
    """Do not rebuild the actor until an operator readmits it."""

    failures: int


def filter_recent(failures: Sequence[float], now: float, group: Group) -> list[float]:
    """Return the failure times (seconds, monotonic) that still count at ``now``."""
    return [at for at in failures if now - at < group.period]


def decide(failures: Sequence[float], group: Group, jitter: float) -> Restart | Quarantine:
    """Decide whether an actor restarts; ``failures`` are its recent ones, with the current one.

    After the first failure in a period the actor restarts at once. Then the pause doubles each time, scaled
    by 0.5-1.5 (``jitter`` is 0-1), so that actors that failed together do not restart together.
    """
    if len(failures) >= group.intensity:
        return Quarantine(len(failures))
    if len(failures) <= 1:
        return Restart(0.0)
    pause = min(group.backoff * 2.0 ** (len(failures) - 2), group.backoff_limit)
    return Restart(pause * (0.5 + jitter))


def restarted_kinds(failed: str, group: Group) -> tuple[str, ...]:
    """Return the kinds to restart, for the same key, with the actor of kind ``failed``."""
    match group.strategy:
        case Strategy.ONE_FOR_ONE:
            return (failed,)
        case Strategy.ONE_FOR_ALL:
            return group.kinds
        case Strategy.REST_FOR_ONE:
            return group.kinds[group.kinds.index(failed) :]


def groups_by_kind(kinds: Iterable[str], groups: Iterable[Group]) -> dict[str, Group]:
    """Return each kind's group; a kind without one gets its own."""
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


REMEMBERED = 1_024
"""If more actors than this have recorded failures, outdated failures are dropped."""


class RestartHistory:
    """The recent failures of actors, and the actors in quarantine with their numbers of failures."""

    def __init__(self, groups: Mapping[str, Group], randomness: random.Random) -> None:
        self._groups = groups
        self._random = randomness
        self._times: dict[Address, list[float]] = {}
        self.quarantined: dict[Address, int] = {}

    def record(self, address: Address, now: float) -> Restart | Quarantine:
        """Record a failure at ``now`` (trio's clock) and return the decision."""
        if len(self._times) >= REMEMBERED:
            self._times = {
                each: times
                for each, times in self._times.items()
                if filter_recent(times, now, self._groups[each.kind])
            }
        group = self._groups[address.kind]
        times = self._times[address] = [*filter_recent(self._times.get(address, ()), now, group), now]
        decision = decide(times, group, self._random.random())
        if isinstance(decision, Quarantine):
            self.quarantined[address] = decision.failures
        return decision

    def readmit(self, address: Address) -> bool:
        """Drop an actor's failures; return whether it was in quarantine."""
        self._times.pop(address, None)
        return self.quarantined.pop(address, None) is not None

    def quarantine_error(self, address: Address) -> ActorQuarantinedError:
        """Return the error for requests to an actor in quarantine."""
        period = self._groups[address.kind].period
        return ActorQuarantinedError(
            f"{address} failed {self.quarantined[address]} times within {period:g} s and is set aside; "
            "an operator can let it in again with Runtime.readmit"
        )
