"""List corpora, their entities and their documents, in pages."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import ClassVar, Final

from msgspec import UNSET

from greenroom.actors.content.syntax import language_of
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.operations import operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.requests import corpus_requests, listing_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    VisibleCorpora,
    corpus_address,
    corpus_not_found,
)
from greenroom.actors.knowledge.corpora.requests.entity_requests import AnEntityType
from greenroom.actors.knowledge.corpora.requests.ingestion import DescribeFilling
from greenroom.actors.knowledge.corpora.requests.workspace import DescribeWorkspace
from greenroom.actors.knowledge.corpora.tools.query_service import find_row
from greenroom.runtime import Procedure, ProcedureContext, Refusal

MOST_IN_TREE: Final = 20_000
"""Folders are made of at most this many files of a workspace."""
MOST_IN_FOLDER: Final = 1_000
"""A folder shows at most this many files, and this many folders."""


@operation(
    "browse_corpora",
    scope="knowledge:read",
)
class BrowseCorpora(
    Procedure[listing_requests.CorporaShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the corpora of documents that the caller may see, and their ingest runs."""

    async def run(self, context: ProcedureContext) -> listing_requests.CorporaShown:
        """Query one corpus after the other."""
        found: list[listing_requests.CorpusShown] = []
        for row in await context.query(VisibleCorpora()):
            if row.root is not None:
                continue
            try:
                view = await context.ask(corpus_address(row), corpus_requests.DescribeCorpus(row=row))
                filling = await context.ask(corpus_address(row), DescribeFilling(corpus=row.full_name))
            except Refusal:  # it was dropped meanwhile
                continue
            found.append(listing_requests.CorpusShown(corpus=view, filling=filling))
        return listing_requests.CorporaShown(corpora=found)


