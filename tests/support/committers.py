"""Committers that stand still or fail when a test says so."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from greenroom.runtime import InlineCommitter, StorageFullError, StoreFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from greenroom.runtime.store.committer import Done
    from greenroom.runtime.store.store import Store, WriteBatch


class CrashError(Exception):
    """The process dies here, as far as the runtime can tell."""


class GatedCommitter:
    """Holds each group until the test lets it through.

    Attributes:
        held: The groups at the gate (the kernel sees to it that there is one at most).
        group_sizes: How many works each group had.
    """

    def __init__(self) -> None:
        self.held: deque[Sequence[WriteBatch]] = deque()
        self.group_sizes: list[int] = []
        self.open = False
        self._arrived = trio.Event()

    def start(self, store: Store, done: Done) -> None:
        self._store, self._done = store, done

    def submit(self, works: Sequence[WriteBatch]) -> None:
        self.group_sizes.append(len(works))
        self.held.append(works)
        self._arrived.set()
        if self.open:
            self.let_through()

    def close(self) -> None:
        pass

    async def arrived(self) -> Sequence[WriteBatch]:
        """Wait until a group is at the gate."""
        while not self.held:
            self._arrived = trio.Event()
            await self._arrived.wait()
        return self.held[0]

    def let_through(self) -> None:
        """Commit the group at the gate."""
        works = self.held.popleft()
        self._store.commit(works)
        self._done(works, None)

    def reach_the_disk(self) -> Sequence[WriteBatch]:
        """Commit the group at the gate, but let nobody know."""
        works = self.held.popleft()
        self._store.commit(works)
        return works

    def report(self, works: Sequence[WriteBatch]) -> None:
        """Tell the runtime of a group that reached the disk."""
        self._done(works, None)

    def refuse(self, *which: int) -> None:
        """Commit the group at the gate except for the works at these places, for which there is no room."""
        for number in which:
            self.held[0][number].error = full()
        self.let_through()

    def break_for_good(self) -> None:
        """Fail the group at the gate as a dead disk would."""
        self._done(self.held.popleft(), StoreFailedError("the disk is gone"))

    def let_all_through(self) -> None:
        """Open the gate for good."""
        self.open = True
        while self.held:
            self.let_through()


def full() -> StorageFullError:
    return StorageFullError("no room, says the test")


class Saboteur:
    """What a committer does that dies, or finds the disk full, at a chosen commit.

    Args:
        ending: "crash before" or "crash after" it is on disk, "full", or "close" for no trouble at all.
        at: Which commit; 1 is the first.

    Attributes:
        struck: Whether it came to that.
    """

    def __init__(self, ending: str, at: int) -> None:
        self._ending = ending
        self._left = at
        self._dead = False
        self.struck = False

    def __call__(self, store: Store, works: Sequence[WriteBatch]) -> None:
        self._left -= 1
        strikes = self._left == 0 and self._ending != "close"
        self.struck = self.struck or strikes
        if strikes and self._ending == "full":
            works[0].error = full()
        self._dead = self._dead or (strikes and self._ending == "crash before")
        if not self._dead:
            store.commit(works)
        self._dead = self._dead or (strikes and self._ending == "crash after")
        if self._dead:
            raise CrashError


def crash_at(commit: int, *, after: bool) -> InlineCommitter:
    """Return a committer that crashes at this commit (1 is the first), before or after it is on disk."""
    return InlineCommitter(Saboteur("crash after" if after else "crash before", commit))


@contextmanager
def crashing() -> Iterator[None]:
    """Expect the block to die of `CrashError`."""
    crashed = False
    try:
        yield
    except* CrashError:
        crashed = True
    assert crashed, "the block was to crash"
