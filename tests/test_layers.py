"""The direction of imports between the rooms, as the contracts in pyproject.toml have it."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", root / "pyproject.toml"],
        cwd=root,
        env={"PYTHONPATH": ":".join(str(root / each) for each in ("runtime", "actors", "transports"))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_point_one_way() -> None:
    linted = lint_imports(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "0 broken" in linted.stdout


def test_an_import_against_the_layers_is_named_with_its_rule(tmp_path: Path) -> None:
    for portion in ("runtime", "actors", "transports"):
        shutil.copytree(ROOT / portion, tmp_path / portion, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    wrong = tmp_path / "runtime/greenroom/runtime/base/clock.py"
    wrong.write_text(f"{wrong.read_text()}\nfrom greenroom.runtime.kernel import kernel\n")
    linted = lint_imports(tmp_path)
    assert linted.returncode == 1
    assert "greenroom.runtime.base is not allowed to import greenroom.runtime.kernel" in linted.stdout
    assert "greenroom.runtime.base.clock -> greenroom.runtime.kernel.kernel" in linted.stdout


def test_a_small_part_of_the_runtime_needs_no_trio() -> None:
    code = "import sys, greenroom.runtime.base.unix_socket; sys.exit('trio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
