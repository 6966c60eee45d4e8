"""The manifest of promises, the tests that keep them, and the public surface."""

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from support import quick

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("runtime", "actors", "transports")

NEED_OTHERS = {
    r"adapters\.(anthropic|google-adk|langgraph|llama-index|openai-agents|pydantic-ai)-.+": "a framework",
    r"adapters\.passports": "frameworks",
    r"cli\.plugin": "Claude Code",
    r"cli\.setup-shared": "a client in TypeScript",
    r"conformance\.(bridged|hot|http)": "the conformance suite",
    r"console\.many": "a browser",
    r"embedding\.minilm": "the weights of MiniLM",
    r"mcp\.inspector": "the MCP Inspector",
}
"""The promises that no test of the quick part shows, by regular expressions, and what they need."""


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


def promised_by(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the ids of promises that marks in these parts of a test file name."""
    calls = [each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Call)]
    marks = [call for call in calls if getattr(call.func, "attr", None) == "promise"]
    return {str(ast.literal_eval(argument)) for mark in marks for argument in mark.args}


def shown_quickly() -> set[str]:
    """Return the ids of promises that tests of the quick part keep."""
    shown: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        source = path.read_text()
        if "promise(" not in source or not quick.has_some(path):
            continue
        tree = ast.parse(source)
        of_all = promised_by(node for node in tree.body if isinstance(node, ast.Assign))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                marks = " ".join(map(ast.unparse, node.decorator_list))
                if "mark.quick" in marks or not (quick.is_slow(path) or "mark.slow" in marks):
                    shown |= of_all | promised_by(node.decorator_list)
    return shown


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package / "greenroom" / package).rglob("*.py"))


@pytest.mark.slow
def test_every_promise_has_a_test() -> None:
    assert promised() - set(kept()) == set()


@pytest.mark.slow
def test_every_mark_names_a_promise() -> None:
    assert {mark: where for mark, where in kept().items() if mark not in promised()} == {}


def test_every_promise_that_needs_no_other_program_has_a_quick_test() -> None:
    later = promised() - shown_quickly()
    assert {promise for promise in later if not re.fullmatch("|".join(NEED_OTHERS), promise)} == set()
    assert [need for need in NEED_OTHERS if not any(re.fullmatch(need, promise) for promise in later)] == []


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
