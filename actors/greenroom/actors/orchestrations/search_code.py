"""The tool that finds code of the workspace that the client works in."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.replies.grades import least_of
from greenroom.actors.core.replies.sources import are_wanted, note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import RARE
from greenroom.actors.corpus.code_asking import AskForCode
from greenroom.actors.knowledge.corpora.requests.corpus_requests import QueryText
from greenroom.actors.knowledge.workspaces.places import Place, checked_file
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import (
    CodeOrchestration,
    Workspace,
    opened,
    progress_of,
    roots_of,
)
from greenroom.actors.schemas import code as schemas
from greenroom.actors.workspace.files import versions_at

LATE = (
    "the search was cut after 2 s, before the index answered: it is being read, or others are before you; "
    "ask again"
)


class SearchCodeSemantic(
    CodeOrchestration[schemas.CodeFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find files of the workspace by what their code does."""

    writes: ClassVar[bool] = False

    query: QueryText
    scope: schemas.Folder = ""
    limit: schemas.FilesWanted = 10
    min_relevance: schemas.MinRelevance = 0.0
    min_score: Annotated[schemas.MinScore, RARE] = 0.0
    filters: schemas.CodeFilters = schemas.CodeFilters()

    async def carry_out(self, client: ClientSessionState) -> schemas.CodeFound:
        """Search what is indexed so far.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, or the folder is in
                none.
        """
        began = trio.current_time()
        least = least_of(self.min_score, self.min_relevance)
        asked = schemas.FindCode(
            corpus="",
            query=self.query,
            filters=self.filters,
            limit=self.limit,
            min_relevance=least.relevance,
            min_score=least.score,
        )
        place, workspace, found = await code_found(client, self.scope, asked)
        if found is not None and are_wanted():
            note_cache("memory", is_hit=found.cache_hit)
            names = [each.file_path for each in found.results]
            for version, size in await read_in_thread(versions_at, place.root, names):
                note_whole(version, size)
        progress = await progress_of(client, workspace, LATE if found is None else found.partial)
        return schemas.CodeFound(
            results=[] if found is None else found.results,
            total_found=0 if found is None else found.total,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
            unknown=found.unknown or UNSET if found is not None and progress.is_whole else UNSET,
            cache_hit=found is not None and found.cache_hit,
            search_time_ms=round((trio.current_time() - began) * 1_000, 3),
        )


async def code_found(
    client: ClientSessionState, scope: str, asked: schemas.FindCode
) -> tuple[Place, Workspace, schemas.FoundCode | None]:
    """Search the workspace that a folder is in; the answer is None where it came too late.

    Args:
        client: Whose folders and workspaces are meant.
        scope: The folder to look in; empty for the workspace itself.
        asked: What is looked for; its corpus and folder do not count.

    Raises:
        Refusal: as `SearchCodeSemantic.carry_out`.
    """
    roots = await roots_of(client)
    place = await read_in_thread(checked_file, "scope", scope, roots, client.reach.closed)
    workspace = await opened(client, place.root)
    request = msgspec.structs.replace(asked, corpus=workspace.row.full_name, folder=place.name)
    found = await client.runtime.query(AskForCode(request=request), principal=client.principal)
    return place, workspace, found
