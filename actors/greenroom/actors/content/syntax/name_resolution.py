"""Resolve uses of names to definitions, by scopes and imports alone.

A name without a qualifier is searched in its scopes, at the top of its file, and in its imports. In some
languages it is also searched in files of the same package and in all of an imported file. A member of `self`
or `this` is a member of the enclosing class. A member of a module or a class is searched there, also through
re-exports. The values of variables are unknown, so their members stay unresolved. Among local variables, only
parameters hide outer names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from posixpath import basename, dirname
from typing import Final, NamedTuple

from greenroom.actors.content.syntax.languages import (
    NO_LANGUAGE,
    language_named,
    language_of,
    resolve_import,
)
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import, Kind, Reference, Source

_OWN: Final = frozenset({"self", "this", "cls", "Self", "$this", "static"})
_INNER: Final[frozenset[Kind]] = frozenset({"function", "method", "module", "macro"})
_FOLDER_FILES: Final = frozenset({"__init__", "index", "mod", "lib"})
_MOST_STEPS: Final = 8


class Node(NamedTuple):
    """A definition: its file, and the path of the symbol in the file."""

    file: str
    symbol: str


Nodes = frozenset[Node]
_NONE: Final[Nodes] = frozenset()


class _File:
    """A file in the form that lookups of names need."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.language = language_named(source.language) or NO_LANGUAGE
        self.symbols = {each.path: each for each in reversed(source.symbols)}

    @cached_property
    def bound(self) -> dict[str, list[Import]]:
        """The imports of the file, by their local names."""
        found: dict[str, list[Import]] = {}
        for each in self.source.imports:
            name = each.alias or each.name or self.language.binds(each.module)
            if name and each.name != "*":
                found.setdefault(name, []).append(each)
        return found

    @cached_property
    def opened(self) -> list[Import]:
        """The imports of the file that import all names of a module."""
        return [
            each
            for each in self.source.imports
            if each.name == "*" or (self.language.opens and not (each.name or each.alias))
        ]

    def scopes(self, symbol: str) -> Iterator[str]:
        """Yield the scopes for an unqualified name in a symbol, the innermost first."""
        for scope in _around(symbol):
            known = self.symbols.get(scope)
            is_open = known is None or known.kind in _INNER or scope == symbol
            if is_open or self.language.members_are_bare:
                yield scope
        yield ""

    def is_parameter(self, name: str, symbol: str) -> bool:
        """Return whether a name is a parameter of an enclosing function."""
        signatures = [
            known.signature
            for scope in _around(symbol)
            if (known := self.symbols.get(scope)) is not None
            and known.kind in {"function", "method"}
            and name in known.signature
        ]
        if not signatures:
            return False
        forms = _parameter(name, is_last=self.language.type_is_first)
        return any(forms.search(each) for each in signatures)


