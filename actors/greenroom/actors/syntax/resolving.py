"""Which files of a workspace an import means, as far as the language alone says it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from posixpath import basename, dirname, join
from typing import Final

from greenroom.actors.syntax.places import Places, ancestors, below
from greenroom.actors.syntax.source import Import

_PYTHON: Final = (".py", ".pyi", "/__init__.py", "/__init__.pyi")
_SCRIPTS: Final = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_COMPILED: Final[Mapping[str, tuple[str, ...]]] = {
    ".js": (".ts", ".tsx"),
    ".jsx": (".tsx",),
    ".mjs": (".mts",),
    ".cjs": (".cts",),
}
_RUST_ROOTS: Final = ("lib.rs", "main.rs")


def resolve_import(imported: Import, importer: str, language: str, places: Places) -> list[str]:
    """Return the files that an import means.

    It is one in most languages; a package of Go, and all of a package of Java, is several. It is none where
    nothing in the workspace is meant, or where more than paths and manifests would have to be known, such as
    search paths, what is built, what a module hands on.

    Args:
        imported: What a file imports.
        importer: The path of that file.
        language: Its language.
        places: The files of the workspace.
    """
    resolve = _RESOLVERS.get(language)
    return (
        [] if resolve is None else [path for path in resolve(imported, importer, places) if path != importer]
    )


def _python(imported: Import, importer: str, places: Places) -> list[str]:
    """`a.b` is below a folder that is no package: one around the importer, its `src`, or the only one."""
    dots = len(imported.module) - len(imported.module.lstrip("."))
    module = imported.module[dots:].replace(".", "/")
    tails = [tail for tail in (f"{module}/{imported.name}", module) if imported.name or tail == module]
    if dots:
        base = dirname(importer)
        for _ in range(dots - 1):
            base = below(base, "..")
        return _one(places.first(_python_files(below(base, tail.strip("/")) for tail in tails)))
    if module.partition("/")[0] in sys.stdlib_module_names:
        return []
    for tail in tails:
        found = places.first(_python_files(join(root, tail) for root in places.python_roots(importer)))
        if found is None:
            ends = _PYTHON if "/" in tail else _PYTHON[2:]  # one name alone is that of many a file
            endings = (places.ending(tail + end, importer) for end in ends)
            found = next((path for path in endings if path and _is_top(path, tail, places)), None)
        if found is not None:
            return [found]
    return []


def _python_files(stems: Iterable[str]) -> Iterable[str]:
    return (stem + end if stem else end.removeprefix("/") for stem in stems for end in _PYTHON)


def _is_top(path: str, tail: str, places: Places) -> bool:
    """Return whether the first name of a module is that of no package's part."""
    root = path[: path.rindex(tail)].rstrip("/")
    return join(root, "__init__.py") not in places.files


def _script(imported: Import, importer: str, places: Places) -> list[str]:
    """`./a` is a file or a folder with an `index`; other names are aliases or packages of the workspace."""
    module = imported.module
    if module.startswith("."):
        return _one(_script_file(below(dirname(importer), module), places))
    for alias in places.aliases:
        if _is_in(importer, alias.folder) and (
            module == alias.prefix if alias.is_whole else module.startswith(alias.prefix)
        ):
            found = _script_file(below(alias.target, module[len(alias.prefix) :]), places)
            if found is not None:
                return [found]
    parts = module.split("/")
    size = 2 if module.startswith("@") else 1
    folder = places.packages.get("/".join(parts[:size]))
    if folder is None:
        return []
    rest = "/".join(parts[size:]) or "index"
    return _one(
        next(filter(None, (_script_file(join(folder, source, rest), places) for source in ("src", ""))), None)
    )


def _script_file(path: str, places: Places) -> str | None:
    stem, dot, suffix = path.rpartition(".")
    compiled = [stem + end for end in _COMPILED.get(dot + suffix, ())]
    indexes = [join(path, f"index{end}") for end in _SCRIPTS]
    return places.first([path, *(path + end for end in _SCRIPTS), *compiled, *indexes])


def _go(imported: Import, _importer: str, places: Places) -> list[str]:
    """The path after that of a module is the folder of the package."""
    for module in _prefixes(imported.module, "/"):
        if module in places.modules:
            folder = below(places.modules[module], imported.module[len(module) :].strip("/"))
            return [
                path
                for path in places.folder(folder)
                if path.endswith(".go") and not path.endswith("_test.go")
            ]
    return []


def _rust(imported: Import, importer: str, places: Places) -> list[str]:
    """A path begins at the crate, at the module itself, at the one above, or at a crate of the workspace."""
    first, *rest = [part for part in (*imported.module.split("::"), imported.name) if part not in {"", "*"}]
    own = (
        dirname(importer) if basename(importer) in {*_RUST_ROOTS, "mod.rs"} else importer.removesuffix(".rs")
    )
    if first in {"self", "super"}:
        while first == "super":
            own = below(own, "..")
            first, rest = (rest[0], rest[1:]) if rest and rest[0] == "super" else ("", rest)
        return _one(_rust_file(own, rest, places))
    if first == "crate":
        roots = (
            each for each in ancestors(importer) if places.first(join(each, root) for root in _RUST_ROOTS)
        )
        root = next(roots, None)
        return [] if root is None else _one(_rust_file(root, rest, places))
    if first in places.crates:
        return _one(_rust_file(join(places.crates[first], "src"), rest, places))
    return _one(places.first(_rust_files(join(own, first)))) and _one(_rust_file(own, [first, *rest], places))


def _rust_file(folder: str, parts: list[str], places: Places) -> str | None:
    """Return the file of the innermost module that a path names below a module's folder."""
    found = places.first([*(join(folder, root) for root in _RUST_ROOTS), *_rust_files(folder)])
    for part in parts:
        folder = join(folder, part)
        inner = places.first(_rust_files(folder))
        if inner is None:
            break
        found = inner
    return found


def _rust_files(folder: str) -> tuple[str, str]:
    return f"{folder}.rs", join(folder, "mod.rs")


def _java(imported: Import, importer: str, places: Places) -> list[str]:
    """A package is a folder; a name of it is a file, or is in the file of the class before."""
    package = imported.module.replace(".", "/")
    names = [package] if imported.name == "*" else [f"{package}/{imported.name}", package]
    for name in names:
        for path in _prefixes(name, "/"):
            if basename(path)[:1].islower():
                break
            found = places.ending(f"{path}.java", importer)
            if found is not None:
                return [found]
    if imported.name != "*":
        return []
    packages = [
        [path for path in places.folder(folder) if path.endswith(".java")]
        for folder in places.folders_ending(package)
    ]
    filled = [each for each in packages if each]
    return filled[0] if len(filled) == 1 else []


def _c(imported: Import, importer: str, places: Places) -> list[str]:
    """A quoted name is looked for beside the importer first, then any where only one ends so."""
    name = imported.module[1:-1]
    beside = below(dirname(importer), name)
    if imported.module.startswith('"') and beside in places.files:
        return [beside]
    return _one(places.ending(name, importer))


def _prefixes(path: str, separator: str) -> Iterable[str]:
    """Yield a path and what is left of it as its last parts are taken away, down to one."""
    while path:
        yield path
        path = path.rpartition(separator)[0]


def _is_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _one(path: str | None) -> list[str]:
    return [] if path is None else [path]


_RESOLVERS: Final[Mapping[str, Callable[[Import, str, Places], list[str]]]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "tsx": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "cpp": _c,
}
