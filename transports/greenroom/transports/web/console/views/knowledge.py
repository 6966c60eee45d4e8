"""Knowledge: corpora, their documents and freshness, and the entities of the documents."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    BrowseCorpora,
    CorpusDocuments,
    CorpusEntities,
    CorpusResource,
    DocumentResource,
    DocumentsShown,
    EntitiesShown,
    FilesShown,
    FindEntity,
    GetFullContent,
    ListWorkspaces,
    ReadResource,
    SemanticSearch,
    WorkspaceFiles,
)
from greenroom.actors.content.documents.kinds import CONTAINERS, PROSE
from greenroom.actors.core.resources.resource_uris import corpus_uri, document_uri
from greenroom.actors.knowledge.corpora.requests.listing_requests import (
    CorpusShown,
    DocumentShown,
    WorkspaceShown,
)
from greenroom.transports.web.console.view import Place, Reader, View

EVERY: Final = 5.0
"""Seconds until a list of corpora is fetched again, since corpora are added and dropped."""
RESULTS: Final = 20
TYPES: Final = ("vendor", "library", "framework", "service")
TOPICS: Final = 20
HEADINGS: Final = 1_000
"""The most headings on a document's page; a heading takes far more HTML than its text."""
_PASSAGES: Final = 10
"""The most passages on an entity's page."""
_HEADING: Final = re.compile(r"^(#{1,6})[ \t]+(\S.*)$", re.MULTILINE)
_MARKED: Final = PROSE.union(CONTAINERS)
"""Kinds of files with headings in their text."""


class Section(NamedTuple):
    """A part of a document, from one heading to the next."""

    level: int
    heading: str
    text: str


async def knowledge(reader: Reader, place: Place) -> View:
    """Return the list of corpora, or a page of one: documents, entities, or one item."""
    if not place.rest:
        return await _all(reader, place)
    shown = {"corpus": place.rest, "types": TYPES}
    if (path := place.name("document")) is not None:
        return await _document(reader, shown, path)
    if (name := place.name("entity")) is not None:
        return await _entity(reader, shown, name)
    return await _corpus(reader, place, shown)


async def _all(reader: Reader, place: Place) -> View:
    listed = await list_corpora(reader)
    shown: dict[str, Any] = {"corpora": listed, "found": None}
    if (query := place.get("q")) is not None:
        shown["found"] = await _search(reader, query, "*")
    topics = tuple(corpus_uri(each.corpus.corpus) for each in listed[:TOPICS])
    return View("knowledge.html", "Knowledge", shown, topics=topics, every=EVERY)


async def _search(reader: Reader, query: str, corpus: str) -> Any:
    return await reader.ask(SemanticSearch(query=query, corpus=corpus, top_k=RESULTS))


async def _corpus(reader: Reader, place: Place, shown: dict[str, Any]) -> View:
    name = shown["corpus"]
    read = await reader.ask(ReadResource(uri=corpus_uri(name)))
    assert isinstance(read, CorpusResource), "it is the URI of a corpus"
    tab = "entities" if place.get("show") == "entities" else "documents"
    shown |= {"view": read.corpus, "filling": read.filling, "failed": read.failed}
    shown |= {"tab": tab, "found": None, "page": None}
    if (query := place.get("q")) is not None:
        shown["found"] = await _search(reader, query, name)
    elif tab == "entities":
        shown["page"] = await list_entities(reader, place, name)
    else:
        shown["page"] = await list_documents(reader, place, name)
    # The page must poll, because a killed ingest does not report its end.
    every = None if read.filling.ingesting is None else EVERY
    return View("corpus.html", name, shown, topics=(corpus_uri(name),), every=every)


async def _document(reader: Reader, shown: dict[str, Any], path: str) -> View:
    corpus = shown["corpus"]
    uri = document_uri(corpus, path)
    read = await reader.ask(ReadResource(uri=uri))
    assert isinstance(read, DocumentResource), "it is the URI of a document"
    shown |= {
        "document": read,
        "listed": await find_document(reader, corpus, path),
        "sections": sections(read.text) if read.kind in _MARKED else [Section(0, "", read.text)],
        "is_markdown": read.kind in {"markdown", "notebook"},
        "workspace": await _workspace_of(reader, path) if read.kind == "code" else None,
    }
    return View("document.html", read.title, shown, topics=(uri,))


