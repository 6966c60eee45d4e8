"""The services that all handlers and queries of one runtime share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.runtime.actor.journal_buffer import JournalBuffer
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, Refusal, StoreError
from greenroom.runtime.journal.chain import JournalKeys
from greenroom.runtime.journal.checkpoints import CheckpointFile
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.environment import ACTORS
from greenroom.runtime.lmdb.keys import Index
from greenroom.runtime.lmdb.snapshot import CachedSnapshot
from greenroom.runtime.store.store import Store


class RuntimeServices:
    """The services that the contexts of one runtime share."""

    def __init__(
        self,
        store: Store,
        indexes: Mapping[str, Index],
        randomness: random.Random,
        should_yield: Callable[[], bool],
        journal_buffer: JournalBuffer,
        secret: Secret | None = None,
        settings: Any = None,
    ) -> None:
        self.store = store
        self.journal_buffer = journal_buffer
        self.journals = journal_buffer.journals
        self.journal_keys: Mapping[str, JournalKeys] = {}
        self.checkpoint_file: CheckpointFile | None = None
        self.secret = secret
        self.settings = settings
        self.cached_snapshot: CachedSnapshot = store.cached_snapshot(ACTORS)
        self.indexes = indexes
        self.prefixes = {name: keys.index_prefix(name) for name in indexes}
        self.blinder = store.blinder
        self.random = randomness
        self.should_yield = should_yield
        self.last_number = 0
        self.sidecar: Any = None
        self.has_subscribers: Callable[[str], bool] = lambda _: False

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit; see `Context.append_soon`."""
        if journal not in self.journals:
            raise ConfigurationError(f"no journal {journal!r} was given to open_runtime")
        self.journal_buffer.add(journal, value)

    def record_denial(self, principal: Any, address: Address | None, message: Any, refusal: Refusal) -> None:
        """Record a denial once, in each journal that has a row for denials."""
        for name, journal in self.journals.items():
            if journal.denied is not None:
                refusal.is_denial = False
                self.journal_buffer.add(name, journal.denied(principal, address, message, refusal))

    def derive(self, purpose: str) -> bytes:
        """Return the key for a purpose, as `RuntimeClient.derive` does."""
        if self.secret is None:
            raise StoreError("the runtime was opened without a secret")
        return self.secret.derive(purpose)

    def blind(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key, or a prefix of one, as stored."""
        if self.blinder is None:
            return sort_key
        return self.blinder.blind(self.prefixes[index], sort_key, self.indexes[index].names)

    def next_number(self) -> int:
        """Return a number for a tell or timer, higher than all in the store."""
        self.last_number += 1
        return self.last_number
