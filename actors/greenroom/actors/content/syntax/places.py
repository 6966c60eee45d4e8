"""Find the workspace files that imports mean: by folders, ends of paths, and manifests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from posixpath import basename, dirname, join, normpath
from typing import Any, Final, NamedTuple

import msgspec

_GO_MODULE: Final = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
_CRATE: Final = re.compile(r"^\[package\](?:(?!^\[).)*?^name\s*=\s*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"(\"(?:[^\"\\]|\\.)*\")|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TARGET: Final = re.compile(r"(?:^|/)(?:Sources|Tests)/([^/]+)/")
_SEPARATOR: Final = re.compile(r"[./]")
_TRAILING_COMMA: Final = re.compile(r",(?=\s*[}\]])")
MANIFESTS: Final = frozenset(
    {"go.mod", "Cargo.toml", "package.json", "tsconfig.json", "jsconfig.json", "composer.json"}
)
"""The names of files that define the meaning of imports."""


class Alias(NamedTuple):
    """An alias of imports: in files below `folder`, `prefix` means `target`."""

    folder: str
    prefix: str
    target: str
    is_whole: bool


class Places:
    """The files of a workspace.

    Paths have slashes and lie below the workspace's root. Malformed manifests are ignored.

    Attributes:
        crates: The folders of Rust packages, by their names in code.
        namespaces: The folders of PHP namespaces, from composer.json.
        aliases: The aliases of TypeScript's settings, those of the innermost folder first.
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
        self._projects = {
            basename(path).removesuffix(".csproj"): dirname(path)
            for path in sorted(self.files)
            if path.endswith(".csproj")
        }
        self._roots: dict[str, list[str]] = {}
        self.modules: dict[str, str] = {}
        self.crates: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.namespaces: dict[str, list[str]] = {}
        self.aliases: list[Alias] = []
        for path, text in sorted((manifests or {}).items(), key=lambda item: (-item[0].count("/"), item[0])):
            self._learn(path, text)

    def folder(self, path: str) -> list[str]:
        """Return the files directly in a folder, in order."""
        return self._by_folder.get(path, [])

    def folders_ending(self, tail: str) -> list[str]:
        """Return each folder that holds files if its path ends with ``tail``."""
        found = self._by_last.get(_SEPARATOR.split(tail)[-1], ())
        return [path for path in found if path == tail or path.endswith(f"/{tail}")]

    def folders_named(self, name: str) -> list[str]:
        """Return each folder that holds files if its path ends with a dotted name."""
        found = self._by_last.get(name.rpartition(".")[2], ())
        return [path for path in found if f".{path}".replace("/", ".").endswith(f".{name}")]

    def in_project(self, name: str) -> list[str]:
        """Map a dotted name that begins with a C# project's name to its folders."""
        starts = [each for each in prefixes(name, ".") if each in self._projects]
        return [
            below(self._projects[each], name[len(each) :].strip(".").replace(".", "/")) for each in starts
        ]

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """The files of Swift targets by name: folders in `Sources` or `Tests`."""
        found: dict[str, list[str]] = {}
        for path in sorted(self.files):
            if path.endswith(".swift") and (target := _TARGET.search(path)):
                found.setdefault(target[1], []).append(path)
        return found

    @cached_property
    def _by_last(self) -> dict[str, list[str]]:
        """Folders by the last part of their path."""
        found: dict[str, list[str]] = {}
        for path in self._by_folder:
            found.setdefault(_SEPARATOR.split(path)[-1], []).append(path)
        return found

    def python_roots(self, importer: str) -> list[str]:
        """Return the enclosing folders that are no packages, each with its `src`, innermost first."""
        folder = dirname(importer)
        found = self._roots.get(folder)
        if found is None:
            around = [each for each in ancestors(importer) if join(each, "__init__.py") not in self.files]
            found = [join(each, source) for each in around for source in ("", "src")]
            self._roots[folder] = found
        return found

    def first(self, paths: Iterable[str]) -> str | None:
        """Return the first path that is a file."""
        return next((path for path in paths if path in self.files), None)

    def ending(self, tail: str, importer: str) -> str | None:
        """Return the path that ends with ``tail`` and is nearest to ``importer``; None if ambiguous."""
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
        elif name == "composer.json":
            self._learn_namespaces(folder, _json(text))
        elif name in {"tsconfig.json", "jsconfig.json"}:
            self._learn_aliases(folder, _json(text).get("compilerOptions"))

    def _learn_namespaces(self, folder: str, package: dict[str, Any]) -> None:
        for loading in (package.get("autoload"), package.get("autoload-dev")):
            spaces = loading.get("psr-4") if isinstance(loading, dict) else None
            for space, folders in spaces.items() if isinstance(spaces, dict) else ():
                for each in folders if isinstance(folders, list) else [folders]:
                    if isinstance(each, str):
                        self.namespaces.setdefault(space.strip("\\"), []).append(below(folder, each))

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
    """Join a folder and a relative path; a result outside the workspace begins with `..`."""
    whole = normpath(join(folder, path))
    return "" if whole == "." else whole


def ancestors(path: str) -> Iterable[str]:
    """Yield the enclosing folders of a file, the innermost first; the root is empty."""
    while path:
        path = dirname(path)
        yield path


def prefixes(path: str, separator: str) -> Iterable[str]:
    """Yield a path and its shorter prefixes, down to one part."""
    while path:
        yield path
        path = path.rpartition(separator)[0]


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is below a folder, which is empty for the root."""
    return not folder or path.startswith(f"{folder}/")


def as_list(path: str | None) -> list[str]:
    """Return a path in a list; an empty list for None."""
    return [] if path is None else [path]


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