async def _workspace_of(reader: Reader, path: str) -> tuple[str, str] | None:
    """Return a file's workspace, and its path there; None if the reader sees no workspace."""
    if not reader.may("list_workspaces"):
        return None
    roots = {str(each.workspace.root): each.workspace.corpus for each in await list_workspaces(reader)}
    within = max((root for root in roots if path.startswith(f"{root}/")), key=len, default=None)
    return None if within is None else (roots[within], path[len(within) + 1 :])


def sections(text: str) -> list[Section]:
    """Split a document at its headings, except those in fenced code.

    Headings after the first `HEADINGS` headings stay part of the text.
    """
    parts = [Section(0, "", "")]
    is_fenced = False
    lines: list[str] = []
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        heading = None if is_fenced or len(parts) > HEADINGS else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        parts[-1] = parts[-1]._replace(text="\n".join(lines).strip("\n"))
        parts.append(Section(len(heading[1]), heading[2].strip(), ""))
        lines = []
    parts[-1] = parts[-1]._replace(text="\n".join(lines).strip("\n"))
    return [part for part in parts if part.level or part.text]


async def _entity(reader: Reader, shown: dict[str, Any], name: str) -> View:
    corpus = shown["corpus"]
    found = await reader.ask(FindEntity(vendor_filter=name, corpus=corpus, limit=1))
    entity = next(iter(found.entities), None)
    passages = None
    if entity is not None and entity.source_chunks:
        wanted = GetFullContent(chunk_ids=entity.source_chunks[:_PASSAGES], corpus=corpus)
        passages = await reader.ask(wanted)
    shown |= {"found": found, "entity": entity, "name": name, "passages": passages}
    return View("entity.html", name if entity is None else entity.name, shown, topics=(corpus_uri(corpus),))


async def list_corpora(reader: Reader) -> list[CorpusShown]:
    """Return the corpora of documents, sorted by name."""
    listed: list[CorpusShown] = (await reader.ask(BrowseCorpora())).corpora
    return sorted(listed, key=lambda each: each.corpus.corpus)


async def list_workspaces(reader: Reader) -> list[WorkspaceShown]:
    """Return the workspaces, sorted by folder."""
    listed: list[WorkspaceShown] = (await reader.ask(ListWorkspaces())).workspaces
    return sorted(listed, key=lambda each: (str(each.workspace.root), each.workspace.corpus))


async def list_documents(reader: Reader, place: Place, corpus: str) -> DocumentsShown:
    """Return the requested page of the list of a corpus' documents."""
    request = CorpusDocuments(
        corpus=corpus,
        holding=place.get("holding") or "",
        kind=place.get("kind"),
        cursor=place.get("cursor"),
    )
    shown: DocumentsShown = await reader.ask(request)
    return shown


async def find_document(reader: Reader, corpus: str, path: str) -> DocumentShown | None:
    """Return a document as lists show it; None if the path has no document."""
    found = await reader.ask(CorpusDocuments(corpus=corpus, path=path))
    return next(iter(found.documents), None)


async def list_files(reader: Reader, place: Place, corpus: str) -> FilesShown:
    """Return a folder of a workspace, or a page of files by their paths."""
    if place.get("holding") is None and place.get("cursor") is None:
        request = WorkspaceFiles(corpus=corpus, folder=place.name("folder") or "")
    else:
        request = WorkspaceFiles(
            corpus=corpus, holding=place.get("holding") or "", cursor=place.get("cursor")
        )
    shown: FilesShown = await reader.ask(request)
    return shown


async def list_entities(reader: Reader, place: Place, corpus: str) -> EntitiesShown:
    """Return the requested page of the list of a corpus' entities."""
    request = CorpusEntities(
        corpus=corpus,
        holding=place.get("holding") or "",
        entity_type=place.get("type"),  # type: ignore[arg-type]  # checked with the request
        cursor=place.get("cursor"),
    )
    listed: EntitiesShown = await reader.ask(request)
    return listed
