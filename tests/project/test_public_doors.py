"""Tests come in by public doors; which others there are, and why, is in `inner_parts.toml`."""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
ADAPTERS = {
    f"adapters.{each.parent.name}" for each in ROOT.glob("transports/greenroom/adapters/*/__init__.py")
}
DOORS = {f"greenroom.{package}" for package in ("runtime", "actors", "transports", "testing", *ADAPTERS)}
WORLD = {
    *("fcntl", "lmdb", "mmap", "os", "select", "shutil", "signal", "sqlite3", "subprocess", "tempfile"),
    *("anyio", "h11", "httpx2", "hypercorn", "socket", "ssl", "trio", "trio_websocket", "wsproto"),
    *("outcome", "secrets", "threading", "time"),
}
"""What waits, reads, draws or tells the time. A module without these, and without coroutines, is pure.

The coroutines of a protocol only say what others have.
"""
INNER = tomllib.loads((TESTS / "inner_parts.toml").read_text())


def said_why(table: str) -> set[tuple[str, str]]:
    """Return what is in a table of `inner_parts.toml`: each file with each of the names beside it."""
    files = [each for group in INNER[table] for each in group["files"].items()]
    return {(file, name) for file, names in files for name in names}


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
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    protocols = [each for each in classes if "Protocol" in map(ast.unparse, each.bases)]
    described = {id(member) for protocol in protocols for member in protocol.body}
    used = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    waits = any(isinstance(node, ast.AsyncFunctionDef) and id(node) not in described for node in nodes)
    return not waits and WORLD.isdisjoint(name.partition(".")[0] for name in used)


def imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the modules that are imported, or from which something is, each with its name in the file."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = node.module not in DOORS and module_path(inner) is not None
                yield (inner if is_module else node.module), alias.asname or alias.name


def replaced(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield what of ours a test puts something else in the place of."""
    ours = {name for module, name in imported(nodes) if module.startswith("greenroom.")}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[*target, _]):
                named = ".".join(ast.unparse(each).strip("f'\"") for each in target)
                if named.startswith("greenroom.") or named.partition(".")[0] in ours:
                    yield named
            case ast.Assign(targets=[ast.Attribute(value, attribute) as target]):
                owner = ast.unparse(value)
                if owner in ours or (attribute.startswith("_") and owner != "self"):
                    yield ast.unparse(target)


@cache
def nodes_of_files() -> dict[str, list[ast.AST]]:
    """Return what imports, calls or assigns something in each file of the tests."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Assign)
    return {
        str(path.relative_to(TESTS)): [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)
        ]
        for path in sorted(TESTS.rglob("*.py"))
    }


def test_an_inner_part_that_a_test_imports_is_pure_or_it_is_said_why() -> None:
    used = {
        (name, module.removeprefix("greenroom."))
        for name, nodes in nodes_of_files().items()
        for module, _ in imported(nodes)
        if module.startswith("greenroom.") and module not in DOORS and not is_pure(module)
    }
    assert used - said_why("parts") == set(), "say why, or use a door"
    assert said_why("parts") - used == set(), "it is not imported there any more, or it is pure"


def test_where_a_test_replaces_something_of_ours_it_is_said_why() -> None:
    found = {(name, each) for name, nodes in nodes_of_files().items() for each in replaced(nodes)}
    assert found - said_why("replaced") == set(), "give it as an argument, or say why not"
    assert said_why("replaced") - found == set(), "it is not replaced there any more"
