from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from support import stores

from bench.damaging import rewrite
from greenroom.runtime import (
    ACTORS,
    INDEXES,
    META,
    FolderLock,
    StorageFullError,
    Store,
    StoreDamagedError,
    StoreError,
    StoreOwnedError,
    StoreTooNewError,
    WriteBatch,
    backup,
    check_store,
    restore,
    stopped_store,
    verify,
)
from greenroom.runtime.store import integrity


def write(folder: Path, rows: dict[bytes, bytes]) -> None:
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(ACTORS, key, payload) for key, payload in rows.items()])])


def read(folder: Path) -> dict[bytes, bytes]:
    with closing(Store(folder)) as store:
        return dict(store.scan(ACTORS, b""))


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


# Backup


def check_found(folder: Path) -> None:
    """Check what is in a folder as its next owner does."""
    with FolderLock(folder) as owner:
        check_store(owner)


@pytest.mark.promise("store.backup")
def test_a_backup_holds_what_was_there_and_nothing_deleted(tmp_path: Path) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    write(folder, {b"kept": b"this stays", b"gone": b"this was deleted " * 100})
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"gone", None)])])
        info = backup(store, copy)
        assert b"this was deleted" in (folder / "greenroom.mdb").read_bytes()
    assert info.path == copy
    assert info.file_bytes == copy.stat().st_size
    assert [(table.name, table.rows) for table in info.tables] == [("actors", 1), ("indexes", 0), ("meta", 0)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert b"this was deleted" not in copy.read_bytes()
    restore(copy, tmp_path / "other")
    assert read(tmp_path / "other") == {b"kept": b"this stays"}
    assert names(tmp_path) == {"data", "copy", "other"}


@pytest.mark.promise("store.backup")
def test_a_backup_of_a_store_being_written_is_of_one_moment(tmp_path: Path) -> None:
    stop = threading.Event()
    with closing(Store(tmp_path / "data", sync=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"n", b"0"), (INDEXES, b"n", b"0")])])

        def keep_writing() -> None:
            count = 0
            while not stop.is_set():
                count += 1
                payload = b"%d" % count
                filler = (META, b"%d" % (count % 500), os.urandom(2000))
                store.commit([WriteBatch(None, [(ACTORS, b"n", payload), filler, (INDEXES, b"n", payload)])])

        writer = threading.Thread(target=keep_writing)
        writer.start()
        try:
            for n in range(3):
                backup(store, tmp_path / f"copy{n}")
                report = verify(store)
        finally:
            stop.set()
            writer.join()
    assert [table.name for table in report.tables] == ["actors", "indexes", "meta"]
    seen = []
    for n in range(3):
        restore(tmp_path / f"copy{n}", tmp_path / "other")
        with closing(Store(tmp_path / "other")) as other:
            assert other.get(ACTORS, b"n") == other.get(INDEXES, b"n")
            seen.append(int(other.get(ACTORS, b"n") or b"-1"))
    assert seen == sorted(set(seen))


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"k": b"v"})
    (tmp_path / "letter").write_text("dear")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    with closing(Store(tmp_path / "data")) as store:
        for name in ("letter", "dangling", "folder"):
            with pytest.raises(StoreError, match="is not overwritten"):
                backup(store, tmp_path / name)
        with pytest.raises(StoreError, match="cannot be written"):
            backup(store, tmp_path / "missing" / "copy")
    assert (tmp_path / "letter").read_text() == "dear"
    assert names(tmp_path) == {"data", "letter", "dangling", "folder"}