class Meanings:
    """Resolves uses of names; it needs the files that are ``lacking`` to go on."""

    def __init__(self, files: Mapping[str, Source], places: Places) -> None:
        self.lacking: set[str] = set()
        self._sources = files
        self._places = places
        self._files: dict[str, _File] = {}
        self._opened: dict[str, list[str]] = {}
        self._known: dict[tuple[str, str, bool], tuple[int, Nodes]] = {}

    def of_use(self, path: str, use: Reference) -> Nodes:
        """Return the definitions that a use of a name means; empty if unknown."""
        file = self._file(path)
        self._known.clear()
        if file is None:
            return _NONE
        before = use.qualifier.split(".") if use.qualifier else []
        if before and before[0] in _OWN and len(before) == 1:
            members = (_joined(scope, use.name) for scope in _around(use.symbol))
            found = next((each for each in members if each in file.symbols), None)
            if found is not None or not file.language.imports_by_path:
                return _NONE if found is None else frozenset({Node(path, found)})
            before = []  # the module itself
        parts = [*before, use.name]
        if file.is_parameter(parts[0], use.symbol):
            return _NONE
        for scope in file.scopes(use.symbol):
            name = _joined(scope, *parts)
            if name in file.symbols:
                return frozenset({Node(path, name)})
        return self._elsewhere(file, parts, list(file.scopes(use.symbol)), _MOST_STEPS)

    def of_import(self, path: str, brought: Import) -> Nodes:
        """Return the definitions that an import names; empty if unknown."""
        file = self._file(path)
        self._known.clear()
        return _NONE if file is None or not brought.name else self._brought(file, brought, [], _MOST_STEPS)

    def _file(self, path: str) -> _File | None:
        known = self._files.get(path)
        if known is None and (source := self._sources.get(path)) is not None:
            known = self._files[path] = _File(source)
        return known

    def _elsewhere(self, file: _File, parts: Sequence[str], scopes: Sequence[str], steps: int) -> Nodes:
        """Resolve a name that its file does not define."""
        if steps <= 0:
            return _NONE
        for count in range(len(parts), 0, -1):
            bound = file.bound.get(".".join(parts[:count]))
            if bound is not None:
                return _all(self._brought(file, each, parts[count:], steps) for each in bound)
        language, path = file.language, file.source.path
        if language.imports_by_path and len(parts) > 1:
            return self._brought(file, Import("::".join(parts[:-1]), parts[-1], "", 0), [], steps)
        if language.shares_folder:
            beside = [each for each in self._places.folder(dirname(path)) if language_of(each) is language]
            found = _all(self._defined(each, parts) for each in beside)
            if found:
                return found
        found = _all(self._exported(other, parts, scopes, steps) for other in self._opened_by(file))
        return found if len({each.file for each in found}) == 1 else _NONE

    def _opened_by(self, file: _File) -> list[str]:
        """Return the files from which a file imports all names."""
        path = file.source.path
        if path not in self._opened:
            found = (resolve_import(each, path, file.language.name, self._places) for each in file.opened)
            self._opened[path] = list(dict.fromkeys(chain.from_iterable(found)))
        return self._opened[path]

    def _brought(self, file: _File, brought: Import, rest: Sequence[str], steps: int) -> Nodes:
        """Resolve a name that begins with an imported name."""
        first = brought.alias if brought.name == "default" else brought.name
        ways = [[first, *rest]] if first else [list(rest)] if rest else []
        if file.language.imports_members:
            ways.append([brought.module.rpartition(".")[2], first, *rest])
        found: set[Node] = set()
        for path in resolve_import(brought, file.source.path, file.language.name, self._places):
            module = [list(rest)] if rest and _module_name(path) == brought.name else []
            for way in [*ways, *module]:
                nodes = self._exported(path, way, [""], steps)
                found |= nodes
                if nodes:
                    break
        return frozenset(found)

    def _exported(self, path: str, parts: Sequence[str], scopes: Sequence[str], steps: int) -> Nodes:
        """Resolve a name in an imported file: to a definition there, or a re-export."""
        file = self._file(path)
        if file is None:
            if path in self._places.files:
                self.lacking.add(path)
            return _NONE
        tried = scopes if file.language.includes else [""]
        for scope in tried:
            if found := self._defined(path, [scope, *parts] if scope else parts):
                return found
        if file.language.shares_folder:
            return _NONE
        key = (path, _joined(*parts), tried == [""])
        known_for, known = self._known.get(key, (0, _NONE))
        if known_for < steps:  # cycles of imports are not followed repeatedly
            self._known[key] = (steps, _NONE)
            known = self._elsewhere(file, parts, scopes, steps - 1)
            self._known[key] = (steps, known)
        return known

    def _defined(self, path: str, parts: Sequence[str]) -> Nodes:
        file, name = self._file(path), _joined(*parts)
        return _NONE if file is None or name not in file.symbols else frozenset({Node(path, name)})


def _module_name(path: str) -> str:
    stem = basename(path).partition(".")[0]
    return basename(dirname(path)) if stem in _FOLDER_FILES else stem


def _parameter(name: str, *, is_last: bool) -> re.Pattern[str]:
    """Return the pattern of a parameter in a signature; its type comes before or after."""
    word = re.escape(name)
    if is_last:
        return re.compile(rf"[\w>\]&*(]\s*[\s&*]{word}\s*[,)=\[]")
    return re.compile(rf"[(,]\s*(?:mut\s+|\.{{3}}|[*&]+)?{word}\s*(?:[,:=)?]|\s[\w*\[(])")


def _around(symbol: str) -> Iterator[str]:
    """Yield the path of a symbol, then the paths of its scopes, the innermost first."""
    while symbol:
        yield symbol
        symbol = symbol.rpartition(".")[0]


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))


def _all(found: Iterable[Nodes]) -> Nodes:
    return frozenset().union(*found)
