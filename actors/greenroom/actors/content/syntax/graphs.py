"""Graphs of a workspace: files linked by imports, symbols linked by uses, and reachable files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from posixpath import dirname
from typing import Final

import msgspec

from greenroom.actors.content.syntax.languages import NO_LANGUAGE, language_named, resolve_import
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import, Source

_ROLES: Final = frozenset({"call", "inherits", "type"})


class Linked(msgspec.Struct, frozen=True):
    """The part of a source file that graphs need: lines of symbols, and used names."""

    language: str
    imports: list[Import]
    lines: dict[str, int]
    uses: dict[str, set[tuple[str, bool]]]


def link_source(source: Source) -> Linked:
    """Return the part of a source file that graphs need."""
    lines = {each.path: each.line for each in reversed(source.symbols)}
    uses: dict[str, set[tuple[str, bool]]] = {}
    for each in source.references:
        if each.role in _ROLES:
            uses.setdefault(each.symbol, set()).add((each.name, bool(each.qualifier)))
    return Linked(source.language, source.imports, lines, uses)


def graph_of_files(files: Mapping[str, Linked], places: Places) -> dict[str, list[str]]:
    """Return the files that each file imports, each once."""
    return {
        path: list(
            dict.fromkeys(
                other for each in file.imports for other in resolve_import(each, path, file.language, places)
            )
        )
        for path, file in files.items()
    }


def graph_of_symbols(files: Mapping[str, Linked], imported: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the symbols that each symbol uses, by names alone.

    A name means its definitions in the same file, else in imported files, else in all files of the same
    language. A name without a qualifier means members only if it can mean nothing else.
    """
    defined = {path: _by_name(file.lines) for path, file in files.items()}
    anywhere: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path, symbols in defined.items():
        for name, paths in symbols.items():
            anywhere.setdefault((files[path].language, name), []).extend((path, each) for each in paths)
    graph: dict[str, list[str]] = {}
    for path, file in files.items():
        own = defined[path]
        for symbol, uses in file.uses.items():
            leads = graph[node_of(path, symbol)] = []
            for name, is_member in sorted(uses):
                if name in own:
                    leads += (node_of(path, each) for each in own[name])
                    continue
                meant = [
                    (other, each) for other in imported[path] for each in defined.get(other, {}).get(name, ())
                ] or anywhere.get((file.language, name), [])
                top = [] if is_member else [found for found in meant if found[1] == name]
                leads += (node_of(*found) for found in top or meant)
    return graph


def definitions(files: Mapping[str, Linked], symbol: str) -> list[str]:
    """Return the nodes of a symbol, given its name or the end of its path."""
    return sorted(
        node_of(path, each)
        for path, file in files.items()
        for each in file.lines
        if each == symbol or each.endswith(f".{symbol}")
    )


def members(files: Mapping[str, Linked], nodes: Iterable[str]) -> list[str]:
    """Return the nodes inside other nodes, such as the methods of a class."""
    found: list[str] = []
    for path, symbol in map(parts_of, nodes):
        lines = files[path].lines if path in files else {}
        found += (node_of(path, each) for each in lines if each.startswith(f"{symbol}."))
    return found


def node_of(path: str, symbol: str) -> str:
    """Return the node of a symbol in a file, or of the file itself."""
    return f"{path}:{symbol}" if symbol else path


def parts_of(node: str) -> tuple[str, str]:
    """Return the file and the symbol of a node, the inverse of `node_of`."""
    path, _, symbol = node.rpartition(":")
    return (path, symbol) if path else (symbol, "")


def _by_name(symbols: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for symbol in symbols:
        found.setdefault(symbol.rpartition(".")[2], []).append(symbol)
    return found


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """A reachable file, and the file before it on a shortest path."""

    path: str
    depth: int
    via: str


class Reach(msgspec.Struct, frozen=True, array_like=True):
    """The files that are reachable from a file.

    Attributes:
        files: The nearest first; files at the same depth in order of paths; without the file itself.
        cycles: Shortest paths back to the file; each goes from the file to the last file before it.
        is_cut: Whether limits left out some files.
    """

    files: list[Reached]
    cycles: list[list[str]]
    is_cut: bool


def invert(graph: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Invert a graph: return the predecessors of each file."""
    found: dict[str, list[str]] = {}
    for path in sorted(graph):
        for other in graph[path]:
            found.setdefault(other, []).append(path)
    return found


def reach(graph: Mapping[str, Iterable[str]], path: str, depth: int, most: int = 1_000) -> Reach:
    """Return the files reachable from a file: dependencies, or dependents if ``graph`` is inverted.

    ``graph`` has the successors of each file; at most ``most`` files and ``most`` cycles are returned.
    """
    known = {path: Reached(path, 0, "")}
    cycles: list[list[str]] = []
    following = deque([path])
    while following:
        at = following.popleft()
        if known[at].depth >= depth:
            continue
        for other in sorted(set(graph.get(at, ()))):
            if other == path and len(cycles) < most:
                cycles.append(_way(known, at))
            if other not in known:
                if len(known) > most:
                    return Reach(_files(known), cycles, is_cut=True)
                known[other] = Reached(other, known[at].depth + 1, at)
                following.append(other)
    last = [each for each, found in known.items() if found.depth == depth]
    is_cut = any(other not in known for each in last for other in graph.get(each, ()))
    return Reach(_files(known), cycles, is_cut)


def _way(known: Mapping[str, Reached], path: str) -> list[str]:
    way = [path]
    while known[way[-1]].via:
        way.append(known[way[-1]].via)
    return way[::-1]


def _files(known: Mapping[str, Reached]) -> list[Reached]:
    return sorted((each for each in known.values() if each.depth), key=lambda each: (each.depth, each.path))


def compare_by_imports(path: str, files: Mapping[str, Source], places: Places) -> dict[str, dict[str, float]]:
    """Compare a file with others by two signals from 0 to 1.

    For each path: ``imports``, the share of common imports, and ``linked``, 1 if one file imports the other.
    """
    known: dict[tuple[str, str, str, str], list[str]] = {}
    brought = {each: _brought(source, places, known) for each, source in files.items()}
    own = brought.get(path, set())
    found: dict[str, dict[str, float]] = {}
    for other, theirs in brought.items():
        if other != path:
            every = len(own | theirs)
            found[other] = {
                "imports": len(own & theirs) / every if every else 0.0,
                "linked": float(other in own or path in theirs),
            }
    return found


def _brought(source: Source, places: Places, known: dict[tuple[str, str, str, str], list[str]]) -> set[str]:
    """Return the imports of a file: files, and names of modules outside the workspace."""
    path, language = source.path, source.language
    where = (
        path if (language_named(language) or NO_LANGUAGE).imports_by_path else dirname(path)
    )  # with these imports, the importer's name matters, too
    found: set[str] = set()
    for each in source.imports:
        key = (where, language, each.module, each.name)
        if key not in known:
            known[key] = resolve_import(each, path, language, places)
        found.update(known[key] or [each.module])
    return found - {path}
