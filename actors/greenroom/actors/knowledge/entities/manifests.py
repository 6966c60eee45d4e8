"""Select the manifests of a project that count, and the libraries that they name.

1. Manifests in folders of third-party code or of test data are ignored.
2. Of each kind, the manifest nearest to the root counts, and below it the members of its workspace.
3. A library has the first version that a counting manifest states.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.knowledge.entities.declarations import MANIFESTS, list_texts, parse_declarations
from greenroom.actors.knowledge.entities.names import fold
from greenroom.actors.knowledge.entities.records import (
    DeclarationFile,
    EntityDeclaration,
    UnreadableDeclarationsError,
)

_OF_OTHERS: Final = frozenset(
    {
        *("_vendor", "external", "externals", "fixtures", "node_modules", "site-packages"),
        *("testdata", "third-party", "third_party", "thirdparty", "vendor", "vendored"),
    }
)
_EXCLUDED: Final = "!"


class Libraries(NamedTuple):
    """Libraries that manifests declare, and a sentence for each unreadable manifest."""

    declared: list[EntityDeclaration]
    unreadable: list[str]


class _Workspace(NamedTuple):
    """Folder and members of a manifest that counts, or of a workspace file beside it."""

    folder: list[str]
    members: list[str]

    def is_above(self, folder: list[str]) -> bool:
        return len(folder) > len(self.folder) and folder[: len(self.folder)] == self.folder

    def has(self, folder: list[str]) -> bool:
        below = folder[len(self.folder) :]
        excluded = [each.removeprefix(_EXCLUDED) for each in self.members if each.startswith(_EXCLUDED)]
        return any(_fits(below, each) for each in self.members) and not any(
            _fits(below, each) for each in excluded
        )


def is_manifest(path: str) -> bool:
    """Return whether a document's name is the name of a manifest or a workspace file."""
    name = path.rpartition("/")[2]
    return name in MANIFESTS or name in _WORKSPACES


def is_third_party(path: str, root: str) -> bool:
    """Return whether a document is in a folder of third-party code or test data."""
    return not _OF_OTHERS.isdisjoint(path[len(root) :].lower().split("/")[:-1])


def select_libraries(manifests: Iterable[DeclarationFile]) -> Libraries:
    """Return the libraries that the counting manifests name."""
    declared: dict[str, EntityDeclaration] = {}
    unreadable: list[str] = []
    counting: dict[str, list[_Workspace]] = defaultdict(list)
    files = sorted(manifests, key=lambda file: (file.name.count("/"), file.name))
    for file in files:
        *folder, name = file.name.split("/")
        if name in _WORKSPACES:
            kind, members_in = _WORKSPACES[name]
            counting[kind].append(_Workspace(folder, members_in(file.text)))
    for file in files:
        *folder, kind = file.name.split("/")
        if kind in _WORKSPACES:
            continue
        above = [each for each in counting[kind] if each.is_above(folder)]
        if above and not any(each.has(folder) for each in above):
            continue
        members: list[str] = []
        try:
            for library in parse_declarations(file.name, file.text):
                known = declared.setdefault(fold(library.name), library)
                if known.version is None:
                    declared[fold(library.name)] = msgspec.structs.replace(known, version=library.version)
            members = _MEMBERS[kind](file.text) if kind in _MEMBERS else []
        except UnreadableDeclarationsError as error:
            unreadable.append(str(error))
        counting[kind].append(_Workspace(folder, members))
    return Libraries(list(declared.values()), unreadable)


def _fits(folder: list[str], pattern: str) -> bool:
    """Return whether a folder matches a pattern; ``**`` matches any number of folders."""
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    if "**" not in parts:
        return len(folder) == len(parts) and all(map(fnmatchcase, folder, parts))
    first = parts[: parts.index("**")]
    last = [part for part in parts[len(first) :] if part != "**"]
    return (
        len(folder) >= len(first) + len(last)
        and all(map(fnmatchcase, folder, first))
        and all(map(fnmatchcase, reversed(folder), reversed(last)))
    )


def _uv(text: str) -> list[str]:
    return _listed(_within(tomllib.loads(text), "tool", "uv", "workspace"))


def _cargo(text: str) -> list[str]:
    return _listed(_within(tomllib.loads(text), "workspace"))


def _npm(text: str) -> list[str]:
    stated = _within(json.loads(text)).get("workspaces")
    return list_texts(_within(stated).get("packages") if isinstance(stated, dict) else stated)


def _pnpm(text: str) -> list[str]:
    """Return the list under ``packages`` in its usual form: one entry a line."""
    _, _, listed = f"\n{text}".partition("\npackages:")
    members: list[str] = []
    for line in listed.splitlines()[1:]:
        entry = line.partition(" #")[0].strip()
        if entry.startswith("-"):
            members.append(entry[1:].strip(" \"'"))
        elif entry and not entry.startswith("#"):
            break
    return members


def _go(text: str) -> list[str]:
    lines = (line.partition("//")[0].split() for line in text.splitlines())
    return [words[-1] for words in lines if words and words[-1].startswith("./")]


def _listed(workspace: Mapping[str, Any]) -> list[str]:
    excluded = (f"{_EXCLUDED}{each}" for each in list_texts(workspace.get("exclude")))
    return [*list_texts(workspace.get("members")), *excluded]


def _within(value: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


_MEMBERS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "pyproject.toml": _uv,
    "Cargo.toml": _cargo,
    "package.json": _npm,
}
"""Functions that read a workspace's members from a readable manifest."""
_WORKSPACES: Final[Mapping[str, tuple[str, Callable[[str], list[str]]]]] = {
    "pnpm-workspace.yaml": ("package.json", _pnpm),
    "go.work": ("go.mod", _go),
}
"""For each file that defines a workspace: the kind of its manifests, and a function that reads members."""
