from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.runtime import (
    InlineCommitter,
    PlainCodec,
    StorageFullError,
    StoreDamagedError,
    StoreError,
    StoreFailedError,
    StoreTooNewError,
    ThreadCommitter,
)
from greenroom.runtime._environment import FORMAT_KEY, MIN_SIZE
from greenroom.runtime._folder import is_remote, mount_of
from greenroom.runtime._store import ACTORS, INDEXES, META, Op, Store, Work
from greenroom.runtime._work import PAGE, Space, admit


def put(key: bytes, payload: bytes = b"", owner: object = None, *, reserve: bool = False) -> Work:
    return Work(owner, [(ACTORS, key, payload)], reserve)


def delete(key: bytes) -> Work:
    return Work(None, [(ACTORS, key, None)])


def fill(store: Store, *, reserve: bool = False, size: int = 3000) -> int:
    """Put rows until one is refused, and return how many there are."""
    count = 0
    while True:
        works = [put(b"fill%08d" % (count + n), os.urandom(size), owner=n, reserve=reserve) for n in range(20)]
        store.commit(works)
        for work in works:
            if work.error is not None:
                assert isinstance(work.error, StorageFullError)
                return count
            count += 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("NOT TESTED: a full disk needs a tmpfs of its own, which only root may mount")
    yield folder
    subprocess.run(["umount", folder], check=True)


# Space


@pytest.mark.promise("space-reserve")
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
        work = Work(None, ops, True)
        store.commit([work])
        assert isinstance(work.error, StorageFullError)
        assert list(store.scan(ACTORS, b"")) == [(b"there", b"before")]
        assert list(store.scan(INDEXES, b"")) == []


@pytest.mark.promise("space-reserve")
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


