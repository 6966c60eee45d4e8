"""The tool `symbol_search`: find definitions and uses of symbols of the workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.syntax import Meanings, Node, Places, Source, is_like, is_path
from greenroom.actors.content.syntax.origins import NO_ORIGIN
from greenroom.actors.content.syntax.source import Import, Reference
from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.attributes import parse_rules
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_symbols
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_symbols import (
    FactsOfFile,
    FindNamed,
    NamedFiles,
    SymbolUsed,
)
from greenroom.actors.knowledge.corpora.storage.facts import (
    make_symbol,
    unpack_defined,
    unpack_sources,
)
from greenroom.actors.knowledge.corpora.storage.file_names import unpack_names
from greenroom.actors.knowledge.workspaces.files import read_attributes
from greenroom.actors.knowledge.workspaces.tools.names_in_text import find_in_text
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import (
    Shown,
    add_masked,
    describe_lines,
    list_places,
    read_facts,
)
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    Workspace,
    find_roots,
    open_workspace,
    read_progress,
)

MAX_ALIKE: Final = 10
"""If nothing has the given name, at most this many similar names are searched for."""
ROUNDS: Final = 3
"""Files that re-export names are read in at most this many rounds."""
MAX_COMPARED: Final = 64
"""At most this many files are compared with each other."""
MAX_RESOLVED: Final = 250
"""At most this many uses are resolved: those in files with definitions come first, see `find_names`."""
MAX_LACKING: Final = 200
"""Maximum number of files of one round."""


class Chosen(msgspec.Struct):
    """The files to search.

    Attributes:
        is_cut: Whether there are more.
        using: Where uses are looked for, in this order; None if that is all files.
        definitions: How many definitions there are; None if the files have all of them.
        references: Likewise, how many uses by name alone.
    """

    files: dict[str, Source]
    is_cut: bool
    using: list[str] | None = None
    definitions: int | None = None
    references: int | None = None


class SymbolUses(msgspec.Struct):
    """Search results; ``lacking`` has files that would resolve more references.

    ``total`` counts the references, those that were not resolved by their names alone.
    """

    definitions: list[code_symbols.SymbolFound]
    references: list[SymbolUsed]
    total: int
    lacking: set[str]


@operation(
    "symbol_search",
    scope="code:read",
    tool=ToolText(
        title="Search symbols",
        description="Find where a function, class or other symbol of the workspace is defined, "
        "with its signature, and where its name is used.",
        weight=1,
    ),
)
class SymbolSearch(
    CodeProcedure[code_symbols.SymbolsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find definitions and references of a symbol of the workspace by its name."""

    symbol: code_symbols.SymbolName
    kind: code_symbols.SymbolKind | None = None
    limit: code_symbols.SymbolLimit = 20

    async def run(self, client: CodeClient) -> code_symbols.SymbolsFound:
        """Search the current index in a thread; if nothing matches, search for similar names."""
        workspace = await open_workspace(client, (await find_roots(client))[0])
        places = await list_places(client, workspace)
        rules = await read_in_thread(read_attributes, workspace.row.root or "")
        chosen = await self._choose_files(client, workspace, [self.symbol])
        found = await self._search_all(client, workspace, places, [self.symbol], chosen, rules)
        names: list[str] = []
        if not (found.definitions or found.references or "*" in self.symbol):
            facts = await read_facts(client, workspace)
            names = await read_in_thread(_find_alike, self.symbol, facts.files)
            chosen = await self._choose_files(client, workspace, names)
            found = await self._search_all(client, workspace, places, names, chosen, rules)
        defined = [each for each in found.definitions if self.kind in {None, each.kind}]
        progress = await read_progress(client, workspace, workspace.unread)
        is_looked_for = workspace.unread and (names or not defined)
        in_text = await find_in_text(client, workspace, self.symbol) if is_looked_for else []
        reply = code_symbols.SymbolsFound(
            matched="fuzzy" if names else "name",
            names=names or UNSET,
            definitions=defined[: self.limit],
            references=found.references[: self.limit],
            total_definitions=len(defined) if chosen.definitions is None else chosen.definitions,
            total_references=found.total if chosen.references is None else chosen.references,
            is_cut=chosen.is_cut,
            workspace=workspace.row.root or "",
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
            in_text=in_text or UNSET,
        )
        shown = [
            Shown(each.file_path, each.lines, f"{each.signature}\n{each.summary}", is_part=True)
            for each in reply.definitions
        ]
        return await add_masked(client, workspace, reply, shown + describe_lines(in_text))

    async def _choose_files(self, client: CodeClient, workspace: Workspace, names: Sequence[str]) -> Chosen:
        """Return the files that have the names, or of too many those that are shown."""
        if any("*" in name for name in names):
            facts = await read_facts(client, workspace, holding=_literal(self.symbol))
            return Chosen(await read_in_thread(unpack_sources, facts.files), facts.is_cut)
        request = FindNamed(
            corpus=workspace.row.full_name, names=list(names), kind=self.kind, limit=self.limit
        )
        while (found := await client.ask(corpus_address(workspace.row), request)) is None:
            pass
        if found.is_whole:
            return Chosen(await read_in_thread(unpack_sources, found.files), is_cut=False)
        files = await read_in_thread(_unpack_chosen, found)
        return Chosen(files, True, found.using, found.definitions, found.references)

    async def _search_all(
        self,
        client: CodeClient,
        workspace: Workspace,
        places: Places,
        names: Sequence[str],
        chosen: Chosen,
        rules: tuple[str, ...],
    ) -> SymbolUses:
        found = await read_in_thread(_search, names, self.kind, chosen, places, rules)
        for _ in range(ROUNDS):
            lacking = sorted(found.lacking)[:MAX_LACKING]
            facts = await read_facts(client, workspace, paths=lacking) if lacking else None
            if facts is None or not facts.files:
                break
            chosen.files |= await read_in_thread(unpack_defined, facts.files)
            found = await read_in_thread(_search, names, self.kind, chosen, places, rules)
        return found


