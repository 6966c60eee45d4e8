"""The manifest of promises, the tests that keep them, and the public surface."""

import ast
import importlib
import inspect
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("runtime", "actors", "transports")


def promised() -> set[str]:
    manifest = tomllib.loads((ROOT / "tests/promises.toml").read_text())
    return {f"{area}.{name}" for area, promises in manifest.items() for name in promises}


@cache
def kept() -> dict[str, list[str]]:
    """Return the promise ids that tests are marked with, and where."""
    marks: dict[str, list[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "promise":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), (
                        f"{path.name}:{node.lineno}: promise ids are literals"
                    )
                    marks.setdefault(str(argument.value), []).append(f"{path.name}:{node.lineno}")
    return marks


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package / "greenroom" / package).rglob("*.py"))


def test_every_promise_has_a_test() -> None:
    assert promised() - set(kept()) == set()


def test_every_mark_names_a_promise() -> None:
    assert {mark: where for mark, where in kept().items() if mark not in promised()} == {}


def test_no_folder_hides_the_others() -> None:
    assert list(ROOT.glob("*/greenroom/__init__.py")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_exported_once_and_documented(package: str) -> None:
    source = (ROOT / package / "greenroom" / package / "__init__.py").read_text()
    exported = [
        alias.asname
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    assert len(exported) == len(set(exported))
    module = importlib.import_module(f"greenroom.{package}")
    assert module.__doc__
    public = {name for name in vars(module) if not name.startswith("_")} - {
        "annotations",  # left by imports that only the type checker or __getattr__ needs
        "TYPE_CHECKING",
        "exports",
    }
    public |= {name for name in exported if hasattr(module, name)}
    public -= {
        path.stem if path.is_file() else path.name
        for path in (ROOT / package / "greenroom" / package).iterdir()
    }
    assert public == set(exported)
    for name in exported:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, f"greenroom.{package}.{name} has no docstring"
