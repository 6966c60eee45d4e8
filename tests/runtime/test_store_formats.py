"""A store of an older format is opened and told of, and goes back by one command."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from harness import clean_environment
from support.formats import FORMAT, FORMER, NEW, OLD, RECENT, WAYS, crash_image, format_in, names_in
from support.stores import put

from greenroom.runtime import (
    ACTORS,
    INDEXES,
    Encryption,
    FolderLock,
    RuntimeOptions,
    StorageFullError,
    Store,
    StoreError,
    StoreKeyError,
    StoreOwnedError,
    WriteBatch,
    backup,
    downgrade,
    restore,
)

ROWS = {b"%d" % n: b"row %d" % n for n in range(30)}
both_ways = pytest.mark.parametrize("encryption", WAYS.values(), ids=WAYS)


def opened(folder: Path, encryption: Encryption | None) -> Store:
    return Store(folder, encryption=encryption, sync=False, max_size=64 << 20)


def make(folder: Path, encryption: Encryption | None) -> Path:
    """Make a store of this format that was left in order."""
    with FolderLock(folder) as owner:
        with closing(opened(owner.folder, encryption)) as store:
            store.commit([WriteBatch(None, [(ACTORS, *row) for row in ROWS.items()])])
        owner.mark_clean()
    return folder


def make_older(folder: Path, encryption: Encryption | None) -> Path:
    downgrade(make(folder, encryption), encryption=encryption)
    return folder


def check(folder: Path, encryption: Encryption | None) -> None:
    with closing(opened(folder, encryption)) as store:
        assert dict(store.scan(ACTORS, b"")) == ROWS


def write_name(folder: Path, name: bytes, value: bytes) -> None:
    """Write into LMDB's unnamed table of a closed store."""
    with (
        lmdb.open(str(folder / "greenroom.mdb"), subdir=False, lock=False) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.put(name, value)


class Heard(logging.Handler):
    """Hears the warnings, each with the format of a store at that moment."""

    def __init__(self, folder: Path) -> None:
        super().__init__(logging.WARNING)
        self.folder = folder
        self.said: list[tuple[str, int]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.getMessage(), format_in(self.folder)))


@pytest.fixture
def heard(folder: Path) -> Iterator[Heard]:
    heard = Heard(folder)
    logger = logging.getLogger("greenroom.runtime")
    logger.addHandler(heard)
    yield heard
    logger.removeHandler(heard)


@pytest.mark.quick
@pytest.mark.promise("store.versions", "store.upgrade-told")
@both_ways
def test_an_older_store_is_told_of_before_its_format_is_changed_and_only_then(
    folder: Path, heard: Heard, encryption: Encryption | None
) -> None:
    make_older(folder, encryption)
    before = names_in(folder)
    assert (RECENT in before, FORMER in before, int(before[FORMAT])) == (False, False, OLD)
    assert heard.said == []
    for _ in range(2):
        check(folder, encryption)
        assert format_in(folder) == NEW
        [(said, format_then)] = heard.said
        assert format_then == OLD
        assert said.startswith(f"{folder / 'greenroom.mdb'} has store format {OLD} and becomes format {NEW}")
        assert "earlier programs refuse" in said
        assert "`greenroom downgrade`" in said
    assert names_in(folder).items() >= {key: before[key] for key in before.keys() - {FORMAT}}.items()


@pytest.mark.promise("store.upgrade-told")
def test_what_is_older_than_a_downgrade_makes_goes_back_by_a_backup(folder: Path, heard: Heard) -> None:
    make_older(folder, None)
    write_name(folder, FORMAT, b"2")
    check(folder, None)
    [(said, _)] = heard.said
    assert "has store format 2" in said
    assert "`greenroom restore` a backup of before" in said
    with closing(opened(folder, None)) as store:
        assert (store.writer.take_former_format(), store.writer.take_former_format()) == (2, 0)
        store.commit([put(b"more")])
    with closing(opened(folder, None)) as store:
        assert store.statistics().former_format == 0, "it was told"
        assert store.get(ACTORS, b"more") == b""


@pytest.mark.parametrize("damaged", [b"", b"3", b"x y", b"3 9999999999999999", b"\xff" * 9])
def test_a_damaged_note_of_the_former_format_is_none(folder: Path, damaged: bytes) -> None:
    make(folder, None)
    write_name(folder, FORMER, damaged)
    with closing(opened(folder, None)) as store:
        assert store.statistics().former_format == 0


