"""Listings of a corpus in pages: its documents, and its declared entities."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.content.documents.document_types import MAX_PATH
from greenroom.actors.core.auth.corpora import EntityType
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import (
    CorpusName,
    CorpusView,
    DocumentPage,
    FreshnessView,
)
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityView
from greenroom.actors.knowledge.corpora.requests.ingestion import Filling
from greenroom.actors.knowledge.corpora.requests.workspace import WorkspaceState
from greenroom.runtime import Message

Holding = Annotated[str, Meta(max_length=500, description="only those that have this text, in any case")]
Folder = Annotated[str, Meta(max_length=4_096, description="only this folder, by name; its folders apart")]
PageLimit = Annotated[int, Meta(ge=1, le=200, description="how many")]
Position = Annotated[str, Meta(max_length=20_000, description="next_cursor of the page before")]
Kind = Annotated[str, Meta(min_length=1, max_length=100, description="kind of file, such as markdown")]
ExactPath = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_PATH, description="only the one with this path"),
]
OnDisk = Literal["unchanged", "changed", "missing"]


class DocumentShown(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a listing.

    Attributes:
        modified_at: When the file that was read had last changed; null for a text that was sent.
        on_disk: How the file on disk compares now; absent if it was not checked.
    """

    path: str
    title: str
    kind: str
    language: str | UnsetType = UNSET
    bytes: int
    modified_at: datetime | None
    indexed_at: datetime
    chunks: int
    on_disk: OnDisk | UnsetType = UNSET


class DocumentsShown(ListReply, frozen=True, kw_only=True):
    """Reply to `CorpusDocuments`, in an arbitrary but stable order."""

    lists: ClassVar[tuple[str, ...]] = ("documents",)

    documents: list[DocumentShown]
    corpus: str
    freshness: FreshnessView
    next_cursor: str | None


class PageRead(msgspec.Struct, frozen=True, kw_only=True):
    """A page of documents, and the freshness of the corpus."""

    corpus: str
    page: DocumentPage
    freshness: FreshnessView


class CountEachEntity(Message["EntitiesCountedEach"], frozen=True, kw_only=True):
    """List entities of a corpus, most mentioned first; not a tool."""

    corpus: CorpusName
    id_prefix: int = 0
    holding: str = ""
    entity_type: EntityType | None = None
    start: int = 0
    limit: int = 50


class EntitiesCountedEach(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `CountEachEntity`; members as in `EntitiesShown`."""

    entities: list[EntityView]
    total: int
    waiting: int


class EntitiesShown(ListReply, frozen=True, kw_only=True):
    """Reply to `CorpusEntities`, most mentioned first."""

    lists: ClassVar[tuple[str, ...]] = ("entities",)

    entities: list[EntityView]
    total: int
    waiting_for_matching: int
    corpus: str
    next_cursor: str | None


class CorpusShown(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus in a listing, and its ingest runs."""

    corpus: CorpusView
    filling: Filling


class CorporaShown(ListReply, frozen=True, kw_only=True):
    """Reply to `BrowseCorpora`: the corpora that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("corpora",)

    corpora: list[CorpusShown]


class WorkspaceShown(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace in a listing, and the progress of its index."""

    workspace: CorpusView
    freshness: WorkspaceState


class WorkspacesShown(ListReply, frozen=True, kw_only=True):
    """Reply to `ListWorkspaces`: the workspaces that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("workspaces",)

    workspaces: list[WorkspaceShown]


class FileShown(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a workspace in a listing; members as in `DocumentShown`."""

    path: str
    language: str | UnsetType = UNSET
    kind: str
    bytes: int
    modified_at: datetime | None
    indexed_at: datetime
    chunks: int


class FolderShown(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in a workspace, and the number of files in it and below."""

    path: str
    files: int


class FilesShown(ListReply, frozen=True, kw_only=True):
    """Reply to `WorkspaceFiles`, in an arbitrary but stable order; of a folder by name.

    Attributes:
        folders: Those in a requested folder.
        is_cut: Whether there are too many files for folders.
    """

    lists: ClassVar[tuple[str, ...]] = ("files",)

    files: list[FileShown]
    folders: list[FolderShown] | UnsetType = UNSET
    is_cut: bool = False
    corpus: str
    next_cursor: str | None
