"""Contents of the resources of corpora, documents and workspaces."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.core.resources.resources import Resource
from greenroom.actors.core.resources.resources import ResourceInfo as ResourceInfo
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName, CorpusView
from greenroom.actors.knowledge.corpora.requests.ingestion import FailedFile, Filling
from greenroom.actors.knowledge.corpora.requests.workspace import WorkspaceState
from greenroom.runtime import Message


class DocumentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A document in the resource of its corpus."""

    uri: str
    path: str
    title: str
    chunks: int
    indexed_at: datetime


class CorpusResource(Resource, frozen=True, kw_only=True):
    """A corpus: its content, its freshness, some of its documents, the newest failed files."""

    corpus: CorpusView
    filling: Filling
    documents: list[DocumentItem]
    failed: list[FailedFile]
    has_more: bool
    resource_info: ResourceInfo


class WorkspaceResource(Resource, frozen=True, kw_only=True):
    """A workspace: some of its indexed files, their freshness, the newest failed files."""

    workspace: CorpusView
    freshness: WorkspaceState
    failed: list[FailedFile]
    files: list[str]
    has_more: bool
    resource_info: ResourceInfo


class DocumentResource(Resource, frozen=True, kw_only=True):
    """An ingested document: its chunks joined, with the headings between them.

    ``modified_at`` is when the file was changed; None for a text that was sent. ``is_cut`` means that the
    document's text is longer.
    """

    corpus: str
    path: str
    title: str
    kind: str
    bytes: int
    modified_at: datetime | None
    indexed_at: datetime
    text: str
    is_cut: bool
    resource_info: ResourceInfo


class FileIndex(msgspec.Struct, frozen=True, kw_only=True):
    """How many files of a project's workspaces and corpora are indexed."""

    total_files: int
    indexed_files: int
    last_index: datetime | None


class KnowledgeGraph(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of declared entities and relations in a project's corpora."""

    nodes: int
    edges: int


class CommonPattern(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that the reader's user often runs in the project; ``uri`` has more."""

    uri: str
    commands: list[str]
    last_seen: datetime


class ProjectDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision: its agent, and the session that recorded it."""

    what: str
    why: str | None
    at: datetime
    by: str
    session_id: str


class ProjectResource(Resource, frozen=True, kw_only=True):
    """The data about a project that the reader may see.

    Attributes:
        common_patterns: Commands that the reader's own user often runs there.
        partial: Whether decisions of older sessions are left out, or a corpus did not reply.
    """

    project_id: str
    file_index: FileIndex
    knowledge_graph: KnowledgeGraph
    common_patterns: list[CommonPattern]
    corpora: list[str]
    decisions: list[ProjectDecision]
    partial: bool
    resource_info: ResourceInfo


class EntitiesCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of a corpus's declared entities and of relations between them."""

    entities: int
    relations: int


class CountEntities(Message[EntitiesCounted], frozen=True, kw_only=True):
    """Count the entities of a corpus."""

    corpus: CorpusName