def _literal(name: str) -> str:
    """Return a text that every match contains: the longest literal of the last part."""
    return max(re.split(r"\*", name.rpartition(".")[2]), key=len)


def _unpack_chosen(found: NamedFiles) -> dict[str, Source]:
    """Unpack files, with their references only those in which uses are shown."""
    using = frozenset(found.using)
    files = unpack_defined(each for each in found.files if each.path not in using)
    return files | unpack_sources(each for each in found.files if each.path in using)


def _find_alike(symbol: str, files: Sequence[FactsOfFile]) -> list[str]:
    from greenroom.actors.content.syntax.similar_names import find_similar_names  # noqa: PLC0415 - needed only if nothing has the name

    paths = {
        f"{each.scope}.{each.name}" if each.scope else each.name
        for file in files
        if (names := unpack_names(file.packed)) is not None
        for each in names.symbols
    }
    return find_similar_names(symbol, paths, MAX_ALIKE)


def _search(
    names: Sequence[str],
    kind: code_symbols.SymbolKind | None,
    chosen: Chosen,
    places: Places,
    rules: tuple[str, ...],
) -> SymbolUses:
    """Find definitions and uses of names; references to symbols of other kinds are textual.

    Of equal names, those in files that programs wrote, and in copies, come last.
    """
    files = chosen.files
    lasts = _Lasts(names)
    defined = [
        (_rank(names, each.path), path, each)
        for path, source in files.items()
        for each in source.symbols
        if lasts.may_be(each.name) and any(is_path(name, each.path) for name in names)
    ]
    last = _find_last({path: files[path] for _, path, _ in defined}, places, rules)
    defined.sort(
        key=lambda each: (each[0], each[1] in last, each[2].path.count("."), each[1], each[2].first_line)
    )
    nodes = frozenset(Node(path, each.path) for _, path, each in defined if kind in {None, each.kind})
    total = len(nodes) if chosen.definitions is None else chosen.definitions
    meanings = Meanings(files, places)
    using = chosen.using
    if using is None:
        defining = {path for _, path, _ in defined}
        using = sorted(files, key=lambda path: (path not in defining, path))
    candidates = (
        each
        for path in using
        if path in files
        for each in _find_uses(lasts, _File(path, files[path], nodes, total > 1, meanings))
    )
    uses = [found for each in islice(candidates, MAX_RESOLVED) if (found := each.resolve(names)) is not None]
    uses.sort(key=lambda each: (each.scope, each.file_path, each.line))
    rest = 0 if chosen.references is not None else sum(each.has_any(names) for each in candidates)
    definitions = [make_symbol(path, each) for _, path, each in defined]
    return SymbolUses(definitions, uses, len(uses) + rest, meanings.lacking)


