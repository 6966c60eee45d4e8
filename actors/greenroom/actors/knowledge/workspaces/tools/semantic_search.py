"""The tool `search_code_semantic`: find code of the workspace."""

from __future__ import annotations

from typing import Annotated

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.grades import least_of
from greenroom.actors.core.replies.sources import is_collecting, note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import RARE
from greenroom.actors.knowledge.corpora.requests import code_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_requests import FindCode, FoundCode
from greenroom.actors.knowledge.corpora.requests.corpus_requests import LoadCorpus, QueryText
from greenroom.actors.knowledge.corpora.tools.query_service import SEARCH_SECONDS, find_row
from greenroom.actors.knowledge.workspaces.files import list_versions, read_attributes
from greenroom.actors.knowledge.workspaces.places import Place
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import Shown, add_masked
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    Workspace,
    open_place,
    read_progress,
)
from greenroom.runtime import Procedure, ProcedureContext


class AskForCode(Procedure[FoundCode | None], frozen=True, kw_only=True):
    """Find files of a workspace; None after two seconds; internal."""

    request: FindCode

    async def run(self, context: ProcedureContext) -> FoundCode | None:
        """Query the corpus."""
        row = await find_row(context, self.request.corpus)
        found: FoundCode | None = None
        with trio.move_on_after(SEARCH_SECONDS):
            request = msgspec.structs.replace(self.request, corpus=row.full_name)
            found = await context.ask(corpus_address(row), request)
        if found is None:
            context.tell(corpus_address(row), LoadCorpus())
        audit_record.record_read(
            context,
            context.principal,
            "search_code_semantic",
            None,
            corpus=row.full_name,
            query_characters=len(self.request.query),
            found=0 if found is None else len(found.results),
        )
        return found


LATE = (
    "the search was cut after 2 s, before the index answered: it is being read, or others are before you; "
    "ask again"
)


@operation(
    "search_code_semantic",
    scope="code:read",
    tool=ToolText(
        title="Search code",
        description="Find where the code of the workspace does something, by words, identifiers or "
        "a question: files with their best lines, which read_file opens. freshness "
        "says how much is indexed.",
        weight=1,
    ),
)
class SearchCodeSemantic(
    CodeProcedure[code_requests.CodeFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find files of the workspace by what their code does."""

    query: QueryText
    scope: code_requests.Folder = ""
    limit: code_requests.FilesWanted = 10
    min_relevance: code_requests.MinRelevance = 0.0
    min_score: Annotated[code_requests.MinScore, RARE] = 0.0
    filters: code_requests.CodeFilters = code_requests.CodeFilters()

    async def run(self, client: CodeClient) -> code_requests.CodeFound:
        """Search the current index."""
        began = trio.current_time()
        least = least_of(self.min_score, self.min_relevance)
        request = code_requests.FindCode(
            corpus="",
            query=self.query,
            filters=self.filters,
            limit=self.limit,
            min_relevance=least.relevance,
            min_score=least.score,
        )
        place, workspace, found = await search_workspace(client, self.scope, request)
        if found is not None and is_collecting():
            note_cache("memory", is_hit=found.cache_hit)
            names = [each.file_path for each in found.results]
            for version, size in await read_in_thread(list_versions, place.root, names):
                note_whole(version, size)
        progress = await read_progress(client, workspace, LATE if found is None else found.partial)
        reply = code_requests.CodeFound(
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
        shown = [Shown(each.file_path, each.line_range, each.excerpt) for each in reply.results]
        return await add_masked(client, workspace, reply, shown)


async def search_workspace(
    client: CodeClient, scope: str, request: code_requests.FindCode
) -> tuple[Place, Workspace, code_requests.FoundCode | None]:
    """Search the workspace of a folder; the result is None if it came too late."""
    place, workspace = await open_place(client, "scope", scope)
    rules = await read_in_thread(read_attributes, place.root)
    request = msgspec.structs.replace(
        request, corpus=workspace.row.full_name, folder=place.name, attributes=rules
    )
    found = await client.runtime.query(AskForCode(request=request), principal=client.principal)
    return place, workspace, found
