"""The tool that says what a file or a symbol of the workspace depends on, and what depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename
from typing import ClassVar, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.syntax import graphs
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_relations as schemas
from greenroom.actors.knowledge.corpora.storage.facts import source_of
from greenroom.actors.knowledge.workspaces.places import checked_file
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import facts_of, places_of
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.in_text import lines_in_text
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, opened, progress_of, roots_of
from greenroom.actors.schemas.code import FactsOfFile, LineOfText
from greenroom.actors.syntax import Places, Reached, inverted, reach, resolve_import

MAX_DEFINITIONS: Final = 20
"""Definitions of one name that are looked at."""
MAX_CYCLES: Final = 10
MAX_OUTSIDE: Final = 100


class DependencySearch(
    CodeOrchestration[schemas.DependenciesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find what a file or a symbol of the workspace needs, and what needs it."""

    writes: ClassVar[bool] = False

    target: schemas.Target
    direction: schemas.Direction = "both"
    depth: schemas.Depth = 3
    limit: schemas.DependencyLimit = 50

    async def carry_out(self, client: ClientSessionState) -> schemas.DependenciesFound:
        """Look through what is indexed so far, in a thread.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, or the file is in
                none.
        """
        roots = await roots_of(client)
        root, target = roots[0], self.target
        if "/" in target:
            place = await read_in_thread(checked_file, "target", target, roots, client.reach.closed)
            root, target = place.root, place.name
        workspace = await opened(client, root)
        facts = await facts_of(client, workspace)
        places = await places_of(client, workspace)
        asked = msgspec.structs.replace(self, target=target)
        found = await read_in_thread(_found, asked, places, facts.files)
        progress = await progress_of(client, workspace, workspace.unread)
        is_read = found.target_is != "file" or any(each.path == target for each in facts.files)
        in_text: list[LineOfText] = []
        if (workspace.unread or not is_read) and not found.dependents and self.direction != "dependencies":
            name = basename(target).partition(".")[0] if found.target_is == "file" else target
            in_text = await lines_in_text(client, workspace, name, but=target, is_everywhere=not is_read)
        return schemas.DependenciesFound(
            **msgspec.structs.asdict(found) | {"is_cut": found.is_cut or facts.is_cut},
            are="imports" if found.target_is == "file" else "textual",
            workspace=root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
            in_text=in_text or UNSET,
        )


def _found(asked: DependencySearch, places: Places, packed: list[FactsOfFile]) -> schemas.Dependencies:
    files = {each.path: graphs.linked(source) for each in packed if (source := source_of(each)) is not None}
    graph = graphs.graph_of_files(files, places)
    if asked.target in places.files and asked.target not in files:  # what it imports is not known
        related = _related(asked, [asked.target], graph, files)
        return msgspec.structs.replace(related, target_is="file", dependencies=UNSET)
    if asked.target in files:
        imports = files[asked.target].imports
        language = files[asked.target].language
        outside = {
            each.module for each in imports if not resolve_import(each, asked.target, language, places)
        }
        related = _related(asked, [asked.target], graph, files)
        return msgspec.structs.replace(related, target_is="file", outside=sorted(outside)[:MAX_OUTSIDE])
    means = graphs.definitions(files, asked.target)
    if not means:
        return _related(asked, [], {}, files)
    graph = graphs.graph_of_symbols(files, graph)
    related = _related(asked, means[:MAX_DEFINITIONS], graph, files)
    is_cut = related.is_cut or len(means) > MAX_DEFINITIONS
    return msgspec.structs.replace(related, target_is="symbol", is_cut=is_cut)


def _related(
    asked: DependencySearch,
    means: list[str],
    graph: Mapping[str, list[str]],
    files: Mapping[str, graphs.Linked],
) -> schemas.Dependencies:
    """Return what is reached from, and what reaches, the nodes that are meant."""
    ways = {"dependencies": graph, "dependents": inverted(graph)}
    told: dict[str, list[schemas.Dependency]] = {}
    cycles: dict[tuple[str, ...], None] = {}
    is_cut = False
    for direction, leads in ways.items():
        begins = means + (graphs.members(files, means) if direction == "dependencies" else [])
        reached = [reach(leads, each, asked.depth, asked.limit) for each in begins]
        if direction == "dependencies":
            cycles = dict.fromkeys(tuple(cycle) for each in reached for cycle in each.cycles)
        if asked.direction in {"both", direction}:
            nearest: dict[str, Reached] = {}
            for found in sorted(
                (found for each in reached for found in each.files),
                key=lambda found: (found.depth, found.path),
            ):
                if found.path not in begins:
                    nearest.setdefault(found.path, found)
            is_cut |= len(nearest) > asked.limit or any(each.is_cut for each in reached)
            told[direction] = [_told(each, begins, files) for each in list(nearest.values())[: asked.limit]]
    return schemas.Dependencies(
        target_is="unknown",
        means=means,
        dependencies=told.get("dependencies", UNSET),
        dependents=told.get("dependents", UNSET),
        outside=UNSET,
        cycles=[list(cycle) for cycle in list(cycles)[:MAX_CYCLES]],
        is_cut=is_cut or len(cycles) > MAX_CYCLES,
    )


def _told(found: Reached, begins: list[str], files: Mapping[str, graphs.Linked]) -> schemas.Dependency:
    via = UNSET if found.via in begins else found.via
    if found.path in files:
        return schemas.Dependency(file_path=found.path, depth=found.depth, via=via)
    path, symbol = graphs.parts_of(found.path)
    if path not in files:  # imported, and read as text
        return schemas.Dependency(file_path=found.path, depth=found.depth, via=via)
    line = files[path].lines.get(symbol, UNSET)
    return schemas.Dependency(file_path=path, symbol=symbol, line=line, depth=found.depth, via=via)
