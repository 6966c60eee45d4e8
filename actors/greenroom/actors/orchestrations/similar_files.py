"""The tool that finds files of the workspace that are like a given one."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isfile
from typing import ClassVar, Final

from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.replies.empty_reasons import because
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_relations as schemas
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_filters import with_recency
from greenroom.actors.knowledge.corpora.storage.facts import source_of
from greenroom.actors.knowledge.workspaces.places import checked_file
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import facts_of, places_of
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, opened, progress_of, roots_of
from greenroom.actors.schemas import code as code_schemas
from greenroom.actors.schemas.code import FactsOfFile
from greenroom.actors.syntax import Places, alike_by_imports

LOOKED_AT: Final = 100
"""Files, the likest by their terms and names, whose imports are compared."""


class SimilarFiles(
    CodeOrchestration[schemas.SimilarFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find files of the workspace that are like one of it."""

    writes: ClassVar[bool] = False

    path: code_schemas.FilePath
    scope: code_schemas.Folder = ""
    limit: code_schemas.FilesWanted = 10
    min_relevance: code_schemas.LeastAlike = 0.0
    filters: code_schemas.CodeFilters = code_schemas.CodeFilters()

    async def carry_out(self, client: ClientSessionState) -> schemas.SimilarFound:
        """Ask what is indexed so far for the likest by terms and names, and compare what these import.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, the file or the
                folder is in none or not in the same, or there is no such file.
        """
        roots = await roots_of(client)
        place = await read_in_thread(checked_file, "path", self.path, roots, client.reach.closed)
        below = await read_in_thread(
            checked_file, "scope", self.scope or place.root, roots, client.reach.closed
        )
        if below.root != place.root:
            raise auth_errors.invalid(
                "scope",
                f"scope: {self.scope!r} is in {below.root}, and path in {place.root}: give one of that",
            )
        workspace = await opened(client, place.root)
        request = schemas.FindSimilar(
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
        facts = await facts_of(client, workspace, paths=[place.name, *(each.path for each in likest)])
        places = await places_of(client, workspace)
        results = await read_in_thread(self._ranked, place.name, likest, facts.files, places)
        progress = await progress_of(client, workspace)
        return schemas.SimilarFound(
            path=place.name,
            results=results,
            empty_because=because(client.principal.scopes, "not_indexed", path=place.name)
            if found is None
            else UNSET,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
        )

    def _ranked(
        self, path: str, found: Sequence[schemas.Similar], packed: Sequence[FactsOfFile], places: Places
    ) -> list[schemas.SimilarFile]:
        from greenroom.actors.search.ranking.likeness import likeness_of  # noqa: PLC0415 - needs numpy; in a thread

        files = {each.path: source for each in packed if (source := source_of(each)) is not None}
        imports = alike_by_imports(path, files, places)
        ranked: list[schemas.SimilarFile] = []
        for each in found:
            signals = each.signals | imports.get(each.path, {})
            score = with_recency(likeness_of(signals), self.filters.recency_weight, each.recency)
            if score >= self.min_relevance:
                ranked.append(
                    schemas.SimilarFile(
                        file_path=each.path,
                        relevance_score=round(score, 4),
                        signals={name: round(value, 2) for name, value in signals.items() if value},
                        shared=each.shared,
                        last_modified=each.modified_at,
                    )
                )
        ranked.sort(key=lambda each: (-each.relevance_score, each.file_path))
        return ranked[: self.limit]
