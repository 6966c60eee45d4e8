"""The operation `list_documents`: list a corpus's documents in pages, and check their files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from greenroom.actors.content.syntax import language_of
from greenroom.actors.core.operations import operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.requests import corpus_requests, listing_requests
from greenroom.actors.knowledge.corpora.tools.listing import ReadPage
from greenroom.actors.knowledge.ingest.files.places import FilesClient
from greenroom.actors.knowledge.ingest.freshness import add_states, check_files
from greenroom.runtime import Procedure


@operation(
    "list_documents",
    scope="knowledge:read",
)
class CorpusDocuments(
    Procedure[listing_requests.DocumentsShown], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the documents of a corpus in pages, and the state of their files."""

    runs = "here"

    corpus: corpus_requests.CorpusName = corpus_requests.DEFAULT_CORPUS
    holding: listing_requests.Holding = ""
    kind: listing_requests.Kind | None = None
    path: listing_requests.ExactPath | None = None
    limit: listing_requests.PageLimit = 50
    cursor: listing_requests.Position | None = None

    async def run(self, client: FilesClient) -> listing_requests.DocumentsShown:
        """Query the corpus, and check whether the files have changed since they were read."""
        request = ReadPage(
            corpus=self.corpus,
            holding=self.holding,
            kind=self.kind,
            limit=self.limit,
            cursor=self.cursor,
            path=self.path,
        )
        read = await client.runtime.query(request, principal=client.principal)
        files = [
            corpus_requests.IndexedFile(each.path, each.digest, each.bytes, each.modified_at)
            for each in read.page.documents
            if each.is_file
        ]
        states = await check_files(files, client.files.reach)
        return listing_requests.DocumentsShown(
            damaged=read.page.damaged,
            documents=[_make_row(each, states) for each in read.page.documents],
            corpus=read.corpus,
            freshness=add_states(read.freshness, states) if states else read.freshness,
            next_cursor=read.page.after,
        )


def _make_row(
    document: corpus_requests.DocumentListed, states: Mapping[str, bool | None]
) -> listing_requests.DocumentShown:
    on_disk: listing_requests.OnDisk | UnsetType = UNSET
    if document.path in states:
        differs = states[document.path]
        on_disk = "missing" if differs is None else "changed" if differs else "unchanged"
    language = language_of(document.path)
    return listing_requests.DocumentShown(
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