def _find_last(files: Mapping[str, Source], places: Places, rules: tuple[str, ...]) -> set[str]:
    """Return the files among these that programs wrote, that were fetched, or that repeat others."""
    from greenroom.actors.search.ranking.code_origins import Copies, OriginOfFile, find_fetched  # noqa: PLC0415 - needs numpy, and this is a thread

    attributes = parse_rules(rules)
    known = [
        OriginOfFile(
            path, source.origin or NO_ORIGIN, attributes.is_generated(path), attributes.is_vendored(path)
        )
        for path, source in sorted(files.items())
    ]
    copies = Copies(known[:MAX_COMPARED])
    found = find_fetched(known, places.files.__contains__)
    found |= copies.find().keys() | copies.find_holders()
    found |= {place for place, file in enumerate(known) if file.is_made}
    return {known[place].path for place in found}


def _rank(names: Sequence[str], path: str) -> int:
    return next(place for place, name in enumerate(names) if is_path(name, path))


class _File(msgspec.Struct, frozen=True):
    """A file to search for uses, and the definitions that they may mean."""

    path: str
    source: Source
    defined: frozenset[Node]
    are_several: bool
    meanings: Meanings

    def make_use(
        self, line: int, role: code_symbols.UseRole, within: str, nodes: frozenset[Node]
    ) -> SymbolUsed:
        """Make a use; it is exact if all its known meanings are wanted definitions."""
        is_exact = bool(nodes) and nodes <= self.defined
        return SymbolUsed(
            file_path=self.path,
            line=line,
            role=role,
            within=within,
            scope="exact" if is_exact else "textual",
            means=sorted(f"{each.file}:{each.symbol}" for each in nodes)
            if is_exact and self.are_several
            else UNSET,
        )


class _Use(msgspec.Struct, frozen=True):
    """A use that may mean a definition."""

    file: _File
    found: Import | Reference

    def resolve(self, names: Sequence[str]) -> SymbolUsed | None:
        """Return the use; None if it means something else, and has another name."""
        file, found = self.file, self.found
        if isinstance(found, Import):
            used = file.make_use(found.line, "import", "", file.meanings.of_import(file.path, found))
        else:
            nodes = file.meanings.of_use(file.path, found)
            used = file.make_use(found.line, found.role, found.symbol, nodes)
        return used if used.scope == "exact" or self.has_any(names) else None

    def has_any(self, names: Sequence[str]) -> bool:
        """Return whether it has one of the names as it is written."""
        found = self.found
        if isinstance(found, Import):
            path = f"{found.module}.{found.name}".replace("::", ".")
            return any(is_path(name, path) for name in names)
        return any(_has_name(name, found.qualifier, found.name) for name in names)


def _find_uses(lasts: _Lasts, file: _File) -> Iterator[_Use]:
    """Yield what may be a file's uses of names, also by aliases."""
    imports = [each for each in file.source.imports if lasts.has(each.name) and each.name != "*"]
    aliases = {each.alias for each in imports if each.alias}
    yield from (_Use(file, each) for each in imports)
    for each in file.source.references:
        if lasts.has(each.name) or each.name in aliases:
            yield _Use(file, each)


class _Lasts:
    """The last parts of names."""

    def __init__(self, names: Sequence[str]) -> None:
        lasts = {name.rpartition(".")[2] for name in names}
        self._exact = frozenset(lasts)
        self._wild = [each for each in lasts if "*" in each]

    def has(self, name: str) -> bool:
        """Return whether a name is one of them."""
        return name in self._exact or (bool(self._wild) and any(is_like(each, name) for each in self._wild))

    def may_be(self, name: str) -> bool:
        """Return whether the last part of a symbol's name may be one of them."""
        return bool(self._wild) or name in self._exact or "." in name or not name.isascii()


def _has_name(name: str, qualifier: str, used: str) -> bool:
    """Return whether a use has a name; for ``Class.method`` its qualifier must match, too."""
    scope, _, last = name.rpartition(".")
    if not is_like(last, used):
        return False
    before, owner = (each.rpartition(".")[2] for each in (qualifier, scope))
    return not scope or is_like(owner, before) or symbol_name(owner) == symbol_name(before)
