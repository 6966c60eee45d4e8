"""What people page through in a corpus: its documents, and the entities that are declared in it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import (
    MAX_PATH,
    CorpusName,
    CorpusView,
    DocumentPage,
    FreshnessView,
)
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityView
from greenroom.actors.knowledge.corpora.requests.ingestion import Filling
from greenroom.actors.schemas.corpus_words import EntityType
from greenroom.actors.schemas.workspace import WorkspaceState
from greenroom.runtime import Message

Holding = Annotated[str, Meta(max_length=500, description="only those that have this text, in any case")]
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
        bytes: Of its file.
        language: What it is written in, if that is one that a workspace reads by its syntax.
        modified_at: When the file was changed, as it was read; null for what was sent as a text.
        indexed_at: When it was taken in.
        chunks: How many passages it has.
        on_disk: How its file is now, in comparison; absent where that was not looked at.
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
    """Answers `CorpusDocuments`, in an order that means nothing and stays.

    Attributes:
        freshness: Of the corpus, and of the files of this page.
    """

    lists: ClassVar[tuple[str, ...]] = ("documents",)

    documents: list[DocumentShown]
    corpus: str
    freshness: FreshnessView
    next_cursor: str | None


class PageRead(msgspec.Struct, frozen=True, kw_only=True):
    """A page of documents as the corpus has them, and how fresh it is."""

    corpus: str
    page: DocumentPage
    freshness: FreshnessView


class CountEachEntity(Message["EntitiesCountedEach"], frozen=True, kw_only=True):
    """List entities of a corpus with their mentions, those first that are mentioned most; not a tool.

    Attributes:
        start: How many are before the page.
    """

    corpus: CorpusName
    id_prefix: int = 0
    holding: str = ""
    entity_type: EntityType | None = None
    start: int = 0
    limit: int = 50


class EntitiesCountedEach(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountEachEntity`; members as in `EntitiesShown`."""

    entities: list[EntityView]
    total: int
    waiting: int


class EntitiesShown(ListReply, frozen=True, kw_only=True):
    """Answers `CorpusEntities`, those first that are mentioned most.

    Attributes:
        total: How many there are in all.
        waiting_for_matching: Documents in which names are still to be looked for.
    """

    lists: ClassVar[tuple[str, ...]] = ("entities",)

    entities: list[EntityView]
    total: int
    waiting_for_matching: int
    corpus: str
    next_cursor: str | None


class CorpusShown(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus of documents in a listing, and who fills it."""

    corpus: CorpusView
    filling: Filling


class CorporaShown(ListReply, frozen=True, kw_only=True):
    """Answers `BrowseCorpora`: those that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("corpora",)

    corpora: list[CorpusShown]


class WorkspaceShown(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace in a listing, and how far its index is."""

    workspace: CorpusView
    freshness: WorkspaceState


class WorkspacesShown(ListReply, frozen=True, kw_only=True):
    """Answers `ListWorkspaces`: those that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("workspaces",)

    workspaces: list[WorkspaceShown]


class FileShown(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a workspace in a listing.

    Attributes:
        language: What it is written in, if that is one that is read by its syntax.
        bytes: How many it has, and so on as in `DocumentShown`.
    """

    path: str
    language: str | UnsetType = UNSET
    kind: str
    bytes: int
    modified_at: datetime | None
    indexed_at: datetime
    chunks: int


class FilesShown(ListReply, frozen=True, kw_only=True):
    """Answers `WorkspaceFiles`, in an order that means nothing and stays."""

    lists: ClassVar[tuple[str, ...]] = ("files",)

    files: list[FileShown]
    corpus: str
    next_cursor: str | None
