"""Entities of a corpus: what is declared of them. Times inside are microseconds of UTC."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.replies import PartialReply, Reply
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName, DetailLevel, FreshnessView
from greenroom.actors.memories.requests.map_replies import MappedEntity
from greenroom.actors.schemas.corpus_words import EntityType
from greenroom.runtime import Message

AnEntityType = Annotated[EntityType, Meta(description="what it is")]

MAX_NAME = 100
MAX_ENTITIES = 20_000
"""The most entities that a corpus has."""
MAX_DECLARED = 5_000
"""The most entities that one call declares."""
MAX_SOURCE_CHARACTERS = 1_048_576
"""The most that one YAML file or manifest has."""

EntityName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
EntityId = Annotated[str, Meta(pattern="^e[1-9][0-9]{0,14}(?!\\n)$", extra={"takes": "an entity_id"})]
RelationName = Annotated[str, Meta(min_length=1, max_length=50)]
VendorFilter = Annotated[
    str,
    Meta(min_length=1, max_length=100, description="a name, even mistyped or in part, or a pattern with *"),
]
EntityLimit = Annotated[int, Meta(ge=1, le=50, description="entities at most")]


class Relation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A relation that is declared of an entity.

    Attributes:
        to: The name of the other one; shown when there is such an entity.
        type: What the first one is to the other.
    """

    to: EntityName
    type: RelationName = "related_to"


class EntityDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is declared of an entity.

    Attributes:
        name: What it is called.
        type: What kind of thing it is.
        aliases: Other names by which texts mention it.
        ambiguous: Those of its names that also mean something else. Each counts where another name of the
            entity, or of one that it is related to, is in the same document, or where it is plainly code.
        description: What it is.
        version: Which version is used, as a manifest states it.
        relations: What it is to others.
        entity_id: The entity whose declaration this replaces, when it gets another name.
    """

    name: EntityName
    type: EntityType
    aliases: Annotated[list[EntityName], Meta(max_length=50)] = msgspec.field(default_factory=list)
    ambiguous: Annotated[list[EntityName], Meta(max_length=50)] = msgspec.field(default_factory=list)
    description: Annotated[str, Meta(max_length=2_000)] = ""
    version: Annotated[str, Meta(max_length=200)] | None = None
    relations: Annotated[list[Relation], Meta(max_length=100)] = msgspec.field(default_factory=list)
    entity_id: EntityId | None = None


class DeclarationFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that declares entities.

    Attributes:
        name: Its path; a manifest is known by its name.
        text: What it says.
    """

    name: Annotated[str, Meta(min_length=1, max_length=4_096)]
    text: Annotated[str, Meta(max_length=MAX_SOURCE_CHARACTERS)]


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A name that texts repeat.

    Attributes:
        name: As it is mostly spelled.
        looks_like: What kind of word it is.
        count: How often it is there.
        chunks: In how many chunks.
        example: One of these.
    """

    name: str
    looks_like: Literal["name", "code"]
    count: int
    chunks: int
    example: int


class NameCounts(msgspec.Struct, kw_only=True):
    """Names counted over some texts.

    Attributes:
        counts: How often each spelling of a name is there.
        chunks: In how many texts.
        examples: The first of these.
        small: How often a word is there in small letters.
        code: Which of them are identifiers of code.
    """

    counts: dict[str, int] = msgspec.field(default_factory=Counter)
    chunks: dict[str, int] = msgspec.field(default_factory=Counter)
    examples: dict[str, int] = msgspec.field(default_factory=dict)
    small: dict[str, int] = msgspec.field(default_factory=Counter)
    code: set[str] = msgspec.field(default_factory=set)


# -- messages to the actor of a corpus; not tools -------------------------------------------


class EntitiesDeclared(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `DeclareEntities`, with names.

    Attributes:
        waiting: Documents in which names are still to be looked for.
    """

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: int
    waiting: int


class DeclareEntities(Message[EntitiesDeclared], frozen=True, kw_only=True):
    """Declare entities and remove some: all of it or nothing.

    Attributes:
        declarations: Each takes the place of the one with its name or id.
        libraries: What manifests name; of one that is declared already only the version is taken.
        manifests: Where the libraries are those of the manifests in the corpus, their state as it was read.
        are_all: Whether they are all: others that nothing but manifests declared are removed.
        remove: Names or ids; an unknown one is no error.
    """

    corpus: CorpusName
    declarations: list[EntityDeclaration] = msgspec.field(default_factory=list)
    libraries: list[EntityDeclaration] = msgspec.field(default_factory=list)
    manifests: int | None = None
    are_all: bool = False
    remove: list[str] = msgspec.field(default_factory=list)


