"""Corpora for the views of knowledge and of code: lists, pages and links."""

from __future__ import annotations

from typing import Final

from greenroom.actors import (
    BrowseCorpora,
    CorpusDocuments,
    CorpusEntities,
    DocumentsShown,
    EntitiesShown,
    FilesShown,
    ListWorkspaces,
    WorkspaceFiles,
)
from greenroom.actors.knowledge.corpora.requests.listing_requests import (
    CorpusShown,
    DocumentShown,
    WorkspaceShown,
)
from greenroom.transports.web.console.view import Place, Reader

EVERY: Final = 5.0
"""Seconds after which a list of corpora is fetched again, since corpora come and go."""


async def corpora(reader: Reader) -> list[CorpusShown]:
    """Return the corpora of documents, by their names."""
    listed: list[CorpusShown] = (await reader.ask(BrowseCorpora())).corpora
    return sorted(listed, key=lambda each: each.corpus.corpus)


async def workspaces(reader: Reader) -> list[WorkspaceShown]:
    """Return the workspaces, by their folders."""
    listed: list[WorkspaceShown] = (await reader.ask(ListWorkspaces())).workspaces
    return sorted(listed, key=lambda each: (str(each.workspace.root), each.workspace.corpus))


async def documents(reader: Reader, place: Place, corpus: str) -> DocumentsShown:
    """Return the requested page of a corpus' documents."""
    request = CorpusDocuments(
        corpus=corpus,
        holding=place.get("holding") or "",
        kind=place.get("kind"),
        cursor=place.get("cursor"),
    )
    reader.check(request)
    shown: DocumentsShown = await reader.ask(request)
    return shown


async def document(reader: Reader, corpus: str, path: str) -> DocumentShown | None:
    """Return a document as listings show it; None if there is none at this path."""
    request = CorpusDocuments(corpus=corpus, path=path)
    reader.check(request)
    return next(iter((await reader.ask(request)).documents), None)


async def files(reader: Reader, place: Place, corpus: str) -> FilesShown:
    """Return the requested page of a workspace's files."""
    request = WorkspaceFiles(corpus=corpus, holding=place.get("holding") or "", cursor=place.get("cursor"))
    reader.check(request)
    shown: FilesShown = await reader.ask(request)
    return shown


async def entities(reader: Reader, place: Place, corpus: str) -> EntitiesShown:
    """Return the requested page of a corpus' entities."""
    request = CorpusEntities(
        corpus=corpus,
        holding=place.get("holding") or "",
        entity_type=place.get("type"),  # type: ignore[arg-type]  # checked below
        cursor=place.get("cursor"),
    )
    reader.check(request)
    listed: EntitiesShown = await reader.ask(request)
    return listed
