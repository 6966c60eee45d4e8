"""Which actors are in memory: activation on demand, passivation when idle or when memory is short."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import trio

from greenroom.runtime.kernel.mailbox import Cell

if TYPE_CHECKING:
    from greenroom.runtime.actor.actor import Actor, Message
    from greenroom.runtime.base.address import Address
    from greenroom.runtime.base.options import RuntimeOptions
    from greenroom.runtime.lmdb.key_blinding import Veil

logger = logging.getLogger(__name__)

SCAN_LIMIT = 64
"""How many cells one passivation looks at, so that busy actors at the old end cost no long walk."""


class Residents:
    """The cells in memory, least recently used first.

    Passivation only forgets: an idle actor's state is in the store already.

    Attributes:
        get: Returns the resident cell of an address, or None.
    """

    def __init__(
        self, options: RuntimeOptions, kinds: Mapping[str, type[Actor]], veil: Veil | None = None
    ) -> None:
        self._options = options
        self._names = {kind: actor.names for kind, actor in kinds.items()}
        self._veil = veil
        self._cells: OrderedDict[Address, Cell] = OrderedDict()
        self.get = self._cells.get
        self.bytes = 0
        self.activations = 0
        self.passivations = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def admit(self, address: Address, handlers: Mapping[type[Message[Any]], str]) -> Cell:
        """Return a new cell for ``address``, making room for it first."""
        self.make_room()
        cell = self._cells[address] = Cell(address, handlers, self._names[address.kind], self._veil)
        return cell

    def touch(self, cell: Cell, now: float) -> None:
        """Note that ``cell`` had a turn at ``now`` (trio's clock), and its size since."""
        cell.last_used = now
        self._cells.move_to_end(cell.address)
        size = 0
        if cell.actor is not None:
            try:
                size = cell.actor.resident_bytes()
            except Exception:
                logger.exception("%s cannot tell its size", cell.address)
                size = cell.actor.size
        grown = size > cell.resident_bytes
        self.bytes += size - cell.resident_bytes
        cell.resident_bytes = size
        if grown and self.bytes >= self._options.resident_bytes:
            self.make_room(spared=cell)

    def make_room(self, *, spared: Cell | None = None) -> None:
        """Passivate idle actors, oldest first, while the caps on number or bytes are passed."""
        options = self._options
        now = trio.current_time()
        for _ in range(SCAN_LIMIT):
            if len(self._cells) < options.resident_limit and self.bytes < options.resident_bytes:
                return
            if next(iter(self._cells.values()), None) is spared or not self._cells:
                return
            self.evictions += self._passivate_oldest(now)

    def passivate_idle(self) -> int:
        """Passivate what nobody used for a while; return how many seconds remain until the next could be."""
        now = trio.current_time()
        patience = self._options.idle_seconds
        while self._cells:
            oldest = next(iter(self._cells.values()))
            if now - oldest.last_used < patience:
                return max(1, int(patience - (now - oldest.last_used)))
            self._passivate_oldest(now)
        return max(1, int(patience))

    def _passivate_oldest(self, now: float) -> bool:
        """Forget the least recently used actor; a busy one moves to the young end instead. Say which."""
        address, cell = next(iter(self._cells.items()))
        if not cell.is_idle:
            cell.last_used = now
            self._cells.move_to_end(address)
            return False
        del self._cells[address]
        self.bytes -= cell.resident_bytes
        self.passivations += 1
        return True
