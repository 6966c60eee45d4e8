"""Graphs of a workspace: files by their imports, symbols by the names that they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from greenroom.actors.content.syntax.languages import resolve_import
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import, Source

_ROLES: Final = frozenset({"call", "inherits", "type"})


class Linked(msgspec.Struct, frozen=True):
    """The part of a source file that graphs need.

    Attributes:
        lines: The line of each symbol, by path.
        uses: The names that each symbol uses, and whether as a member.
    """

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
    language. A name without a qualifier means members only if there is nothing else.
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
    """Return the nodes within others, such as the methods of a class."""
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
