"""The benchmarks check what they measure: a run ends well only if every answer was right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from harness import PATIENCE
from support.forking import forked_program

from bench import notes
from bench.command import NAMES
from bench.comparison import OldReport, OldRun, compared
from bench.counted_server import Event, Way, way
from bench.harness import Report, Table

ROOT = Path(__file__).parents[2]
ALONE = {"chaos", "crash_images", "damage", "kills", "start"}
"""Those that tests of their own run: the one below that compares, and those beside `test_chaos.py`."""

FORGETFUL_PEER = """
import sys
from bench import command as program, durable_sqlite
durable_sqlite.INSERT = "INSERT INTO records SELECT ?1, ?2 WHERE substr(?1, -1) <> x'37'"
sys.exit(program.main())
"""


STARTED = [sys.executable, "-m", "bench"]


def run(
    tmp_path: Path, *command: str, work: Path | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    results = tmp_path / "results.json"
    arguments = ["--smoke", "--json", str(results), "--work", str(work or tmp_path)]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert results.exists(), done.stderr
    return done, msgspec.json.decode(results.read_bytes())


@pytest.mark.parametrize("name", sorted({*NAMES} - ALONE))
def test_a_smoke_run_prints_and_writes_what_it_measured(tmp_path: Path, name: str) -> None:
    done, results = run(tmp_path, *forked_program("bench"), name)  # and so is what it starts
    assert done.returncode == 0, done.stderr
    assert f"== {name} ==" in done.stdout
    assert results["wrong_answer"] is None
    assert results["smoke"] is True
    assert list(results["benchmarks"]) == [name]  # type: ignore[call-overload]  # decoded JSON
    machine = results["machine"]
    assert isinstance(machine, dict)
    assert set(machine) == {"python", "implementation", "system", "architecture", "cores"}
    assert str(tmp_path) not in str(results), "nor is the machine named elsewhere"


def test_the_folder_of_the_stores_is_made_and_what_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = tmp_path / "there" / "deep"
    done, _ = run(tmp_path, *forked_program("bench"), "ask", work=made)
    assert (done.returncode, list(made.iterdir())) == (0, []), done.stderr
    command = [*STARTED, "ask", "--smoke", "--work", str(tmp_path / "file")]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert (
        f"argument --work: {tmp_path / 'file'} is no folder and none is made: File exists" in refused.stderr
    )


def test_a_contender_that_loses_a_write_fails_the_run(tmp_path: Path) -> None:
    done, results = run(tmp_path, sys.executable, "-c", FORGETFUL_PEER, "durable")
    assert done.returncode == 1
    assert "lost or made up writes" in done.stderr
    assert "lost or made up writes" in str(results["wrong_answer"])
    assert results["benchmarks"] == {}


def test_a_run_is_compared_with_an_older_one(tmp_path: Path) -> None:
    done, results = run(tmp_path, *STARTED, "start")
    assert (done.returncode, results["wrong_answer"]) == (0, None), done.stderr
    assert "importing in a new process" in str(results)
    done, _ = run(tmp_path, *STARTED, "start", "--compare", str(tmp_path / "results.json"))
    assert done.returncode == 0, done.stderr
    assert "importing in a new process: times as much as then" in done.stdout
    done = subprocess.run(
        [*STARTED, "start", "--smoke", "--compare", str(Path(__file__))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "holds no results of a run" in done.stderr) == (2, True)


def test_every_question_about_notes_names_notes_of_its_world() -> None:
    worlds = notes.load(ROOT / "bench" / "notes")
    assert len(worlds) == 3
    for world in worlds:
        keys = [note.key for note in world.notes]
        assert len(set(keys)) == len(keys) > 250
        for question in world.questions:
            assert {*question.relevant, *question.older} <= set(keys), question.query
            assert bool(question.relevant) == (question.group != "nothing"), question.query
            assert all(note.created_at <= notes.PRESENT for note in world.notes)


def test_ratios_are_of_what_both_runs_have() -> None:
    then = Table(title="t", columns=["who", "ms", "n"], rows=[["a", 2.0, 5], ["gone", 1.0, 1], ["z", 0.0, 1]])
    now = Table(title="t", columns=["who", "ms", "n"], rows=[["a", 3.0, 5], ["new", 1.0, 1], ["z", 4.0, 2]])
    other = Table(title="other", columns=["ms"], rows=[[1.0]])
    old = OldRun(smoke=False, benchmarks={"ask": OldReport(tables=[then])})
    [ratios] = compared(old, "ask", Report(tables=[now, other])).tables
    assert [list(row) for row in ratios.rows] == [["a", 1.5, 1.0], ["z", None, 2.0]]
    assert compared(old, "durable", Report(tables=[now])).tables == []


def test_a_way_goes_from_the_first_read_to_the_last_write_and_counts_calls_by_module() -> None:
    api, store, library = (
        "/x/greenroom/actors/app/agent.py",
        "/x/greenroom/runtime/store.py",
        "/lib/trio/run.py",
    )
    events = [
        *(Event(1, "call", store), Event(1, "return", store)),
        *(Event(1, "c_call", "/lib/_wakeup_socketpair.py", "recv"), Event(1, "c_call", library, "read")),
        *(Event(1, "call", api), Event(1, "call", library), Event(1, "call", store), Event(2, "call", api)),
        *(Event(1, "return", store), Event(1, "return", library), Event(1, "call", api)),
        *(Event(1, "c_call", api, "write"), Event(1, "return", api), Event(1, "call", store)),
    ]
    assert way(events) == Way({"actors/app/agent.py": 3, "runtime/store.py": 1}, changes=1, others=1)
