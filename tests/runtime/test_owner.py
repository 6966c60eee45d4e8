from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from greenroom.runtime import (
    FolderLock,
    Store,
    StoreDamagedError,
    StoreError,
    StoreOwnedError,
    check_store,
    open_runtime,
)

HOLD = """
import sys
from pathlib import Path
from greenroom.runtime import FolderLock
from greenroom.runtime import StoreOwnedError
try:
    with FolderLock(Path(sys.argv[1])) as owner:
        print("owner", flush=True)
        if sys.stdin.readline() == "clean\\n":
            owner.mark_clean()
except StoreOwnedError as error:
    print("refused", error.pid, flush=True)
"""


@contextmanager
def another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that owns the folder until it reads a line."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.promise("store.owner")
def test_another_process_is_refused_with_the_owners_pid_until_it_leaves(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "data"), another(tmp_path / "data") as process:
        assert said(process) == f"refused {os.getpid()}"
    with another(tmp_path / "data") as process:
        assert said(process) == "owner"
        with (
            pytest.raises(StoreOwnedError, match=rf"process {process.pid}\b") as caught,
            FolderLock(tmp_path / "data"),
        ):
            pass
        assert caught.value.pid == process.pid
        process.communicate("\n")
        with FolderLock(tmp_path / "data") as owner:
            assert owner.is_held()


@pytest.mark.promise("store.owner")
def test_a_second_owner_in_one_process_is_refused_and_takes_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with FolderLock(tmp_path / "data") as owner:
        for name in ("data", "link"):
            with pytest.raises(StoreOwnedError) as caught, FolderLock(tmp_path / name):
                pass
            assert caught.value.pid == os.getpid()
        assert owner.is_held()
        with another(tmp_path / "data") as process:
            assert said(process).startswith("refused")
    with FolderLock(tmp_path / "link"):
        pass


@pytest.mark.promise("store.owner")
def test_of_many_processes_one_becomes_the_owner(tmp_path: Path) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(another(tmp_path / "data")) for _ in range(6)]
        answers = [said(process) for process in processes]
    assert answers.count("owner") == 1
    assert sum(answer.startswith("refused") for answer in answers) == 5


LOCKF = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
try:
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError as error:
    sys.exit(f"refused {error.errno}")
os.pwrite(descriptor, f"{os.getpid():<20} {'0123456789abcdef':<32} {'':<8}\\n".encode(), 0)
print("owner", flush=True)
sys.stdin.readline()
"""
"""What the first versions did: `lockf`, and then a line whose nonce proves nothing."""


@contextmanager
def older(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that owns the folder as an older program does."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCKF, folder / "owner.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.promise("store.owner")
def test_an_older_program_is_shut_out_and_shuts_out(tmp_path: Path) -> None:
    with FolderLock(tmp_path), older(tmp_path) as process:
        assert process.communicate()[1].strip() in {
            f"refused {each}" for each in (errno.EACCES, errno.EAGAIN)
        }
    with older(tmp_path) as process:
        assert said(process) == "owner"
        with pytest.raises(StoreOwnedError) as caught, FolderLock(tmp_path):
            pass
        assert caught.value.pid == process.pid
        process.communicate("\n")
    with FolderLock(tmp_path) as owner:
        assert owner.is_held()


@pytest.mark.promise("store.owner")
@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="this system has `lockf` alone")
def test_a_program_may_read_and_copy_the_lock_file_of_its_own_folder(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "data") as owner:
        (tmp_path / "data" / "owner.lock").read_text()
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        with another(tmp_path / "data") as process, older(tmp_path / "data") as old:
            assert said(process) == f"refused {os.getpid()}"
            assert old.communicate()[1].startswith("refused")
        assert owner.is_held()


@pytest.mark.promise("store.owner")
@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="the kernel itself names the holder")
def test_no_process_is_named_that_did_not_write_the_line_itself(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        assert said(process) == "owner"
        lock = tmp_path / "owner.lock"
        line = lock.read_text()
        for name in (f"{os.getpid():<20}", f"{2**22 + 1:<20}"):  # which lives, and which there cannot be
            lock.write_text(name + line[20:])
            with pytest.raises(StoreOwnedError, match="another process") as caught, FolderLock(tmp_path):
                pass
            assert caught.value.pid == 0
        lock.write_text(line)
        with pytest.raises(StoreOwnedError) as caught, FolderLock(tmp_path):
            pass
        assert caught.value.pid == process.pid


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """Give a folder whose store was closed in order."""
    with FolderLock(tmp_path / "data") as owner:
        Store(owner.folder).close()
        owner.mark_clean()
    return tmp_path / "data"


@pytest.mark.promise("store.damage")
def test_an_owner_that_was_killed_left_uncleanly(used: Path) -> None:
    with another(used) as process:
        assert said(process) == "owner"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with FolderLock(used) as owner:
        assert owner.unclean
        owner.mark_clean()
        assert owner.is_held()
    with another(used) as process:
        assert said(process) == "owner"
        process.communicate("clean\n")
    with FolderLock(used) as owner:
        assert not owner.unclean
    with FolderLock(used) as owner:
        assert owner.unclean


KEEP = """
import os, sys
from pathlib import Path
from greenroom.runtime import FolderLock, Store
owner = FolderLock(Path(sys.argv[1])).__enter__()
store = Store(owner.folder)
if sys.argv[2] == "open":
    owner.mark_open()
