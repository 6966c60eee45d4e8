"""An import whose process is killed: nothing or everything, and the same command again finishes it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import PROGRAM, clean_environment, secrets_of
from support.commands import serving
from support.exchanges import export, imported, line, text
from support.forking import forked_program

from greenroom.actors import Principal, VerifyMemories, open_greenroom
from greenroom.actors.memories.requests.transfer import ReadImport
from greenroom.actors.memories.transfer.import_run import Importer
from greenroom.actors.memories.transfer.sources import open_source
from greenroom.actors.memories.writing.import_staging import topic_of
from greenroom.runtime import Address, RuntimeOptions

ANN = Principal(agent_id="planner", user="ann")
WHO = ["--agent", "planner", "--user", "ann", "--embedder", "none"]
LINES = 2_000
KEYS = [f"k{n:05}" for n in range(LINES)]


def _file(tmp_path: Path) -> Path:
    path = tmp_path / "memories.jsonl"
    lines = (
        line(f"k{n:05}", f"memory {n} " + "words " * 20, namespace=f"team:t{n % 5}") for n in range(LINES)
    )
    path.write_text(text(*lines))
    return path


def _command(path: Path, folder: Path, *more: str) -> list[str]:
    return [*PROGRAM, "import", str(path), "--data", str(folder), *WHO, *more]


# Ends itself without a word when the import has come so far.
KILLED_AT = """
import os, signal, sys
from greenroom.actors.memories.transfer import import_run
from greenroom.transports.ops.cli.main import main

stage, share = sys.argv[1], float(sys.argv[2])
tell = import_run.Importer.__init__

def told(self, *args, **options):
    def die(now, done, total):
        if now == stage and done >= share * total:
            os.kill(os.getpid(), signal.SIGKILL)
    tell(self, *args, **{**options, "progress": die})

import_run.Importer.__init__ = told
main(sys.argv[3:])
"""


# Ends the process that owns the folder when the import, which is attached to it, has come so far.
KILLS_THE_OWNER_AT = """
import os, signal, sys
from greenroom.actors.memories.transfer import import_run
from greenroom.transports.ops.cli.main import main

owner, stage, share = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
tell, alive = import_run.Importer.__init__, [True]

def told(self, *args, **options):
    def kill(now, done, total):
        if alive and now == stage and done >= share * total:
            alive.clear()
            os.kill(owner, signal.SIGKILL)
    tell(self, *args, **{**options, "progress": kill})

