from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import trio
from support.stores import BrokenCodec, put

from greenroom.runtime import (
    ACTORS,
    InlineCommitter,
    StorageFullError,
    Store,
    StoreFailedError,
    ThreadCommitter,
    WriteBatch,
)


class Listener:
    """Hears of groups and of the thread in which it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Sequence[WriteBatch], StoreFailedError | None]] = []
        self.threads: set[threading.Thread] = set()
        self.event = trio.Event()

    def done(self, works: Sequence[WriteBatch], failure: StoreFailedError | None) -> None:
        self.heard.append((works, failure))
        self.threads.add(threading.current_thread())
        self.event.set()

    async def next(self) -> tuple[Sequence[WriteBatch], StoreFailedError | None]:
        await self.event.wait()
        self.event = trio.Event()
        return self.heard[-1]


async def test_the_thread_commits_and_tells_in_the_loops_own_thread(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", codec=BrokenCodec())) as store:
        committer, listener = ThreadCommitter(), Listener()
        committer.start(store, listener.done)
        for n in range(20):
            works = [put(b"%d" % n, b"x")]
            committer.submit(works)
            heard, failure = await listener.next()
            assert heard is works
            assert failure is None
            assert store.get(ACTORS, b"%d" % n) == b"x"
        committer.submit([put(b"bad", b"x")])
        assert isinstance((await listener.next())[1], StoreFailedError)
        assert listener.threads == {threading.current_thread()}
        committer.close()
        committer.close()


async def test_whatever_happens_in_the_thread_the_kernel_hears_of_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    committer, listener = ThreadCommitter(), Listener()
    committer.start(store, listener.done)
    store.close()
    committer.submit([put(b"1")])
    assert isinstance((await listener.next())[1], StoreFailedError)
    committer.close()


async def test_closing_waits_for_the_group_in_flight(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        committer, listener = ThreadCommitter(), Listener()
        committer.start(store, listener.done)
        committer.submit([put(b"%d" % n, b"x") for n in range(1000)])
        committer.close()
        assert store.statistics().rows == 1000
        assert (await listener.next())[1] is None


def test_a_loop_that_is_gone_does_not_hurt_the_thread(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        committer, listener = ThreadCommitter(), Listener()

        async def start() -> None:
            await trio.lowlevel.checkpoint()
            committer.start(store, listener.done)

        trio.run(start)
        committer.submit([put(b"1", b"x")])
        committer.submit([put(b"2", b"x")])
        committer.close()
        assert store.statistics().rows == 2
        assert listener.heard == []


def test_the_inline_committer_is_the_seam_for_faults(tmp_path: Path) -> None:
    class CrashError(Exception):
        pass

    def faulty(store: Store, works: Sequence[WriteBatch]) -> None:
        if works[0].owner == "full":
            works[0].error = StorageFullError("injected")
        if works[0].owner == "dead":
            raise StoreFailedError("injected")
        store.commit(works)
        if works[0].owner == "crash":
            raise CrashError

    with closing(Store(tmp_path / "data")) as store:
        committer, listener = InlineCommitter(faulty), Listener()
        committer.start(store, listener.done)
        committer.submit([put(b"1", owner="full"), put(b"2", owner="full"), put(b"3", owner="fine")])
        assert [work.error is None for work in listener.heard[0][0]] == [False, False, True]
        committer.submit([put(b"4", owner="dead")])
        assert isinstance(listener.heard[1][1], StoreFailedError)
        with pytest.raises(CrashError):
            committer.submit([put(b"5", owner="crash")])
        committer.close()
        assert len(listener.heard) == 2
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"3", b"5"]