def test_a_stopped_store_is_backed_up_and_verified_by_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"k": b"v"})
    assert backup(tmp_path / "data", tmp_path / "copy").tables[0].rows == 1
    report = verify(tmp_path / "data")
    assert (report.tables[0].name, report.tables[0].rows) == ("actors", 1)
    with FolderLock(tmp_path / "data") as owner:
        assert not owner.unclean
        with pytest.raises(StoreOwnedError):
            backup(tmp_path / "data", tmp_path / "copy2")
        with pytest.raises(StoreOwnedError):
            verify(tmp_path / "data")
    for missing in (tmp_path / "nothing", tmp_path / "copy"):
        with pytest.raises(StoreError):
            verify(missing)
    assert names(tmp_path) == {"data", "copy"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with stores.small_disk(tmp_path / "disk", "1m") as disk:
        yield disk


def test_a_copy_for_which_there_is_no_room_leaves_nothing_behind(tmp_path: Path, small_disk: Path) -> None:
    write(tmp_path / "data", {b"%d" % n: os.urandom(10_000) for n in range(150)})
    with pytest.raises(StorageFullError):
        backup(tmp_path / "data", small_disk / "copy")
    with closing(Store(tmp_path / "data")) as store, pytest.raises(StorageFullError):
        backup(store, small_disk / "copy")
    backup(tmp_path / "data", tmp_path / "copy")
    assert names(small_disk) == set()
    with pytest.raises(StorageFullError):
        restore(tmp_path / "copy", small_disk / "data")
    assert names(small_disk / "data") == {"owner.lock"}
    with (
        closing(Store(tmp_path / "data", min_free=1 << 60)) as store,
        pytest.raises(StorageFullError, match="stop"),
    ):
        verify(store)


# Restore


@pytest.mark.promise("store.backup")
def test_restoring_keeps_what_was_there_every_time(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder, {b"k": b"first"})
    backup(folder, tmp_path / "copy")
    write(folder, {b"k": b"second"})
    info = restore(tmp_path / "copy", folder)
    assert info.folder == folder
    assert info.kept == folder / "greenroom.mdb.before-restore"
    assert read(folder) == {b"k": b"first"}
    write(folder, {b"k": b"third"})
    again = restore(tmp_path / "copy", folder)
    assert again.kept == folder / "greenroom.mdb.before-restore-2"
    assert read(folder) == {b"k": b"first"}
    assert stat.S_IMODE((folder / "greenroom.mdb").stat().st_mode) == 0o600

    restore(info.kept, folder)
    assert read(folder) == {b"k": b"second"}
    restore(again.kept, folder)
    assert read(folder) == {b"k": b"third"}
    with FolderLock(folder) as owner:
        assert not owner.unclean


@pytest.mark.promise("store.backup")
def test_restoring_is_refused_while_the_folder_is_owned(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"k": b"v"})
    backup(tmp_path / "data", tmp_path / "copy")
    program = (
        "import sys; from pathlib import Path; from greenroom.runtime import restore, StoreOwnedError\n"
        "try: restore(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except StoreOwnedError as error: print(error.pid)\n"
    )
    with FolderLock(tmp_path / "data"):
        before = names(tmp_path / "data")
        child = subprocess.run(
            [sys.executable, "-c", program, tmp_path / "copy", tmp_path / "data"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(child.stdout) == os.getpid()
        assert names(tmp_path / "data") == before


@pytest.mark.promise("store.backup", "store.damage")
def test_a_backup_that_is_damaged_newer_or_none_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder, {b"k%d" % n: b"v" * 500 for n in range(200)})
    backup(folder, tmp_path / "copy")
    before = (folder / "greenroom.mdb").read_bytes()
    sound = (tmp_path / "copy").read_bytes()
    at = sound.index(b"v" * 500) // 4096 * 4096
    wrong: dict[str, tuple[bytes, type[StoreError]]] = {
        "page": (sound[:at] + b"\xff" + sound[at + 1 :], StoreDamagedError),
        "short": (sound[: len(sound) // 2], StoreDamagedError),
        "text": (b"this is no backup", StoreDamagedError),
        "empty": (b"", StoreDamagedError),
    }
    for name, (content, error) in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=name):
            restore(tmp_path / name, folder)
    with lmdb.open(os.fspath(tmp_path / "copy"), subdir=False) as copy, copy.begin(write=True) as transaction:
        transaction.put(b"greenroom.format", b"1000")
    with pytest.raises(StoreTooNewError):
        restore(tmp_path / "copy", folder)
    with pytest.raises(StoreError, match="no backup file"):
        restore(tmp_path / "missing", folder)
    assert (folder / "greenroom.mdb").read_bytes() == before
    assert not any("restor" in name for name in names(folder))


def test_a_damaged_store_is_replaced_without_being_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder, {b"k": b"v"})
    backup(folder, tmp_path / "copy")
    (folder / "greenroom.mdb").write_bytes(b"\xff" * 20_000)
    with (
        FolderLock(folder) as owner,
        pytest.raises(StoreDamagedError, match=r"greenroom verify.*greenroom restore"),
    ):
        check_store(owner)
    with FolderLock(folder) as owner:
        assert owner.unclean
    info = restore(tmp_path / "copy", folder)
    assert info.kept is not None
    assert info.kept.read_bytes() == b"\xff" * 20_000
    assert read(folder) == {b"k": b"v"}


# Damage


def damaged(sound: bytes, chance: random.Random) -> bytes:
    """Return the file with one kind of damage somewhere."""
    wrong = bytearray(sound)
    page = chance.randrange(len(wrong) // 4096) * 4096
    match chance.randrange(7):
        case 0:
            wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
        case 1:
            at = chance.randrange(len(wrong) - 512)
            wrong[at : at + 512] = chance.randbytes(512)
        case 2:
            wrong[page : page + 4096] = bytes(4096)
        case 3:
            del wrong[chance.randrange(len(wrong)) :]
        case 4:
            wrong[page + chance.randrange(64)] = chance.randrange(256)
        case 5:
            wrong[chance.randrange(200)] ^= 0xFF
        case _:
            other = chance.randrange(len(wrong) // 4096) * 4096
            wrong[page : page + 4096], wrong[other : other + 4096] = (
                wrong[other : other + 4096],
                wrong[page : page + 4096],
            )
    return bytes(wrong)


USE_ALL = """
import random, sys
from pathlib import Path
from greenroom.runtime import Store, StoreDamagedError, WriteBatch
for folder in sys.argv[1:]:
    store = Store(Path(folder), sync=False)
    keys = []
    for table in range(3):
        try:
            for key, _ in store.scan(table, b""):
                keys.append((table, key))
        except StoreDamagedError:
            pass
    for start in range(0, len(keys), 50):
        ops = [(table, key, None) for table, key in keys[start : start + 50]]
        new = [(0, b"new%d" % start, random.randbytes(9000))]
        store.commit([WriteBatch(None, ops), WriteBatch(None, new)])
    store.close()
print("lived")
"""


@pytest.mark.promise("store.damage")
def test_damage_anywhere_is_found_or_harmless(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - damage needs no secrets
    with closing(Store(tmp_path / "sound", sync=False)) as store:
        for group in range(20):
            rows = [(chance.randrange(3), b"key%d" % chance.randrange(300)) for _ in range(20)]
            sizes = (20, 300, 1500, 6000)
            ops = [
                (table, key, chance.randbytes(chance.choice(sizes)) if group % 4 else None)
                for table, key in rows
            ]
            store.commit([WriteBatch(None, list(ops))])
    sound = (tmp_path / "sound" / "greenroom.mdb").read_bytes()
    assert len(sound) > 300_000

    found = 0
    passed = []
    for n in range(50):
        folder = tmp_path / f"damaged{n}"
        folder.mkdir()
        (folder / "greenroom.mdb").write_bytes(damaged(sound, chance))
        try:
            check_found(folder)
        except StoreDamagedError as error:
            assert "greenroom restore" in str(error)  # noqa: PT017 - both outcomes are right
            found += 1
        else:
            passed.append(folder)
    assert found > 10
    assert len(passed) > 10
    # What passed may have wrong records, but neither kills who uses it nor fails to be written.
    child = subprocess.run(
        [sys.executable, "-c", USE_ALL, *passed], capture_output=True, text=True, check=False
    )
    assert (child.returncode, child.stdout) == (0, "lived\n"), child.stderr


@pytest.mark.promise("store.damage")
def test_damaged_records_are_named_by_verify_and_taken_along_by_backups(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"some-key": b"payload " * 20})
    data = tmp_path / "data" / "greenroom.mdb"
    data.write_bytes(data.read_bytes().replace(b"payload payload", b"payload PAYLOAD"))
    check_found(tmp_path / "data")
    with pytest.raises(StoreDamagedError, match=r"some-key.*greenroom restore"):
        verify(tmp_path / "data")
    with closing(Store(tmp_path / "data")) as store:
        with pytest.raises(StoreDamagedError, match="some-key"):
            verify(store)
        assert store.statistics().damaged_records == 1
        done = backup(store, tmp_path / "copy")
        assert ["some-key" in each for each in done.damaged] == [True]
        assert names(tmp_path / "data") == {"greenroom.mdb", "greenroom.mdb-lock", "owner.lock"}
    assert ["some-key" in each for each in restore(tmp_path / "copy", tmp_path / "back").damaged] == [True]
    with stopped_store(tmp_path / "back") as found:
        assert found.statistics().damaged_records == 1


@pytest.mark.promise("store.versions")
def test_a_newer_store_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"k": b"v"})
    data = os.fspath(tmp_path / "data" / "greenroom.mdb")
    with lmdb.open(data, subdir=False) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"greenroom.format", b"7")
    with pytest.raises(StoreTooNewError, match="upgrade"):
        check_found(tmp_path / "data")


