"""The effects that one message stages, until the kernel commits or drops them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.lmdb.write_batch import Changes, JournalEntry, Revocation


class Effects:
    """The effects of one message.

    Attributes:
        own: The actor's own records, by full key.
        rows: Rows of shared indexes and of the runtime itself, by full key.
        tells: Messages to deliver after the commit, each with its row.
        entries: Rows to append to journals.
        revocations: Facts that must survive restoring an older backup.
        publications: Topics that changed, each with its label.
        next_due: When the first timer that was set is due, in microseconds since 1970.
        reserve: Whether the space reserve may be used.
        dispensable: Whether the reply leaves even when there is no room for all this.
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

    @property
    def has_effects(self) -> bool:
        """Whether there is anything to commit or to tell."""
        return bool(self.own or self.rows or self.entries or self.publications or self.revocations)
