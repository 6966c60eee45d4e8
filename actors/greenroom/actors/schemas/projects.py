"""A project as a resource: what is indexed of it, what is known in it, what was decided."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.schemas.resource_info import ResourceInfo
from greenroom.runtime import Message


class FileIndex(msgspec.Struct, frozen=True, kw_only=True):
    """How far the files of a project are indexed: those of its folders of code and of its documents."""

    total_files: int
    indexed_files: int
    last_index: datetime | None


class KnowledgeGraph(msgspec.Struct, frozen=True, kw_only=True):
    """How many entities are declared in the corpora of a project, and how many relations between them."""

    nodes: int
    edges: int


class CommonPattern(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that the reader's user does again and again in the project; ``uri`` has more."""

    uri: str
    commands: list[str]
    last_seen: datetime


class ProjectDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, by which agent, and in which session it was recorded."""

    what: str
    why: str | None
    at: datetime
    by: str
    session_id: str


class ProjectResource(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a project, as far as the reader may see it.

    Attributes:
        common_patterns: What the reader's own user does there again and again.
        corpora: The names in full of its corpora, its folders of code among them.
        decisions: Of its sessions, the newest first.
        partial: Whether decisions of older sessions are left out, or a corpus could not answer.
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
    """How many entities a corpus declares, and relations between such."""

    entities: int
    relations: int


class CountEntities(Message[EntitiesCounted], frozen=True, kw_only=True):
    """Count the entities of a corpus."""

    corpus: CorpusName
