"""The tool `similar_files`: find files of the workspace that are similar to a file."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isfile
from typing import Final

from msgspec import UNSET

from greenroom.actors.content.syntax import Places, compare_by_imports
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.empty_reasons import explain_empty
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_relations, code_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_filters import add_recency
from greenroom.actors.knowledge.corpora.requests.code_symbols import FactsOfFile
from greenroom.actors.knowledge.corpora.storage.facts import unpack_imports
from greenroom.actors.knowledge.workspaces.places import resolve_file
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import list_places, read_facts
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    find_roots,
    open_workspace,
    read_progress,
)

LOOKED_AT: Final = 100
"""Imports are compared for this many files: the most similar ones by terms and name."""


@operation(
    "similar_files",
    scope="code:read",
    tool=ToolText(
        title="Find similar files",
        description="Find files of the workspace that are like a given one, such as its test, and "
        "what they have in common.",
        weight=1,
    ),
)
class SimilarFiles(
    CodeProcedure[code_relations.SimilarFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find files of the workspace similar to one of it."""

    path: code_requests.FilePath
    scope: code_requests.Folder = ""
    limit: code_requests.FilesWanted = 10
    min_relevance: code_requests.LeastAlike = 0.0
    filters: code_requests.CodeFilters = code_requests.CodeFilters()

    async def run(self, client: CodeClient) -> code_relations.SimilarFound:
        """Query the index for files similar by terms and name, and compare their imports."""
        roots = await find_roots(client)
        place = await read_in_thread(resolve_file, "path", self.path, roots, client.files.reach.closed)
        below = await read_in_thread(
            resolve_file, "scope", self.scope or place.root, roots, client.files.reach.closed
        )
        if below.root != place.root:
            raise auth_errors.invalid(
                "scope",
                f"scope: {self.scope!r} is in {below.root}, and path in {place.root}: give one of that",
            )
        workspace = await open_workspace(client, place.root)
        request = code_relations.FindSimilar(
            corpus=workspace.row.full_name,
            path=place.name,
            folder=below.name,
            filters=self.filters,
            limit=max(LOOKED_AT, self.limit),
        )
        found = await client.ask(corpus_address(workspace.row), request)
        if found is None and not await read_in_thread(isfile, place.path):
            raise auth_errors.invalid("path", f"path: {self.path!r} is no file, or not there")
        likest = [] if found is None else found.files
        facts = await read_facts(client, workspace, paths=[place.name, *(each.path for each in likest)])
        places = await list_places(client, workspace)
        results = await read_in_thread(self._rank, place.name, likest, facts.files, places)
        progress = await read_progress(client, workspace)
        return code_relations.SimilarFound(
            path=place.name,
            results=results,
            empty_because=explain_empty(client.principal.scopes, "not_indexed", path=place.name)
            if found is None
            else UNSET,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
        )

    def _rank(
        self,
        path: str,
        found: Sequence[code_relations.Similar],
        packed: Sequence[FactsOfFile],
        places: Places,
    ) -> list[code_relations.SimilarFile]:
        from greenroom.actors.search.ranking.likeness import likeness_of  # noqa: PLC0415 - needs numpy; in a thread

        imports = compare_by_imports(path, unpack_imports(packed), places)
        ranked: list[code_relations.SimilarFile] = []
        for each in found:
            signals = each.signals | imports.get(each.path, {})
            score = add_recency(likeness_of(signals), self.filters.recency_weight, each.recency)
            if score >= self.min_relevance:
                ranked.append(
                    code_relations.SimilarFile(
                        file_path=each.path,
                        relevance_score=round(score, 4),
                        signals={name: round(value, 2) for name, value in signals.items() if value},
                        shared=each.shared,
                        last_modified=each.modified_at,
                    )
                )
        ranked.sort(key=lambda each: (-each.relevance_score, each.file_path))
        return ranked[: self.limit]
