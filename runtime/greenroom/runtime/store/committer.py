"""Who carries groups of work to the store, and in which thread.

The committer is a port because a thread that finishes through `run_sync_soon` is
invisible to trio's autojump clock: tests and simulations commit inline.
At most one group is in flight; the kernel sees to that, not the committer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Protocol

import trio

from greenroom.runtime.base.errors import StoreFailedError
from greenroom.runtime.store.store import Store, WriteBatch

Done = Callable[[Sequence[WriteBatch], StoreFailedError | None], None]
"""Told about each group in the trio thread. With an error the process must end: nothing may be answered."""


class Committer(Protocol):
    """Commits groups in the order in which they are submitted."""

    def start(self, store: Store, done: Done) -> None:
        """Begin; called once, in the trio thread."""
        ...

    def submit(self, works: Sequence[WriteBatch]) -> None:
        """Commit one group and call ``done`` with it. Called when no other group is in flight."""
        ...

    def close(self) -> None:
        """Wait for the group in flight. Its ``done`` may still be waiting for the loop to turn."""
        ...


class ThreadCommitter:
    """Commits in one thread of its own, since an LMDB write transaction belongs to its thread."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Sequence[WriteBatch] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, store: Store, done: Done) -> None:
        """Start the thread and remember the running trio loop, in whose thread ``done`` is called."""
        token = trio.lowlevel.current_trio_token()
        # A daemon: if the loop dies without `close`, the process must be able to end; to the store
        # that is a crash like any other.
        self._thread = threading.Thread(
            target=self._work, args=(store, done, token), name="greenroom-writer", daemon=True
        )
        self._thread.start()

    def submit(self, works: Sequence[WriteBatch]) -> None:
        """Hand the group to the thread; returns at once."""
        self._queue.put(works)

    def close(self) -> None:
        """Let the thread finish its group and end, and wait for that. Idempotent."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _work(self, store: Store, done: Done, token: trio.lowlevel.TrioToken) -> None:
        while (works := self._queue.get()) is not None:
            failure = None
            try:
                store.commit(works)
            except StoreFailedError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - a group that nobody hears of again would hang the kernel
                failure = StoreFailedError(f"the writer's thread failed: {error!r}")
            # The loop may have died under us; what was committed is committed and nobody is left to tell.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(done, works, failure)


class InlineCommitter:
    """Commits within `submit`: for the autojump clock, simulations and injected faults.

    Args:
        commit: What is done with a group. One of your own can raise before or after
            it calls `Store.commit` (a crash: the exception leaves `submit` and nobody is
            told), raise `StoreFailedError` (a dead disk), or set `WriteBatch.error` on works before it
            calls `Store.commit`, which then skips them and the later ones of their owners.
    """

    def __init__(self, commit: Callable[[Store, Sequence[WriteBatch]], None] = Store.commit) -> None:
        self._commit = commit
        self._store: Store | None = None
        self._done: Done | None = None

    def start(self, store: Store, done: Done) -> None:
        """Remember both."""
        self._store, self._done = store, done

    def submit(self, works: Sequence[WriteBatch]) -> None:
        """Commit and call ``done`` before returning."""
        assert self._store is not None, "submit comes after start"
        assert self._done is not None, "submit comes after start"
        failure = None
        try:
            self._commit(self._store, works)
        except StoreFailedError as error:
            failure = error
        self._done(works, failure)

    def close(self) -> None:
        """Do nothing: no group is ever in flight between two calls."""