os._exit(0)
"""


def die(folder: Path, how: str) -> None:
    """Have a process die that owns the folder: before it notes that the store is open, or after."""
    subprocess.run([sys.executable, "-c", KEEP, folder, how], check=True)


@pytest.mark.promise("store.damage")
def test_only_the_death_of_a_process_spares_the_check(
    tmp_path: Path, used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(used, "early")
    with FolderLock(used) as owner:
        assert (owner.unclean, owner.survived) == (True, False)
    die(used, "open")
    with FolderLock(used) as owner:
        assert (owner.unclean, owner.survived) == (True, True)
        check_store(owner)
    die(tmp_path / "new", "open")
    with FolderLock(tmp_path / "new") as owner:
        assert (owner.unclean, owner.survived) == (True, True)
    die(used, "open")
    monkeypatch.setattr("greenroom.runtime.lmdb.lock_file.boot_id", lambda: "another")
    with FolderLock(used) as owner:
        assert (owner.unclean, owner.survived) == (True, False)
    monkeypatch.undo()


@pytest.mark.promise("store.damage")
@pytest.mark.parametrize("name", ["owner.lock", "greenroom.mdb"])
def test_a_copy_of_a_living_store_is_checked(used: Path, name: str) -> None:
    die(used, "open")
    content = (used / name).read_bytes()
    (used / name).rename(used / "before")
    (used / name).write_bytes(content)
    with FolderLock(used) as owner:
        assert (owner.unclean, owner.survived) == (True, False)


@pytest.mark.promise("store.damage")
def test_a_store_that_somebody_put_there_is_to_be_checked_and_a_new_folder_is_not(
    tmp_path: Path, used: Path
) -> None:
    for _ in range(2):
        with FolderLock(tmp_path / "new") as owner:
            assert not owner.unclean
    shutil.copy(used / "greenroom.mdb", tmp_path / "new")
    with FolderLock(tmp_path / "new") as owner:
        assert owner.unclean
    (used / "owner.lock").unlink()
    with FolderLock(used) as owner:
        assert owner.unclean


@pytest.mark.parametrize("content", [b"", b"x", b"0 clean\n", b"123456 abc\n" * 50, b"\0" * 54])
def test_any_other_content_of_the_lock_file_means_unclean(used: Path, content: bytes) -> None:
    (used / "owner.lock").write_bytes(content)
    with FolderLock(used) as owner:
        assert owner.unclean
        assert owner.is_held()
        owner.mark_clean()
    with FolderLock(used) as owner:
        assert not owner.unclean


@pytest.mark.promise("store.owner")
def test_an_owner_notices_that_its_lock_file_was_rewritten_or_removed(tmp_path: Path) -> None:
    lock = tmp_path / "data" / "owner.lock"

    def outside(program: str) -> None:
        # Another process: where the lock is `lockf`, to open and close the file in this one would drop it.
        subprocess.run([sys.executable, "-c", f"import sys, os; {program}", lock], check=True)

    with FolderLock(tmp_path / "data") as owner:
        assert owner.is_held()
        outside("open(sys.argv[1], 'a').write('x')")
        assert not owner.is_held()
    assert not owner.is_held()
    with FolderLock(tmp_path / "data") as owner:
        assert owner.is_held()
        outside("os.rename(sys.argv[1], sys.argv[1] + '.old'); open(sys.argv[1], 'w')")
        assert not owner.is_held()
    with FolderLock(tmp_path / "data") as owner:
        outside("os.unlink(sys.argv[1])")
        assert not owner.is_held()


@pytest.mark.promise("store.fork")
def test_a_forked_child_neither_owns_nor_releases(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "data") as owner:
        child = os.fork()
        if not child:
            verdict = owner.is_held()
            owner.__exit__(None, None, None)
            try:
                FolderLock(tmp_path / "data").__enter__()
            except StoreOwnedError as error:
                verdict = verdict or error.pid != os.getppid()
            os._exit(verdict)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert owner.is_held()
        with another(tmp_path / "data") as process:
            assert said(process).startswith("refused")


@pytest.mark.promise("store.fork")
def test_a_child_that_outlives_the_owner_does_not_keep_the_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with FolderLock(tmp_path / "data"):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    try:
        with another(tmp_path / "data") as process:
            assert said(process) == "owner"
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


@pytest.mark.quick
@pytest.mark.promise("store.modes")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_what_an_owner_makes_is_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with FolderLock(tmp_path / "data"):
            modes = {
                entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in (tmp_path / "data").iterdir()
            }
    finally:
        os.umask(before)
    assert modes == {"owner.lock": 0o600}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_a_folder_without_a_store_is_not_made_into_one_unasked(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(StoreError, match="no store"), FolderLock(folder, create=False):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_cannot_be_one_is_refused_and_leaves_the_folder_free(tmp_path: Path) -> None:
    (tmp_path / "data" / "owner.lock").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be locked"), FolderLock(tmp_path / "data"):
        pass
    (tmp_path / "data" / "owner.lock").rmdir()
    with FolderLock(tmp_path / "data") as owner:
        assert owner.is_held()


@pytest.mark.promise("store.damage")
def test_a_store_that_was_touched_after_an_orderly_end_is_checked(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as owner:
        Store(owner.folder).close()
        owner.mark_clean()
    with FolderLock(tmp_path) as owner:
        assert not owner.unclean
        owner.mark_clean()
    data = tmp_path / "greenroom.mdb"
    content = bytearray(data.read_bytes())
    content[5_000:6_000] = bytes(1_000)
    data.write_bytes(content)
    with FolderLock(tmp_path) as owner:
        assert owner.unclean


@pytest.mark.promise("store.damage")
@pytest.mark.parametrize("loss", [Path.unlink, lambda data: data.write_bytes(b"")])
async def test_a_store_that_is_gone_is_not_taken_for_a_new_one(
    tmp_path: Path, loss: Callable[[Path], object]
) -> None:
    async with open_runtime(tmp_path, actors=[]):
        pass
    loss(tmp_path / "greenroom.mdb")
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="restore"):
            async with open_runtime(tmp_path, actors=[]):
                pass
