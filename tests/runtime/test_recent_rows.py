"""Changes of small commits lie over their tables first, and nobody notices."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import lmdb
import pytest
from support.stores import put, small_disk

from greenroom.runtime import (
    ACTORS,
    INDEXES,
    META,
    Address,
    Encryption,
    KeptRecords,
    Op,
    Remains,
    RepairRule,
    Store,
    StoreDamagedError,
    WriteBatch,
    backup,
    repair,
)
from greenroom.runtime.lmdb.environment import RECENT_TABLE
from greenroom.runtime.lmdb.recent import MOST_ROWS, RecentRow, RecentRows, merge_over, pack, unpack
from greenroom.runtime.lmdb.snapshot import is_among

pytestmark = pytest.mark.promise("store.recent")
Model = dict[int, dict[bytes, bytes]]


def opened(folder: Path, *, sealed: bool) -> Store:
    encryption = Encryption(lambda: b"k" * 32, required=True) if sealed else None
    return Store(folder, encryption=encryption, sync=False, max_size=256 << 20)


def crash_image(folder: Path, copy: Path) -> Path:
    """Return a folder with the file as it is now: as after a crash of its process."""
    copy.mkdir()
    shutil.copyfile(folder / "greenroom.mdb", copy / "greenroom.mdb")
    return copy


def stored_recent(folder: Path) -> int:
    """Return how many rows lie in the table of recent rows of a file."""
    with lmdb.open(
        str(folder / "greenroom.mdb"), subdir=False, readonly=True, lock=False, max_dbs=4
    ) as environment:
        table = environment.open_db(RECENT_TABLE, create=False)
        with environment.begin() as transaction:
            return int(transaction.stat(table)["entries"])


def random_ops(chosen: random.Random) -> list[Op]:
    """Return the changes of one commit: mostly few, now and then many."""
    count = chosen.choice([1, 1, 2, 5, 20, 20, MOST_ROWS // 2, MOST_ROWS + 1])
    return [
        (
            chosen.choice([ACTORS, INDEXES, META]),
            b"%d/%03d" % (chosen.randrange(3), chosen.randrange(200)),
            chosen.choice([None, chosen.randbytes(chosen.choice([0, 1, 50, 3_000]))]),
        )
        for _ in range(count)
    ]


def check(store: Store, model: Model) -> None:
    assert store.statistics().rows == sum(map(len, model.values()))
    for table, rows in model.items():
        keys = sorted(rows)
        assert list(store.scan(table, b"")) == [(key, rows[key]) for key in keys]
        assert list(store.keys(table, b"1/")) == [key for key in keys if key.startswith(b"1/")]
        for start in (None, b"1/", b"1/100", b"2", b"1/\xff"):
            for reverse in (False, True):
                among = [key for key in keys if is_among(key, b"1/", start, reverse=reverse)]
                among.sort(reverse=reverse)
                found = store.scan(table, b"1/", start=start, reverse=reverse)
                assert [key for key, _ in found] == among
        assert all(store.get(table, key) == rows[key] for key in keys[::7])
        assert store.get(table, b"1/absent") is None


@pytest.mark.quick
@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_commits_come_reads_find_what_was_committed(
    tmp_path: Path, seed: int, *, sealed: bool
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - nothing secret
    model: Model = {ACTORS: {}, INDEXES: {}, META: {}}
    folder = tmp_path / "data"
    store = opened(folder, sealed=sealed)
    for step in range(40):
        ops = random_ops(chosen)
        store.commit([WriteBatch(None, ops)])
        for table, key, payload in ops:
            if payload is None:
                model[table].pop(key, None)
            else:
                model[table][key] = payload
        if step % 4 == 0:
            check(store, model)
        if step % 9 == 8:
            image = crash_image(folder, tmp_path / f"crash{step}")
            with closing(opened(image, sealed=sealed)) as other:
                check(other, model)
            assert stored_recent(image) == 0
        if step % 13 == 12:
            store.close()
            assert stored_recent(folder) == 0
            store = opened(folder, sealed=sealed)
    check(store, model)
    store.close()


def test_small_commits_are_recent_rows_until_they_are_many_or_the_store_is_closed(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "data", sealed=False)) as store:
        for n in range(10):
            store.commit([put(b"%d" % n, b"x")])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "a")) == 10
        store.commit([put(b"many%d" % n, b"x") for n in range(MOST_ROWS)])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "b")) == 0
        store.commit([put(b"large", bytes(600_000))])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "c")) == 0
        store.commit([put(b"last", b"x")])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "d")) == 1
    assert stored_recent(tmp_path / "data") == 0


def test_a_view_stays_as_it_was_while_commits_go_on(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "data", sealed=False)) as store, ExitStack() as open_views:
        views = []
        for n in range(60):
            store.commit([put(b"n", b"%d" % n), put(b"gone%d" % n, b"x")])
            store.commit([WriteBatch(None, [(ACTORS, b"gone%d" % n, None)])])
            if n % 20 == 10:
                store.writer.settle()
            views.append((n, open_views.enter_context(store.snapshot())))
        for n, view in views:
            assert view.get(ACTORS, b"n") == b"%d" % n
            assert list(view.scan(ACTORS, b"")) == [(b"n", b"%d" % n)]


@pytest.mark.parametrize("commits", [1, 3, 40])
def test_commits_between_the_opening_of_a_view_and_its_recent_rows_are_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    with closing(opened(tmp_path / "data", sealed=False)) as store:
        store.commit([put(b"n", b"there")])
        store.commit([put(b"n", b"before")])
        find, left = store.writer.recent_at, [commits]

        def find_late(transaction: int) -> RecentRows | None:
            while left[0]:
                left[0] -= 1
                store.commit([put(b"n", b"%d" % left[0]), put(b"new%d" % left[0])])
                store.writer.settle()
            return find(transaction)

        monkeypatch.setattr(store.writer, "recent_at", find_late)
        with store.snapshot() as view:
            rows = list(view.scan(ACTORS, b""))
        if commits < 40:
            assert rows == [(b"n", b"before")]
        else:  # the recent rows of that view are gone, so another one was opened
            assert rows == [(b"n", b"0"), *sorted((b"new%d" % n, b"") for n in range(commits))]


def test_each_view_of_other_threads_is_of_one_commit(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "data", sealed=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"n", b"0"), (INDEXES, b"n", b"0")])])
        wrong: list[object] = []
        stop = threading.Event()

        def read() -> None:
            seen = 0
            while not stop.is_set():
                with store.snapshot() as view:
                    one, other = view.get(ACTORS, b"n"), view.get(INDEXES, b"n")
                    listed = dict(view.scan(ACTORS, b"n"))
                if not (one == other == listed.get(b"n")) or int(one or b"-1") < seen:
                    wrong.append((one, other, listed, seen))
                    return
                seen = int(one or b"-1")

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(1, 3_000):
            payload = b"%d" % n
            store.commit([WriteBatch(None, [(ACTORS, b"n", payload), (INDEXES, b"n", payload)])])
            if n % 5 == 0:
                store.writer.settle()
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []


def _rows_of_recent(path: Path) -> Iterator[tuple[int, int]]:
    """Yield where the stored recent rows begin and end in a file."""
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False, max_dbs=4) as environment:
        table = environment.open_db(RECENT_TABLE, create=False)
        with environment.begin(table) as transaction:
            records = [record for _, record in transaction.cursor()]
    content = path.read_bytes()
    for record in records:
        begin = content.rindex(record)
        yield begin, begin + len(record)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_flipped_bit_of_a_recent_row_is_mended_or_the_store_is_refused(
    tmp_path: Path, *, sealed: bool
) -> None:
    folder = tmp_path / "data"
    model: Model = {ACTORS: {b"kept": b"a" * 40, b"other": b"b"}, INDEXES: {b"row": b"c"}, META: {}}
    with closing(opened(folder, sealed=sealed)) as store:
        store.commit([put(b"kept", b"old"), put(b"gone", b"d")])
        store.writer.settle()
        ops: Sequence[Op] = [(ACTORS, b"kept", b"a" * 40), (ACTORS, b"gone", None), (INDEXES, b"row", b"c")]
        store.commit([WriteBatch(None, [*ops, (ACTORS, b"other", b"b")])])
        image = crash_image(folder, tmp_path / "image")
    sound = (image / "greenroom.mdb").read_bytes()
    mended = 0
    places = [place for begin, end in _rows_of_recent(image / "greenroom.mdb") for place in range(begin, end)]
    for place in places:
        content = bytearray(sound)
        content[place] ^= 1 << place % 8
        (image / "greenroom.mdb").write_bytes(content)
        with closing(opened(image, sealed=sealed)) as store:
            check(store, model)
            mended += 1
    assert mended == len(places) > 100
    content = bytearray(sound)
    for place in places[10:20]:
        content[place] ^= 0xA5
    (image / "greenroom.mdb").write_bytes(content)
    with pytest.raises(StoreDamagedError, match="greenroom repair"):
        opened(image, sealed=sealed)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_store_whose_recent_rows_were_mended_is_sound(tmp_path: Path, *, sealed: bool) -> None:
    with closing(opened(tmp_path / "data", sealed=sealed)) as store:
        store.commit([put(b"kept", b"a" * 40)])
        store.writer.settle()
        store.commit([put(b"kept", b"new")])
        image = crash_image(tmp_path / "data", tmp_path / "image")
    content = bytearray((image / "greenroom.mdb").read_bytes())
    [(begin, end)] = _rows_of_recent(image / "greenroom.mdb")
    content[(begin + end) // 2] ^= 4
    (image / "greenroom.mdb").write_bytes(content)
    with closing(opened(image, sealed=sealed)) as store:
        assert store.get(ACTORS, b"kept") == b"new"
        assert (store.statistics().integrity, store.statistics().damaged_records) == ("checked", 0)


def test_a_large_row_goes_into_its_table_at_once(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "data", sealed=True)) as store:
        store.commit([put(b"small", b"x")])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "a")) == 1
        store.commit([put(b"large", bytes(5_000))])
        assert stored_recent(crash_image(tmp_path / "data", tmp_path / "b")) == 0


def test_what_was_deleted_before_a_crash_is_in_no_backup(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "data", sealed=False)) as store:
        store.commit([put(b"gone", b"what was deleted")])
        store.writer.settle()
        store.commit([WriteBatch(None, [(ACTORS, b"gone", None), (ACTORS, b"kept", b"x")])])
        image = crash_image(tmp_path / "data", tmp_path / "image")
    info = backup(image, tmp_path / "copy")
    assert [(table.name, table.rows) for table in info.tables] == [("actors", 1), ("indexes", 0), ("meta", 0)]
    assert b"what was deleted" not in (tmp_path / "copy").read_bytes()


@pytest.mark.promise("store.repair")
def test_an_unreadable_recent_row_may_be_of_any_actor(tmp_path: Path) -> None:
    own = Address("note", "n").prefix() + b"u"
    with closing(opened(tmp_path / "data", sealed=False)) as store:
        store.commit([put(own + b"secret", b"private words")])
        store.writer.settle()
        store.commit([put(b"other\0x\0u1", b"1")])
        store.commit([WriteBatch(None, [(ACTORS, own + b"secret", None)])])
        store.commit([put(b"other\0x\0u2", b"1")])
        image = crash_image(tmp_path / "data", tmp_path / "image")
    content = bytearray((image / "greenroom.mdb").read_bytes())
    begin, _ = list(_rows_of_recent(image / "greenroom.mdb"))[1]
    content[begin + 6] ^= 5
    content[begin + 7] ^= 0x41
    (image / "greenroom.mdb").write_bytes(content)

    def keep(remains: Remains) -> KeptRecords:
        """Keep what no lost row could have forgotten."""
        return KeptRecords({} if remains.may_lack(b"secret", b"secret") else remains.records, [])

    repair(image, tmp_path / "saved", rules={"note": RepairRule(keep)})
    assert b"private words" not in (tmp_path / "saved").read_bytes()


@pytest.mark.promise("store.space-reserve")
def test_deletes_go_on_where_others_fill_the_disk_before_recent_rows_are_applied(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", "100m") as disk,
        closing(Store(disk / "data", sync=False, min_free=0)) as store,
    ):
        for first in range(0, 60_000, 2_000):
            store.commit([put(b"k%08d" % n, b"v" * 150) for n in range(first, first + 2_000)])
        for n in range(900):
            store.commit([put(b"k%08d" % (n * 66 + 3), b"w" * 150)])
        assert len(store.writer.recent) == 900
        fill_disk(disk / "filler")
        for n in range(10):
            gone = WriteBatch(None, [(ACTORS, b"k%08d" % (n * 66 + 3), None)])
            store.commit([gone])
            assert gone.error is None
            assert store.get(ACTORS, b"k%08d" % (n * 66 + 3)) is None


def fill_disk(path: Path) -> None:
    """Write into a file until the disk has no room."""
    with path.open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(1 << 20)):
            pass


@pytest.mark.quick
def test_what_is_no_recent_row_is_not_taken_for_one() -> None:
    rows = [
        RecentRow(ACTORS, b"k", b"record"),
        RecentRow(INDEXES, b"k" * 500, None),
        RecentRow(META, b"k", b"r"),
    ]
    for row in rows:
        packed = pack(row)
        assert unpack(packed) == row
        for bit in range(16):  # its table, and whether it is a deletion
            flipped = bytearray(packed)
            flipped[bit // 8] ^= 1 << bit % 8
            assert unpack(bytes(flipped)) is None
    assert unpack(b"") is None
    assert unpack(pack(RecentRow(ACTORS, b"long", None))[:-1]) is None


@pytest.mark.quick
def test_newer_rows_lie_over_older_ones_in_order() -> None:
    first = RecentRows().with_changes([{b"a": b"1", b"c": b"1"}, {}, {}])
    second = first.with_changes([{b"b": b"2", b"c": None}, {}, {}])
    assert list(first.among(ACTORS, b"", None) or ()) == [(b"a", b"1"), (b"c", b"1")]
    fresh = [(b"a", b"1"), (b"b", b"2"), (b"c", None)]
    assert list(second.among(ACTORS, b"", None) or ()) == fresh
    assert list(second.among(ACTORS, b"", b"b", reverse=True) or ()) == fresh[1::-1]
    assert second.among(ACTORS, b"d", None) is None
    assert second.among(INDEXES, b"", None) is None
    stored = [(b"b", b"0"), (b"c", b"0"), (b"d", b"0")]
    merged = [(b"a", b"1"), (b"b", b"2"), (b"d", b"0")]
    changes = dict(fresh)
    assert list(merge_over(iter(stored), iter(fresh), changes)) == merged
    assert list(merge_over(iter(stored[::-1]), iter(fresh[::-1]), changes, reverse=True)) == merged[::-1]
