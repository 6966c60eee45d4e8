"""The services that all handlers and queries of one runtime share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.runtime.actor.audit_buffer import Notes
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import Refusal, StoreError, UnknownKindError
from greenroom.runtime.journal.chain import Keys
from greenroom.runtime.journal.checkpoints import Seen
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.keys import Index
from greenroom.runtime.lmdb.snapshot import Glance
from greenroom.runtime.store.store import ACTORS, Store


class Domain:
    """What all contexts of one runtime share.

    Attributes:
        companion: What runs beside the actors, once it does.
        is_heard: Says whether somebody wants to hear of a topic.
        glance: The view of the actors' records that the present pass of the dispatcher reads.
        prefixes: The bytes before each row, by index.
        veil: Hides names in the keys of an encrypted store.
        secret: The store's, if it is used with one.
        journals: The runtime's, by name.
        notes: What waits to be appended to them.
        keys: The keys of each journal.
        seen: What was seen of the journals before.
    """

    def __init__(
        self,
        store: Store,
        indexes: Mapping[str, Index],
        randomness: random.Random,
        slice_over: Callable[[], bool],
        notes: Notes,
        secret: Secret | None = None,
    ) -> None:
        self.store = store
        self.notes = notes
        self.journals = notes.journals
        self.keys: Mapping[str, Keys] = {}
        self.seen: Seen | None = None
        self.secret = secret
        self.glance: Glance = store.glance(ACTORS)
        self.indexes = indexes
        self.prefixes = {name: keys.index_prefix(name) for name in indexes}
        self.veil = store.veil
        self.random = randomness
        self.slice_over = slice_over
        self.last_number = 0
        self.companion: Any = None
        self.is_heard: Callable[[str], bool] = lambda _: False

    def note(self, journal: str, value: Any) -> None:
        """Have a row of a journal follow soon, as `Context.note` does."""
        if journal not in self.journals:
            raise UnknownKindError(f"no journal {journal!r} was given to open_runtime")
        self.notes.add(journal, value)

    def deny(self, principal: Any, address: Address | None, message: Any, refusal: Refusal) -> None:
        """Note a denial in the journals that want to know; whom the refusal reaches then notes it no more."""
        for name, journal in self.journals.items():
            if journal.denied is not None:
                refusal.is_denial = False
                self.notes.add(name, journal.denied(principal, address, message, refusal))

    def derive(self, purpose: str) -> bytes:
        """Return the key for a purpose, as `Doors.derive` does."""
        if self.secret is None:
            raise StoreError("the runtime was opened without a secret")
        return self.secret.derive(purpose)

    def hidden(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key, or the beginning of one, as the store has it."""
        if self.veil is None:
            return sort_key
        return self.veil.hidden(self.prefixes[index], sort_key, self.indexes[index].names)

    def next_number(self) -> int:
        """Return a number for a tell or a timer, above all that are in the store."""
        self.last_number += 1
        return self.last_number
