"""The tool that finds where symbols of the workspace are defined, and where their names are used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.storage.facts import found_symbol, source_of
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import facts_of, places_of
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.in_text import lines_in_text
from greenroom.actors.orchestrations.workspace_of import (
    CodeOrchestration,
    Workspace,
    opened,
    progress_of,
    roots_of,
)
from greenroom.actors.schemas import code as schemas
from greenroom.actors.schemas.code import FactsOfFile, SymbolUsed
from greenroom.actors.syntax import Meanings, Node, Places, Source, is_like, is_path

MAX_ALIKE: Final = 10
"""Names that are looked for in the place of one that nothing has."""
ROUNDS: Final = 3
"""How often files are read through which others hand names on."""
MAX_LACKING: Final = 200
"""How many of these at once."""


class Looked(msgspec.Struct):
    """What was found; ``lacking``: files that would say more of what references mean."""

    definitions: list[schemas.SymbolFound]
    references: list[SymbolUsed]
    lacking: set[str]


class SymbolSearch(
    CodeOrchestration[schemas.SymbolsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find definitions and references of a symbol of the workspace by its name."""

    writes: ClassVar[bool] = False

    symbol: schemas.SymbolName
    kind: schemas.SymbolKind | None = None
    limit: schemas.SymbolLimit = 20

    async def carry_out(self, client: ClientSessionState) -> schemas.SymbolsFound:
        """Look through what is indexed so far, in a thread; for names that are like it if nothing has it.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there is no workspace.
        """
        workspace = await opened(client, (await roots_of(client))[0])
        places = await places_of(client, workspace)
        facts = await facts_of(client, workspace, holding=_literal(self.symbol))
        files = await read_in_thread(_sources, facts.files)
        found = await self._look(client, workspace, places, [self.symbol], files)
        names: list[str] = []
        if not (found.definitions or found.references or "*" in self.symbol):
            facts = await facts_of(client, workspace)
            files = await read_in_thread(_sources, facts.files)
            names = await read_in_thread(_alike, self.symbol, files)
            found = await self._look(client, workspace, places, names, files)
        defined = [each for each in found.definitions if self.kind in {None, each.kind}]
        progress = await progress_of(client, workspace, workspace.unread)
        is_looked_for = workspace.unread and (names or not defined)
        in_text = await lines_in_text(client, workspace, self.symbol) if is_looked_for else []
        return schemas.SymbolsFound(
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

    async def _look(
        self,
        client: ClientSessionState,
        workspace: Workspace,
        places: Places,
        names: Sequence[str],
        files: dict[str, Source],
    ) -> Looked:
        """Return where names are defined and used in files, and in those that hand them on."""
        found = await read_in_thread(_looked, names, self.kind, files, places)
        for _ in range(ROUNDS):
            lacking = sorted(found.lacking)[:MAX_LACKING]
            facts = await facts_of(client, workspace, paths=lacking) if lacking else None
            if facts is None or not facts.files:
                break
            files |= await read_in_thread(_sources, facts.files)
            found = await read_in_thread(_looked, names, self.kind, files, places)
        return found


def _literal(name: str) -> str:
    """Return a text that whatever has the name or the pattern has: the longest of its last part."""
    return max(re.split(r"\*", name.rpartition(".")[2]), key=len)


def _sources(packed: Sequence[FactsOfFile]) -> dict[str, Source]:
    return {each.path: source for each in packed if (source := source_of(each)) is not None}


def _alike(symbol: str, files: Mapping[str, Source]) -> list[str]:
    from greenroom.actors.content.syntax.similar_names import alike  # noqa: PLC0415 - not before a name is nowhere

    return alike(symbol, {each.path for source in files.values() for each in source.symbols}, MAX_ALIKE)


def _looked(
    names: Sequence[str], kind: schemas.SymbolKind | None, files: Mapping[str, Source], places: Places
) -> Looked:
    """Return where names are defined and used; references to what is of another kind are textual."""
    defined = [
        (_rank(names, each.path), path, each)
        for path, source in files.items()
        for each in source.symbols
        if any(is_path(name, each.path) for name in names)
    ]
    defined.sort(key=lambda each: (each[0], each[2].path.count("."), each[1], each[2].first_line))
    nodes = frozenset(Node(path, each.path) for _, path, each in defined if kind in {None, each.kind})
    meanings = Meanings(files, places)
    uses = [
        use for path, source in files.items() for use in _uses(names, _Found(path, source, nodes, meanings))
    ]
    uses.sort(key=lambda each: (each.scope, each.file_path, each.line))
    return Looked([found_symbol(path, each) for _, path, each in defined], uses, meanings.lacking)


def _rank(names: Sequence[str], path: str) -> int:
    return next(place for place, name in enumerate(names) if is_path(name, path))


class _Found(msgspec.Struct, frozen=True):
    """A file in which uses of names are looked for, and the definitions that they may mean."""

    path: str
    source: Source
    defined: frozenset[Node]
    meanings: Meanings

    def used(self, line: int, role: schemas.UseRole, within: str, nodes: frozenset[Node]) -> SymbolUsed:
        """Return a use that means some definitions, as far as that is known and they are looked for."""
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


def _uses(names: Sequence[str], file: _Found) -> Iterator[SymbolUsed]:
    """Yield where a file uses names: all that say so, and what means them by another name."""
    lasts = {name.rpartition(".")[2] for name in names}
    imports = [each for each in file.source.imports if _is_any(lasts, each.name) and each.name != "*"]
    aliases = {each.alias for each in imports if each.alias}
    for brought in imports:
        used = file.used(brought.line, "import", "", file.meanings.of_import(file.path, brought))
        if used.scope == "exact" or any(
            is_path(name, f"{brought.module}.{brought.name}".replace("::", ".")) for name in names
        ):
            yield used
    for use in file.source.references:
        if _is_any(lasts, use.name) or use.name in aliases:
            nodes = file.meanings.of_use(file.path, use)
            used = file.used(use.line, use.role, use.symbol, nodes)
            if used.scope == "exact" or any(_says(name, use.qualifier, use.name) for name in names):
                yield used


def _is_any(names: set[str], name: str) -> bool:
    return name in names or any("*" in each and is_like(each, name) for each in names)


def _says(name: str, qualifier: str, used: str) -> bool:
    """Return whether a use has a name; of ``Class.method`` what is before it is called like the class."""
    scope, _, last = name.rpartition(".")
    if not is_like(last, used):
        return False
    said, owner = (each.rpartition(".")[2] for each in (qualifier, scope))
    return not scope or is_like(owner, said) or symbol_name(owner) == symbol_name(said)
