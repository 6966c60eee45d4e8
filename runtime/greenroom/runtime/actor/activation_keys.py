"""The store keys of one actor in memory, and the overlay of its records on their way to disk."""

from __future__ import annotations

from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.base.address import Address
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names

Overlay = dict[bytes, tuple[int, bytes | None]]
"""Own records on their way to disk: full key -> (number of the work, payload or None for a delete)."""


class ActorKeys:
    """Where in the store an actor lives, and what of its records is on its way there.

    Attributes:
        address: The actor's address.
        prefix: The bytes before each of its keys.
        own: The bytes before each of its own records' keys.
        blinder: Hides names in keys, in an encrypted store.
        names: Which parts of its records' keys are names.
        overlay: Own records on their way to disk.
        row_head: What its rows in shared indexes begin with, once it writes.
        row_tail: What the keys of its rows end with, once it writes.
    """

    __slots__ = ("address", "blinder", "names", "overlay", "own", "prefix", "row_head", "row_tail")

    def __init__(self, address: Address, names: Names = no_names, blinder: KeyBlinder | None = None) -> None:
        self.address = address
        self.names = names
        self.blinder = blinder
        self.prefix = keys.prefix_of(address, blinder)
        self.own = self.prefix + keys.OWN
        self.overlay: Overlay = {}
        self.row_head = self.row_tail = b""

    def new_effects(self) -> Effects:
        """Return effects of this actor, none yet."""
        if not self.row_tail:  # not before it writes, since most actors are only read
            self.row_head = keys.row_head(self.address)
            self.row_tail = keys.END_OF_SORT_KEY + keys.tag_of(self.address, self.blinder)
        return Effects()

    def store_key(self, key: bytes) -> bytes:
        """Return where in the store the own record at ``key`` lies, or what a scan begins with."""
        return self.own + (key if self.blinder is None else self.blinder.blind(self.own, key, self.names))
