"""What happens to a store whose file was damaged behind its back: nothing is answered wrongly from it."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import trio
from harness import PROGRAM, clean_environment
from support.actors import Add, Read
from support.commands import run_on_store, sentence, serving
from support.forking import all_forked

from bench import damage
from bench.damaging import rewrite
from bench.harness import Plan
from greenroom.runtime import Address, StoreDamagedError
from greenroom.runtime.lmdb import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.asking import Open

    from greenroom.runtime import Runtime

pytestmark = pytest.mark.slow

VISITS = Address("counter", "visits")
REMEDY = r"`greenroom verify`.*`greenroom restore`"


def rot(path: Path, word: bytes) -> None:
    """Change a word wherever it is in a file, to which nobody seems to have written."""
    content = path.read_bytes()
    assert word in content
    rewrite(path, content.replace(word, word.swapcase()))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Give a home whose store was closed in order and holds one session."""
    with serving(tmp_path) as server:
        server.call("create_session", purpose="to be remembered", session_id="kept")
        assert server.end() == 0
    return tmp_path


# -- what was closed in order ------------------------------------------------------


@pytest.mark.promise("store.damage", "store.digest")
def test_a_file_that_changed_by_itself_is_not_opened(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    copy = stored / "copy"
    assert run_on_store(stored, "backup", str(copy)).returncode == 0
    sound = data.read_bytes()
    rot(data, b"to be remembered")
    for command in ("serve", "serve", "verify", "stats", "backup other", "serve"):
        done = run_on_store(stored, *command.split())
        assert done.returncode == 65, (command, done.stderr)
        assert re.search(REMEDY, sentence(done))
    rewrite(data, sound)
    assert run_on_store(stored, "verify").returncode == 0, "what comes right again is right"
    rot(data, b"to be remembered")
    assert run_on_store(stored, "restore", str(copy)).returncode == 0
    with serving(stored) as server:
        assert server.call("get_session", session_id="kept")["session"]["purpose"] == "to be remembered"


@pytest.mark.promise("store.digest")
def test_any_bit_of_the_file_counts(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    sound = data.read_bytes()
    chance = random.Random(7)  # noqa: S311  which bit is no secret
    for _ in range(5):
        content = bytearray(sound)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        rewrite(data, bytes(content))
        assert run_on_store(stored, "stats").returncode == 65


@pytest.mark.promise("store.digest")
def test_a_store_that_an_older_program_left_is_served_and_checked_behind(stored: Path) -> None:
    lock = stored / "store" / "owner.lock"
    lock.write_bytes(lock.read_bytes()[:53] + b"\n")
    assert integrity(stored) == "unchecked"
    with serving(stored) as server:
        assert server.call("get_session", session_id="kept")["success"]
        assert integrity(stored) == "unchecked"


def integrity(home: Path) -> str:
    done = run_on_store(home, "stats", "--json")
    found: str = json.loads(done.stdout)["store"]["integrity"]
    return found


# -- the scrub ---------------------------------------------------------------------


DIE = """
import os, sys
from pathlib import Path
from greenroom.runtime import FolderLock, Store
owner = FolderLock(Path(sys.argv[1])).__enter__()
store = Store(owner.folder)
owner.mark_open()
os._exit(0)
"""


async def crash(reopen: Open, folder: Path) -> None:
    """Leave a store with one counter as a process does that was killed."""
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Add(by=3)) == 3
    subprocess.run([sys.executable, "-c", DIE, folder], check=True)  # noqa: ASYNC221  nobody else runs


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def integrity_of(runtime: Runtime) -> str:
    return runtime.statistics().store.integrity


@pytest.mark.promise("store.scrub")
async def test_after_the_death_of_a_process_the_store_is_unchecked_until_it_was_scrubbed(
    reopen: Open, folder: Path
) -> None:
    await crash(reopen, folder)
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == 3
        assert integrity_of(runtime) == "unchecked"
        await until_checked(runtime)
    async with reopen() as runtime:
        assert integrity_of(runtime) == "checked"
    assert names(folder) == {"greenroom.mdb", "greenroom.mdb-lock", "owner.lock"}


async def until_checked(runtime: Runtime) -> None:
    while integrity_of(runtime) != "checked":  # noqa: ASYNC110  statistics set no event
        await trio.sleep(1)


@pytest.mark.promise("store.scrub")
async def test_a_store_that_is_left_unchecked_stays_so(reopen: Open, folder: Path) -> None:
    await crash(reopen, folder)
    for _ in range(2):
        async with reopen() as runtime:
            assert integrity_of(runtime) == "unchecked"


@pytest.mark.promise("store.scrub")
async def test_what_the_scrub_finds_ends_the_serving_and_keeps_the_store_closed(
    reopen: Open, folder: Path
) -> None:
    await crash(reopen, folder)
    damage_a_record(folder)
    with pytest.raises(StoreDamagedError, match=REMEDY):
        async with reopen():
            await trio.sleep_forever()
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=REMEDY):
            async with reopen():
                pytest.fail("it was opened")


