from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import stores
from support.stores import delete, fill, put

from greenroom.runtime import (
    ACTORS,
    INDEXES,
    META,
    Actor,
    Address,
    Context,
    FolderLock,
    Message,
    Op,
    RuntimeOptions,
    StorageFullError,
    Store,
    StoreError,
    StoreFailedError,
    WriteBatch,
    handles,
    open_runtime,
)
from greenroom.runtime.lmdb.environment import MIN_SIZE
from greenroom.runtime.lmdb.write_batch import PAGE, Space, select_fitting

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with stores.small_disk(tmp_path / "disk", "4m") as disk:
        yield disk


@pytest.mark.promise("store.space-reserve")
def test_a_full_map_refuses_writes_but_neither_reads_nor_deletes_nor_the_reserve(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=MIN_SIZE)) as store:
        count = fill(store)
        assert count > 100
        assert all(store.get(ACTORS, b"fill%08d" % n) for n in range(count))

        audit = put(b"audit", b"a" * 200, reserve=True)
        store.commit([audit])
        assert audit.error is None

        deletes = [delete(b"fill%08d" % n) for n in range(count)]
        for work in deletes:
            store.commit([work])
        assert all(work.error is None for work in deletes)

        again = put(b"again", b"now there is room")
        store.commit([again])
        assert again.error is None
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"again", b"audit"]


def test_a_map_filled_to_its_last_page_goes_on_working(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=MIN_SIZE)) as store:
        count = fill(store, reserve=True)
        works = [delete(b"fill%08d" % n) for n in range(count)]
        store.commit(works[:20])
        store.commit(works)
        after = put(b"after", b"x" * 3000)
        store.commit([after])
        assert after.error is None
        assert store.get(ACTORS, b"after") == b"x" * 3000


def test_one_work_without_room_fails_alone_with_its_owners_later_ones(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=MIN_SIZE)) as store:
        works = [
            put(b"1", b"small", owner="a", reserve=True),
            put(b"2", b"x" * 2 * MIN_SIZE, owner="b", reserve=True),
            put(b"3", b"small", owner="b", reserve=True),
            put(b"4", b"small", owner="a", reserve=True),
            put(b"5", b"x" * 2 * MIN_SIZE, owner="c"),
            put(b"6", b"small", owner="c"),
        ]
        store.commit(works)
        assert [work.error is None for work in works] == [True, False, False, True, False, False]
        assert all(isinstance(work.error, StorageFullError) for work in works if work.error)
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"1", b"4"]
        statistics = store.statistics()
        assert (statistics.works, statistics.failures, statistics.rows) == (2, 4, 2)


def test_a_work_is_committed_whole_or_not_at_all(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=MIN_SIZE)) as store:
        store.commit([put(b"there", b"before")])
        ops: list[Op] = [
            (ACTORS, b"new", b"x"),
            (ACTORS, b"there", None),
            (INDEXES, b"row", b"x"),
            (META, b"big", b"x" * 2 * MIN_SIZE),
        ]
        work = WriteBatch(None, ops, True)
        store.commit([work])
        assert isinstance(work.error, StorageFullError)
        assert list(store.scan(ACTORS, b"")) == [(b"there", b"before")]
        assert list(store.scan(INDEXES, b"")) == []


@pytest.mark.promise("store.space-reserve")
def test_a_full_disk_refuses_writes_and_the_store_goes_on(small_disk: Path) -> None:
    with closing(Store(small_disk / "data", min_free=0)) as store:
        count = fill(store)
        assert count > 500
        assert all(store.get(ACTORS, b"fill%08d" % n) for n in range(count))
        deletes = [delete(b"fill%08d" % n) for n in range(count - 10)]
        store.commit(deletes)
        assert all(work.error is None for work in deletes)
        after = put(b"after", b"there is room again")
        store.commit([after])
        assert after.error is None
    with closing(Store(small_disk / "data", min_free=0)) as store:
        assert store.get(ACTORS, b"after") == b"there is room again"
        assert sum(1 for _ in store.scan(ACTORS, b"fill")) == 10


