"""Copies of a store that a killed command has left: the next run removes them, and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness import clean_environment
from support.commands import run_on_store, serving
from support.effort import by_night
from support.killed_copies import BY_CHANCE, LIKE_ANOTHER, LIKE_ONE, WORKS

from greenroom.runtime import ACTORS, Store, WriteBatch, backup, verify
from greenroom.runtime.maintenance.temporary_copies import left_over, remove_left_over, temporary

pytestmark = [pytest.mark.slow, pytest.mark.promise("store.left-over")]

FOREIGN = {f"out/{name}" for name in ("letter", BY_CHANCE, LIKE_ONE, LIKE_ANOTHER)}


@pytest.mark.parametrize("work", WORKS)
def test_the_next_run_removes_what_a_kill_at_any_call_has_left(tmp_path: Path, work: str) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "support/killed_copies.py", str(tmp_path), work, str(by_night(1_000, by_day=5))],
        env={**clean_environment(tmp_path), "PYTHONPATH": str(tests)},
        cwd=tests,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(line["killed"] for line in lines) > 3
    for line in lines:
        assert line["unknown"] == [], line
        kept = {name for name in line["names"] if not name.startswith("secrets")}
        assert kept >= FOREIGN, line
        ours = {"given", "out", "store", "store/greenroom.mdb", "store/owner.lock"}
        may = {"out/copy", "out/next", "store/greenroom.mdb-lock", "store/greenroom.mdb.before-restore"}
        assert ours <= kept <= ours | may | FOREIGN, line


def write(folder: Path) -> None:
    with closing(Store(folder)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"k", b"v" * 1_000)])])


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_what_a_process_works_at_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "data")
    program = """
import sys
from pathlib import Path
from greenroom.runtime.maintenance.temporary_copies import temporary
with temporary(Path(sys.argv[1]), of=Path(sys.argv[2])) as (path, _):
    print(path.name, flush=True)
    sys.stdin.read()
"""
    (tmp_path / "out").mkdir()
    working = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "out"), str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with working:
        assert working.stdin is not None
        assert working.stdout is not None
        name = working.stdout.readline().strip()
        backup(tmp_path / "data", tmp_path / "out" / "copy")
        assert names(tmp_path / "out") == {name, "copy"}
        assert left_over(tmp_path / "data") == []
        assert len(names(tmp_path / "data")) == 4  # with the note of it
        working.kill()
        working.wait()
    assert left_over(tmp_path / "data") == [tmp_path / "out" / name]
    verify(tmp_path / "data")
    assert names(tmp_path / "out") == {"copy"}
    assert left_over(tmp_path / "data") == []
    assert len(names(tmp_path / "data")) == 3


def test_commands_that_copy_into_one_folder_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    children = []
    for number in range(4):
        write(tmp_path / f"data-{number}")
        child = os.fork()
        if not child:
            for again in range(5):
                backup(tmp_path / f"data-{number}", tmp_path / f"copy-{number}-{again}")
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    wanted = {f"copy-{number}-{again}" for number in range(4) for again in range(5)}
    assert names(tmp_path) == wanted | {f"data-{number}" for number in range(4)}


@pytest.mark.quick
def test_a_copy_on_a_disk_that_is_away_is_known_until_it_is_back(tmp_path: Path) -> None:
    write(tmp_path / "data")
    disk, away = tmp_path / "disk", tmp_path / "away"
    disk.mkdir()
    child = os.fork()
    if not child:
        with temporary(disk, of=tmp_path / "data"):
            os._exit(0)
    os.waitpid(child, 0)
    (copy,) = disk.iterdir()
    disk.rename(away)
    for mount_point in (False, True):
        if mount_point:
            disk.mkdir()
        remove_left_over(tmp_path / "data")
        assert left_over(tmp_path / "data") == [copy]
    disk.rmdir()
    away.rename(disk)
    remove_left_over(tmp_path / "data")
    assert names(disk) == set()
    assert left_over(tmp_path / "data") == []


def test_a_file_system_without_locks_has_copies_and_none_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    write(tmp_path / "data")
    with temporary(tmp_path) as (path, _):
        backup(tmp_path / "data", tmp_path / "copy")
        assert path.exists()
    assert names(tmp_path) == {"data", "copy"}


def test_doctor_and_erase_name_what_is_left(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "a", "--user", "ann") as server:
        server.call("store_memory", content="ann likes tea")
        assert server.end() == 0
    (tmp_path / "disk").mkdir()
    child = os.fork()
    if not child:
        with temporary(tmp_path / "disk", of=tmp_path / "store"), temporary(tmp_path / "store"):
            os._exit(0)
    os.waitpid(child, 0)
    (copy,), (within,) = (tmp_path / "disk").iterdir(), (tmp_path / "store").glob(f".greenroom.{16 * '?'}")
    (tmp_path / "disk").rename(tmp_path / "away")
    said = run_on_store(tmp_path, "doctor").stdout
    assert str(copy) in said
    counted = run_on_store(tmp_path, "erase", "--user", "ann", "--yes")
    assert f"a command that was killed has left a copy that may hold everything: {copy}" in counted.stdout
    assert "remove them yourself" in counted.stdout
    assert not within.exists()
    (tmp_path / "away").rename(tmp_path / "disk")
    said = json.loads(run_on_store(tmp_path, "erase", "--finish", "--json").stdout)
    assert said["left_over"] == []
    assert names(tmp_path / "disk") == set()
