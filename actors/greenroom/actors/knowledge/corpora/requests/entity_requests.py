"""Requests and replies about entities. Times inside are microseconds of UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.auth.corpora import EntityType
from greenroom.actors.core.replies.replies import PartialReply, Reply
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName, DetailLevel, FreshnessView
from greenroom.actors.knowledge.entities.records import (
    DeclarationFile,
    EntityDeclaration,
    NameCounts,
    Suggestion,
)
from greenroom.actors.memories.requests.map_replies import MappedEntity
from greenroom.runtime import Message

AnEntityType = Annotated[EntityType, Meta(description="what it is")]

MAX_ENTITIES = 20_000
"""Maximum number of entities of a corpus."""
MAX_DECLARED = 5_000
"""Maximum number of entities that one call declares."""

VendorFilter = Annotated[
    str,
    Meta(min_length=1, max_length=100, description="a name, even mistyped or in part, or a pattern with *"),
]
EntityLimit = Annotated[int, Meta(ge=1, le=50, description="entities at most")]


# -- messages to the actor of a corpus; not tools -------------------------------------------


class EntitiesDeclared(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `DeclareEntities`, with names; ``waiting`` documents must still be matched."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: int
    waiting: int


class DeclareEntities(Message[EntitiesDeclared], frozen=True, kw_only=True):
    """Declare entities and remove some, atomically.

    Attributes:
        libraries: Libraries of manifests; for a declared library, only the version is updated.
        manifests: If the libraries are from the corpus's manifests: the manifests' state when they were read.
        are_all: Whether these are all libraries: then all others that only manifests declared are removed.
    """

    corpus: CorpusName
    declarations: list[EntityDeclaration] = msgspec.field(default_factory=list)
    libraries: list[EntityDeclaration] = msgspec.field(default_factory=list)
    manifests: int | None = None
    are_all: bool = False
    remove: list[str] = msgspec.field(default_factory=list)


class FindEntities(Message["FoundEntities"], frozen=True, kw_only=True):
    """Find entities of a corpus. Not a tool: `FindVendorInfo` sends it."""

    corpus: CorpusName
    id_prefix: int = 0
    wanted: VendorFilter
    entity_type: EntityType | None = None
    include_relationships: bool = True
    detail_level: DetailLevel = "full"
    limit: EntityLimit = 10


class NameEntities(Message[list[MappedEntity]], frozen=True, kw_only=True):
    """List the names of the entities declared first. Not a tool: a map needs it."""

    corpus: CorpusName
    limit: int


class CountNames(Message["NamesCounted"], frozen=True, kw_only=True):
    """Count the names in some documents of a corpus."""

    corpus: CorpusName
    after: int = 0


class NamesCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `CountNames`; ``after`` is where to continue; None at the end.

    The names of declared entities come with the last documents.
    """

    counts: NameCounts
    documents: int
    after: int | None
    known: list[str]


class ReadManifests(Message["ManifestsRead"], frozen=True, kw_only=True):
    """Read the manifests of a corpus; with ``only_changed``, only if changed since the last declaration."""

    corpus: CorpusName
    only_changed: bool = False


class ManifestsRead(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ReadManifests`; ``state`` differs after each change."""

    manifests: list[DeclarationFile]
    state: int = 0
    is_changed: bool = True


# -- tools -----------------------------------------------------------------------------------


class EntityView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entity; detail level ``metadata`` has the first five members, ``full`` has all known.

    Attributes:
        entity_id: None for an undeclared name; then the type is None, too.
        declared: False for an undeclared name that documents repeat.
        source_chunks: The chunks that mention it most.
        version: The used version, if a manifest names one.
    """

    entity_id: str | None
    name: str
    entity_type: EntityType | None
    mention_count: int
    declared: Annotated[bool, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    description: str = ""
    source_chunks: list[int] = msgspec.field(default_factory=list)
    source_files: Annotated[list[str], Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    created_at: datetime | UnsetType = UNSET
    aliases: list[str] = msgspec.field(default_factory=list)
    version: str | UnsetType = UNSET


class RelationshipView(msgspec.Struct, frozen=True, kw_only=True):
    """A relation between two entities: declared, or found because chunks mention both.

    Attributes:
        declared: True for a declared relation, false for a relation found in texts.
        chunk_count: For a found relation: the number of chunks that mention both entities.
    """

    source_id: str
    target_id: str
    relationship_type: str
    source_name: str
    target_name: str
    declared: bool
    chunk_count: int | UnsetType = UNSET
    example_chunks: list[int] | UnsetType = UNSET


class FoundEntities(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `FindEntities`; members as in `EntitiesFound`, and the names of the best entity."""

    entities: list[EntityView]
    relationships: list[RelationshipView]
    total_entities: int
    total_relationships: int
    freshness: FreshnessView
    waiting: int
    names: list[str]
    ambiguous: list[str]


class EntitiesFound(PartialReply, frozen=True, kw_only=True):
    """Reply to `FindVendorInfo`, the likeliest first; relations are of the returned entities."""

    lists: ClassVar[tuple[str, ...]] = ("entities",)

    entities: list[EntityView]
    relationships: list[RelationshipView]
    total_entities: int
    total_relationships: int
    execution_time_ms: float
    corpus: str
    freshness: FreshnessView
    waiting_for_matching: int | UnsetType = UNSET


class MemoryMention(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that mentions an entity."""

    memory_id: str
    namespace: str
    key: str


class SessionMention(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and some of its messages that mention an entity, the likeliest first."""

    session_id: str
    purpose: str
    message_ids: list[int]


class EntityFound(EntitiesFound, frozen=True, kw_only=True):
    """Reply to `FindEntity`: as `EntitiesFound`, with memories and sessions that mention the first entity."""

    memories: list[MemoryMention]
    sessions: list[SessionMention]


class EntitiesDefined(Reply, frozen=True, kw_only=True):
    """Reply to `DefineEntities`, with names.

    Attributes:
        unreadable: Files that could not be read, each with the reason.
        waiting_for_matching: Documents that must still be matched with names; this continues by itself.
    """

    corpus: str
    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: int
    unreadable: list[str]
    waiting_for_matching: int


class EntitiesSuggested(PartialReply, frozen=True, kw_only=True):
    """Reply to `SuggestEntities`: undeclared names that documents repeat."""

    lists: ClassVar[tuple[str, ...]] = ("suggestions",)

    suggestions: list[Suggestion]
    documents: int
    corpus: str
    execution_time_ms: float
