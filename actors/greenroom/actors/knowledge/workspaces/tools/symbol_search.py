"""The tool `symbol_search`: find definitions and uses of symbols of the workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.syntax import Meanings, Node, Places, Source, is_like, is_path
from greenroom.actors.content.syntax.origins import NO_ORIGIN
from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.attributes import parse_rules
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_symbols
from greenroom.actors.knowledge.corpora.requests.code_symbols import SymbolUsed
from greenroom.actors.knowledge.corpora.storage.facts import make_symbol, unpack_sources
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
MAX_LACKING: Final = 200
"""Maximum number of files of one round."""


class SymbolUses(msgspec.Struct):
    """Search results; ``lacking`` has files that would resolve more references."""

    definitions: list[code_symbols.SymbolFound]
    references: list[SymbolUsed]
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
        facts = await read_facts(client, workspace, holding=_literal(self.symbol))
        files = await read_in_thread(unpack_sources, facts.files)
        rules = await read_in_thread(read_attributes, workspace.row.root or "")
        found = await self._search_all(client, workspace, places, [self.symbol], files, rules)
        names: list[str] = []
        if not (found.definitions or found.references or "*" in self.symbol):
            facts = await read_facts(client, workspace)
            files = await read_in_thread(unpack_sources, facts.files)
            names = await read_in_thread(_find_alike, self.symbol, files)
            found = await self._search_all(client, workspace, places, names, files, rules)
        defined = [each for each in found.definitions if self.kind in {None, each.kind}]
        progress = await read_progress(client, workspace, workspace.unread)
        is_looked_for = workspace.unread and (names or not defined)
        in_text = await find_in_text(client, workspace, self.symbol) if is_looked_for else []
        reply = code_symbols.SymbolsFound(
            matched="fuzzy" if names else "name",
            names=names or UNSET,
            definitions=defined[: self.limit],
            references=found.references[: self.limit],
            total_definitions=len(defined),
            total_references=len(found.references),
            is_cut=facts.is_cut,
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

    async def _search_all(
        self,
        client: CodeClient,
        workspace: Workspace,
        places: Places,
        names: Sequence[str],
        files: dict[str, Source],
        rules: tuple[str, ...],
    ) -> SymbolUses:
        found = await read_in_thread(_search, names, self.kind, files, places, rules)
        for _ in range(ROUNDS):
            lacking = sorted(found.lacking)[:MAX_LACKING]
            facts = await read_facts(client, workspace, paths=lacking) if lacking else None
            if facts is None or not facts.files:
                break
            files |= await read_in_thread(unpack_sources, facts.files)
            found = await read_in_thread(_search, names, self.kind, files, places, rules)
        return found


def _literal(name: str) -> str:
    """Return a text that every match contains: the longest literal of the last part."""
    return max(re.split(r"\*", name.rpartition(".")[2]), key=len)


def _find_alike(symbol: str, files: Mapping[str, Source]) -> list[str]:
    from greenroom.actors.content.syntax.similar_names import find_similar_names  # noqa: PLC0415 - needed only if nothing has the name

    return find_similar_names(
        symbol, {each.path for source in files.values() for each in source.symbols}, MAX_ALIKE
    )


def _search(
    names: Sequence[str],
    kind: code_symbols.SymbolKind | None,
    files: Mapping[str, Source],
    places: Places,
    rules: tuple[str, ...],
) -> SymbolUses:
    """Find definitions and uses of names; references to symbols of other kinds are textual.

    Of equal names, those in files that programs wrote, and in copies, come last.
    """
    defined = [
        (_rank(names, each.path), path, each)
        for path, source in files.items()
        for each in source.symbols
        if any(is_path(name, each.path) for name in names)
    ]
    last = _find_last({path: files[path] for _, path, _ in defined}, places, rules)
    defined.sort(
        key=lambda each: (each[0], each[1] in last, each[2].path.count("."), each[1], each[2].first_line)
    )
    nodes = frozenset(Node(path, each.path) for _, path, each in defined if kind in {None, each.kind})
    meanings = Meanings(files, places)
    uses = [
        use
        for path, source in files.items()
        for use in _find_uses(names, _File(path, source, nodes, meanings))
    ]
    uses.sort(key=lambda each: (each.scope, each.file_path, each.line))
    return SymbolUses([make_symbol(path, each) for _, path, each in defined], uses, meanings.lacking)


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
    meanings: Meanings

    def make_use(
        self, line: int, role: code_symbols.UseRole, within: str, nodes: frozenset[Node]
    ) -> SymbolUsed:
        """Make a use; it is exact if all its known meanings are wanted definitions."""
        is_exact = bool(nodes) and nodes <= self.defined
        is_one_of_several = is_exact and len(self.defined) > 1
        return SymbolUsed(
            file_path=self.path,
            line=line,
            role=role,
            within=within,
            scope="exact" if is_exact else "textual",
            means=sorted(f"{each.file}:{each.symbol}" for each in nodes) if is_one_of_several else UNSET,
        )


def _find_uses(names: Sequence[str], file: _File) -> Iterator[SymbolUsed]:
    """Yield a file's uses of names; include aliases that surely mean the same symbols."""
    lasts = {name.rpartition(".")[2] for name in names}
    imports = [each for each in file.source.imports if _is_any(lasts, each.name) and each.name != "*"]
    aliases = {each.alias for each in imports if each.alias}
    for brought in imports:
        used = file.make_use(brought.line, "import", "", file.meanings.of_import(file.path, brought))
        if used.scope == "exact" or any(
            is_path(name, f"{brought.module}.{brought.name}".replace("::", ".")) for name in names
        ):
            yield used
    for use in file.source.references:
        if _is_any(lasts, use.name) or use.name in aliases:
            nodes = file.meanings.of_use(file.path, use)
            used = file.make_use(use.line, use.role, use.symbol, nodes)
            if used.scope == "exact" or any(_has_name(name, use.qualifier, use.name) for name in names):
                yield used


def _is_any(names: set[str], name: str) -> bool:
    return name in names or any("*" in each and is_like(each, name) for each in names)


def _has_name(name: str, qualifier: str, used: str) -> bool:
    """Return whether a use has a name; for ``Class.method`` its qualifier must match, too."""
    scope, _, last = name.rpartition(".")
    if not is_like(last, used):
        return False
    before, owner = (each.rpartition(".")[2] for each in (qualifier, scope))
    return not scope or is_like(owner, before) or symbol_name(owner) == symbol_name(before)
