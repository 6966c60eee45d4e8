"""Corpora and their documents as resources."""

from __future__ import annotations

from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.resources.resource_uris import corpus_of_uri, document_uri, is_of_workspace
from greenroom.actors.core.resources.resources import ResourceInfo
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.handlers.chunks import join_passages
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import FindCorpus, check_owner, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.ingestion import DescribeFilling, FailedFile, ListFailed
from greenroom.actors.knowledge.corpora.requests.resources import (
    CorpusResource,
    DocumentItem,
    DocumentResource,
    WorkspaceResource,
)
from greenroom.actors.knowledge.corpora.requests.workspace import DescribeWorkspace
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Message, Procedure, ProcedureContext, Refusal, Slices

SHOWN = 100
"""A corpus resource lists at most this many documents."""
MOST_TEXT = 1_048_576
"""Maximum characters of a document; a longer document is cut."""


class ReadDocument(Message[DocumentResource | None], frozen=True, kw_only=True):
    """Read a whole document of a corpus; None if it is unknown; not a tool."""

    corpus: corpus_requests.CorpusName
    path: str


def read_document(
    repository: CorpusRepository, request: ReadDocument, context: Context
) -> Slices[DocumentResource | None]:
    """Return a document, cut if it is too long."""
    repository.check(context.principal, request.corpus)
    found = repository.find_document(context, request.path)
    if found is None:
        return None
    passages = []
    size = 0
    for block in range(len(found.blocks)):
        if size > MOST_TEXT:
            break
        for passage in repository.passages(context, found, block):
            passages.append(passage)
            size += len(passage.text)
        yield
    text = join_passages(passages)
    return DocumentResource(
        corpus=request.corpus,
        path=found.path,
        title=found.title,
        kind=found.kind,
        bytes=found.file_bytes,
        modified_at=to_datetime(found.modified_at) if found.modified_at else None,
        indexed_at=to_datetime(found.indexed_at),
        text=text[:MOST_TEXT],
        is_cut=len(text) > MOST_TEXT or len(passages) < len(found.places),
        resource_info=ResourceInfo(
            uri=document_uri(request.corpus, found.path),
            reader=context.principal.agent_id,
            last_updated=to_datetime(found.indexed_at),
        ),
    )


_Resource = CorpusResource | DocumentResource | WorkspaceResource


class ReadCorpusResource(Procedure[_Resource], frozen=True, kw_only=True):
    """Read a corpus, a document or a workspace by its URI."""

    uri: str

    async def run(self, context: ProcedureContext) -> _Resource:
        """Ask the corpus."""
        try:
            found = await self._read(context)
        except Refusal as refusal:
            if refusal.code != "CORPUS_NOT_FOUND":
                raise
            unknown = auth_errors.resource_not_found(self.uri)
            raise auth_errors.denial(unknown) if refusal.is_denial else unknown from None
        if found is None:
            raise auth_errors.resource_not_found(self.uri)
        audit_record.record_read(
            context, context.principal, "read_resource", None, target=self.uri[: audit_record.LONGEST]
        )
        return found

    async def _read(self, context: ProcedureContext) -> _Resource | None:
        named = corpus_of_uri(self.uri)
        if named is None:
            return None
        name, path = named
        check_owner(context.principal, name)
        row = await context.query(FindCorpus(name=name))
        if row is None:
            return None
        if is_of_workspace(self.uri) and row.root is None:
            return None
        if is_of_workspace(self.uri) or path is None:
            return await _read_listing(context, self.uri, row)
        if not corpus_requests.is_text(path):
            return None
        return await context.ask(corpus_address(row), ReadDocument(corpus=name, path=path))


async def _read_listing(
    context: ProcedureContext, uri: str, row: CorpusRow
) -> CorpusResource | WorkspaceResource:
    """Return a corpus or a workspace with some of its documents."""
    address, name = corpus_address(row), row.full_name
    view = await context.ask(address, corpus_requests.DescribeCorpus(row=row))
    page = await context.ask(address, corpus_requests.ListDocuments(corpus=name, limit=SHOWN))
    failed: list[FailedFile] = []
    if view.failed_files is not UNSET:
        failed = await context.ask(address, ListFailed(corpus=name))
    documents = sorted(page.documents, key=lambda each: each.path)
    info = ResourceInfo(uri=uri, reader=context.principal.agent_id, last_updated=view.indexed_at)
    if is_of_workspace(uri):
        return WorkspaceResource(
            workspace=view,
            freshness=await context.ask(address, DescribeWorkspace(corpus=name)),
            failed=failed,
            files=[each.path for each in documents],
            has_more=page.after is not None,
            resource_info=info,
        )
    return CorpusResource(
        corpus=view,
        documents=[
            DocumentItem(
                uri=document_uri(name, each.path),
                path=each.path,
                title=each.title,
                chunks=each.chunks,
                indexed_at=to_datetime(each.indexed_at),
            )
            for each in documents
        ],
        filling=await context.ask(address, DescribeFilling(corpus=name)),
        failed=failed,
        has_more=page.after is not None,
        resource_info=info,
    )
