"""The manifest of promises, the tests that keep them, the direction of imports and the public surface."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("runtime", "actors", "transports")
ALLOWED = {"runtime": {"runtime"}, "actors": {"actors", "runtime"}, "transports": set(PACKAGES)}


def promised() -> set[str]:
    manifest = tomllib.loads((ROOT / "tests/promises.toml").read_text())
    return {f"{area}.{name}" for area, promises in manifest.items() for name in promises}


def kept() -> dict[str, list[str]]:
    """Return the promise ids that tests are marked with, and where."""
    marks: dict[str, list[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), (
                        f"{path.name}:{node.lineno}: promise ids are literals"
                    )
                    marks.setdefault(str(argument.value), []).append(f"{path.name}:{node.lineno}")
    return marks


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package / "greenroom" / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Return the greenroom packages that a module imports, at its top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {match[1] for name in names if (match := re.match(r"greenroom\.(\w+)", name))}


def test_every_promise_has_a_test() -> None:
    assert promised() - set(kept()) == set()


def test_every_mark_names_a_promise() -> None:
    assert {mark: where for mark, where in kept().items() if mark not in promised()} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package: str) -> None:
    strays = {str(path.relative_to(ROOT)): imports(path) - ALLOWED[package] for path in modules(package)}
    assert {path: names for path, names in strays.items() if names} == {}


def test_the_runtime_knows_no_mcp() -> None:
    for path in modules("runtime") + modules("actors"):
        assert not re.search(r"^\s*(from|import) mcp\b", path.read_text(), re.MULTILINE), path


def test_no_folder_hides_the_others() -> None:
    assert list(ROOT.glob("*/greenroom/__init__.py")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_exported_once_and_documented(package: str) -> None:
    source = (ROOT / package / "greenroom" / package / "__init__.py").read_text()
    exported = [
        alias.asname
        for node in ast.walk(ast.parse(source))  # a lazy package has its imports under a condition
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    assert len(exported) == len(set(exported))
    module = importlib.import_module(f"greenroom.{package}")
    assert module.__doc__
    values = {name: getattr(module, name) for name in exported}
    strays = {name for name in vars(module) if not name.startswith("_")} - {
        *exported,
        *(path.stem for path in (ROOT / package / "greenroom" / package).iterdir()),
        *("annotations", "TYPE_CHECKING"),
    }
    assert strays == set()
    for name, value in values.items():
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, f"greenroom.{package}.{name} has no docstring"
