"""Tests come in by public doors; which others there are, and why, is in `inner_parts.toml`."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DOORS = {f"greenroom.{package}" for package in ("runtime", "actors", "transports", "testing")}
WORLD = {
    *("fcntl", "lmdb", "mmap", "os", "select", "shutil", "signal", "sqlite3", "subprocess", "tempfile"),
    *("anyio", "h11", "httpx2", "hypercorn", "socket", "ssl", "trio", "trio_websocket", "wsproto"),
    *("outcome", "secrets", "threading", "time"),
}
"""What waits, reads, draws or tells the time. A module without these, and without coroutines, is pure."""
INNER = tomllib.loads((TESTS / "inner_parts.toml").read_text())
PARTS = {room for group in INNER["parts"] for room in group["rooms"]}
REPLACED = {file for group in INNER["replaced"] for file in group["files"]}


@cache
def module_path(module: str) -> Path | None:
    """Return the file of a module of ours, or None if there is none of that name."""
    for folder in ("runtime", "actors", "transports"):
        path = ROOT / folder / Path(*module.split("."))
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


@cache
def is_pure(module: str) -> bool:
    path = module_path(module)
    assert path is not None, module
    nodes = list(ast.walk(ast.parse(path.read_text())))
    used = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    waits = any(isinstance(node, ast.AsyncFunctionDef) for node in nodes)
    return not waits and WORLD.isdisjoint(name.partition(".")[0] for name in used)


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the modules that are imported, or from which something is, each with its name in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = node.module not in DOORS and module_path(inner) is not None
                yield (inner if is_module else node.module), alias.asname or alias.name


def replaced(tree: ast.AST) -> Iterator[str]:
    """Yield what of ours a test puts something else in the place of."""
    ours = {name for module, name in imported(tree) if module.startswith("greenroom.")}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[first, *_]):
                named = ast.unparse(first).strip("f'\"")
                if named.startswith("greenroom.") or named.partition(".")[0] in ours:
                    yield named
            case ast.Assign(targets=[ast.Attribute(value, attribute) as target]):
                owner = ast.unparse(value)
                if owner in ours or (attribute.startswith("_") and owner != "self"):
                    yield ast.unparse(target)


@cache
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(TESTS)): ast.parse(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}


def test_an_inner_part_that_tests_import_is_pure_or_it_is_said_why() -> None:
    used = {
        ".".join(module.split(".")[:3]): f"{module} in {name}"
        for name, tree in trees().items()
        for module, _ in imported(tree)
        if module.startswith("greenroom.") and module not in DOORS and not is_pure(module)
    }
    assert {room: where for room, where in used.items() if room not in PARTS} == {}, "say why, or use a door"
    assert PARTS - set(used) == set(), "no test imports it any more, or it is pure"


def test_where_a_test_replaces_something_of_ours_it_is_said_why() -> None:
    found = {name: each for name, tree in trees().items() if (each := sorted(set(replaced(tree))))}
    assert {name: each for name, each in found.items() if name not in REPLACED} == {}, (
        "give it as an argument, or say why not"
    )
    assert REPLACED - set(found) == set(), "it replaces nothing any more"
