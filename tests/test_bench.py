"""The benchmarks check what they measure: a run ends well only if every answer was right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from harness import PATIENCE

ROOT = Path(__file__).parents[1]

FORGETFUL_PEER = """
import sys
from bench import __main__ as program, durable_sqlite
durable_sqlite.INSERT = "INSERT INTO records SELECT ?1, ?2 WHERE substr(?1, -1) <> x'37'"
sys.exit(program.main())
"""


def run(tmp_path: Path, *command: str) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    results = tmp_path / "results.json"
    arguments = [*command, "--smoke", "--json", str(results), "--work", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    return done, msgspec.json.decode(results.read_bytes())


@pytest.mark.parametrize("name", ["ask", "durable", "heavy", "memory", "relay", "roots", "tool_choice"])
def test_a_smoke_run_prints_and_writes_what_it_measured(tmp_path: Path, name: str) -> None:
    done, results = run(tmp_path, "-m", "bench", name)
    assert done.returncode == 0, done.stderr
    assert f"== {name} ==" in done.stdout
    assert results["wrong_answer"] is None
    assert results["smoke"] is True
    assert list(results["benchmarks"]) == [name]  # type: ignore[call-overload]  # decoded JSON


def test_results_do_not_name_the_machine(tmp_path: Path) -> None:
    _, results = run(tmp_path, "-m", "bench", "ask")
    machine = results["machine"]
    assert isinstance(machine, dict)
    assert set(machine) == {"python", "implementation", "system", "architecture", "cores"}
    assert str(tmp_path) not in str(results)


def test_a_contender_that_loses_a_write_fails_the_run(tmp_path: Path) -> None:
    done, results = run(tmp_path, "-c", FORGETFUL_PEER, "durable")
    assert done.returncode == 1
    assert "lost or made up writes" in done.stderr
    assert "lost or made up writes" in str(results["wrong_answer"])
    assert results["benchmarks"] == {}