@pytest.mark.promise("store.scrub")
async def test_a_store_too_large_for_a_checksum_is_scrubbed(
    reopen: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_file, "DIGEST_BYTES", 4096)
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Add(by=3)) == 3
        assert integrity_of(runtime) == "checked"
    async with reopen() as runtime:
        assert integrity_of(runtime) == "unchecked"
        await until_checked(runtime)
    damage_a_record(folder)
    with pytest.raises(StoreDamagedError, match=REMEDY):
        async with reopen():
            await trio.sleep_forever()


@pytest.mark.promise("store.scrub")
async def test_a_running_store_is_scrubbed_each_day(reopen: Open, folder: Path) -> None:
    with pytest.raises(StoreDamagedError, match=REMEDY):  # noqa: PT012  the block is to be left by it
        async with reopen() as runtime:
            assert await runtime.ask(VISITS, Add(by=3)) == 3
            damage_a_record(folder)
            await trio.sleep(86_000)
            assert integrity_of(runtime) == "checked"
            await trio.sleep_forever()


def damage_a_record(folder: Path) -> None:
    """Change the key of what a counter keeps, wherever a copy of that page is."""
    rot(folder / "greenroom.mdb", b"counter\0visits\0usum")


# -- a process that dies of a fault --------------------------------------------------


@pytest.mark.promise("store.fault")
@pytest.mark.parametrize("fault", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS])
def test_after_a_fault_the_store_is_read_before_it_is_opened(stored: Path, fault: signal.Signals) -> None:
    with serving(stored) as server:
        assert server.call("get_session", session_id="kept")["success"]
        server.process.send_signal(fault)
        assert server.process.wait() == -fault
    with serving(stored) as server:
        assert server.call("get_session", session_id="kept")["success"]
        assert integrity(stored) == "checked"
        server.process.send_signal(fault)
        assert server.process.wait() == -fault
    assert "died of a fault" in server.errors.read_text()
    rot(stored / "store" / "greenroom.mdb", b"to be remembered")
    for _ in range(2):
        done = run_on_store(stored, "serve")
        assert done.returncode == 65, done.stderr
        assert re.search(REMEDY, done.stderr.splitlines()[-1])


# -- a folder that is not there any more -----------------------------------------------


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def rename(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replace(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("other"), ignore=shutil.ignore_patterns("*.sock"))
    rename(folder)
    folder.with_name("other").rename(folder)


def replace_file(folder: Path) -> None:
    (folder / "other").write_bytes((folder / "greenroom.mdb").read_bytes())
    (folder / "other").rename(folder / "greenroom.mdb")


@pytest.mark.promise("store.gone")
@pytest.mark.parametrize("lose", [remove, rename, replace, replace_file])
def test_nothing_is_stored_in_a_file_that_nobody_will_find(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    with serving(tmp_path) as server:
        server.call("create_session", purpose="to be remembered", session_id="kept")
        lose(tmp_path / "store")
        for number in range(8):
            server.send_call("add_message", session_id="kept", content=f"{number}")
        answers = map(json.loads, server.output)
        assert not any(each.get("result", {}).get("structuredContent", {}).get("success") for each in answers)
        assert server.process.wait() == 74
        last = server.errors.read_text().splitlines()[-1]
        assert "removed, renamed or replaced" in last


# -- a process that may open next to nothing ----------------------------------------------


@pytest.mark.promise("cli.exit-codes")
@pytest.mark.parametrize("descriptors", [8, 12, 16])
def test_want_of_descriptors_is_a_sentence(tmp_path: Path, descriptors: int) -> None:
    server = f'ulimit -n {descriptors}; exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", server, "sh", *PROGRAM, "serve", "--data", tmp_path / "store"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=clean_environment(tmp_path),
        check=False,
    )
    assert done.returncode == 73, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("greenroom serve: ")


# -- many of them -----------------------------------------------------------------------


@pytest.mark.promise("store.damage", "store.digest", "store.proven")
def test_no_damaged_store_answers_wrongly_or_kills_its_reader_twice(tmp_path: Path) -> None:
    with all_forked():
        table = damage.run(Plan(smoke=True, data=None, work=tmp_path)).tables[0]
    counts: Counter[str] = Counter()
    for left, _, verdict, stores in table.rows:
        assert isinstance(stores, int)
        counts[f"{left} {verdict}"] += stores
    assert counts.total() == damage.SMOKE_STORES
    assert counts["closed refused"] >= damage.SMOKE_STORES // 2 - 1, "but for pages that are alike"
