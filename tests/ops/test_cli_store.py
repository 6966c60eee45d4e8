"""The commands and the store: who owns it, what is wrong with it, backup and restore."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest
from harness import PROGRAM, clean_environment
from support.commands import Server, run_on_store, sentence, serving

# -- one owner --------------------------------------------------------------------


def test_a_server_that_is_just_starting_is_waited_for(tmp_path: Path) -> None:
    server = Server(tmp_path)
    with server.process:
        lock = tmp_path / "store" / "owner.lock"
        while not (lock.exists() and lock.read_bytes()):
            assert server.process.poll() is None
        done = run_on_store(tmp_path, "stats")
        assert (done.returncode, done.stderr) == (0, "")
        assert server.end() == 0


def test_debug_shows_the_traceback_too(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no folder")
    done = run_on_store(tmp_path, "serve", "--log-level", "debug")
    assert done.returncode == 73
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("greenroom serve: ")


def test_after_kill_9_the_next_one_owns_it(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        session = first.call("create_session", purpose="survives")["session_id"]
        first.process.kill()
        first.process.wait()
        assert (tmp_path / "store" / "control.sock").is_socket()
        assert run_on_store(tmp_path, "stats").returncode == 0
    with serving(tmp_path) as second:
        assert second.call("get_session", session_id=session)["success"]
        assert run_on_store(tmp_path, "stats").returncode == 0


def test_a_server_whose_lock_was_taken_over_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.call("create_session", purpose="overthrown")["success"]
        (tmp_path / "store" / "owner.lock").unlink()
        assert server.process.wait() == 74
    last = server.errors.read_text().splitlines()[-1]
    assert last.startswith("greenroom serve: the lock file of")
    assert "Traceback" not in server.errors.read_text()


# -- a store that is not as it should be ----------------------------------------------


@pytest.fixture(scope="session")
def stopped_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home of a stopped store with one session of 50 messages, for copying; and the session's id."""
    home = tmp_path_factory.mktemp("stopped")
    with serving(home) as server:
        session = str(server.call("create_session", purpose="to be kept")["session_id"])
        for n in range(50):
            server.call("add_message", session_id=session, content=f"{n} " + "x" * 5_000)
        assert server.end() == 0
    return home, session


@pytest.fixture
def session(tmp_path: Path, stopped_store: tuple[Path, str]) -> str:
    """The session in a stopped store of the test's own."""
    shutil.copytree(stopped_store[0], tmp_path, dirs_exist_ok=True)  # with the secret, which lies elsewhere
    return stopped_store[1]


def store_file(home: Path) -> Path:
    (found,) = (home / "store").glob("*.mdb")
    return found


