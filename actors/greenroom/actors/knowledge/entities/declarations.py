"""Parse declarations: YAML that people write, and project manifests, which declare libraries."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

from greenroom.actors.core.validation.strict_json import YAML_VALUE_ERRORS
from greenroom.actors.knowledge.entities.names import fold
from greenroom.actors.knowledge.entities.records import (
    MAX_NAME,
    MAX_SOURCE_CHARACTERS,
    EntityDeclaration,
    UnreadableDeclarationsError,
)

_MAX_DEPTH: Final = 20
_MAX_VERSION: Final = 200
_SPACE: Final = re.compile(r"\s+")
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?([^;]*)")
_MODULE_AND_VERSION: Final = 2
_GO_MAJOR: Final = re.compile(r"v\d+")
_VOCABULARY: Final = ("word_vectors", "vocabulary.txt")
_ORDINARY_WORDS: Final = 29_000
"""In the word vectors' vocabulary, this many lines come before the computing terms."""

Libraries = Iterator[tuple[str, str | None]]
"""Names of libraries, each with its version if one is stated."""


def parse_declarations(name: str, text: str) -> list[EntityDeclaration]:
    """Parse a file's declarations: the name shows whether it is a manifest; else parse YAML.

    Raises:
        UnreadableDeclarationsError: The file cannot be read; the text says why.
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
    except (ValueError, RecursionError) as error:  # the errors of TOML and JSON are ValueErrors
        reason = _SPACE.sub(" ", str(error))
        raise UnreadableDeclarationsError(f"{name}: it cannot be read: {reason}") from None


def _from_yaml(name: str, text: str) -> list[EntityDeclaration]:
    import yaml  # noqa: PLC0415 - only declarations in files need it

    try:
        _check_yaml(name, text)
        loaded = yaml.load(text, _yaml_loader())  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, *YAML_VALUE_ERRORS) as error:
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
    """Check by the text's parse events that it is cheap to load."""
    import yaml  # noqa: PLC0415 - as above

    depth = 0
    for event in yaml.parse(text, _yaml_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise UnreadableDeclarationsError(f"{name}: it is nested too deeply, or refers to itself")


def _yaml_loader() -> Any:
    """Return the safe loader; if installed, the C version, which is ten times as fast."""
    import yaml  # noqa: PLC0415 - as above

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _libraries(manifest: str, found: Libraries) -> list[EntityDeclaration]:
    """Make entities from libraries; a name that is an English word is ambiguous."""
    vocabulary = files("greenroom.actors.search.embedding.models").joinpath(*_VOCABULARY).read_text("utf-8")
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


def list_texts(value: Any) -> list[str]:
    """Return the texts in a value, or none if the value is not a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _pyproject(text: str) -> Libraries:
    """Yield the requirements in a ``pyproject.toml``: of the project, extras, groups, Poetry.

    If an extra requires another extra of the same project, this names no library.
    """
    whole = tomllib.loads(text)
    project = _table(whole.get("project"))
    own = fold(str(project.get("name", "")))
    groups = [project.get("dependencies")]
    groups += _table(project.get("optional-dependencies")).values()
    groups += _table(whole.get("dependency-groups")).values()
    for group in groups:
        for requirement in list_texts(group):
            if (found := _REQUIREMENT.match(requirement)) and fold(found[1]) != own:
                yield found[1], found[2].strip(" ()") or None
    poetry = _table(_table(whole.get("tool")).get("poetry"))
    tables = [poetry, *map(_table, _table(poetry.get("group")).values())]
    for table in tables:
        for key in ("dependencies", "dev-dependencies"):
            yield from ((name, version) for name, version in _versions(table.get(key)) if name != "python")


def _package_json(text: str) -> Libraries:
    whole = _table(json.loads(text))
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        yield from _versions(whole.get(key))


def _go_mod(text: str) -> Libraries:
    """Yield the direct requirements of a ``go.mod``."""
    in_block = False
    for line in text.splitlines():
        requirement, _, remark = line.partition("//")
        words = requirement.split()
        if words[:1] == [")"]:
            in_block = False
        elif words[:2] == ["require", "("]:
            in_block = True
        elif in_block or words[:1] == ["require"]:
            required = words if in_block else words[1:]
            if len(required) == _MODULE_AND_VERSION and remark.strip() != "indirect":
                yield required[0], required[1]


def _go_name(module: str) -> str:
    """Return a Go module's short name: the last part of its path, ignoring a version."""
    parts = module.split("/")
    if len(parts) > 1 and _GO_MAJOR.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1]


def _cargo(text: str) -> Libraries:
    whole = tomllib.loads(text)
    tables = [whole, _table(whole.get("workspace")), *map(_table, _table(whole.get("target")).values())]
    for table in tables:
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield from _versions(table.get(key))


def _versions(dependencies: Any) -> Libraries:
    """Yield names and versions from a table; a version may be in a nested table."""
    for name, stated in _table(dependencies).items():
        version = _table(stated).get("version", stated)
        yield str(name), version if isinstance(version, str) else None


MANIFESTS: Final[Mapping[str, Callable[[str], Libraries]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "go.mod": _go_mod,
    "Cargo.toml": _cargo,
}
"""Parsers of manifests by file name."""
