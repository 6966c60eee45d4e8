"""The effects that a message stages, and the keys of an actor in the store."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names
from greenroom.runtime.lmdb.write_batch import Changes, JournalEntry, Revocation


class Effects:
    """The effects of one message.

    The reply leaves even if there is no room for ``dispensable`` effects. ``next_due`` is in microseconds
    since 1970.
    """

    __slots__ = (
        "dispensable",
        "entries",
        "next_due",
        "own",
        "publications",
        "reserve",
        "revocations",
        "rows",
        "tells",
    )

    def __init__(self, *, reserve: bool = False) -> None:
        self.own: Changes = {}
        self.rows: Changes = {}
        self.entries: list[JournalEntry] = []
        self.revocations: tuple[Revocation, ...] = ()
        self.tells: list[tuple[bytes, Address, Message[Any]]] = []
        self.publications: dict[tuple[str, Hashable], None] = {}
        self.next_due: int | None = None
        self.reserve = reserve
        self.dispensable = False

    def copy(self) -> Effects:
        """Return a copy; more effects can be added to it."""
        copy = Effects(reserve=self.reserve)
        copy.own, copy.rows, copy.entries = dict(self.own), dict(self.rows), list(self.entries)
        copy.tells, copy.publications = list(self.tells), dict(self.publications)
        copy.revocations, copy.next_due, copy.dispensable = self.revocations, self.next_due, self.dispensable
        return copy

    @property
    def has_effects(self) -> bool:
        """Whether there is anything to commit or publish."""
        return bool(self.own or self.rows or self.entries or self.publications or self.revocations)


Overlay = dict[bytes, tuple[int, bytes | None]]
"""Own records on their way to disk: full key -> (number of the commit unit, payload or None for a delete)."""


class ActorKeys:
    """The keys of an actor in the store, and its records on their way there.

    ``row_head`` and ``row_tail`` are empty until the actor first stages effects.
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

    def has_callers(self, besides: type[Any]) -> bool:  # noqa: ARG002 - as in an activation
        """Return whether principals wait; messages of the type ``besides`` do not count."""
        return False

    def new_effects(self) -> Effects:
        """Return a new `Effects` for this actor, without any effects."""
        if not self.row_tail:  # most actors are only read
            self.row_head = keys.row_head(self.address)
            self.row_tail = keys.END_OF_SORT_KEY + keys.tag_of(self.address, self.blinder)
        return Effects()

    def store_key(self, key: bytes) -> bytes:
        """Return the store's key for the actor's own record at ``key``, or for a prefix."""
        return self.own + (key if self.blinder is None else self.blinder.blind(self.own, key, self.names))
