"""Committers that wait, and disks that are full or fail, under a test's control."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import trio

from greenroom.runtime import StorageFullError, Store, StoreFailedError, WriteBatch


class CrashError(Exception):
    """A simulated crash of the process; it leaves the block of `open_runtime`."""


Fault = Literal["full", "dead", "crash before", "crash after"]
"""The fault: no room for the first unit of a commit, no disk from then on, or the process ends."""


class FaultyDisk:
    """A disk that fails at one commit: ``InlineCommitter(FaultyDisk("full", at=2))``.

    After a crash nothing more is committed.

    Args:
        fault: The fault; None only counts commits.
        at: The number of the commit; 1 is the first.

    Attributes:
        commits: The number of commits, including the commit with the fault.
        struck: Whether the fault has happened.
    """

    def __init__(self, fault: Fault | None = None, at: int = 1) -> None:
        self._fault = fault
        self._at = at
        self._crashed = False
        self.commits = 0
        self.struck = False

    def __call__(self, store: Store, units: Sequence[WriteBatch]) -> None:
        """Commit the units, unless the fault happens here.

        Raises:
            CrashError: the process has crashed, here or before.
            StoreFailedError: the disk is dead.
        """
        self.commits += 1
        strikes = self._fault is not None and self.commits == self._at
        self.struck = self.struck or strikes
        if strikes and self._fault == "full":
            units[0].error = StorageFullError("no room, says the test")
        if self._fault == "dead" and self.struck:
            raise StoreFailedError("the disk is gone, says the test")
        self._crashed = self._crashed or (strikes and self._fault == "crash before")
        if not self._crashed:
            store.commit(units)
        self._crashed = self._crashed or (strikes and self._fault == "crash after")
        if self._crashed:
            raise CrashError


class GatedCommitter:
    """A `Committer` that holds each group until the test releases it.

    Attributes:
        held: The groups at the gate; the runtime submits one at a time.
        group_sizes: The number of units of each group.
        open: Whether groups pass without being held.
    """

    def __init__(self) -> None:
        self.held: deque[Sequence[WriteBatch]] = deque()
        self.group_sizes: list[int] = []
        self.open = False
        self._arrived = trio.Event()

    def start(
        self, store: Store, done: Callable[[Sequence[WriteBatch], StoreFailedError | None], None]
    ) -> None:
        """Store both arguments."""
        self._store, self._done = store, done

    def submit(self, units: Sequence[WriteBatch]) -> None:
        """Hold a group at the gate."""
        self.group_sizes.append(len(units))
        self.held.append(units)
        self._arrived.set()
        if self.open:
            self.let_through()

    def close(self) -> None:
        """Do nothing: groups still held are not committed."""

    async def arrived(self) -> Sequence[WriteBatch]:
        """Wait until a group is at the gate, and return it."""
        while not self.held:
            self._arrived = trio.Event()
            await self._arrived.wait()
        return self.held[0]

    def let_through(self) -> None:
        """Commit the group at the gate."""
        self.report(self.reach_the_disk())

    def let_all_through(self) -> None:
        """Let this group and all later groups pass."""
        self.open = True
        while self.held:
            self.let_through()

    def reach_the_disk(self) -> Sequence[WriteBatch]:
        """Commit the group at the gate and return it, without reporting it."""
        units = self.held.popleft()
        self._store.commit(units)
        return units

    def report(self, units: Sequence[WriteBatch]) -> None:
        """Report a committed group to the runtime."""
        self._done(units, None)

    def refuse(self, *which: int) -> None:
        """Commit the group at the gate; refuse units at these places like a full disk."""
        for number in which:
            self.held[0][number].error = StorageFullError("no room, says the test")
        self.let_through()

    def break_for_good(self) -> None:
        """Fail the group at the gate as a dead disk would."""
        self._done(self.held.popleft(), StoreFailedError("the disk is gone, says the test"))
