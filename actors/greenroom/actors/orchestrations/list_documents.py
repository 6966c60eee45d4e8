"""Paging through the documents of a corpus: ask it, then look at the files of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import UNSET, UnsetType

from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.corpus.listing import ReadPage
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests import listing_requests as listing
from greenroom.actors.knowledge.ingest.freshness import states_of, with_states
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.syntax import language_of


class CorpusDocuments(
    ClientOrchestration[listing.DocumentsShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the documents of a corpus, in pages, and how their files are now."""

    writes: ClassVar[bool] = False

    corpus: schemas.CorpusName = schemas.DEFAULT_CORPUS
    holding: listing.Holding = ""
    kind: listing.Kind | None = None
    path: listing.ExactPath | None = None
    limit: listing.PageLimit = 50
    cursor: listing.Position | None = None

    async def carry_out(self, client: ClientSessionState) -> listing.DocumentsShown:
        """Ask the corpus, and compare files with what was read of them.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, or ``VALIDATION_ERROR``: the cursor is none.
        """
        asked = ReadPage(
            corpus=self.corpus,
            holding=self.holding,
            kind=self.kind,
            limit=self.limit,
            cursor=self.cursor,
            path=self.path,
        )
        read = await client.runtime.query(asked, principal=client.principal)
        files = [
            schemas.IndexedFile(each.path, each.digest, each.bytes, each.modified_at)
            for each in read.page.documents
            if each.is_file
        ]
        states = await states_of(files, client.reach)
        return listing.DocumentsShown(
            documents=[_shown(each, states) for each in read.page.documents],
            corpus=read.corpus,
            freshness=with_states(read.freshness, states) if states else read.freshness,
            next_cursor=read.page.after,
        )


def _shown(document: schemas.DocumentListed, states: Mapping[str, bool | None]) -> listing.DocumentShown:
    on_disk: listing.OnDisk | UnsetType = UNSET
    if document.path in states:
        differs = states[document.path]
        on_disk = "missing" if differs is None else "changed" if differs else "unchanged"
    language = language_of(document.path)
    return listing.DocumentShown(
        path=document.path,
        title=document.title,
        kind=document.kind,
        language=UNSET if language is None else language.title,
        bytes=document.bytes,
        modified_at=to_datetime(document.modified_at) if document.modified_at else None,
        indexed_at=to_datetime(document.indexed_at),
        chunks=document.chunks,
        on_disk=on_disk,
    )