@operation(
    "list_entities",
    scope="knowledge:read",
)
class CorpusEntities(
    Procedure[listing_requests.EntitiesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the declared entities of a corpus in pages, most mentioned first."""

    corpus: corpus_requests.CorpusName = corpus_requests.DEFAULT_CORPUS
    holding: listing_requests.Holding = ""
    entity_type: AnEntityType | None = None
    limit: listing_requests.PageLimit = 50
    cursor: listing_requests.Position | None = None

    async def run(self, context: ProcedureContext) -> listing_requests.EntitiesShown:
        """Query the corpus."""
        start = _start(self.cursor)
        row = await find_row(context, self.corpus)
        request = listing_requests.CountEachEntity(
            corpus=row.full_name,
            id_prefix=row.id_prefix,
            holding=self.holding,
            entity_type=self.entity_type,
            start=start,
            limit=self.limit,
        )
        found = await context.ask(corpus_address(row), request)
        audit_record.record_read(
            context, context.principal, "list_entities", None, corpus=row.full_name, found=found.total
        )
        end = start + len(found.entities)
        return listing_requests.EntitiesShown(
            entities=found.entities,
            total=found.total,
            waiting_for_matching=found.waiting,
            corpus=row.full_name,
            next_cursor=str(end) if end < found.total else None,
        )


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()):
        raise auth_errors.invalid("cursor", "cursor: it is no next_cursor of list_entities")
    return int(cursor[:9])


class ReadPage(Procedure[listing_requests.PageRead], frozen=True, kw_only=True):
    """Read a page of a corpus's documents; `CorpusDocuments` runs it."""

    audit_action: ClassVar[str] = "list_documents"

    corpus: corpus_requests.CorpusName
    holding: str
    kind: str | None
    limit: int
    cursor: str | None
    path: str | None = None

    async def run(self, context: ProcedureContext) -> listing_requests.PageRead:
        """Query the corpus."""
        row = await find_row(context, self.corpus)
        request = corpus_requests.ListDocuments(
            corpus=row.full_name,
            after=self.cursor,
            limit=self.limit,
            holding=self.holding,
            kind=self.kind,
            path=self.path,
        )
        page = await context.ask(corpus_address(row), request)
        view = await context.ask(corpus_address(row), corpus_requests.DescribeCorpus(row=row))
        audit_record.record_read(
            context,
            context.principal,
            self.audit_action,
            None,
            corpus=row.full_name,
            found=len(page.documents),
        )
        freshness = corpus_requests.FreshnessView(
            indexed_at=view.indexed_at, waiting_for_vectors=view.waiting_for_vectors
        )
        return listing_requests.PageRead(corpus=row.full_name, page=page, freshness=freshness)


@operation(
    "list_workspaces",
    scope="code:read",
)
class ListWorkspaces(
    Procedure[listing_requests.WorkspacesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the workspaces that the caller may see, and the progress of their indexes."""

    async def run(self, context: ProcedureContext) -> listing_requests.WorkspacesShown:
        """Query one corpus after the other."""
        found: list[listing_requests.WorkspaceShown] = []
        for row in await context.query(VisibleCorpora()):
            if row.root is None:
                continue
            try:
                view = await context.ask(corpus_address(row), corpus_requests.DescribeCorpus(row=row))
                state = await context.ask(corpus_address(row), DescribeWorkspace(corpus=row.full_name))
            except Refusal:  # it was dropped meanwhile
                continue
            found.append(listing_requests.WorkspaceShown(workspace=view, freshness=state))
        return listing_requests.WorkspacesShown(workspaces=found)


@operation(
    "list_workspace_files",
    scope="code:read",
)
class WorkspaceFiles(
    Procedure[listing_requests.FilesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the indexed files of a workspace, in pages, or one of its folders."""

    corpus: corpus_requests.CorpusName
    holding: listing_requests.Holding = ""
    folder: listing_requests.Folder | None = None
    limit: listing_requests.PageLimit = 50
    cursor: listing_requests.Position | None = None

    async def run(self, context: ProcedureContext) -> listing_requests.FilesShown:
        """Query the corpus."""
        row = await find_row(context, self.corpus)
        if row.root is None:
            raise corpus_not_found(self.corpus)
        if self.folder is not None:
            shown = await self._read_folder(context, row, self.folder.strip("/"))
        else:
            request = corpus_requests.ListDocuments(
                corpus=row.full_name, after=self.cursor, limit=self.limit, holding=self.holding
            )
            page = await context.ask(corpus_address(row), request)
            files = [_make_row(each) for each in page.documents]
            shown = listing_requests.FilesShown(files=files, corpus=row.full_name, next_cursor=page.after)
        audit_record.record_read(
            context,
            context.principal,
            "list_workspace_files",
            None,
            corpus=row.full_name,
            found=len(shown.files),
        )
        return shown

    async def _read_folder(
        self, context: ProcedureContext, row: corpus_requests.CorpusRow, folder: str
    ) -> listing_requests.FilesShown:
        """Return what is in a folder, of the first `MOST_IN_TREE` files of the workspace."""
        above = f"{folder}/" if folder else ""
        files: list[corpus_requests.DocumentListed] = []
        below: Counter[str] = Counter()
        after, looked_at = None, 0
        while looked_at < MOST_IN_TREE:
            request = corpus_requests.ListDocuments(corpus=row.full_name, after=after)
            page = await context.ask(corpus_address(row), request)
            looked_at += len(page.documents)
            for each in page.documents:
                if each.path.startswith(above):
                    first, _, rest = each.path[len(above) :].partition("/")
                    if not rest:
                        files.append(each)
                    else:
                        below[above + first] += 1
            after = page.after
            if after is None:
                break
        return listing_requests.FilesShown(
            files=[_make_row(each) for each in sorted(files, key=attrgetter("path"))[:MOST_IN_FOLDER]],
            folders=[
                listing_requests.FolderShown(path=path, files=count)
                for path, count in sorted(below.items())[:MOST_IN_FOLDER]
            ],
            corpus=row.full_name,
            next_cursor=None,
            is_cut=after is not None or max(len(files), len(below)) > MOST_IN_FOLDER,
        )


def _make_row(file: corpus_requests.DocumentListed) -> listing_requests.FileShown:
    language = language_of(file.path)
    return listing_requests.FileShown(
        path=file.path,
        language=UNSET if language is None else language.title,
        kind=file.kind,
        bytes=file.bytes,
        modified_at=to_datetime(file.modified_at) if file.modified_at else None,
        indexed_at=to_datetime(file.indexed_at),
        chunks=file.chunks,
    )
