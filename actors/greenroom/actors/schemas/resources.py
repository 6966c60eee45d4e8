"""Resources: reading one, and what each kind holds."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.app.savings.requests import SavingsReport
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusView
from greenroom.actors.knowledge.corpora.requests.ingestion import FailedFile, Filling
from greenroom.actors.memories.preferences.requests import PreferencesResource
from greenroom.actors.schemas.conversations import ConversationResource, CurrentSessionResource
from greenroom.actors.schemas.projects import ProjectResource
from greenroom.actors.schemas.resource_info import ResourceInfo as ResourceInfo
from greenroom.actors.schemas.workspace import WorkspaceState
from greenroom.actors.sessions.workflows.requests import WorkflowPattern
from greenroom.runtime import Message


class SessionResource(msgspec.Struct, frozen=True, kw_only=True):
    """A session with the newest messages that the reader may see, oldest of them first.

    ``cursor`` leads `GetMessages` further back.
    """

    session: replies.SessionView
    messages: list[replies.MessageView]
    statistics: replies.SessionStatistics
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class MemoryItem(replies.MemoryEntry, frozen=True, kw_only=True):
    """An entry with its value, but one that is larger than 1 MB, which `GetMemory` has."""

    value: msgspec.Raw | UnsetType = UNSET
    metadata: msgspec.Raw


class MemoryByScope(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """Entries by their keys, newest update first: global ones, and those of each session."""

    global_: dict[str, MemoryItem]
    sessions: dict[str, dict[str, MemoryItem]]


class MemoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """How many entries there are by scope, also those that the page has no room for."""

    global_: int
    sessions: dict[str, int]
    total: int


class MemoryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How many keys are global, how many sessions have some, and how many there are in all, on every page."""

    global_keys: int
    session_scopes: int
    total_entries: int


class MemoryResource(msgspec.Struct, frozen=True, kw_only=True):
    """A page of an agent's memory: its newest entries by scope.

    ``cursor`` leads further back: as ``?cursor=`` behind the URI, or `ListMemory` of all scopes.
    """

    agent_id: str
    memory: MemoryByScope
    counts: MemoryCounts
    statistics: MemoryFigures
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class ExportResource(msgspec.Struct, frozen=True, kw_only=True):
    """An export of memories: its text, which is of another type than other resources."""

    uri: str
    mime_type: str
    text: str


class DocumentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A document in what a corpus says of itself."""

    uri: str
    path: str
    title: str
    chunks: int
    indexed_at: datetime


class CorpusResource(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus: what is in it, how fresh it is, and some of its documents.

    ``has_more``: there are more documents than these. ``filling``: when it was filled, and how far it is who
    fills it. ``failed``: the newest files that could not be taken in.
    """

    corpus: CorpusView
    filling: Filling
    documents: list[DocumentItem]
    failed: list[FailedFile]
    has_more: bool
    resource_info: ResourceInfo


class WorkspaceResource(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace: what is indexed of its folder, how fresh that is, and what is left out.

    Attributes:
        workspace: Its folder and its size.
        freshness: How far the index is, how it is kept, and how many files are left out, by reason.
        failed: The newest files that could not be indexed.
        files: Some of the files that are indexed.
        has_more: Whether there are more than these.
    """

    workspace: CorpusView
    freshness: WorkspaceState
    failed: list[FailedFile]
    files: list[str]
    has_more: bool
    resource_info: ResourceInfo


class DocumentResource(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was taken in: its chunks one after the other, with the headings between them.

    ``modified_at``: when its file was changed; None for what was sent as a text. ``is_cut``: its text is
    longer than this.
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


class PatternResource(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern of one's own steps."""

    pattern: WorkflowPattern
    resource_info: ResourceInfo


class SavingsResource(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of the reader's user saved, on all days that are kept."""

    savings: SavingsReport
    resource_info: ResourceInfo


class ReadResource(
    Message[
        SessionResource
        | MemoryResource
        | ExportResource
        | CorpusResource
        | DocumentResource
        | WorkspaceResource
        | PatternResource
        | PreferencesResource
        | ProjectResource
        | CurrentSessionResource
        | ConversationResource
        | SavingsResource
    ],
    frozen=True,
    metaclass=CheckedWhenBuilt,
    kw_only=True,
):
    """Read a resource by its URI."""

    uri: str
