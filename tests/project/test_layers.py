"""The direction of imports between the rooms, as the contracts in pyproject.toml have it."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


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


def test_what_a_client_has_is_set_by_the_part_that_owns_it_alone() -> None:
    """Orchestrations are handed a client, the agent holds one, and neither puts anything into it."""
    client = re.compile(r"(?:.*[._])?client(?:_state)?(?:\.(?:session|files|passports))?")
    found = [
        f"{path.name}: {ast.unparse(node)}"
        for path in (ROOT / "actors").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if client.fullmatch(ast.unparse(node.value))
    ]
    assert found == []


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


@pytest.mark.parametrize(
    "module",
    [
        "runtime.base.unix_socket",
        "actors.core.auth.scopes",
        "transports.ops.cli.main",
        "transports.ops.cli.commands.top",
    ],
)
def test_what_needs_no_trio_does_not_load_it(module: str) -> None:
    code = f"import sys, greenroom.{module}; sys.exit('trio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("portion", ["runtime", "actors", "transports"])
def test_every_name_that_type_checkers_see_can_be_imported(portion: str) -> None:
    package = import_module(f"greenroom.{portion}")
    tree = ast.parse(Path(str(package.__file__)).read_text())
    names = {
        alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert [name for name in names - {None} if not hasattr(package, str(name))] == []
