"""Committers that stand still, and disks that are full or fail, when a test says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import trio

from greenroom.runtime import StorageFullError, Store, StoreFailedError, WriteBatch


class CrashError(Exception):
    """The process dies here, as far as the runtime can tell; leaves the block of `open_runtime`."""


Fault = Literal["full", "dead", "crash before", "crash after"]
"""What goes wrong: no room for the first work of a commit, no disk from then on, or the process ends."""


class FaultyDisk:
    """A disk that strikes at one commit: ``InlineCommitter(FaultyDisk("full", at=2))``.

    After a crash nothing is committed any more, as a process that died would commit nothing.

    Args:
        fault: What happens; with None commits are only counted.
        at: At which commit; 1 is the first.

    Attributes:
        commits: How many commits there were, the one with the fault included.
        struck: Whether it came to the fault.
    """

    def __init__(self, fault: Fault | None = None, at: int = 1) -> None:
        self._fault = fault
        self._at = at
        self._crashed = False
        self.commits = 0
        self.struck = False

    def __call__(self, store: Store, works: Sequence[WriteBatch]) -> None:
        """Commit the works, unless this is where the fault is.

        Raises:
            CrashError: the process has crashed, here or before.
            StoreFailedError: the disk is dead.
        """
        self.commits += 1
        strikes = self._fault is not None and self.commits == self._at
        self.struck = self.struck or strikes
        if strikes and self._fault == "full":
            works[0].error = StorageFullError("no room, says the test")
        if self._fault == "dead" and self.struck:
            raise StoreFailedError("the disk is gone, says the test")
        self._crashed = self._crashed or (strikes and self._fault == "crash before")
        if not self._crashed:
            store.commit(works)
        self._crashed = self._crashed or (strikes and self._fault == "crash after")
        if self._crashed:
            raise CrashError


class GatedCommitter:
    """A `Committer` that holds each group until the test lets it through.

    Attributes:
        held: The groups at the gate (the runtime sees to it that there is one at most).
        group_sizes: How many works each group had.
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
        """Remember both."""
        self._store, self._done = store, done

    def submit(self, works: Sequence[WriteBatch]) -> None:
        """Hold a group at the gate."""
        self.group_sizes.append(len(works))
        self.held.append(works)
        self._arrived.set()
        if self.open:
            self.let_through()

    def close(self) -> None:
        """Do nothing: what is still held is not committed."""

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
        """Open the gate for good."""
        self.open = True
        while self.held:
            self.let_through()

    def reach_the_disk(self) -> Sequence[WriteBatch]:
        """Commit the group at the gate and return it, but let the runtime not know."""
        works = self.held.popleft()
        self._store.commit(works)
        return works

    def report(self, works: Sequence[WriteBatch]) -> None:
        """Tell the runtime of a group that reached the disk."""
        self._done(works, None)

    def refuse(self, *which: int) -> None:
        """Commit the group at the gate except for the works at these places, for which there is no room."""
        for number in which:
            self.held[0][number].error = StorageFullError("no room, says the test")
        self.let_through()

    def break_for_good(self) -> None:
        """Fail the group at the gate as a dead disk would."""
        self._done(self.held.popleft(), StoreFailedError("the disk is gone, says the test"))