@pytest.mark.promise("store.versions")
def test_a_store_that_is_refused_keeps_its_format(folder: Path, heard: Heard) -> None:
    make_older(folder, WAYS["encrypted"])
    for wrong in (None, Encryption(lambda: b"?" * 32)):
        with pytest.raises(StoreKeyError):
            opened(folder, wrong)
    assert heard.said == []
    assert RECENT not in names_in(folder)
    assert format_in(folder) == OLD


@pytest.mark.promise("store.versions")
@both_ways
def test_backups_of_before_and_of_after_are_restored(folder: Path, encryption: Encryption | None) -> None:
    make_older(folder, encryption)
    backup(folder, folder.parent / "before", encryption=encryption)
    check(folder, encryption)
    downgrade(folder, encryption=encryption)
    check(folder, encryption)
    backup(folder, folder.parent / "after", encryption=encryption)
    for copy, version in (("before", OLD), ("after", NEW)):
        restore(folder.parent / copy, folder, encryption=encryption)
        assert format_in(folder) == version
        check(folder, encryption)


@pytest.mark.quick
@pytest.mark.promise("store.downgrade")
@both_ways
def test_what_a_crash_left_as_recent_rows_is_in_its_table_after_a_downgrade(
    folder: Path, encryption: Encryption | None
) -> None:
    make_older(folder, encryption)
    with closing(opened(folder, encryption)) as store:
        store.commit([put(b"gone", b"x")])
        store.writer.settle()
        store.commit([WriteBatch(None, [(ACTORS, b"gone", None), (INDEXES, b"i", b"x")])])
        image = crash_image(folder, folder.parent / "image")
    assert {FORMER, RECENT} <= names_in(image).keys()
    assert downgrade(image, encryption=encryption) is True
    assert {FORMER, RECENT}.isdisjoint(names_in(image))
    with lmdb.open(str(image / "greenroom.mdb"), subdir=False, readonly=True, max_dbs=3) as environment:
        actors, indexes = (environment.open_db(name, create=False) for name in (b"actors", b"indexes"))
        with environment.begin() as transaction:
            assert [transaction.stat(table)["entries"] for table in (actors, indexes)] == [len(ROWS), 1]
    assert downgrade(image, encryption=encryption) is False
    check(image, encryption)


@pytest.mark.promise("store.downgrade")
def test_without_room_for_its_newest_changes_a_store_keeps_its_format(folder: Path) -> None:
    with closing(opened(folder, None)) as store:
        store.commit([put(b"large", bytes(2 << 20))])
        for first in range(0, 100, 5):
            store.commit([put(b"%d" % n, bytes(3_400)) for n in range(first, first + 5)])
        image = crash_image(folder, folder.parent / "image")
    with pytest.raises(StorageFullError, match="no room for its newest changes"):
        downgrade(image, options=RuntimeOptions(max_size=1 << 20))
    assert format_in(image) == NEW
    assert downgrade(image) is True
    with closing(opened(image, None)) as store:
        assert len(list(store.keys(ACTORS, b""))) == 101


@pytest.mark.promise("store.downgrade")
def test_a_downgrade_is_refused_with_a_sentence_and_changes_nothing(folder: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        downgrade(folder)
    make(folder, None)
    with FolderLock(folder), pytest.raises(StoreOwnedError):
        downgrade(folder)
    write_name(folder, b"more", b"of a later program")
    with pytest.raises(StoreError, match=rf"has 'more', which store format {OLD} does not have"):
        downgrade(folder)
    assert RECENT in names_in(folder)
    assert format_in(folder) == NEW
    check(folder, None)
    write_name(folder, FORMAT, b"2")
    with pytest.raises(StoreError, match="nothing was changed"):
        downgrade(folder)
    assert format_in(folder) == 2
    write_name(folder, FORMAT, b"9")
    with pytest.raises(StoreError, match="store format 9"):
        downgrade(folder)
    assert format_in(folder) == 9


@pytest.mark.slow
@pytest.mark.promise("store.kill", "store.downgrade", "store.versions")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("work", ["upgrade", "downgrade"])
def test_a_kill_before_any_line_leaves_a_store_that_opens_with_everything(
    tmp_path: Path, work: str, way: str
) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "support/killed_formats.py", str(tmp_path), work, way],
        env={**clean_environment(tmp_path), "PYTHONPATH": str(tests)},
        cwd=tests,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["killed"] for line in lines] == [True] * (len(lines) - 1) + [False]
    assert all(line["has_all"] and line["now"] == NEW for line in lines), lines
    left = [line["left"] for line in lines]
    first, last = (OLD, NEW) if work == "upgrade" else (NEW, OLD)
    assert left == [first] * left.count(first) + [last] * left.count(last)
    assert left.count(first) > 5
    assert left.count(last) > 1