@pytest.mark.promise("store.space-reserve")
def test_a_store_on_a_disk_without_one_free_byte_can_be_started_and_deleted_from(small_disk: Path) -> None:
    with FolderLock(small_disk / "data") as owner, closing(Store(owner.folder, min_free=0)) as store:
        fill(store)
        owner.mark_clean()
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    assert os.statvfs(small_disk).f_bavail == 0
    with FolderLock(small_disk / "data") as owner, closing(Store(owner.folder)) as store:
        assert not owner.unclean
        scans = [store.scan(ACTORS, b"") for _ in range(1000)]
        assert {next(scan)[0] for scan in scans} == {b"fill00000000"}
        del scans
        works = [delete(b"fill%08d" % n) for n in range(50)]
        store.commit(works)
        assert all(work.error is None for work in works)
        refused = put(b"new", b"x")
        store.commit([refused])
        assert "--min-free" in str(refused.error)
    with pytest.raises(StorageFullError):
        Store(small_disk / "another")


@pytest.mark.promise("store.space-reserve")
def test_what_is_to_stay_free_of_the_disk_is_for_deletes_and_the_reserve(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        store.commit([put(b"old", b"x")])
    free = shutil.disk_usage(tmp_path).free
    with closing(Store(tmp_path / "data", min_free=free * 3 // 2)) as store:
        works = [put(b"new", b"x"), delete(b"old"), put(b"audit", b"x", owner="other", reserve=True)]
        works[1].owner = "deleter"
        store.commit(works)
        assert isinstance(works[0].error, StorageFullError)
        assert "--min-free" in str(works[0].error)
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"audit"]
    with closing(Store(tmp_path / "data", min_free=free * 3)) as store:
        works = [put(b"audit2", b"x", owner="other", reserve=True), delete(b"audit")]
        works[1].owner = "deleter"
        store.commit(works)
        assert isinstance(works[0].error, StorageFullError)
        assert list(store.scan(ACTORS, b"")) == []


@pytest.mark.promise("store.space-reserve")
def test_puts_never_use_up_the_room_for_deletes(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=4 << 20, sync=False)) as store:
        kept = 0
        while True:
            work = put(b"%08d" % kept, bytes(500))
            store.commit([work])
            if work.error is not None:
                break
            kept += 1
        audits = [put(b"audit %08d" % n, bytes(200), owner=n, reserve=True) for n in range(5_000)]
        for audit in audits:
            store.commit([audit])
        assert audits[0].error is None
        assert isinstance(audits[-1].error, StorageFullError)
        for n in range(kept):
            gone = delete(b"%08d" % n)
            store.commit([gone])
            assert gone.error is None


FILE_SIZE_LIMIT = """
import resource, sys
from pathlib import Path
from greenroom.runtime import StorageFullError, Store, WriteBatch
store = Store(Path(sys.argv[1]))
store.commit([WriteBatch(None, [(0, b"first", b"x")])])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
kept = []
for n in range(40):
    work = WriteBatch(None, [(0, b"%d-%d" % (n, i), bytes(10_000)) for i in range(5)])
    store.commit([work])
    assert work.error is None or isinstance(work.error, StorageFullError), work.error
    kept += [n] * (work.error is None)
work = WriteBatch(None, [(0, b"%d-%d" % (0, i), None) for i in range(5)])
store.commit([work])
assert work.error is None
print(len(kept), store.get(0, b"first"), sum(1 for _ in store.scan(0, b"0-")))
"""


def test_a_write_that_the_system_cuts_short_is_want_of_room(tmp_path: Path) -> None:
    """LMDB calls it an input/output error, which would be the end of the process."""
    child = subprocess.run(
        [sys.executable, "-c", FILE_SIZE_LIMIT, tmp_path / "data"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    kept, first, rest = child.stdout.split()
    assert 5 < int(kept) < 40
    assert (first, rest) == ("b'x'", "0")


def test_the_space_rule() -> None:
    space = Space(map_bytes=1000 * PAGE, used_bytes=900 * PAGE, disk_free=10, min_free=10)
    assert space.refusal(50 * PAGE, from_reserve=False) is None
    assert isinstance(space.refusal(50 * PAGE + 1, from_reserve=False), StorageFullError)
    assert space.refusal(75 * PAGE, from_reserve=True) is None
    assert isinstance(space.refusal(75 * PAGE + 1, from_reserve=True), StorageFullError)
    assert (
        Space(map_bytes=1000 * PAGE, used_bytes=999 * PAGE, disk_free=0, min_free=10).refusal(
            0, from_reserve=False
        )
        is None
    )
    assert isinstance(
        Space(1000 * PAGE, used_bytes=0, disk_free=9, min_free=10).refusal(1, from_reserve=False),
        StorageFullError,
    )
    assert isinstance(
        Space(64 * PAGE, used_bytes=32 * PAGE, disk_free=9, min_free=0).refusal(1, from_reserve=False),
        StorageFullError,
    )
    assert delete(b"key").growth() == 0
    assert 200 <= put(b"key", b"x" * 100).growth() < PAGE
    assert 10 * PAGE < put(b"key", b"x" * 10 * PAGE).growth() <= 12 * PAGE
    assert put(b"key", b"x" * (PAGE // 2 - 50)).growth() < PAGE, "of a page that it may split"
    assert put(b"key", b"x" * (PAGE // 2)).growth() == 2 * PAGE, "one of its own, and one above it"
    row = put(b"key")
    row.entries = [("journal", 1, b"x" * 1_000)]
    assert 2_000 <= row.growth() < 3_000


def test_a_disk_that_others_fill_is_noticed_within_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, free = 1_000.0, 1 << 40
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))
    with closing(Store(tmp_path / "data", sync=False)) as store:
        works = [put(b"key", b"x") for _ in range(4)]
        store.commit(works[:1])
        store.commit(works[1:2])
        free = 0
        now += 0.05
        store.commit(works[2:3])
        now += 0.1
        store.commit(works[3:])
    assert [work.error is None for work in works] == [True, True, True, False]


def test_the_group_is_planned_as_a_whole_and_errors_that_works_bring_along_count() -> None:
    works = [put(b"k", bytes(PAGE), owner=n) for n in range(3)]
    failed: dict[object, StoreError] = {}
    assert (
        select_fitting(works, Space(1000 * PAGE, 950 * PAGE - 2 * works[0].growth(), 10, 10), failed)
        == works[:2]
    )
    assert set(failed) == {2}
    works = [put(b"k", bytes(PAGE), owner=n) for n in range(2)]
    assert select_fitting(works, Space(1000 * PAGE, 950 * PAGE - works[0].growth(), 10, 10), {}) == works[:1]

    works = [put(b"k", owner=n % 2) for n in range(4)]
    works[1].error = StoreFailedError("injected")
    assert select_fitting(works, Space(1000 * PAGE, 0, 10, 10), {}) == [works[0], works[2]]
    assert works[3].error is works[1].error


class HowMany(Message[int], frozen=True):
    pass


class Careful(Actor):
    """Asks how many rows it may touch at once."""

    kind = "careful"

    @handles(HowMany)
    def how_many(self, _message: HowMany, context: Context) -> int:
        return context.most_rows(1_000_000)


def test_a_full_store_refuses_the_first_write_after_it_was_opened_again(tmp_path: Path) -> None:
    """Also where the store is larger than what it may grow between two counts of its pages."""
    with closing(Store(tmp_path / "data", max_size=4 << 20, sync=False)) as store:
        fill(store, size=30_000)
    with closing(Store(tmp_path / "data", max_size=4 << 20, sync=False)) as store:
        first = put(b"first", bytes(200_000))
        store.commit([first])
        assert isinstance(first.error, StorageFullError)


def test_the_room_that_is_left_shrinks_by_what_is_written(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", max_size=MIN_SIZE)) as store:
        before = store.room()
        store.commit([put(b"row", bytes(20 * PAGE))])
        assert 20 * PAGE <= before - store.room() <= 25 * PAGE


@pytest.mark.promise("store.space-reserve")
async def test_what_is_done_at_once_has_room_on_the_disk(small_disk: Path) -> None:
    options = RuntimeOptions(max_size=1 << 30, min_free=0)
    async with open_runtime(small_disk / "data", actors=[Careful], options=options) as runtime:
        assert 1 < await runtime.ask(Address("careful", "c"), HowMany()) < (4 << 20) // PAGE
