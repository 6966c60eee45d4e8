"""The tool `dependency_search`: find what a file or symbol needs, and what needs it."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename
from typing import Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.syntax import Places, Reached, graphs, invert, reach, resolve_import
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_relations
from greenroom.actors.knowledge.corpora.requests.code_symbols import FactsOfFile, LineOfText
from greenroom.actors.knowledge.corpora.storage.facts import unpack_sources
from greenroom.actors.knowledge.workspaces.places import resolve_file
from greenroom.actors.knowledge.workspaces.tools.names_in_text import find_in_text
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import (
    add_masked,
    describe_lines,
    list_places,
    read_facts,
)
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    find_roots,
    open_workspace,
    read_progress,
)

MAX_DEFINITIONS: Final = 20
"""Maximum number of definitions of one name."""
MAX_CYCLES: Final = 10
MAX_OUTSIDE: Final = 100


@operation(
    "dependency_search",
    scope="code:read",
    tool=ToolText(
        title="Find dependencies",
        description="Find what a file or a symbol of the workspace needs and what needs it, over "
        "several steps, with cycles: what a change may break.",
        weight=1,
    ),
)
class DependencySearch(
    CodeProcedure[code_relations.DependenciesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find what a file or a symbol of the workspace needs, and what needs it."""

    target: code_relations.Target
    direction: code_relations.Direction = "both"
    depth: code_relations.Depth = 3
    limit: code_relations.DependencyLimit = 50

    async def run(self, client: CodeClient) -> code_relations.DependenciesFound:
        """Search the current index in a thread."""
        roots = await find_roots(client)
        root, target = roots[0], self.target
        if "/" in target:
            place = await read_in_thread(resolve_file, "target", target, roots, client.files.reach.closed)
            root, target = place.root, place.name
        workspace = await open_workspace(client, root)
        facts = await read_facts(client, workspace)
        places = await list_places(client, workspace)
        request = msgspec.structs.replace(self, target=target)
        found = await read_in_thread(_find, request, places, facts.files)
        progress = await read_progress(client, workspace, workspace.unread)
        is_read = found.target_is != "file" or any(each.path == target for each in facts.files)
        in_text: list[LineOfText] = []
        if (workspace.unread or not is_read) and not found.dependents and self.direction != "dependencies":
            name = basename(target).partition(".")[0] if found.target_is == "file" else target
            in_text = await find_in_text(client, workspace, name, but=target, is_everywhere=not is_read)
        reply = code_relations.DependenciesFound(
            **msgspec.structs.asdict(found) | {"is_cut": found.is_cut or facts.is_cut},
            are="imports" if found.target_is == "file" else "textual",
            workspace=root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
            in_text=in_text or UNSET,
        )
        return await add_masked(client, workspace, reply, describe_lines(in_text))


def _find(
    request: DependencySearch, places: Places, packed: list[FactsOfFile]
) -> code_relations.Dependencies:
    files = {path: graphs.link_source(source) for path, source in unpack_sources(packed).items()}
    graph = graphs.graph_of_files(files, places)
    if request.target in places.files and request.target not in files:  # its imports are unknown
        related = _relate(request, [request.target], graph, files)
        return msgspec.structs.replace(related, target_is="file", dependencies=UNSET)
    if request.target in files:
        imports = files[request.target].imports
        language = files[request.target].language
        outside = {
            each.module for each in imports if not resolve_import(each, request.target, language, places)
        }
        related = _relate(request, [request.target], graph, files)
        return msgspec.structs.replace(related, target_is="file", outside=sorted(outside)[:MAX_OUTSIDE])
    means = graphs.definitions(files, request.target)
    if not means:
        return _relate(request, [], {}, files)
    graph = graphs.graph_of_symbols(files, graph)
    related = _relate(request, means[:MAX_DEFINITIONS], graph, files)
    is_cut = related.is_cut or len(means) > MAX_DEFINITIONS
    return msgspec.structs.replace(related, target_is="symbol", is_cut=is_cut)


def _relate(
    request: DependencySearch,
    means: list[str],
    graph: Mapping[str, list[str]],
    files: Mapping[str, graphs.Linked],
) -> code_relations.Dependencies:
    ways = {"dependencies": graph, "dependents": invert(graph)}
    dependencies: dict[str, list[code_relations.Dependency]] = {}
    cycles: dict[tuple[str, ...], None] = {}
    is_cut = False
    for direction, leads in ways.items():
        begins = means + (graphs.members(files, means) if direction == "dependencies" else [])
        reached = [reach(leads, each, request.depth, request.limit) for each in begins]
        if direction == "dependencies":
            cycles = dict.fromkeys(tuple(cycle) for each in reached for cycle in each.cycles)
        if request.direction in {"both", direction}:
            nearest: dict[str, Reached] = {}
            for found in sorted(
                (found for each in reached for found in each.files),
                key=lambda found: (found.depth, found.path),
            ):
                if found.path not in begins:
                    nearest.setdefault(found.path, found)
            is_cut |= len(nearest) > request.limit or any(each.is_cut for each in reached)
            dependencies[direction] = [
                _make_dependency(each, begins, files) for each in list(nearest.values())[: request.limit]
            ]
    return code_relations.Dependencies(
        target_is="unknown",
        means=means,
        dependencies=dependencies.get("dependencies", UNSET),
        dependents=dependencies.get("dependents", UNSET),
        outside=UNSET,
        cycles=[list(cycle) for cycle in list(cycles)[:MAX_CYCLES]],
        is_cut=is_cut or len(cycles) > MAX_CYCLES,
    )


def _make_dependency(
    found: Reached, begins: list[str], files: Mapping[str, graphs.Linked]
) -> code_relations.Dependency:
    via = UNSET if found.via in begins else found.via
    if found.path in files:
        return code_relations.Dependency(file_path=found.path, depth=found.depth, via=via)
    path, symbol = graphs.parts_of(found.path)
    if path not in files:  # imported, but not parsed
        return code_relations.Dependency(file_path=found.path, depth=found.depth, via=via)
    line = files[path].lines.get(symbol, UNSET)
    return code_relations.Dependency(file_path=path, symbol=symbol, line=line, depth=found.depth, via=via)
