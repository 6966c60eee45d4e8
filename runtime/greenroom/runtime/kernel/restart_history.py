"""Who failed how often lately, and who is set aside for it."""

from __future__ import annotations

import random
from collections.abc import Mapping

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorQuarantinedError
from greenroom.runtime.base.supervision import Group, Quarantine, Restart, decide, recent

REMEMBERED = 1_024
"""How many actors' failures are remembered before those outside their period are forgotten."""


class RestartHistory:
    """The record that the decisions about restarts are made from.

    Args:
        groups: Each kind's group.
        randomness: Where jitter comes from.

    Attributes:
        quarantined: The addresses that are set aside, each with how often it had failed.
    """

    def __init__(self, groups: Mapping[str, Group], randomness: random.Random) -> None:
        self._groups = groups
        self._random = randomness
        self._times: dict[Address, list[float]] = {}
        self.quarantined: dict[Address, int] = {}

    def record(self, address: Address, now: float) -> Restart | Quarantine:
        """Record a failure at ``now`` (trio's clock) and return what is to be done about it."""
        if len(self._times) >= REMEMBERED:
            self._times = {
                each: times
                for each, times in self._times.items()
                if recent(times, now, self._groups[each.kind])
            }
        group = self._groups[address.kind]
        times = self._times[address] = [*recent(self._times.get(address, ()), now, group), now]
        decision = decide(times, group, self._random.random())
        if isinstance(decision, Quarantine):
            self.quarantined[address] = decision.failures
        return decision

    def readmit(self, address: Address) -> bool:
        """Forget an actor's failures; return whether it was set aside."""
        self._times.pop(address, None)
        return self.quarantined.pop(address, None) is not None

    def quarantine_error(self, address: Address) -> ActorQuarantinedError:
        """Return what those hear who ask an actor that is set aside."""
        period = self._groups[address.kind].period
        return ActorQuarantinedError(
            f"{address} failed {self.quarantined[address]} times within {period:g} s and is set aside; "
            "an operator can let it in again with Runtime.readmit"
        )
