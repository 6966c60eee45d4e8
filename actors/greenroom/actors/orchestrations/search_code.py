"""The tool that finds code of the workspace that the client works in."""

from __future__ import annotations

from typing import ClassVar

import trio
from msgspec import UNSET

from greenroom.actors.base.threads import read_in_thread
from greenroom.actors.corpus.code_asking import AskForCode
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, freshness_of, opened, roots_of
from greenroom.actors.savings.sources import are_wanted, note_cache, note_whole
from greenroom.actors.schemas import code as schemas
from greenroom.actors.schemas.corpus import QueryText
from greenroom.actors.workspace.files import versions_at
from greenroom.actors.workspace.places import checked_file

_LATE = (
    "the search was cut after 2 s, before the index answered: it is being read, or others are before you; "
    "ask again"
)


class SearchCodeSemantic(CodeOrchestration[schemas.CodeFound], frozen=True, kw_only=True):
    """Find files of the workspace by what their code does."""

    writes: ClassVar[bool] = False

    query: QueryText
    scope: schemas.Folder = ""
    limit: schemas.FilesWanted = 10
    min_relevance: schemas.MinRelevance = 0.0
    filters: schemas.CodeFilters = schemas.CodeFilters()

    async def carry_out(self, client: ClientSessionState) -> schemas.CodeFound:
        """Search what is indexed so far.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, or the folder is in
                none.
        """
        began = trio.current_time()
        roots = await roots_of(client)
        place = await read_in_thread(checked_file, "scope", self.scope, roots, client.reach.closed)
        workspace = await opened(client, place.root)
        request = schemas.FindCode(
            corpus=workspace.row.full_name,
            query=self.query,
            folder=place.name,
            filters=self.filters,
            limit=self.limit,
            min_relevance=self.min_relevance,
        )
        found = await client.runtime.query(AskForCode(request=request), principal=client.principal)
        if found is not None and are_wanted():
            note_cache("memory", is_hit=found.cache_hit)
            names = [each.file_path for each in found.results]
            for version, size in await read_in_thread(versions_at, place.root, names):
                note_whole(version, size)
        return schemas.CodeFound(
            results=[] if found is None else found.results,
            total_found=0 if found is None else found.total,
            workspace=place.root,
            freshness=await freshness_of(client, workspace),
            unknown=found.unknown if found is not None and found.unknown else UNSET,
            cache_hit=found is not None and found.cache_hit,
            search_time_ms=round((trio.current_time() - began) * 1_000, 3),
            partial=_LATE if found is None else UNSET,
        )
