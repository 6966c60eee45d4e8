"""The actors in memory: activate on demand, passivate when idle or memory is short."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping

import trio

from greenroom.runtime.actor.actor import Actor, Handlers
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.kernel.mailbox import Activation
from greenroom.runtime.lmdb.key_blinding import KeyBlinder

logger = logging.getLogger(__name__)

SCAN_LIMIT = 64
"""One passivation examines at most this many activations; it skips busy actors."""


class ActivationCache:
    """The activations in memory, least recently used first.

    Passivation only drops memory: an idle actor's state is in the store already.
    """

    def __init__(
        self, options: RuntimeOptions, kinds: Mapping[str, type[Actor]], blinder: KeyBlinder | None = None
    ) -> None:
        self._options = options
        self._names = {kind: actor.names for kind, actor in kinds.items()}
        self._blinder = blinder
        self._resident: OrderedDict[Address, Activation] = OrderedDict()
        self.get = self._resident.get
        self.bytes = 0
        self.activations = 0
        self.passivations = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._resident)

    def __iter__(self) -> Iterator[Activation]:
        return iter(self._resident.values())

    def add(self, address: Address, handlers: Handlers) -> Activation:
        """Return a new activation for ``address``, making room for it first."""
        self.make_room()
        activation = self._resident[address] = Activation(
            address, handlers, self._names[address.kind], self._blinder
        )
        return activation

    def mark_used(self, activation: Activation, now: float) -> None:
        """Record the size of ``activation``, and that it had a turn at ``now`` (trio's clock)."""
        activation.last_used = now
        self._resident.move_to_end(activation.address)
        size = 0
        if activation.actor is not None:
            try:
                size = activation.actor.resident_bytes()
            except Exception:
                logger.exception("%s cannot estimate its size", activation.address)
                size = activation.actor.size
        grown = size > activation.resident_bytes
        self.bytes += size - activation.resident_bytes
        activation.resident_bytes = size
        if grown and self.bytes >= self._options.resident_bytes:
            self.make_room(spared=activation)

    def make_room(self, *, spared: Activation | None = None) -> None:
        """Passivate idle actors, oldest first, while the number or bytes exceed their limits."""
        options = self._options
        now = trio.current_time()
        for _ in range(SCAN_LIMIT):
            if len(self._resident) < options.resident_limit and self.bytes < options.resident_bytes:
                return
            if next(iter(self._resident.values()), None) is spared or not self._resident:
                return
            self.evictions += self._passivate_oldest(now)

    def passivate_idle(self) -> int:
        """Passivate unused actors; return the seconds until the next actor may be due."""
        now = trio.current_time()
        patience = self._options.idle_seconds
        while self._resident:
            oldest = next(iter(self._resident.values()))
            if now - oldest.last_used < patience:
                return max(1, int(patience - (now - oldest.last_used)))
            self._passivate_oldest(now)
        return max(1, int(patience))

    def _passivate_oldest(self, now: float) -> bool:
        """Passivate the least recently used actor, or move a busy one to the end."""
        address, activation = next(iter(self._resident.items()))
        if not activation.is_idle:
            activation.last_used = now
            self._resident.move_to_end(address)
            return False
        del self._resident[address]
        self.bytes -= activation.resident_bytes
        self.passivations += 1
        return True
