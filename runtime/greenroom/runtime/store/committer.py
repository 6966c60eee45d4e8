"""Committers: commit groups of units to the store, in a thread or inline.

Tests and simulations commit inline, because trio's autojump clock does not notice a thread that reports its
end with `run_sync_soon`. The kernel ensures that at most one group is in flight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Protocol

import trio

from greenroom.runtime.base.errors import StoreFailedError
from greenroom.runtime.lmdb.write_batch import WriteBatch
from greenroom.runtime.store.store import Store

Done = Callable[[Sequence[WriteBatch], StoreFailedError | None], None]
"""The committer calls this in the trio thread with each group.

After an error, no request may be answered, and the process must end.
"""


class Committer(Protocol):
    """A committer of groups, in the order in which they are submitted."""

    def start(self, store: Store, done: Done) -> None:
        """Start; called once, in the trio thread."""
        ...

    def submit(self, units: Sequence[WriteBatch]) -> None:
        """Commit one group and call ``done`` with it; no other is in flight."""
        ...

    def close(self) -> None:
        """Wait for the group in flight; ``done`` may be called later."""
        ...


class ThreadCommitter:
    """Commit in a thread of its own, because LMDB binds write transactions to threads."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Sequence[WriteBatch] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, store: Store, done: Done) -> None:
        """Start the thread; ``done`` will be called in the running trio loop."""
        token = trio.lowlevel.current_trio_token()
        # The thread is a daemon: if the loop dies without `close`, the process must still be able to end. For
        # the store that is a crash.
        self._thread = threading.Thread(
            target=self._run, args=(store, done, token), name="greenroom-writer", daemon=True
        )
        self._thread.start()

    def submit(self, units: Sequence[WriteBatch]) -> None:
        """Hand the group to the thread; returns at once."""
        self._queue.put(units)

    def close(self) -> None:
        """Let the thread finish its group and end, and wait for that. Idempotent."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self, store: Store, done: Done, token: trio.lowlevel.TrioToken) -> None:
        while (units := self._queue.get()) is not None:
            failure = None
            try:
                store.commit(units)
            except StoreFailedError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - a group without a result would hang the kernel
                failure = StoreFailedError(f"the writer's thread failed: {error!r}")
            # The loop may have died since; then no one needs the result.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(done, units, failure)


class InlineCommitter:
    """Commit within `submit`: for the autojump clock, simulations and injected faults.

    Args:
        commit: Commits a group. A replacement can raise before or after `Store.commit`: that is a crash, and
            ``done`` is not called. It can raise `StoreFailedError`, as for a dead disk, or set
            `WriteBatch.error` on units before `Store.commit`, which then skips these.
    """

    def __init__(self, commit: Callable[[Store, Sequence[WriteBatch]], None] = Store.commit) -> None:
        self._commit = commit
        self._store: Store | None = None
        self._done: Done | None = None

    def start(self, store: Store, done: Done) -> None:
        """Store both arguments."""
        self._store, self._done = store, done

    def submit(self, units: Sequence[WriteBatch]) -> None:
        """Commit and call ``done`` before returning."""
        assert self._store is not None, "submit comes after start"
        assert self._done is not None, "submit comes after start"
        failure = None
        try:
            self._commit(self._store, units)
        except StoreFailedError as error:
            failure = error
        self._done(units, failure)

    def close(self) -> None:
        """Do nothing: no group is in flight between two calls."""