def test_a_folder_without_a_file_needs_no_check(tmp_path: Path) -> None:
    check_found(tmp_path)
    (tmp_path / "greenroom.mdb").touch()
    check_found(tmp_path)


def test_the_check_does_not_wait_for_the_runtime_to_be_imported(tmp_path: Path) -> None:
    write(tmp_path / "data", {b"k": b"v"})
    data = tmp_path / "data/greenroom.mdb"
    libraries = f"{Path(integrity.__file__).parents[3]}:{Path(lmdb.__file__).parent.parent}"
    program = integrity._CHILD + "print(); print(*{name.partition('.')[0] for name in sys.modules})"
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, libraries, data, "records", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(child.stdout.splitlines()[1].split())
    assert "lmdb" in imported
    assert not imported & {"trio", "msgspec", "psutil", "mcp"}


@pytest.mark.promise("store.damage")
@pytest.mark.parametrize("is_served_between", [False, True])
def test_a_backup_of_a_stopped_store_forgets_no_damage(tmp_path: Path, is_served_between: bool) -> None:  # noqa: FBT001
    folder = tmp_path / "data"
    with FolderLock(folder) as owner, closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"key %d" % n, b"payload %d" % n) for n in range(9)])])
        owner.mark_clean()
    data = folder / "greenroom.mdb"
    rewrite(data, data.read_bytes().replace(b"payload 5", b"payload 7"))
    if is_served_between:
        with FolderLock(folder) as owner:
            check = check_store(owner)
            owner.mark_clean(is_damaged=bool(check.damaged))
    info = backup(folder, tmp_path / "copy")
    assert len(info.damaged) == 1
    assert "key 5" in info.damaged[0]
    with FolderLock(folder) as owner:
        assert [record.key for record in check_store(owner).damaged] == [b"key 5"]
