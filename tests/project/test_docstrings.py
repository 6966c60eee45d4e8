"""Docstrings speak of what is there: no name outlives a rename."""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("runtime", "actors", "transports", "tests", "bench")

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def every_node() -> list[tuple[Path, ast.AST]]:
    modules = [path for room in ROOMS for path in sorted(ROOT.glob(f"{room}/**/*.py"))]
    return [(path, node) for path in modules for node in ast.walk(ast.parse(path.read_text()))]


def names_bound(node: ast.AST) -> Iterator[str]:
    """Yield the attributes that are made in a class: fields, methods, and what they put on ``self``."""
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


@cache
def classes() -> dict[str, tuple[set[str], set[str]]]:
    """Return of each class the attributes it makes and its bases, those of one name together."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for _, node in every_node():
        if isinstance(node, ast.ClassDef):
            attributes, bases = found.setdefault(node.name, (set(), set()))
            attributes.update(names_bound(node))
            bases.update(ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases)
    return found


@cache
def names_used() -> set[str]:
    """Return every name that code speaks of, those of libraries included."""
    used = set(vars(builtins))
    for _, node in every_node():
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    return used


def attributes_of(name: str) -> set[str]:
    own, bases = classes().get(name, (set(), set()))
    return own.union(*(attributes_of(base) for base in bases - {name}))


def parameters_of(node: Documented) -> set[str]:
    if isinstance(node, ast.ClassDef):
        made = [
            each
            for each in node.body
            if isinstance(each, ast.FunctionDef) and each.name in {"__init__", "__new__"}
        ]
        return {name for each in made for name in parameters_of(each)} or attributes_of(node.name)
    return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}


def listed(docstring: str, section: str) -> list[str]:
    """Return the names that a section explains: ``first, second: what they are``."""
    found = re.search(rf"^{section}:\n((?: +.*\n|\n)*)", docstring + "\n", re.MULTILINE)
    heads = re.findall(r"^    (\*{0,2}\w[\w, .*]*):", found[1], re.MULTILINE) if found else []
    return [name.strip("* ") for head in heads for name in head.split(",")]


def docstrings() -> Iterator[tuple[str, Documented, str]]:
    for path, node in every_node():
        if isinstance(node, Documented) and (docstring := ast.get_docstring(node)):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node, docstring


@pytest.mark.parametrize("section", ["Attributes", "Args", "Raises"])
def test_what_a_section_explains_is_there(section: str) -> None:
    missing = []
    for where, node, docstring in docstrings():
        names = listed(docstring, section)
        if section == "Attributes":
            there = attributes_of(node.name)
        elif section == "Args":
            there = parameters_of(node)
        else:
            there = names_used() | set(classes())
        missing += [f"{where}: {name}" for name in names if name.rpartition(".")[2] not in there]
    assert not missing, "\n".join(missing)


def test_an_attribute_that_a_docstring_names_with_its_class_is_there() -> None:
    missing = [
        f"{where}: {owner}.{name}"
        for where, _, docstring in docstrings()
        for owner, name in re.findall(r"(?<!`)`(\w+)\.(\w+)`", docstring)
        if owner in classes() and name not in attributes_of(owner)
    ]
    assert not missing, "\n".join(missing)
