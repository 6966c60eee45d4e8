from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores import BrokenCodec, put

from greenroom.runtime import (
    ACTORS,
    INDEXES,
    Op,
    PlainCodec,
    Revocation,
    Store,
    StoreDamagedError,
    StoreError,
    StoreFailedError,
    StoreTooNewError,
    WriteBatch,
)

# What is read is what was written


KEYS = st.lists(st.sampled_from([b"\x00", b"a", b"b", b"\xfe", b"\xff"]), min_size=1, max_size=4).map(
    b"".join
)
PREFIXES = st.one_of(st.just(b""), KEYS)
GROUPS = st.lists(
    st.lists(
        st.tuples(st.sampled_from([ACTORS, INDEXES]), KEYS, st.none() | st.binary(max_size=30)), max_size=6
    ),
    max_size=6,
)
SCANS = st.lists(st.tuples(PREFIXES, st.none() | PREFIXES, st.booleans()), min_size=1, max_size=8)


@given(groups=GROUPS, scans=SCANS)
def test_rows_come_back_in_order_from_wherever_one_starts(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[Op]],
    scans: list[tuple[bytes, bytes | None, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("store") / "data"
    model: dict[int, dict[bytes, bytes]] = {ACTORS: {}, INDEXES: {}}
    store = Store(folder, sync=False)
    for ops in groups:
        store.commit([WriteBatch(n, [op]) for n, op in enumerate(ops)])
        for table, key, payload in ops:
            if payload is None:
                model[table].pop(key, None)
            else:
                model[table][key] = payload
    for table, rows in model.items():
        for prefix, start, reverse in scans:
            wanted = sorted((item for item in rows.items() if item[0].startswith(prefix)), reverse=reverse)
            if start is not None:
                wanted = [(k, v) for k, v in wanted if (k <= start if reverse else k >= start)]
            assert list(store.scan(table, prefix, start=start, reverse=reverse)) == wanted
        for key in (b"a", b"\xff", b"\x00a"):
            assert store.get(table, key) == rows.get(key)
    store.close()
    with closing(Store(folder, sync=False)) as again:
        assert {table: dict(again.scan(table, b"")) for table in model} == model
    shutil.rmtree(folder.parent)


# Records and versions


def edit(folder: Path, change: Callable[[lmdb.Environment, lmdb.Transaction[bytes]], object]) -> None:
    """Change the file behind the store's back."""
    data = os.fspath(folder / "greenroom.mdb")
    with (
        lmdb.open(data, subdir=False, max_dbs=3) as environment,
        environment.begin(write=True) as transaction,
    ):
        change(environment, transaction)


@pytest.mark.quick
@pytest.mark.promise("store.codec")
def test_a_changed_record_is_an_error_that_names_its_key_and_the_remedy(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        store.commit([put(b"a-key", b"the payload"), put(b"other", b"sound")])

    def flip(environment: lmdb.Environment, transaction: lmdb.Transaction[bytes]) -> None:
        table = environment.open_db(b"actors", txn=transaction)
        record = transaction.get(b"a-key", db=table)
        assert record is not None
        transaction.put(b"a-key", record[:-1] + b"D", db=table)

    edit(tmp_path / "data", flip)
    with closing(Store(tmp_path / "data")) as store:
        with pytest.raises(StoreDamagedError, match=r"a-key.*greenroom verify.*greenroom restore"):
            store.get(ACTORS, b"a-key")
        with pytest.raises(StoreDamagedError, match="a-key"):
            list(store.scan(ACTORS, b""))
        assert store.get(ACTORS, b"other") == b"sound"
        assert store.statistics().scans == 0


@pytest.mark.promise("store.codec")
@given(
    key=st.binary(min_size=1, max_size=20),
    payload=st.binary(max_size=50),
    at=st.integers(0, 60),
    bit=st.integers(0, 7),
)
def test_any_bit_that_changes_in_a_record_is_noticed(key: bytes, payload: bytes, at: int, bit: int) -> None:
    codec = PlainCodec()
    record = bytearray(codec.seal(key, payload))
    assert codec.open(key, bytes(record)) == payload
    record[at % len(record)] ^= 1 << bit
    with pytest.raises(StoreDamagedError):
        codec.open(key, bytes(record))
    with pytest.raises(StoreDamagedError):
        codec.open(key + b"x", codec.seal(key, payload))
    with pytest.raises(StoreDamagedError):
        codec.open(key, b"\x01\x00")


@pytest.mark.promise("store.versions")
def test_a_newer_store_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    Store(tmp_path / "data").close()
    edit(tmp_path / "data", lambda _, transaction: transaction.put(b"greenroom.format", b"1000"))
    before = (tmp_path / "data" / "greenroom.mdb").read_bytes()
    with pytest.raises(StoreTooNewError, match="upgrade"):
        Store(tmp_path / "data")
    assert (tmp_path / "data" / "greenroom.mdb").read_bytes() == before


@pytest.mark.parametrize("content", [b"plain text\n" * 1000, b"\0" * 8192, b"x"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    data = tmp_path / "greenroom.mdb"
    data.write_bytes(content)
    with pytest.raises(StoreDamagedError):
        Store(tmp_path)
    assert data.read_bytes() == content


def test_an_lmdb_file_of_another_program_is_refused(tmp_path: Path) -> None:
    edit(tmp_path, lambda _, transaction: transaction.put(b"theirs", b"x"))
    with pytest.raises(StoreDamagedError, match="no Greenroom store"):
        Store(tmp_path)


def test_an_empty_file_left_by_a_crash_at_the_very_first_start_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "greenroom.mdb").touch()
    with closing(Store(tmp_path)) as store:
        store.commit([put(b"1", b"x")])
        assert store.get(ACTORS, b"1") == b"x"


# What ends everything


@pytest.mark.promise("runtime.fatal-commit")
@pytest.mark.skipif(sys.platform != "linux", reason="finds LMDB's descriptor through /proc")
def test_after_an_error_that_is_not_about_space_nothing_is_committed_any_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    store.commit([put(b"1", b"x")])
    data = os.fspath(store.folder / "greenroom.mdb")
    held = Path("/proc/self/fd")
    descriptors = [int(link.name) for link in held.iterdir() if os.path.realpath(link) == data]
    saved = {descriptor: os.dup(descriptor) for descriptor in descriptors}
    dead = os.open(os.devnull, os.O_RDONLY)
    for descriptor in descriptors:
        os.dup2(dead, descriptor)
    with pytest.raises(StoreFailedError):
        store.commit([put(b"2", b"x")])
    for descriptor, copy in saved.items():
        os.dup2(copy, descriptor)
        os.close(copy)
    os.close(dead)
    with pytest.raises(StoreFailedError):
        store.commit([put(b"3", b"x")])
    assert [key for key, _ in store.scan(ACTORS, b"")] == [b"1"]
    store.close()
    with closing(Store(tmp_path / "data")) as store:
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"1"]


def test_a_store_whose_file_was_removed_says_so_and_takes_nothing_more(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        (tmp_path / "data" / "greenroom.mdb").unlink()
        with pytest.raises(StoreFailedError, match="was removed, renamed or replaced"):
            store.commit([put(b"lost", b"x")])


def test_a_codec_that_fails_ends_the_store_and_commits_nothing_of_the_group(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", codec=BrokenCodec())) as store:
        with pytest.raises(StoreFailedError, match="cipher"):
            store.commit([put(b"good", b"x"), put(b"bad", b"x")])
        with pytest.raises(StoreFailedError):
            store.commit([put(b"good", b"x")])
        assert list(store.scan(ACTORS, b"")) == []


# Processes and threads


@pytest.mark.quick
@pytest.mark.promise("store.fork")
def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        store.commit([put(b"1", b"x")])
        rows = store.scan(ACTORS, b"")
        child = os.fork()
        if not child:
            refused = 0
            uses: list[Callable[[], object]] = [
                lambda: store.get(ACTORS, b"1"),
                lambda: next(store.scan(ACTORS, b"")),
                lambda: next(rows),
                lambda: store.commit([put(b"2", b"x")]),
                store.statistics,
                lambda: store.copy_to(1),
            ]
            for use in uses:
                try:
                    use()
                except StoreFailedError:
                    pass
                except StoreError as error:
                    refused += "fork" in str(error)
            store.close()
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
        store.commit([put(b"3", b"x")])
        assert [key for key, _ in rows] == [b"1", b"3"]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    store.commit([put(b"1", b"x"), put(b"2", b"x")])
    store.writer.settle()
    started = store.scan(ACTORS, b"")
    next(started)
    store.close()
    store.close()
    with pytest.raises(StoreError):
        next(started)
    uses: list[Callable[[], object]] = [
        lambda: store.get(ACTORS, b"1"),
        lambda: next(store.scan(ACTORS, b"")),
        lambda: store.commit([put(b"2", b"x")]),
        store.statistics,
    ]
    for use in uses:
        with pytest.raises(StoreError, match="closed"):
            use()


@pytest.mark.parametrize("sync", [True, False])
def test_a_store_without_fsync_is_a_store_too(tmp_path: Path, sync: bool) -> None:  # noqa: FBT001
    with closing(Store(tmp_path / "data", sync=sync)) as store:
        store.commit([put(b"%04d" % n, b"x") for n in range(1000)])
    with closing(Store(tmp_path / "data", sync=sync)) as store:
        assert store.statistics().rows == 1000


def test_a_scan_sees_one_moment_and_gives_its_pages_back(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        store.commit([put(b"%d" % n, b"old") for n in range(5)])
        rows = store.scan(ACTORS, b"")
        assert next(rows) == (b"0", b"old")
        assert store.statistics().scans == 1
        store.commit([put(b"%d" % n, b"new") for n in range(9)])
        assert [payload for _, payload in rows] == [b"old"] * 4
        other = store.scan(ACTORS, b"")
        assert next(other) == (b"0", b"new")
        other.close()  # type: ignore[attr-defined]  # a generator, as the kernel relies on
        assert store.statistics().scans == 0


def test_closed_scans_let_the_file_use_its_pages_again(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", sync=False)) as store:

        def rewrite(times: int) -> int:
            for _ in range(times):
                store.commit([put(b"%d" % n, bytes(4000)) for n in range(20)])
                next(store.scan(ACTORS, b""))
            return store.statistics().file_bytes

        settled = rewrite(60)
        assert rewrite(100) == settled


def test_what_is_to_outlast_backups_is_noted_with_its_commit_and_once(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", sync=False)) as store:
        log = store.open_revocation_log(tmp_path / "list", 0)
        ends = put(b"k", b"v")
        ends.revocations = [Revocation(1, 2, "key", "a", b"1")]
        store.commit([ends])
        assert log.head is None
        assert (tmp_path / "list").read_bytes().count(b"\n") == 1
        rows = store.statistics().rows
        store.commit([put(b"k", b"w")])
        assert store.statistics().rows == rows
    with closing(Store(tmp_path / "data", sync=False)) as store:
        assert store.open_revocation_log(tmp_path / "list", 0).missed == []


# A group is one change


def test_of_several_works_on_one_row_the_last_one_counts(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", sync=False)) as store:
        store.commit([put(b"a", b"1"), put(b"b", b"1"), WriteBatch(None, [(INDEXES, b"a", b"index")])])
        store.commit(
            [put(b"a", b"2"), WriteBatch(None, [(ACTORS, b"b", None)]), put(b"a", b"3"), put(b"c", b"4")]
        )
        store.commit(
            [
                WriteBatch(None, [(ACTORS, b"c", None)]),
                put(b"c", b"5"),
                WriteBatch(None, [(INDEXES, b"a", None)]),
            ]
        )
        store.commit([put(b"d", b"6"), WriteBatch(None, [(ACTORS, b"d", None), (ACTORS, b"none", None)])])
        assert list(store.scan(ACTORS, b"")) == [(b"a", b"3"), (b"c", b"5")]
        assert list(store.scan(INDEXES, b"")) == []
        assert store.statistics().works == 12


def test_a_glance_sees_one_moment_until_it_is_closed(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", sync=False)) as store:
        store.commit([put(b"a", b"1")])
        glance = store.cached_snapshot(ACTORS)
        assert (glance.get(b"a"), glance.get(b"b")) == (b"1", None)
        store.commit([put(b"a", b"2"), put(b"b", b"2")])
        assert (glance.get(b"a"), glance.get(b"b")) == (b"1", None)
        glance.close()
        glance.close()
        assert (glance.get(b"a"), glance.get(b"b")) == (b"2", b"2")
        assert store.statistics().scans == 0
        glance.close()
    with pytest.raises(StoreError, match="closed"):
        glance.get(b"a")
