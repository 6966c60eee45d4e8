"""Paging through the entities and the documents of a corpus."""

from __future__ import annotations

from typing import ClassVar

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests import listing_requests as listing
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.entity_requests import AnEntityType
from greenroom.actors.knowledge.corpora.requests.ingestion import DescribeFilling
from greenroom.actors.knowledge.corpora.tools.query_service import corpus_row
from greenroom.runtime import Procedure, ProcedureContext, Refusal


class BrowseCorpora(Procedure[listing.CorporaShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the corpora of documents that the caller may see, and how far it is who fills them."""

    async def run(self, context: ProcedureContext) -> listing.CorporaShown:
        """Ask one after the other."""
        found: list[listing.CorpusShown] = []
        for row in await context.query(VisibleCorpora()):
            if row.root is not None:
                continue
            try:
                view = await context.ask(corpus_address(row), schemas.DescribeCorpus(row=row))
                filling = await context.ask(corpus_address(row), DescribeFilling(corpus=row.full_name))
            except Refusal:  # dropped meanwhile
                continue
            found.append(listing.CorpusShown(corpus=view, filling=filling))
        return listing.CorporaShown(corpora=found)


class CorpusEntities(Procedure[listing.EntitiesShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the entities that are declared in a corpus, in pages, those first that are mentioned most."""

    corpus: schemas.CorpusName = schemas.DEFAULT_CORPUS
    holding: listing.Holding = ""
    entity_type: AnEntityType | None = None
    limit: listing.PageLimit = 50
    cursor: listing.Position | None = None

    async def run(self, context: ProcedureContext) -> listing.EntitiesShown:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, or ``VALIDATION_ERROR``: the cursor is none.
        """
        start = _start(self.cursor)
        row = await corpus_row(context, self.corpus)
        asked = listing.CountEachEntity(
            corpus=row.full_name,
            id_prefix=row.id_prefix,
            holding=self.holding,
            entity_type=self.entity_type,
            start=start,
            limit=self.limit,
        )
        found = await context.ask(corpus_address(row), asked)
        audit_record.record_read(
            context, context.principal, "list_entities", None, corpus=row.full_name, found=found.total
        )
        end = start + len(found.entities)
        return listing.EntitiesShown(
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


class ReadPage(Procedure[listing.PageRead], frozen=True, kw_only=True):
    """Read a page of the documents of a corpus; `CorpusDocuments` asks it."""

    deed: ClassVar[str] = "list_documents"

    corpus: schemas.CorpusName
    holding: str
    kind: str | None
    limit: int
    cursor: str | None
    path: str | None = None

    async def run(self, context: ProcedureContext) -> listing.PageRead:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, or ``VALIDATION_ERROR``: the cursor is none.
        """
        row = await corpus_row(context, self.corpus)
        asked = schemas.ListDocuments(
            corpus=row.full_name,
            after=self.cursor,
            limit=self.limit,
            holding=self.holding,
            kind=self.kind,
            path=self.path,
        )
        page = await context.ask(corpus_address(row), asked)
        view = await context.ask(corpus_address(row), schemas.DescribeCorpus(row=row))
        audit_record.record_read(
            context, context.principal, self.deed, None, corpus=row.full_name, found=len(page.documents)
        )
        freshness = schemas.FreshnessView(
            indexed_at=view.indexed_at, waiting_for_vectors=view.waiting_for_vectors
        )
        return listing.PageRead(corpus=row.full_name, page=page, freshness=freshness)
