"""Reads over shared indexes, outside any actor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from greenroom.runtime.actor.message import Slices
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError
from greenroom.runtime.journal.chain import (
    STRANGE,
    Checkpoint,
    JournalKeys,
    JournalRow,
    decoded,
    end_of,
    scan,
)
from greenroom.runtime.journal.checkpoints import RollbackGap
from greenroom.runtime.journal.verify import JournalReport, check
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.snapshot import Snapshot
from greenroom.runtime.store.store import ACTORS, INDEXES

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class IndexReader:
    """What a query reads: committed rows of the shared indexes, as they were when it began.

    Attributes:
        principal: Who asks.
        now: The wall clock in microseconds since 1970 UTC.
    """

    def __init__(self, services: RuntimeServices, snapshot: Snapshot, principal: Any, now: int) -> None:
        self._services = services
        self._snapshot = snapshot
        self.principal = principal
        self.now = now

    def should_yield(self) -> bool:
        """Return whether a generator query should yield now, so that others get the event loop."""
        return self._services.should_yield()

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
    ) -> Iterator[lmdb_keys.Row[T]]:
        """Yield the rows whose sort key begins with ``prefix``, in the order of sort keys (`Row.place`).

        Args:
            index: The name of the index.
            of: The type of the rows' values.
            prefix: What the sort keys begin with.
            start: The first sort key wanted, inclusive; with ``reverse`` the highest.
            reverse: From the highest sort key down.
        """
        self._check(index)
        name = lmdb_keys.index_prefix(index)
        bound = None if start is None else name + lmdb_keys.sortable(self._services.blind(index, start))
        if bound is not None and reverse:
            bound += lmdb_keys.END_OF_SORT_KEY + b"\xff" * lmdb_keys.TAG_BYTES
        begin = name + lmdb_keys.sortable(self._services.blind(index, prefix))
        stored = self._snapshot.scan(INDEXES, begin, start=bound, reverse=reverse)
        for key, payload in stored:
            record = lmdb_keys.decode(payload, lmdb_keys.RowRecord)
            value = lmdb_keys.decode(record.value, of)
            place = lmdb_keys.sort_key_of(index, key)
            yield lmdb_keys.Row(record.sort_key or place, Address(record.kind, record.key), value, place)

    def cached(self, make: Callable[[], T]) -> T:
        """Return what ``make`` made when it was first asked for: queries keep there what they read before.

        It lasts as long as the runtime, in this process alone; what it says of rows is to be held against
        `changed`.
        """
        found: T | None = self._services.query_caches.get(make)
        if found is None:
            found = self._services.query_caches[make] = make()
        return found

    def changed_since(self, index: str, since: int | None) -> tuple[int, list[Address] | None]:
        """Return whose rows of an index are not what they were, and a number to ask with the next time.

        Nothing that was acknowledged is left out if it is asked before the query first yields.

        Args:
            index: The name of the index.
            since: The number that was returned the last time; None at first.

        Returns:
            The number, and the actors; None in their place when all rows are to be read.
        """
        self._check(index)
        return self._services.row_changes.since(index, since)

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit; see `Context.append_soon`."""
        self._services.append_soon(journal, value)

    def entries(
        self, journal: str, of: type[T], *, start: int | None = None, reverse: bool = False
    ) -> Iterator[JournalRow[T]]:
        """Yield the rows of a journal in the order of their numbers.

        Args:
            journal: The name of the journal.
            of: The type of the rows.
            start: The first number wanted, inclusive; with ``reverse`` the highest.
            reverse: The newest first.
        """
        for number, record in scan(self._snapshot, self._keys(journal).name, start=start, reverse=reverse):
            if number != STRANGE:
                yield decoded(number, record, of)

    def checkpoint(self, journal: str) -> Checkpoint:
        """Return a checkpoint of a journal as it is now, of where it goes on, whatever `check` would find."""
        keys = self._keys(journal)
        return keys.checkpoint(end_of(keys, self._snapshot))

    def check(self, journal: str, checkpoints: Iterable[Checkpoint] = ()) -> Slices[JournalReport]:
        """Check a journal against its links, and against checkpoints of it, in slices.

        What was seen of it before, and is kept beside the store's secret, counts as checkpoints, too.
        """
        keys = self._keys(journal)
        seen = self._services.checkpoint_file
        known = [] if seen is None else filter(keys.made, seen.checkpoints(journal))
        return check(keys, self._snapshot, chain(known, checkpoints), self.should_yield)

    def rollback_gaps(self, journal: str) -> list[RollbackGap]:
        """Return where a journal did not go on from what had been seen of it when the store was opened."""
        seen = self._services.checkpoint_file
        return [] if seen is None else seen.breaks(journal)

    def _keys(self, journal: str) -> JournalKeys:
        keys = self._services.journal_keys.get(journal)
        if keys is None:
            raise ConfigurationError(f"no journal {journal!r} was given to open_runtime")
        return keys

    def addresses(self, kind: str) -> Iterator[Address]:
        """Yield the actors of a kind that have records of their own, in the order of their keys.

        They are looked up one by one among the records, so this is for an operator's rare questions.
        In an encrypted store none are found: there the keys of records do not tell whose they are.
        """
        if self._services.blinder is not None:
            return
        prefix = start = kind.encode() + b"\0"
        while (found := next(self._snapshot.keys(ACTORS, prefix, start=start), None)) is not None:
            key = found[len(prefix) :].partition(b"\0")[0]
            yield Address(kind, key.decode())
            start = prefix + key + b"\1"

    def timed(self, kind: str) -> Iterator[Address]:
        """Yield the actors of a kind that have set timers, once for each, in the order in which they are due.

        In every store, also an encrypted one.
        """
        for _, payload in self._snapshot.scan(INDEXES, lmdb_keys.TIMERS):
            timer = lmdb_keys.decode(payload, lmdb_keys.StoredMessage)
            if timer.kind == kind:
                yield Address(kind, timer.key)

    def _check(self, index: str) -> None:
        if index not in self._services.indexes:
            raise ConfigurationError(f"no index {index!r} was given to open_runtime")


class Query(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A read over shared indexes whose answer is an ``R``: subclass ``Query[int]`` and define `run`.

    It sees what is committed. Whose rows the asker may see is the query's own affair.

    Attributes:
        flushes_journals: Whether the notes that were made before are written to their journals first.
    """

    flushes_journals: ClassVar[bool] = False

    def run(self, reader: IndexReader) -> R_co | Slices[R_co]:
        """Return the answer, or be a generator that yields whenever `IndexReader.should_yield` says so."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")