class FindEntities(Message["FoundEntities"], frozen=True, kw_only=True):
    """Find entities of a corpus. Not a tool: `FindVendorInfo` asks it."""

    corpus: CorpusName
    id_prefix: int = 0
    wanted: VendorFilter
    entity_type: EntityType | None = None
    include_relationships: bool = True
    detail_level: DetailLevel = "full"
    limit: EntityLimit = 10


class NameEntities(Message[list[MappedEntity]], frozen=True, kw_only=True):
    """Name the entities of a corpus, those that were declared first. Not a tool: a map asks it."""

    corpus: CorpusName
    limit: int


class CountNames(Message["NamesCounted"], frozen=True, kw_only=True):
    """Count the names in some documents of a corpus."""

    corpus: CorpusName
    after: int = 0


class NamesCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountNames`.

    Attributes:
        counts: What they name.
        documents: How many were read.
        after: Where to go on; None at the end.
        known: The names of the entities that are declared, with the last documents.
    """

    counts: NameCounts
    documents: int
    after: int | None
    known: list[str]


class ReadManifests(Message["ManifestsRead"], frozen=True, kw_only=True):
    """Read those documents of a corpus that are manifests of projects.

    Attributes:
        only_changed: Whether they are answered only where they changed since their libraries were declared.
    """

    corpus: CorpusName
    only_changed: bool = False


class ManifestsRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadManifests`: paths and texts.

    Attributes:
        state: What tells whether they are still the same.
        is_changed: Whether their libraries are to be declared, for all that is known.
    """

    manifests: list[DeclarationFile]
    state: int = 0
    is_changed: bool = True


# -- tools -----------------------------------------------------------------------------------


class EntityView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entity; of metadata only the first five members, and else those that it has.

    Attributes:
        entity_id: None for a name that nobody has declared, like its type.
        declared: False for a name that nobody has declared, and that documents repeat.
        mention_count: How often the documents mention it.
        source_chunks: The chunks that mention it most.
        source_files: Of a name that nobody has declared: their documents.
        version: Which version is used, where a manifest says so.
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
    """A relation between two entities: declared, or that texts mention them together.

    Attributes:
        declared: Whether somebody said so; else it is seen in the texts.
        chunk_count: Of what is seen: how many chunks mention both.
        example_chunks: Some of these.
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
    """Answers `FindEntities`; members as in `EntitiesFound`.

    Attributes:
        names: All that the likeliest entity is called.
        ambiguous: Those of its names that also mean something else.
    """

    entities: list[EntityView]
    relationships: list[RelationshipView]
    total_entities: int
    total_relationships: int
    freshness: FreshnessView
    waiting: int
    names: list[str]
    ambiguous: list[str]


class EntitiesFound(PartialReply, frozen=True, kw_only=True):
    """Answers `FindVendorInfo`, the likeliest first.

    Attributes:
        total_entities: How many entities may be meant.
        total_relationships: How many relations those that are answered have.
        waiting_for_matching: Documents in which names are still to be looked for, if there are any.
    """

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
    """A session whose messages mention an entity: some of them, the likeliest first."""

    session_id: str
    purpose: str
    message_ids: list[int]


class EntityFound(EntitiesFound, frozen=True, kw_only=True):
    """Answers `FindEntity`: what `EntitiesFound` has, and where else the first entity is mentioned.

    Attributes:
        memories: Memories that mention it.
        sessions: Of the sessions with the newest activity those that mention it.
    """

    memories: list[MemoryMention]
    sessions: list[SessionMention]


class EntitiesDefined(Reply, frozen=True, kw_only=True):
    """Answers `DefineEntities`, with names.

    Attributes:
        unchanged: How many were declared so before.
        unreadable: Files that could not be read, each with the reason.
        waiting_for_matching: Documents in which names are still to be looked for; it goes on by itself.
    """

    corpus: str
    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: int
    unreadable: list[str]
    waiting_for_matching: int


class EntitiesSuggested(PartialReply, frozen=True, kw_only=True):
    """Answers `SuggestEntities`: what the documents name again and again and nobody has declared.

    Attributes:
        documents: How many were read.
    """

    lists: ClassVar[tuple[str, ...]] = ("suggestions",)

    suggestions: list[Suggestion]
    documents: int
    corpus: str
    execution_time_ms: float