@pytest.mark.promise("space-reserve")
def test_what_is_to_stay_free_of_the_disk_is_for_deletes_and_the_reserve(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data")) as store:
        store.commit([put(b"old", b"x")])
    with closing(Store(tmp_path / "data", min_free=1 << 62)) as store:
        works = [put(b"new", b"x"), delete(b"old"), put(b"audit", b"x", owner="other", reserve=True)]
        works[1].owner = "deleter"
        store.commit(works)
        assert isinstance(works[0].error, StorageFullError)
        assert "--min-free" in str(works[0].error)
        assert [key for key, _ in store.scan(ACTORS, b"")] == [b"audit"]


FILE_SIZE_LIMIT = """
import resource, sys
from pathlib import Path
from greenroom.runtime import StorageFullError
from greenroom.runtime._store import Store, Work
store = Store(Path(sys.argv[1]))
store.commit([Work(None, [(0, b"first", b"x")])])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
kept = []
for n in range(40):
    work = Work(None, [(0, b"%d-%d" % (n, i), bytes(10_000)) for i in range(5)])
    store.commit([work])
    assert work.error is None or isinstance(work.error, StorageFullError), work.error
    kept += [n] * (work.error is None)
work = Work(None, [(0, b"%d-%d" % (0, i), None) for i in range(5)])
store.commit([work])
assert work.error is None
print(len(kept), store.get(0, b"first"), sum(1 for _ in store.scan(0, b"0-")))
"""


def test_a_write_that_the_system_cuts_short_is_want_of_room(tmp_path: Path) -> None:
    """LMDB calls it an input/output error, which would be the end of the process."""
    child = subprocess.run(
        [sys.executable, "-c", FILE_SIZE_LIMIT, tmp_path / "data"], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    kept, first, rest = child.stdout.split()
    assert 5 < int(kept) < 40
    assert (first, rest) == ("b'x'", "0")


def test_the_space_rule() -> None:
    space = Space(map_bytes=1000 * PAGE, used_bytes=900 * PAGE, disk_free=10, min_free=10)
    assert space.refusal(50 * PAGE) is None
    assert isinstance(space.refusal(50 * PAGE + 1), StorageFullError)
    assert Space(map_bytes=1000 * PAGE, used_bytes=999 * PAGE, disk_free=0, min_free=10).refusal(0) is None
    assert isinstance(Space(1000 * PAGE, used_bytes=0, disk_free=9, min_free=10).refusal(1), StorageFullError)
    assert isinstance(Space(64 * PAGE, used_bytes=32 * PAGE, disk_free=9, min_free=0).refusal(1), StorageFullError)
    assert delete(b"key").growth() == 0
    assert put(b"key", b"x" * 100).growth() >= 200
    assert put(b"key", b"x" * 10 * PAGE).growth() > 10 * PAGE


def test_the_group_is_planned_as_a_whole_and_errors_that_works_bring_along_count() -> None:
    works = [put(b"k", bytes(PAGE), owner=n) for n in range(3)]
    failed: dict[object, StoreError] = {}
    assert admit(works, Space(1000 * PAGE, 950 * PAGE - 2 * works[0].growth(), 10, 10), failed) == works[:2]
    assert set(failed) == {2}

    works = [put(b"k", owner=n % 2) for n in range(4)]
    works[1].error = StoreFailedError("injected")
    assert admit(works, Space(1000 * PAGE, 0, 10, 10), {}) == [works[0], works[2]]
    assert works[3].error is works[1].error


# What ends everything


@pytest.mark.promise("fatal-commit")
@pytest.mark.skipif(sys.platform != "linux", reason="finds LMDB's descriptor through /proc")
def test_after_an_error_that_is_not_about_space_nothing_is_committed_any_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    store.commit([put(b"1", b"x")])
    data = os.fspath(store.folder / "greenroom.mdb")
    held = Path("/proc/self/fd")
    descriptors = [int(name) for name in os.listdir(held) if os.path.realpath(held / name) == data]
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


class BrokenCodec(PlainCodec):
    def seal(self, key: bytes, payload: bytes) -> bytes:
        if key == b"bad":
            raise ValueError("no key for the cipher")
        return super().seal(key, payload)


def test_a_codec_that_fails_ends_the_store_and_commits_nothing_of_the_group(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", codec=BrokenCodec())) as store:
        with pytest.raises(StoreFailedError, match="cipher"):
            store.commit([put(b"good", b"x"), put(b"bad", b"x")])
        with pytest.raises(StoreFailedError):
            store.commit([put(b"good", b"x")])
        assert list(store.scan(ACTORS, b"")) == []


# Records and versions


def edit(folder: Path, change: Callable[[lmdb.Environment, lmdb.Transaction[bytes]], object]) -> None:
    """Change the file behind the store's back."""
    data = os.fspath(folder / "greenroom.mdb")
    with lmdb.open(data, subdir=False, max_dbs=3) as environment, environment.begin(write=True) as transaction:
        change(environment, transaction)


@pytest.mark.promise("codec")
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


@pytest.mark.promise("codec")
@given(key=st.binary(min_size=1, max_size=20), payload=st.binary(max_size=50), at=st.integers(0, 60), bit=st.integers(0, 7))
def test_any_bit_that_changes_in_a_record_is_noticed(key: bytes, payload: bytes, at: int, bit: int) -> None:
    codec = PlainCodec()
    record = bytearray(codec.seal(key, payload))
    assert codec.open(key, bytes(record)) == payload
    record[at % len(record)] ^= 1 << bit
    with pytest.raises((StoreDamagedError, StoreTooNewError)):
        codec.open(key, bytes(record))
    with pytest.raises(StoreDamagedError):
        codec.open(key + b"x", codec.seal(key, payload))
    with pytest.raises(StoreDamagedError):
        codec.open(key, b"\x01\x00")


@pytest.mark.promise("versions")
def test_a_newer_record_and_a_newer_store_are_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    with pytest.raises(StoreTooNewError, match="upgrade"):
        PlainCodec().open(b"key", b"\x02" + PlainCodec().seal(b"key", b"payload")[1:])

    Store(tmp_path / "data").close()
    edit(tmp_path / "data", lambda _, transaction: transaction.put(FORMAT_KEY, b"2"))
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


# The folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.promise("modes")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_modes_are_0700_and_0600_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with closing(Store(tmp_path / "data")) as store:
            store.commit([put(b"1", b"x")])
    finally:
        os.umask(before)
    assert mode(tmp_path / "data") == 0o700
    assert {entry.name: mode(entry) for entry in (tmp_path / "data").iterdir()} == {
        "greenroom.mdb": 0o600,
        "greenroom.mdb-lock": 0o600,
    }


@pytest.mark.promise("modes")
def test_modes_that_somebody_opened_are_narrowed_again(tmp_path: Path) -> None:
    Store(tmp_path / "data").close()
    (tmp_path / "data").chmod(0o755)
    for entry in (tmp_path / "data").iterdir():
        entry.chmod(0o644)
    Store(tmp_path / "data").close()
    assert mode(tmp_path / "data") == 0o700
    assert {mode(entry) for entry in (tmp_path / "data").iterdir()} == {0o600}


@pytest.mark.promise("modes")
def test_a_folder_of_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "letter.txt").touch()
    with pytest.raises(StoreError, match="holds other things"):
        Store(home)
    assert mode(home) == 0o755
    assert [entry.name for entry in home.iterdir()] == ["letter.txt"]
    with pytest.raises(StoreError, match="cannot hold a store"):
        Store(home / "letter.txt")


def test_a_data_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    elsewhere.chmod(0o644)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "greenroom.mdb").symlink_to(elsewhere)
    with pytest.raises(StoreError):
        Store(tmp_path / "data")
    assert mode(elsewhere) == 0o644


def test_remote_file_systems_are_known_by_the_longest_and_latest_mount() -> None:
    mounts = [("/", "ext4"), ("/home", "ext4"), ("/home/team", "nfs4"), ("/mnt", "cifs"), ("/mnt", "xfs")]
    assert mount_of(Path("/home/teammate/data"), mounts) == ("/home", "ext4")
    assert mount_of(Path("/home/team/data"), mounts) == ("/home/team", "nfs4")
    assert mount_of(Path("/mnt/data"), mounts) == ("/mnt", "xfs")
    assert all(map(is_remote, ["nfs", "nfs4", "cifs", "smbfs", "fuse.sshfs", "ceph", "9p", "afs", "fuse.glusterfs"]))
    assert not any(map(is_remote, ["ext4", "xfs", "btrfs", "zfs", "apfs", "overlay", "tmpfs", "fuseblk", ""]))


def test_a_quota_that_cannot_hold_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--max-size"):
        Store(tmp_path / "data", max_size=MIN_SIZE - 1)


def test_other_systems_are_refused_in_a_sentence() -> None:
    program = "import sys; sys.platform = 'sunos5'; import greenroom.runtime._folder"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: Greenroom runs on Linux and macOS" in child.stderr


def test_without_address_space_the_store_says_what_it_cannot_do(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from greenroom.runtime._store import Store\n"
        "from greenroom.runtime import StoreError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))\n"
        "try: Store(Path(sys.argv[1]))\n"
        "except StoreError as error: print(error)\n"
    )
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("NOT TESTED: this process has a limit on its address space already")
    child = subprocess.run([sys.executable, "-c", program, tmp_path / "data"], capture_output=True, text=True, check=True)
    assert "--max-size" in child.stdout


# Processes and threads


@pytest.mark.promise("fork")
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
    store.commit([put(b"1", b"x")])
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

        settled = rewrite(10)
        assert rewrite(100) == settled


# What is read is what was written


KEYS = st.lists(st.sampled_from([b"\x00", b"a", b"b", b"\xfe", b"\xff"]), min_size=1, max_size=4).map(b"".join)
PREFIXES = st.one_of(st.just(b""), KEYS)
GROUPS = st.lists(
    st.lists(st.tuples(st.sampled_from([ACTORS, INDEXES]), KEYS, st.none() | st.binary(max_size=30)), max_size=6),
    max_size=6,
)
SCANS = st.lists(st.tuples(PREFIXES, st.none() | PREFIXES, st.booleans()), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
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
        store.commit([Work(n, [op]) for n, op in enumerate(ops)])
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


# Committers


class Listener:
    """Hears of groups and of the thread in which it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Sequence[Work], StoreFailedError | None]] = []
        self.threads: set[threading.Thread] = set()
        self.event = trio.Event()

    def done(self, works: Sequence[Work], failure: StoreFailedError | None) -> None:
        self.heard.append((works, failure))
        self.threads.add(threading.current_thread())
        self.event.set()

    async def next(self) -> tuple[Sequence[Work], StoreFailedError | None]:
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

    def faulty(store: Store, works: Sequence[Work]) -> None:
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
