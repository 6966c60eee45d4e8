"""Paging through workspaces and their files: for who may read code, and need not read documents."""

from __future__ import annotations

from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests import listing_requests as listing
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    VisibleCorpora,
    corpus_address,
    corpus_not_found,
)
from greenroom.actors.knowledge.corpora.tools.query_service import corpus_row
from greenroom.actors.schemas.workspace import DescribeWorkspace
from greenroom.actors.syntax import language_of
from greenroom.runtime import Procedure, ProcedureContext, Refusal


class ListWorkspaces(
    Procedure[listing.WorkspacesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the workspaces that the caller may see, and how far their indexes are."""

    async def run(self, context: ProcedureContext) -> listing.WorkspacesShown:
        """Ask one after the other."""
        found: list[listing.WorkspaceShown] = []
        for row in await context.query(VisibleCorpora()):
            if row.root is None:
                continue
            try:
                view = await context.ask(corpus_address(row), schemas.DescribeCorpus(row=row))
                state = await context.ask(corpus_address(row), DescribeWorkspace(corpus=row.full_name))
            except Refusal:  # dropped meanwhile
                continue
            found.append(listing.WorkspaceShown(workspace=view, freshness=state))
        return listing.WorkspacesShown(workspaces=found)


class WorkspaceFiles(Procedure[listing.FilesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the files that are indexed of a workspace, in pages."""

    corpus: schemas.CorpusName
    holding: listing.Holding = ""
    limit: listing.PageLimit = 50
    cursor: listing.Position | None = None

    async def run(self, context: ProcedureContext) -> listing.FilesShown:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, also where it is no workspace, or ``VALIDATION_ERROR``: the cursor
                is none.
        """
        row = await corpus_row(context, self.corpus)
        if row.root is None:
            raise corpus_not_found(self.corpus)
        asked = schemas.ListDocuments(
            corpus=row.full_name, after=self.cursor, limit=self.limit, holding=self.holding
        )
        page = await context.ask(corpus_address(row), asked)
        audit_record.record_read(
            context,
            context.principal,
            "list_workspace_files",
            None,
            corpus=row.full_name,
            found=len(page.documents),
        )
        return listing.FilesShown(
            files=[_shown(each) for each in page.documents], corpus=row.full_name, next_cursor=page.after
        )


def _shown(file: schemas.DocumentListed) -> listing.FileShown:
    language = language_of(file.path)
    return listing.FileShown(
        path=file.path,
        language=UNSET if language is None else language.title,
        kind=file.kind,
        bytes=file.bytes,
        modified_at=to_datetime(file.modified_at) if file.modified_at else None,
        indexed_at=to_datetime(file.indexed_at),
        chunks=file.chunks,
    )
