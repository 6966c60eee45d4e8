"""From staged effects to disk, in groups: what queued while the last commit ran is the next group."""

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
    """Notes for journals on their way to disk."""

    __slots__ = ("noted",)

    def __init__(self, number: int, noted: BufferedEntries) -> None:
        super().__init__(number, None, noted.effects)
        self.noted = noted


class GroupCommit:
    """Keeps at most one group at the committer and collects the next one meanwhile.

    Args:
        committer: Where groups go; it calls back in the trio thread.
        store: What the committer commits to.
        settle: Called with each finished group; it flushes the next one.
        fail: Called when a commit failed for good.

    Attributes:
        journal_buffer: What waits for a group to go with.
    """

    def __init__(
        self,
        committer: Committer,
        store: Store,
        settle: Callable[[Sequence[CommitUnit]], None],
        fail: Callable[[StoreFailedError], None],
    ) -> None:
        self._committer = committer
        self._store = store
        self._settle = settle
        self._fail = fail
        self._collected: list[CommitUnit] = []
        self._in_flight: Sequence[CommitUnit] = ()
        self._committed: trio.Event | None = None
        self._numbers = 0
        self._deferred_deletes: Changes = {}
        self.journal_buffer: JournalBuffer | None = None
        committer.start(store, self._done)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on its way to disk."""
        return not self._collected and not self._in_flight

    def next_number(self) -> int:
        """Return the number of the next work."""
        self._numbers += 1
        return self._numbers

    def add(self, work: CommitUnit) -> None:
        """Put a work into the group that is being collected."""
        self._collected.append(work)

    def flush(self) -> None:
        """Hand the collected group to the committer unless it is busy."""
        if self._collected and not self._in_flight:
            self.attach_deferred()
            self._in_flight, self._collected = self._collected, []
            self._committer.submit(self._in_flight)

    def defer_delete(self, row: bytes) -> None:
        """Delete a row with the next group; none is made for it."""
        self._deferred_deletes[row] = None

    def attach_deferred(self) -> None:
        """Put the rows to delete, and the notes, into the group that is being collected."""
        if self._deferred_deletes:
            effects = Effects(reserve=True)
            effects.rows, self._deferred_deletes = self._deferred_deletes, {}
            self.add(CommitUnit(self.next_number(), None, effects))
        if self.journal_buffer:
            self.add(BufferedEntriesUnit(self.next_number(), self.journal_buffer.take()))

    def withdraw(self, activation: Activation) -> list[CommitUnit]:
        """Remove and return an actor's collected units, in order; those at the committer stay there."""
        taken = [work for work in self._collected if work.activation is activation]
        if taken:
            self._collected = [work for work in self._collected if work.activation is not activation]
        return taken

    async def wait_committed(self) -> None:
        """Wait until the group that is at the committer now is on disk.

        A reader of committed rows may see them an instant before they are safe.
        """
        if self._in_flight:
            if self._committed is None:
                self._committed = trio.Event()
            await self._committed.wait()

    def release_waiters(self) -> None:
        """Wait no more for a group that nobody may report."""
        if self._committed is not None:
            self._committed.set()
            self._committed = None

    def units(self) -> list[CommitUnit]:
        """Return every work that is not known to be on disk."""
        return [*self._in_flight, *self._collected]

    def statistics(self) -> CommitStatistics:
        """Return what is on its way, and how the groups before fared."""
        writer = self._store.writer
        return CommitStatistics(
            collected=len(self._collected),
            in_flight=len(self._in_flight),
            group_works=writer.group_works.distribution(),
            group_seconds=writer.group_seconds.distribution(),
            sync_seconds=writer.sync_seconds.distribution(),
            dropped_notes=0 if self.journal_buffer is None else self.journal_buffer.dropped,
        )

    def _done(self, works: Sequence[Any], failure: StoreFailedError | None) -> None:
        if failure is not None:
            self._fail(failure)
            return
        self._in_flight = ()
        self.release_waiters()
        self._settle(works)
