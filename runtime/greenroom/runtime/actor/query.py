"""Reads over shared indexes, outside any actor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from greenroom.runtime.actor.message import Slices
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, RecordDamagedError
from greenroom.runtime.journal.chain import (
    STRANGE,
    Checkpoint,
    JournalKeys,
    JournalRow,
    decode_row,
    end_of,
    scan,
)
from greenroom.runtime.journal.checkpoints import RollbackGap
from greenroom.runtime.journal.verify import JournalReport, check
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.codec import pass_over
from greenroom.runtime.lmdb.environment import ACTORS, INDEXES
from greenroom.runtime.lmdb.snapshot import OnDamage, Snapshot

T = TypeVar("T")


class IndexReader:
    """The committed rows of the shared indexes, as they were when the query began.

    ``now`` is in microseconds since 1970 UTC; ``damage`` has the skipped damaged rows, for the reply.
    """

    def __init__(self, services: RuntimeServices, snapshot: Snapshot, principal: Any, now: int) -> None:
        self._services = services
        self._snapshot = snapshot
        self.principal = principal
        self.now = now
        self.damage: Sequence[RecordDamagedError] = ()

    def note_damage(self, error: RecordDamagedError) -> None:
        """Record a damaged row for the reply to name, once."""
        if all(error.key != known.key for known in self.damage):
            self.damage = (*self.damage, error)

    def get(self, index: str, sort_key: bytes, address: Address, of: type[T]) -> T | None:
        """Return the row that the actor at ``address`` wrote at ``sort_key``, or None."""
        self._check(index)
        hidden = self._services.blind(index, sort_key)
        key = lmdb_keys.row_key(index, hidden, lmdb_keys.tag_of(address, self._services.blinder))
        payload = self._snapshot.get(INDEXES, key)
        return (
            None
            if payload is None
            else lmdb_keys.decode(lmdb_keys.decode(payload, lmdb_keys.RowRecord).value, of)
        )

    def rows(
        self,
        index: str,
        of: type[T],
        *,
        prefix: bytes = b"",
        start: bytes | None = None,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[lmdb_keys.Row[T]]:
        """Yield the rows with a sort key that begins with ``prefix``, in order (`Row.place`).

        They begin at the sort key ``start``, inclusive; with ``reverse`` this is the highest one. The error
        of the first damaged row is raised, unless ``on_damage`` is given.
        """
        self._check(index)
        name = lmdb_keys.index_prefix(index)
        bound = None if start is None else name + lmdb_keys.sortable(self._services.blind(index, start))
        if bound is not None and reverse:
            bound += lmdb_keys.END_OF_SORT_KEY + b"\xff" * lmdb_keys.TAG_BYTES
        begin = name + lmdb_keys.sortable(self._services.blind(index, prefix))
        stored = self._snapshot.scan(INDEXES, begin, start=bound, reverse=reverse, on_damage=on_damage)
        for key, payload in stored:
            record = lmdb_keys.decode(payload, lmdb_keys.RowRecord)
            value = lmdb_keys.decode(record.value, of)
            place = lmdb_keys.sort_key_of(index, key)
            yield lmdb_keys.Row(record.sort_key or place, Address(record.kind, record.key), value, place)

    def is_row(self, error: RecordDamagedError, index: str, sort_key: bytes, address: Address) -> bool:
        """Return whether a damaged row is the row of an actor at a sort key."""
        hidden = self._services.blind(index, sort_key)
        tag = lmdb_keys.tag_of(address, self._services.blinder)
        return error.key == lmdb_keys.row_key(index, hidden, tag)

    def is_of(self, error: RecordDamagedError, address: Address) -> bool:
        """Return whether a damaged row belongs to an actor."""
        return error.key.endswith(lmdb_keys.tag_of(address, self._services.blinder))

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit; see `Context.append_soon`."""
        self._services.append_soon(journal, value)

    def entries(
        self, journal: str, of: type[T], *, start: int | None = None, reverse: bool = False
    ) -> Iterator[JournalRow[T]]:
        """Yield the rows of a journal by number, from ``start`` on, inclusive."""
        for number, record in scan(self._snapshot, self._keys(journal).name, start=start, reverse=reverse):
            if number != STRANGE:
                yield decode_row(number, record, of)

    def checkpoint(self, journal: str) -> Checkpoint:
        """Return a checkpoint of the current end of a journal, without checking it."""
        keys = self._keys(journal)
        return keys.checkpoint(end_of(keys, self._snapshot))

    def check(self, journal: str, checkpoints: Iterable[Checkpoint] = ()) -> Slices[JournalReport]:
        """Check a journal against its links, and against checkpoints of it, in slices.

        The earlier checkpoints, from the file beside the store's secret, are used, too.
        """
        keys = self._keys(journal)
        seen = self._services.checkpoint_file
        known = [] if seen is None else filter(keys.is_genuine, seen.checkpoints(journal))
        return check(keys, self._snapshot, chain(known, checkpoints))

    def rollback_gaps(self, journal: str) -> list[RollbackGap]:
        """Return the gaps where a journal, when opened, did not continue from its known end."""
        seen = self._services.checkpoint_file
        return [] if seen is None else seen.breaks(journal)

    def _keys(self, journal: str) -> JournalKeys:
        keys = self._services.journal_keys.get(journal)
        if keys is None:
            raise ConfigurationError(f"no journal {journal!r} was given to open_runtime")
        return keys

    def addresses(self, kind: str) -> Iterator[Address]:
        """Yield the actors of a kind that have records of their own, by key.

        This is slow, so only for operators. In an encrypted store it finds none.
        """
        if self._services.blinder is not None:
            return
        prefix = start = kind.encode() + b"\0"
        while (found := next(self._snapshot.keys(ACTORS, prefix, start=start), None)) is not None:
            key = found[len(prefix) :].partition(b"\0")[0]
            yield Address(kind, key.decode())
            start = prefix + key + b"\1"

    def timed(self, kind: str) -> Iterator[Address]:
        """Yield the actors of a kind that have timers: once per timer, earliest due first.

        It works in an encrypted store, too.
        """
        for _, payload in self._snapshot.scan(INDEXES, lmdb_keys.TIMERS, on_damage=pass_over):
            timer = lmdb_keys.decode(payload, lmdb_keys.StoredMessage)
            if timer.kind == kind:
                yield Address(kind, timer.key)

    def _check(self, index: str) -> None:
        if index not in self._services.indexes:
            raise ConfigurationError(f"no index {index!r} was given to open_runtime")
