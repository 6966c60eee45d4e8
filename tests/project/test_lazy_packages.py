"""What an interactive shell and ``import *`` see of the packages, whose names are imported when asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.promise("service.completion")

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("greenroom.runtime", "greenroom.actors", "greenroom.transports", "greenroom.testing")
MOST_MODULES = 8
of_each_package = pytest.mark.parametrize("package", PACKAGES)

LOADED = """
import json, sys
before = set(sys.modules)
import {package} as package
dir(package), package.__all__, package.__version__
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {"trio", "msgspec", "lmdb", "anyio", "numpy", "mcp_types", "pydantic_core"}


@of_each_package
def test_completion_offers_every_public_name_and_each_can_be_had(package: str) -> None:
    module = import_module(package)
    assert {"Database"} <= set(module.__all__) or package != "greenroom.actors"
    assert {*module.__all__, "__version__", "__doc__"} <= set(dir(module))
    assert len(module.__all__) == len(set(module.__all__)) > 15
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert module.__version__ == version("greenroom")
    with pytest.raises(AttributeError, match=r"has no attribute 'Databse'"):
        module.Databse  # noqa: B018


@pytest.mark.quick
@of_each_package
def test_a_star_imports_the_public_names(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)  # noqa: S102
    assert names.keys() - {"__builtins__"} == set(import_module(package).__all__)


@pytest.mark.slow
@of_each_package
def test_importing_and_completing_loads_no_module_of_the_names(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(package=package)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout)
    assert package in loaded
    assert len([name for name in loaded if name.startswith("greenroom.")]) <= MOST_MODULES, loaded
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def test_greenroom_itself_is_a_namespace() -> None:
    assert list(ROOT.glob("*/greenroom/__init__.py")) == []
    namespace = import_module("greenroom")
    assert namespace.__file__ is None
    assert len(list(namespace.__path__)) >= 1


PROGRAM = """\
import greenroom.actors as actors
import greenroom.runtime as runtime
from greenroom.actors import *
from typing import assert_type

assert_type(actors.__version__, str)
assert_type(runtime.__version__, str)
database: actors.Database = Database("store")
actors.Databse  # wrong
"""


@pytest.mark.slow
def test_type_checkers_see_the_names(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == [PROGRAM[: PROGRAM.index("# wrong")].count("\n") + 1], done.stdout + done.stderr
