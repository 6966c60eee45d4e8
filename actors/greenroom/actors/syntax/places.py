"""The files of a workspace as imports name them: by folders, by the ends of paths, by manifests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from posixpath import dirname, join, normpath
from typing import Any, Final, NamedTuple

import msgspec

_GO_MODULE: Final = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
_CRATE: Final = re.compile(r"^\[package\](?:(?!^\[).)*?^name\s*=\s*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"(\"(?:[^\"\\]|\\.)*\")|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r",(?=\s*[}\]])")
MANIFESTS: Final = frozenset({"go.mod", "Cargo.toml", "package.json", "tsconfig.json", "jsconfig.json"})
"""The names of the files whose texts say what imports mean."""


class Alias(NamedTuple):
    """What the beginning of an import stands for: `@/` of the files below `folder` for `target`."""

    folder: str
    prefix: str
    target: str
    is_whole: bool


class Places:
    """The files of a workspace.

    Args:
        files: Their paths, with slashes, below the workspace's root.
        manifests: The texts of those whose names are in `MANIFESTS`, by path; what is not given, or cannot
            be read, says nothing.

    Attributes:
        files: All of them.
        modules: The folders of modules of Go.
        crates: The folders of packages of Rust, by the names that code calls them by.
        packages: The folders of packages of JavaScript.
        aliases: What TypeScript's settings say, those of the innermost folder first.
    """

    def __init__(self, files: Iterable[str], manifests: Mapping[str, str] | None = None) -> None:
        self.files = frozenset(files)
        self._by_end: dict[str, list[str]] = {}
        self._by_folder: dict[str, list[str]] = {}
        for path in sorted(self.files):
            folder, _, name = path.rpartition("/")
            self._by_end.setdefault(name, []).append(path)
            self._by_end.setdefault(f"{folder.rpartition('/')[2]}/{name}", []).append(path)
            self._by_folder.setdefault(folder, []).append(path)
        self._roots: dict[str, list[str]] = {}
        self.modules: dict[str, str] = {}
        self.crates: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.aliases: list[Alias] = []
        for path, text in sorted((manifests or {}).items(), key=lambda item: (-item[0].count("/"), item[0])):
            self._learn(path, text)

    def folder(self, path: str) -> list[str]:
        """Return the files right in a folder, in their order."""
        return self._by_folder.get(path, [])

    def folders_ending(self, tail: str) -> list[str]:
        """Return the folders that have files and whose paths end with another."""
        return [path for path in self._by_folder if path == tail or path.endswith(f"/{tail}")]

    def python_roots(self, importer: str) -> list[str]:
        """Return the folders around a file that are no packages, each with its `src`, innermost first."""
        folder = dirname(importer)
        found = self._roots.get(folder)
        if found is None:
            around = [each for each in ancestors(importer) if join(each, "__init__.py") not in self.files]
            found = [join(each, source) for each in around for source in ("", "src")]
            self._roots[folder] = found
        return found

    def first(self, paths: Iterable[str]) -> str | None:
        """Return the first of paths that is a file."""
        return next((path for path in paths if path in self.files), None)

    def ending(self, tail: str, importer: str) -> str | None:
        """Return the file whose path ends with another, the nearest to a file; None if there are several."""
        key = "/".join(tail.rsplit("/", 2)[-2:])
        found = [path for path in self._by_end.get(key, ()) if path == tail or path.endswith(f"/{tail}")]
        if len(found) > 1:
            shared = [_shared(path, importer) for path in found]
            found = [path for path, count in zip(found, shared, strict=True) if count == max(shared)]
        return found[0] if len(found) == 1 else None

    def _learn(self, path: str, text: str) -> None:
        folder, _, name = path.rpartition("/")
        if name == "go.mod" and (found := _GO_MODULE.search(text)):
            self.modules.setdefault(found[1], folder)
        elif name == "Cargo.toml" and (found := _CRATE.search(text)):
            self.crates.setdefault(found[1].replace("-", "_"), folder)
        elif name == "package.json" and isinstance(package := _json(text).get("name"), str):
            self.packages.setdefault(package, folder)
        elif name in {"tsconfig.json", "jsconfig.json"}:
            self._learn_aliases(folder, _json(text).get("compilerOptions"))

    def _learn_aliases(self, folder: str, options: object) -> None:
        if not isinstance(options, dict):
            return
        base, paths = options.get("baseUrl"), options.get("paths")
        root = below(folder, base if isinstance(base, str) else ".")
        for pattern, targets in paths.items() if isinstance(paths, dict) else ():
            for target in targets if isinstance(targets, list) else ():
                if isinstance(target, str):
                    prefix, star, _ = str(pattern).partition("*")
                    self.aliases.append(
                        Alias(folder, prefix, below(root, target.partition("*")[0]), is_whole=not star)
                    )
        if isinstance(base, str):
            self.aliases.append(Alias(folder, "", root, is_whole=False))


def below(folder: str, path: str) -> str:
    """Return a path that is given from a folder; it begins with `..` where it leads out of the workspace."""
    whole = normpath(join(folder, path))
    return "" if whole == "." else whole


def ancestors(path: str) -> Iterable[str]:
    """Yield the folders that a file is in, the innermost first; the last is the root, empty."""
    while path:
        path = dirname(path)
        yield path


def _shared(path: str, other: str) -> int:
    parts, others = path.split("/"), other.split("/")
    pairs = zip(parts, others, strict=False)
    return next((count for count, (part, same) in enumerate(pairs) if part != same), len(parts))


def _json(text: str) -> dict[str, Any]:
    plain = _TRAILING_COMMA.sub("", _COMMENT.sub(lambda found: found[1] or "", text))
    try:
        value = msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
