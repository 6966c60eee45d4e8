"""What `pytest` runs where nothing is named, where something is, and with `--all`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOME = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_fast(number):
    pass

@pytest.mark.slow
def test_slow():
    pass

@pytest.mark.quick
@pytest.mark.slow
def test_shown():
    pass
"""
PROGRAMS = "import subprocess\n\ndef test_program():\n    pass\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with these tests, and with what chooses among ours."""
    (tmp_path / "tests/support").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/support/quick.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests/test_some.py").write_text(SOME)
    (tmp_path / "tests/test_programs.py").write_text(PROGRAMS)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ([], {"fast[1]", "shown"}),
        (["--all"], {"fast[1]", "fast[2]", "slow", "shown", "program"}),
        (["tests/test_some.py"], {"fast[1]", "fast[2]", "slow", "shown"}),
        (["-m", "slow"], {"slow", "shown", "program"}),
        (["-k", "fast"], {"fast[1]", "fast[2]"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_runs_is_what_is_named_or_the_quick_part_which_says_so(
    tree: Path, arguments: list[str], passed: set[str]
) -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"PASSED.*::test_(\S+)|::test_(\S+) PASSED", done.stdout)
    assert {one or other for one, other in ran} == passed
    assert ("pytest --all" in done.stdout) == (not arguments)