import_run.Importer.__init__ = told
sys.exit(main(sys.argv[4:]))
"""


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
@pytest.mark.parametrize(("stage", "share"), [("staging", 0.5), ("importing", 0.0)])
def test_when_the_owner_of_the_folder_dies_the_attached_import_goes_on(
    tmp_path: Path, stage: str, share: float
) -> None:
    path, folder = _file(tmp_path), tmp_path / "store"
    arguments = _command(path, folder, "--json")[len(PROGRAM) :]
    with serving(tmp_path, "--embedder", "none") as server:
        owner = str(server.process.pid)
        done = subprocess.run(
            [sys.executable, "-c", KILLS_THE_OWNER_AT, owner, stage, str(share), *arguments],
            env=clean_environment(tmp_path),
            capture_output=True,
            check=False,
        )
        assert server.process.wait() == -signal.SIGKILL
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"created": LINES}
    assert sorted(each["key"] for each in _found(folder)) == KEYS


def _killed(home: Path, stage: str, share: float, path: Path, folder: Path) -> None:
    arguments = _command(path, folder)[len(PROGRAM) :]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT, stage, str(share), *arguments],
        env=clean_environment(home),
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
@pytest.mark.parametrize(("stage", "share"), [("checking", 1.0), ("staging", 0.6), ("importing", 0.0)])
def test_of_a_killed_import_that_leaves_records_out_the_sound_ones_are_there_all_or_none(
    tmp_path: Path, stage: str, share: float
) -> None:
    def record(number: int) -> str:
        return json.dumps({"type": "entity", "name": f"n{number}", "observations": [f"saw {number} whales"]})

    path, folder = tmp_path / "memory.jsonl", tmp_path / "data"
    records = [record(number) for number in range(LINES)]
    broken = [each[:30] if number % 10 == 3 else each for number, each in enumerate(records)]
    path.write_text("\n".join(broken))
    _killed(tmp_path, stage, share, path, folder)
    if stage != "importing":
        assert _found(folder) == []
    sound = LINES * 9 // 10
    command = _command(path, folder, "--json")

    def done() -> Any:
        ended = subprocess.run(command, env=clean_environment(tmp_path), capture_output=True, check=False)
        return ended.returncode, json.loads(ended.stdout)

    code, said = done()
    assert (code, said["left_out_count"], sum(said["counts"].values())) == (3, LINES // 10, sound)
    before = {each["key"]: each for each in _found(folder)}
    assert len(before) == sound
    path.write_text("\n".join(records))
    code, said = done()
    assert (code, said["counts"]) == (0, {"created": LINES // 10, "skipped": sound})
    after = {each["key"]: each for each in _found(folder)}
    assert (len(after), {key: after[key] for key in before}) == (LINES, before)


def _found(folder: Path) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        async with open_greenroom(folder, embedder="none", secrets=secrets_of(folder.parent)) as runtime:
            return await export(runtime, ANN)

    return trio.run(read)


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
@pytest.mark.parametrize(
    ("stage", "share"),
    [("staging", 0.01), ("staging", 0.6), ("staging", 1.0), ("importing", 0.0)],
)
def test_a_killed_import_left_nothing_or_becomes_whole(tmp_path: Path, stage: str, share: float) -> None:
    path, folder = _file(tmp_path), tmp_path / "data"
    _killed(tmp_path, stage, share, path, folder)
    if stage != "importing":
        assert _found(folder) == []
    done = subprocess.run(
        _command(path, folder, "--json"), env=clean_environment(tmp_path), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    if stage == "importing":  # decided: it goes on when somebody opens the folder
        assert said["counts"] in ({"created": LINES}, {"skipped": LINES})
    else:
        assert said["counts"] == {"created": LINES}
        assert said["resumed"] == (stage == "staging")
    found = _found(folder)
    assert sorted(each["key"] for each in found) == KEYS


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_killed_after_the_decision_it_goes_on_with_the_next_start(tmp_path: Path, share: float) -> None:
    path, folder = _file(tmp_path), tmp_path / "data"
    _killed(tmp_path, "importing", share, path, folder)

    async def finished() -> list[dict[str, Any]]:
        async with open_greenroom(folder, embedder="none", secrets=secrets_of(folder.parent)) as runtime:
            importer = Importer(runtime, ANN, open_source(path, "auto", ANN))
            import_id = importer._import_id(await importer._check())
            path.unlink()  # whoever opens the folder finishes it without the file
            with runtime.subscriber() as changes:
                changes.add(topic_of(import_id))
                while True:
                    found = await runtime.ask(Address("import", import_id), ReadImport(), principal=ANN)
                    assert found is not None
                    if found.state == "done":
                        return await export(runtime, ANN)
                    await changes.next()

    assert sorted(each["key"] for each in trio.run(finished)) == KEYS


@pytest.mark.promise("exchange.atomic", "exchange.export")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_an_export_waits_for_an_import_that_was_killed_after_its_decision(
    tmp_path: Path, share: float
) -> None:
    path, folder = _file(tmp_path), tmp_path / "data"
    _killed(tmp_path, "importing", share, path, folder)
    out = tmp_path / "out.jsonl"
    command = [*forked_program(), "export", str(out), "--data", str(folder), *WHO, "--json"]
    done = subprocess.run(command, env=clean_environment(tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["memories"], said["unwritten"]) == (LINES, [])
    assert sorted(json.loads(each)["key"] for each in out.read_text().splitlines()) == KEYS


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
def test_an_import_that_is_killed_at_any_commit_is_whole_after_it_went_on(tmp_path: Path) -> None:
    """At every commit of staging, of turns with one batch or two, and of what follows them."""
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(tests / "support" / "killed_import.py"), str(tmp_path)],
        env={**clean_environment(tmp_path), "PYTHONPATH": str(tests)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(each) for each in done.stdout.splitlines()]
    assert [each["killed"] for each in lines] == [True] * (len(lines) - 1) + [False]
    assert len(lines) > 10
    for each in lines:
        assert each["before"] in {0, 935}, each  # an export waits for an import that is decided
        assert (each["is_whole"], each["links"], each["problems"]) == (True, 4, []), each
        assert each["repeated"] == {"unchanged": 935}, each


@pytest.mark.promise("exchange.atomic", "exchange.resumed")
async def test_an_import_that_finds_no_room_after_its_decision_is_whole_once_there_is_some(
    tmp_path: Path,
) -> None:
    lines = [line(key, f"memory {key} " + "words " * 60) for key in KEYS]

    def options(most: int) -> RuntimeOptions:
        return RuntimeOptions(durability="process", max_size=most, min_free=0)

    async with open_greenroom(tmp_path, embedder="none", options=options(3 << 20)) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(imported, runtime, ANN, *lines))
            while not runtime.statistics().store.failures:  # noqa: ASYNC110 - nothing tells of them
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        written = {each["key"] for each in await export(runtime, ANN)}
        assert 0 < len(written) < LINES
    async with open_greenroom(tmp_path, embedder="none", options=options(64 << 20)) as runtime:
        done = await imported(runtime, ANN, *lines)
        assert (done.resumed, done.counts) == (True, {"created": LINES})
        assert [each["key"] for each in await export(runtime, ANN)] == KEYS
        assert (await runtime.query(VerifyMemories())).problems == []
