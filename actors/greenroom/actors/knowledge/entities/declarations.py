"""Declarations in files: YAML by people, and the manifests of projects, whose libraries these are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

from greenroom.actors.base.yaml_errors import MALFORMED
from greenroom.actors.entities.errors import UnreadableDeclarationsError
from greenroom.actors.knowledge.corpora.requests.entity_requests import (
    MAX_NAME,
    MAX_SOURCE_CHARACTERS,
    EntityDeclaration,
)
from greenroom.actors.knowledge.entities.names import folded

_MAX_DEPTH: Final = 20
_MAX_VERSION: Final = 200
_SPACE: Final = re.compile(r"\s+")
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?([^;]*)")
_MODULE_AND_VERSION: Final = 2
_GO_MAJOR: Final = re.compile(r"v\d+")
_VOCABULARY: Final = ("word_vectors", "vocabulary.txt")
_ORDINARY_WORDS: Final = 29_000
"""Lines of the word vectors' vocabulary that are no words of computing, which follow."""

Libraries = Iterator[tuple[str, str | None]]
"""Names of libraries, with the version where one is stated."""


def declarations_in(name: str, text: str) -> list[EntityDeclaration]:
    """Return what a file declares: a manifest by its name, anything else as YAML.

    Args:
        name: The path of the file.
        text: What it says.

    Raises:
        UnreadableDeclarationsError: it cannot be read, and why.
    """
    if len(text) > MAX_SOURCE_CHARACTERS:
        raise UnreadableDeclarationsError(
            f"{name}: it has {len(text):,} characters, and the limit is {MAX_SOURCE_CHARACTERS:,}"
        )
    base = name.replace("\\", "/").rpartition("/")[2]
    read = MANIFESTS.get(base)
    try:
        if read is None:
            return _from_yaml(name, text)
        return _libraries(base, read(text))
    except (ValueError, RecursionError) as error:  # TOML's and JSON's errors are ValueErrors
        said = _SPACE.sub(" ", str(error))
        raise UnreadableDeclarationsError(f"{name}: it cannot be read: {said}") from None


def _from_yaml(name: str, text: str) -> list[EntityDeclaration]:
    """Return the entities that a YAML file declares: a list of them, or one under ``entities``."""
    import yaml  # noqa: PLC0415 - only who declares by a file waits for it

    try:
        _check_yaml(name, text)
        loaded = yaml.load(text, _yaml_loader())  # noqa: S506 - a safe one
    except (yaml.YAMLError, *MALFORMED) as error:
        raise ValueError(f"it is no YAML: {error}") from None
    listed = loaded.get("entities") if isinstance(loaded, dict) else loaded
    if not isinstance(listed, list):
        raise UnreadableDeclarationsError(f"{name}: it has no list of entities; begin with a line entities:")
    found: list[EntityDeclaration] = []
    for number, each in enumerate(listed, 1):
        try:
            found.append(msgspec.convert(each, EntityDeclaration))
        except msgspec.ValidationError as error:
            raise UnreadableDeclarationsError(f"{name}: entity {number}: {error}") from None
    return found


def _check_yaml(name: str, text: str) -> None:
    """Refuse what would cost too much to load, by its events alone."""
    import yaml  # noqa: PLC0415 - as above

    depth = 0
    for event in yaml.parse(text, _yaml_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise UnreadableDeclarationsError(f"{name}: it is nested too deeply, or refers to itself")


def _yaml_loader() -> Any:
    """Return the safe loader that is written in C, ten times as fast, where there is one."""
    import yaml  # noqa: PLC0415 - as above

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _libraries(manifest: str, found: Libraries) -> list[EntityDeclaration]:
    """Return libraries as entities, each once; a name that is an English word is ambiguous."""
    vocabulary = files("greenroom.actors.embedding").joinpath(*_VOCABULARY).read_text("utf-8")
    ordinary = frozenset(vocabulary.split("\n", _ORDINARY_WORDS)[:_ORDINARY_WORDS])
    declared: dict[str, EntityDeclaration] = {}
    for full, version in found:
        name = _go_name(full) if manifest == "go.mod" else full
        if not 0 < len(full) <= MAX_NAME or name in declared:
            continue
        declared[name] = EntityDeclaration(
            name=name,
            type="library",
            aliases=[full] if full != name else [],
            ambiguous=[name] if name.lower() in ordinary else [],
            version=version[:_MAX_VERSION] if version else None,
        )
    return list(declared.values())


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> Iterable[str]:
    return (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _pyproject(text: str) -> Libraries:
    """Yield the requirements of a ``pyproject.toml``: the project's, its extras', its groups', Poetry's.

    That some extras require others of the project itself names no library.
    """
    whole = tomllib.loads(text)
    project = _table(whole.get("project"))
    own = folded(str(project.get("name", "")))
    groups = [project.get("dependencies")]
    groups += _table(project.get("optional-dependencies")).values()
    groups += _table(whole.get("dependency-groups")).values()
    for group in groups:
        for requirement in _texts(group):
            if (found := _REQUIREMENT.match(requirement)) and folded(found[1]) != own:
                yield found[1], found[2].strip(" ()") or None
    poetry = _table(_table(whole.get("tool")).get("poetry"))
    tables = [poetry, *map(_table, _table(poetry.get("group")).values())]
    for table in tables:
        for key in ("dependencies", "dev-dependencies"):
            yield from ((name, version) for name, version in _versions(table.get(key)) if name != "python")


def _package_json(text: str) -> Libraries:
    """Yield the dependencies of a ``package.json``."""
    whole = _table(json.loads(text))
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        yield from _versions(whole.get(key))


def _go_mod(text: str) -> Libraries:
    """Yield the modules that a ``go.mod`` requires, but for those that others need."""
    in_block = False
    for line in text.splitlines():
        said, _, remark = line.partition("//")
        words = said.split()
        if words[:1] == [")"]:
            in_block = False
        elif words[:2] == ["require", "("]:
            in_block = True
        elif in_block or words[:1] == ["require"]:
            required = words if in_block else words[1:]
            if len(required) == _MODULE_AND_VERSION and remark.strip() != "indirect":
                yield required[0], required[1]


def _go_name(module: str) -> str:
    """Return what a Go module is called: the last part of its path that is no version."""
    parts = module.split("/")
    if len(parts) > 1 and _GO_MAJOR.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1]


def _cargo(text: str) -> Libraries:
    """Yield the dependencies of a ``Cargo.toml``."""
    whole = tomllib.loads(text)
    tables = [whole, _table(whole.get("workspace")), *map(_table, _table(whole.get("target")).values())]
    for table in tables:
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield from _versions(table.get(key))


def _versions(dependencies: Any) -> Libraries:
    """Yield a table of names and versions, where a version may be a table that has one."""
    for name, stated in _table(dependencies).items():
        version = _table(stated).get("version", stated)
        yield str(name), version if isinstance(version, str) else None


MANIFESTS: Final[Mapping[str, Callable[[str], Libraries]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "go.mod": _go_mod,
    "Cargo.toml": _cargo,
}
"""What reads the manifest of a name."""