def damage(home: Path) -> None:
    """What a bad disk does: pages in the middle of the file are something else."""
    file = store_file(home)
    with file.open("r+b") as store:
        for page in range(2, file.stat().st_size // 4096):
            store.seek(page * 4096 + 8)
            store.write(b"\xa5" * 512)


@pytest.mark.promise("store.damage", "cli.exit-codes")
@pytest.mark.usefixtures("session")
def test_a_damaged_store_refuses_to_start_and_names_the_remedy(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.process.kill()
        server.process.wait()
    damage(tmp_path)
    done = run_on_store(tmp_path, "serve")
    assert done.returncode == 65
    assert re.search("greenroom verify.*greenroom restore", sentence(done))
    done = run_on_store(tmp_path, "verify")
    assert done.returncode == 65
    assert sentence(done)


@pytest.mark.usefixtures("session")
def test_a_file_that_is_no_store_is_damage(tmp_path: Path) -> None:
    store_file(tmp_path).write_bytes(b"not a store" * 1_000)
    assert run_on_store(tmp_path, "serve").returncode == 65


@pytest.mark.promise("store.versions", "cli.exit-codes")
@pytest.mark.usefixtures("session")
def test_a_newer_store_is_refused_and_untouched(tmp_path: Path) -> None:
    with (
        lmdb.open(str(store_file(tmp_path)), subdir=False, max_dbs=4) as store,
        store.begin(write=True) as transaction,
    ):
        transaction.put(b"greenroom.format", b"9999")
    before = store_file(tmp_path).read_bytes()
    for command in ("serve", "verify", "stats"):
        done = run_on_store(tmp_path, command)
        assert done.returncode == 76, (command, done.stderr)
        assert "newer" in sentence(done)
    assert store_file(tmp_path).read_bytes() == before


def test_a_folder_of_other_things_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o755)
    (tmp_path / "store" / "thesis.txt").write_text("mine")
    done = run_on_store(tmp_path, "serve")
    assert done.returncode == 73
    assert "holds other things" in sentence(done)
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o755


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    done = run_on_store(tmp_path, "serve")
    assert done.returncode == 73
    assert str(tmp_path / "store") in sentence(done)


# -- backup, restore, verify, stats ------------------------------------------------------


@contextlib.contextmanager
def a_store(home: Path, state: str) -> Iterator[None]:
    with serving(home) if state == "running" else contextlib.nullcontext():
        yield


@pytest.mark.promise("cli.operator", "runtime.statistics")
@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_verify_and_stats(tmp_path: Path, state: str) -> None:
    with a_store(tmp_path, state):
        for command in ("verify", "stats"):
            done = run_on_store(tmp_path, command)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout
            as_json = json.loads(run_on_store(tmp_path, command, "--json").stdout)
            assert isinstance(as_json, dict)


@pytest.mark.promise("cli.operator", "store.backup")
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_backup_can_be_restored(tmp_path: Path, session: str, state: str) -> None:
    copy = tmp_path / "copy"
    with a_store(tmp_path, state):
        done = run_on_store(tmp_path, "backup", str(copy))
        assert (done.returncode, done.stderr) == (0, "")
        assert str(copy) in done.stdout
        again = run_on_store(tmp_path, "backup", str(copy))
        assert again.returncode == 73
        assert "exists" in sentence(again)
    damage(tmp_path)
    done = run_on_store(tmp_path, "restore", str(copy))
    assert (done.returncode, done.stderr) == (0, "")
    with serving(tmp_path) as server:
        found = server.call("get_messages", session_id=session, limit=1000)["messages"]
        assert len(found) == 50


@pytest.mark.quick
@pytest.mark.promise("cli.operator")
@pytest.mark.usefixtures("session")
def test_restore_leaves_a_store_in_use_alone(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    run_on_store(tmp_path, "backup", str(copy))
    with serving(tmp_path) as server:
        done = run_on_store(tmp_path, "restore", str(copy))
        assert done.returncode == 75
        assert f"process {server.process.pid}" in sentence(done)
        assert server.call("create_session", purpose="undisturbed")["success"]


def test_restore_takes_only_a_backup(tmp_path: Path, session: str) -> None:
    no_backup = tmp_path / "letter.txt"
    no_backup.write_text("dear store")
    for source in (no_backup, tmp_path / "nothing"):
        assert str(source) in sentence(run_on_store(tmp_path, "restore", str(source)))
    with serving(tmp_path) as server:
        assert server.call("get_session", session_id=session)["success"]


def test_restore_fills_a_new_folder(tmp_path: Path, session: str) -> None:
    copy = tmp_path / "copy"
    run_on_store(tmp_path, "backup", str(copy))
    shutil.rmtree(tmp_path / "store")
    assert run_on_store(tmp_path, "restore", str(copy)).returncode == 0
    with serving(tmp_path) as server:
        assert server.call("get_session", session_id=session)["success"]


@pytest.mark.parametrize("command", [["verify"], ["stats"], ["backup", "copy"]])
def test_where_there_is_no_store_none_is_made(tmp_path: Path, command: list[str]) -> None:
    done = run_on_store(tmp_path, *command)
    assert "no store" in sentence(done)
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("session")
def test_readmit_tells_whether_the_actor_was_set_aside(tmp_path: Path) -> None:
    with serving(tmp_path):
        done = run_on_store(tmp_path, "readmit", "session", "nobody")
        assert (done.returncode, done.stderr) == (1, "greenroom readmit: session nobody was not set aside\n")
    stopped = run_on_store(tmp_path, "readmit", "session", "nobody")
    assert stopped.returncode == 1
    assert "no server" in sentence(stopped)


def test_a_relative_destination_is_the_callers(tmp_path: Path) -> None:
    with serving(tmp_path):
        done = subprocess.run(
            [*PROGRAM, "backup", "copy", "--data", str(tmp_path / "store")],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0
    assert (tmp_path / "copy").exists()
