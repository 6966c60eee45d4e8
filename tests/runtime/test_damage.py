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
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import trio
from harness import PROGRAM, clean_environment
from support.actors import Add, Read
from support.commands import run_on_store, sentence, serving
from support.forking import all_forked

from bench import damage
from bench.damaging import PAGE, rewrite
from bench.harness import Plan
from greenroom.runtime import Address, RecordDamagedError, StoreDamagedError
from greenroom.runtime.lmdb import lock_file
from greenroom.runtime.store.page_proofs import Prover

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.asking import Open

    from greenroom.runtime import Runtime

pytestmark = pytest.mark.slow

VISITS = Address("counter", "visits")
REMEDY = r"`greenroom verify`.*`greenroom restore FILE`"


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


@pytest.fixture(params=["plain", "encrypted"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """Give a home whose store was closed in order and holds a session, and the flags that open it."""
    flags: tuple[str, ...] = ()
    if request.param == "encrypted":
        key = tmp_path / "key"
        key.write_text("ab" * 32)
        key.chmod(0o600)
        flags = ("--encryption-key", f"file:{key}")
    with serving(tmp_path, *flags) as server:
        server.call("create_session", purpose="to be remembered", session_id="kept")
        server.call("create_session", purpose="to be remembered, too", session_id="other")
        assert server.end() == 0
    return tmp_path, flags


def flip_a_record(data: Path) -> None:
    """Change a bit of the last byte of a session's record, wherever that lies."""
    content = bytearray(data.read_bytes())
    with closing(Prover(data, None)) as prover:
        rows = [(row.key, row.value) for row in prover.trees()[0].forward(b"session\0")]
    record = next(value for key, value in rows if key.startswith(b"session\0") and isinstance(value, bytes))
    assert record in content
    for found in re.finditer(re.escape(record), bytes(content)):
        content[found.end() - 1] ^= 4
    rewrite(data, bytes(content))


def flip_a_page(data: Path, word: bytes) -> None:
    """Change the number of each page that has a word."""
    content = bytearray(data.read_bytes())
    assert word in content
    for page in {found.start() // PAGE for found in re.finditer(re.escape(word), bytes(content))}:
        content[page * PAGE] ^= 1
    rewrite(data, bytes(content))


@pytest.mark.promise("store.damage", "store.digest")
def test_a_damaged_record_keeps_no_closed_store_from_opening(home: tuple[Path, tuple[str, ...]]) -> None:
    place, flags = home
    data = place / "store" / "greenroom.mdb"
    copy, later = place / "copy", place / "later"
    assert run_on_store(place, "backup", str(copy), *flags).returncode == 0
    sound = data.read_bytes()
    flip_a_record(data)
    for _ in range(2):
        with serving(place, *flags) as server:
            assert server.call("list_sessions")
            running = json.loads(run_on_store(place, "stats", "--json").stdout)["store"]
            assert server.end() == 0
        assert (running["integrity"], running["damaged_records"]) == ("damaged", 1)
        assert server.errors.read_text().count("damaged records in ") == 1
    stopped = json.loads(run_on_store(place, "stats", "--json", *flags).stdout)["store"]
    assert stopped["damaged"] == running["damaged"]
    verified = run_on_store(place, "verify", *flags)
    assert verified.returncode == 65
    assert re.search(REMEDY, sentence(verified))
    doctor = run_on_store(place, "doctor", *flags)
    assert doctor.returncode == 65
    for said in (verified.stderr, doctor.stdout, running["damaged"][0]):
        assert "actors of session" in said, said
    done = run_on_store(place, "backup", str(later), *flags)
    assert (done.returncode, "actors of session" in done.stdout) == (65, True)
    done = run_on_store(place, "restore", str(later), *flags)
    assert (done.returncode, "actors of session" in done.stdout) == (65, True)
    assert json.loads(run_on_store(place, "stats", "--json", *flags).stdout)["store"]["damaged_records"] == 1
    assert run_on_store(place, "restore", str(copy), *flags).returncode == 0
    assert json.loads(run_on_store(place, "stats", "--json", *flags).stdout)["store"]["damaged_records"] == 0
    rewrite(data, sound)
    assert run_on_store(place, "verify", *flags).returncode == 0, "what comes right again is right"


@pytest.mark.promise("store.damage", "store.digest")
def test_a_store_whose_structure_changed_by_itself_is_not_opened(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    copy = stored / "copy"
    assert run_on_store(stored, "backup", str(copy)).returncode == 0
    sound = data.read_bytes()
    flip_a_page(data, b"to be remembered")
    for command in ("serve", "serve", "verify", "stats", "backup other", "serve"):
        done = run_on_store(stored, *command.split())
        assert done.returncode == 65, (command, done.stderr)
        assert re.search(REMEDY, sentence(done))
    assert run_on_store(stored, "doctor").returncode == 65
    rewrite(data, sound)
    assert run_on_store(stored, "verify").returncode == 0, "what comes right again is right"
    flip_a_page(data, b"to be remembered")
    assert run_on_store(stored, "restore", str(copy)).returncode == 0
    with serving(stored) as server:
        assert server.call("get_session", session_id="kept")["session"]["purpose"] == "to be remembered"


@pytest.mark.quick
@pytest.mark.promise("store.digest")
def test_an_older_commit_is_not_taken_for_the_last_one(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    sound = data.read_bytes()
    heads = [int.from_bytes(sound[at : at + 8], sys.byteorder) for at in (TRANSACTION, PAGE + TRANSACTION)]
    older = heads.index(min(heads))
    for bit in (1, 2, 5, 20):
        content = bytearray(sound)
        at = older * PAGE + TRANSACTION
        content[at : at + 8] = (heads[older] ^ 1 << bit).to_bytes(8, sys.byteorder)
        rewrite(data, bytes(content))
        done = run_on_store(stored, "stats")
        assert done.returncode == 65, bit
        assert re.search(REMEDY, sentence(done))


@pytest.mark.promise("store.digest")
def test_a_bit_where_nothing_is_stored_keeps_no_store_closed(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    content = bytearray(data.read_bytes())
    content[PAGE - 1] ^= 1  # behind what the head says
    rewrite(data, bytes(content))
    assert run_on_store(stored, "verify").returncode == 0
    assert integrity(stored) == "checked"


TRANSACTION = 16 + 24 + 2 * 48 + 8
"""Where a head of LMDB's says of which transaction it is: behind page, map and two tables."""


@pytest.mark.promise("store.digest")
def test_any_bit_of_the_file_counts(stored: Path) -> None:
    data = stored / "store" / "greenroom.mdb"
    sound, lock = data.read_bytes(), (stored / "store" / "owner.lock").read_bytes()
    chance = random.Random(7)  # noqa: S311  which bit is no secret
    for _ in range(8):
        content = bytearray(sound)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        rewrite(data, bytes(content))
        (stored / "store" / "owner.lock").write_bytes(lock)
        done = run_on_store(stored, "stats", "--json")
        assert done.returncode in {0, 65}
        if done.returncode == 0:
            assert re.search("changed by itself|damaged records in", done.stderr), done.stderr
            assert ("damaged records in" in done.stderr) == bool(json.loads(done.stdout)["store"]["damaged"])


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
    await until(runtime, "checked")


async def until(runtime: Runtime, integrity: str) -> None:
    while integrity_of(runtime) != integrity:  # noqa: ASYNC110  statistics set no event
        await trio.sleep(1)


@pytest.mark.quick
@pytest.mark.promise("store.scrub")
async def test_a_store_that_is_left_unchecked_stays_so(reopen: Open, folder: Path) -> None:
    await crash(reopen, folder)
    for _ in range(2):
        async with reopen() as runtime:
            assert integrity_of(runtime) == "unchecked"


@pytest.mark.promise("store.scrub")
async def test_damaged_records_that_the_scrub_finds_are_noted_and_serving_goes_on(
    reopen: Open, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await crash(reopen, folder)
    damage_a_record(folder)
    for when in ("scrubbed", "opened"):
        async with reopen() as runtime:
            if when == "scrubbed":
                await until(runtime, "damaged")
            store = runtime.statistics().store
            assert (store.integrity, store.damaged_records) == ("damaged", 1)
            assert "counter/visits" in store.damaged[0].lower()
            with pytest.raises(RecordDamagedError):
                await runtime.ask(VISITS, Read())
            assert await runtime.ask(Address("counter", f"visits, {when}"), Add(by=1)) == 1
        assert sum("damaged records in" in each.getMessage() for each in caplog.records) == 1
        caplog.clear()


@pytest.mark.promise("store.scrub")
async def test_damage_of_the_structure_ends_the_serving_and_keeps_the_store_closed(
    reopen: Open, folder: Path
) -> None:
    await crash(reopen, folder)
    damage_a_page(folder)
    for _ in range(3):
        with pytest.raises(StoreDamagedError, match=REMEDY):
            async with reopen():
                await trio.sleep_forever()


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
    async with reopen() as runtime:
        assert integrity_of(runtime) == "unchecked"
        await until(runtime, "damaged")


@pytest.mark.promise("store.scrub")
async def test_a_running_store_is_scrubbed_each_day(reopen: Open, folder: Path) -> None:
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Add(by=3)) == 3
        await runtime.verify()  # now the row lies in its table
        damage_a_record(folder)
        await trio.sleep(86_000)
        assert integrity_of(runtime) == "checked"
        await until(runtime, "damaged")
        assert await runtime.ask(Address("counter", "more visits"), Add(by=1)) == 1


@pytest.mark.promise("store.damage")
async def test_a_damaged_record_is_known_as_soon_as_it_is_met(reopen: Open, folder: Path) -> None:
    async with reopen() as runtime:
        for each in ("visits", "others"):
            await runtime.ask(Address("counter", each), Add(by=3))
    async with reopen() as runtime:
        assert integrity_of(runtime) == "checked"
        flip_values(folder)
        with pytest.raises(RecordDamagedError):
            await runtime.ask(VISITS, Read())
        store = runtime.statistics().store
        assert (store.integrity, store.damaged_records) == ("damaged", 1)
        assert "counter/visits" in store.damaged[0]
        assert await runtime.ask(Address("counter", "others"), Read()) == 3


def flip_values(folder: Path) -> None:
    """Change what the counter of visits keeps, wherever a copy of that page is."""
    data = folder / "greenroom.mdb"
    content = bytearray(data.read_bytes())
    for found in re.finditer(b"counter\0visits\0usum", bytes(content)):
        content[found.end() + 1] ^= 1  # of the checksum, which follows the version
    rewrite(data, bytes(content))


def damage_a_record(folder: Path) -> None:
    """Change the key of what a counter keeps, wherever a copy of that page is."""
    rot(folder / "greenroom.mdb", b"counter\0visits\0usum")


def damage_a_page(folder: Path) -> None:
    """Change the number of each page that has a counter."""
    flip_a_page(folder / "greenroom.mdb", b"counter\0visits\0usum")


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
    flip_a_page(stored / "store" / "greenroom.mdb", b"to be remembered")
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


@pytest.mark.quick
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
    assert counts["closed refused"] >= damage.SMOKE_STORES // 4, "whole pages that are lost, at least"
