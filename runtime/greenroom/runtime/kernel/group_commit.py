"""From staged effects to disk, in groups: what queued while the last commit ran is the next group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from greenroom.runtime.actor.effects import Staged
from greenroom.runtime.base.statistics import CommitStatistics
from greenroom.runtime.store.store import Work

if TYPE_CHECKING:
    from greenroom.runtime.actor.audit_buffer import Notes
    from greenroom.runtime.base.errors import StoreFailedError
    from greenroom.runtime.kernel.mailbox import Cell, Envelope, Result
    from greenroom.runtime.lmdb.write_batch import Changes
    from greenroom.runtime.store.committer import Committer
    from greenroom.runtime.store.store import Store

Settlement = tuple["Envelope", "Result"]


class Effects(Work):
    """The effects of one message on their way to disk, and the replies that wait for them.

    Attributes:
        cell: The actor that staged them, or None for the runtime's own housekeeping.
        number: Counts the works of this runtime, so that the overlay knows whose record it holds.
        buried: The row of a stored message that this moves to the dead letters.
        settlements: Whom to tell what once this is on disk: the sender itself, then those who read after it.
    """

    __slots__ = ("buried", "cell", "number", "settlements", "staged")

    def __init__(self, number: int, cell: Cell | None, staged: Staged) -> None:  # no super(): a hot path
        self.owner = self if cell is None else cell
        self.changes = (staged.own, staged.rows)
        self.entries = staged.entries
        self.lasting = staged.lasting
        self.reserve = staged.reserve
        self.error = None
        self.number = number
        self.cell = cell
        self.staged = staged
        self.buried: bytes | None = None
        self.settlements: list[Settlement] = []


class Pipeline:
    """Keeps at most one group at the committer and collects the next one meanwhile.

    Args:
        committer: Where groups go; it calls back in the trio thread.
        store: What the committer commits to.
        settle: Called with each finished group; it flushes the next one.
        fail: Called when a commit failed for good.

    Attributes:
        notes: What waits for a group to go with.
    """

    def __init__(
        self,
        committer: Committer,
        store: Store,
        settle: Callable[[Sequence[Effects]], None],
        fail: Callable[[StoreFailedError], None],
    ) -> None:
        self._committer = committer
        self._store = store
        self._settle = settle
        self._fail = fail
        self._collected: list[Effects] = []
        self._in_flight: Sequence[Effects] = ()
        self._landed: trio.Event | None = None
        self._numbers = 0
        self._riders: Changes = {}
        self.notes: Notes | None = None
        committer.start(store, self._done)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on its way to disk."""
        return not self._collected and not self._in_flight

    def next_number(self) -> int:
        """Return the number of the next work."""
        self._numbers += 1
        return self._numbers

    def add(self, work: Effects) -> None:
        """Put a work into the group that is being collected."""
        self._collected.append(work)

    def flush(self) -> None:
        """Hand the collected group to the committer unless it is busy."""
        if self._collected and not self._in_flight:
            self.board()
            self._in_flight, self._collected = self._collected, []
            self._committer.submit(self._in_flight)

    def add_rider(self, row: bytes) -> None:
        """Delete a row with the next group; none is made for it."""
        self._riders[row] = None

    def board(self) -> None:
        """Put the rows to delete, and the notes, into the group that is being collected."""
        if self._riders:
            staged = Staged(reserve=True)
            staged.rows, self._riders = self._riders, {}
            self.add(Effects(self.next_number(), None, staged))
        if self.notes:
            self.add(self.notes.take(self.next_number()))

    def take_back(self, cell: Cell) -> list[Effects]:
        """Remove and return the collected works of ``cell``, in order; those at the committer stay there."""
        taken = [work for work in self._collected if work.cell is cell]
        if taken:
            self._collected = [work for work in self._collected if work.cell is not cell]
        return taken

    async def landed(self) -> None:
        """Wait until the group that is at the committer now is on disk.

        A reader of committed rows may see them an instant before they are safe.
        """
        if self._in_flight:
            if self._landed is None:
                self._landed = trio.Event()
            await self._landed.wait()

    def abandon(self) -> None:
        """Wait no more for a group that nobody may report."""
        if self._landed is not None:
            self._landed.set()
            self._landed = None

    def works(self) -> list[Effects]:
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
            dropped_notes=0 if self.notes is None else self.notes.dropped,
        )

    def _done(self, works: Sequence[Any], failure: StoreFailedError | None) -> None:
        if failure is not None:
            self._fail(failure)
            return
        self._in_flight = ()
        self.abandon()
        self._settle(works)
