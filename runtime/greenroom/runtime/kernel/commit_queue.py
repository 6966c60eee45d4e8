"""Group commit: units that queue during a commit form the next group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.journal_buffer import BufferedEntries, JournalBuffer
from greenroom.runtime.base.errors import StoreFailedError
from greenroom.runtime.base.statistics import CommitStatistics
from greenroom.runtime.kernel.mailbox import Activation, CommitUnit
from greenroom.runtime.lmdb.write_batch import Changes
from greenroom.runtime.store.committer import Committer
from greenroom.runtime.store.store import Store


class BufferedEntriesUnit(CommitUnit):
    """Buffered journal rows on their way to disk."""

    __slots__ = ("buffered",)

    def __init__(self, number: int, buffered: BufferedEntries) -> None:
        super().__init__(number, None, buffered.effects)
        self.buffered = buffered


class GroupCommit:
    """Keep at most one group at the committer, and collect the next group meanwhile.

    ``finish_group`` flushes the next group; ``fail`` is called when a commit failed permanently.
    """

    def __init__(
        self,
        committer: Committer,
        store: Store,
        finish_group: Callable[[Sequence[CommitUnit]], None],
        fail: Callable[[StoreFailedError], None],
    ) -> None:
        self._committer = committer
        self._store = store
        self._finish_group = finish_group
        self._fail = fail
        self.collected: list[CommitUnit] = []
        self._in_flight: Sequence[CommitUnit] = ()
        self._committed: trio.Event | None = None
        self._numbers = 0
        self._deferred_deletes: Changes = {}
        self.journal_buffer: JournalBuffer | None = None
        committer.start(store, self._end_group)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on its way to disk."""
        return not self.collected and not self._in_flight

    def next_number(self) -> int:
        """Return the number of the next commit unit."""
        self._numbers += 1
        return self._numbers

    def add(self, unit: CommitUnit) -> None:
        """Add a commit unit to the group that is being collected."""
        self.collected.append(unit)

    def flush(self) -> None:
        """Hand the collected group to the committer unless it is busy."""
        if self.collected and not self._in_flight:
            self.attach_deferred()
            self._in_flight, self.collected = self.collected, []
            self._committer.submit(self._in_flight)

    def defer_delete(self, row: bytes) -> None:
        """Delete a row with the next group, but do not start a group for it."""
        self._deferred_deletes[row] = None

    def attach_deferred(self) -> None:
        """Add deferred deletes and buffered journal rows to the collected group."""
        if self._deferred_deletes:
            effects = Effects(reserve=True)
            effects.rows, self._deferred_deletes = self._deferred_deletes, {}
            self.add(CommitUnit(self.next_number(), None, effects))
        if self.journal_buffer:
            self.add(BufferedEntriesUnit(self.next_number(), self.journal_buffer.take()))

    def withdraw(self, activation: Activation) -> list[CommitUnit]:
        """Remove and return an actor's collected units, in order; units at the committer stay there."""
        taken = [unit for unit in self.collected if unit.activation is activation]
        if taken:
            self.collected = [unit for unit in self.collected if unit.activation is not activation]
        return taken

    async def wait_committed(self) -> None:
        """Wait until the group that the committer has now is on disk.

        A reader may see committed rows a moment before they are on disk.
        """
        if self._in_flight:
            if self._committed is None:
                self._committed = trio.Event()
            await self._committed.wait()

    async def wait_flushed(self) -> None:
        """Wait until everything that was flushed is on disk."""
        # The group in flight may not contain everything; the next group has the rest.
        await self.wait_committed()
        await self.wait_committed()

    def release_waiters(self) -> None:
        """Release the tasks that wait for a group, because its result will not be reported."""
        if self._committed is not None:
            self._committed.set()
            self._committed = None

    def units(self) -> list[CommitUnit]:
        """Return every commit unit that is not known to be on disk."""
        return [*self._in_flight, *self.collected]

    def statistics(self) -> CommitStatistics:
        """Return the statistics of commits."""
        writer = self._store.writer
        return CommitStatistics(
            collected=len(self.collected),
            in_flight=len(self._in_flight),
            group_works=writer.group_works.distribution(),
            group_seconds=writer.group_seconds.distribution(),
            sync_seconds=writer.sync_seconds.distribution(),
            dropped_notes=0 if self.journal_buffer is None else self.journal_buffer.dropped,
        )

    def _end_group(self, units: Sequence[Any], failure: StoreFailedError | None) -> None:
        if failure is not None:
            self._fail(failure)
            return
        self._in_flight = ()
        self.release_waiters()
        self._finish_group(units)
