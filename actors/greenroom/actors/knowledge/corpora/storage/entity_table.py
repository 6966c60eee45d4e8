"""The entities of a corpus in memory, and the mentions of its documents."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from greenroom.actors.knowledge.corpora.storage import entity_records
from greenroom.actors.knowledge.corpora.storage.entity_records import EntitiesHeader, EntityRecord
from greenroom.actors.knowledge.entities import NAMES, EntityMatcher, EntityName, MatchedNames, fold
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts

_ENTITY_BYTES: Final = 1_500


class DeclaredRelation(NamedTuple):
    """A declared relation between two entities."""

    source: int
    type: str
    target: int


class EntityTable:
    """The entities of an active corpus, loaded on first use.

    Attributes:
        mentions: The packed mentions of each document, by the document's number; None until they are read.
        counts: Counts of the mentions; None after a change.
    """

    def __init__(self) -> None:
        self.header = EntitiesHeader()
        self.by_number: dict[int, EntityRecord] = {}
        self.mentions: dict[int, bytes] | None = None
        self.counts: MentionCounts | None = None
        self._is_loaded = False
        self._kept_bytes = 0
        self._matcher: EntityMatcher | None = None
        self._names: list[EntityName] | None = None
        self._numbers: dict[str, int] | None = None
        self._relations: dict[int, list[DeclaredRelation]] | None = None
        self._by_match: dict[int, EntityRecord] | None = None

    def load(self, context: Context) -> Slices[EntityTable]:
        """Load the entities, unless they are loaded already."""
        if not self._is_loaded:
            header = context.get(entity_records.HEADER, EntitiesHeader) or EntitiesHeader()
            found: dict[int, EntityRecord] = {}
            for _, record in context.scan(EntityRecord, prefix=entity_records.ENTITIES):
                found[record.number] = record
                yield
            self.replace(header, found)
            self._is_loaded = True
        return self

    def replace(self, header: EntitiesHeader, entities: dict[int, EntityRecord]) -> None:
        """Replace all entities in memory."""
        self.header = header
        self.by_number = entities
        self._matcher = self._names = self._numbers = self._relations = self._by_match = self.counts = None

    def put_header(self, context: Context, header: EntitiesHeader) -> None:
        """Stage the header, and keep it in memory."""
        context.put(entity_records.HEADER, header)
        self.header = header

    def mark_manifests(self, context: Context) -> None:
        """Stage that a manifest changed, so that its libraries are declared; call `load` first."""
        self.put_header(context, replace(self.header, manifests=self.header.manifests + 1))

    def put_mentions(self, context: Context, document: int, record: bytes) -> None:
        """Stage the mentions of a document, and keep them in memory."""
        key = entity_records.mentions_key(document)
        if (context.get(key, bytes) or b"") == record:
            return
        if record:
            context.put(key, record)
        else:
            context.delete(key)
        if self.mentions is not None:
            self._kept_bytes += len(record) - len(self.mentions.pop(document, b""))
            if record:
                self.mentions[document] = record
        self.counts = None

    def set_mentions(self, found: dict[int, bytes]) -> None:
        """Keep the mentions of all documents in memory."""
        self.mentions = found
        self._kept_bytes = sum(map(len, found.values()))

    def has_mentions(self, context: Context, document: int, record: bytes) -> bool:
        """Return whether a document has these mentions on disk and in memory."""
        kept = None if self.mentions is None else self.mentions.get(document, b"")
        return (context.get(entity_records.mentions_key(document), bytes) or b"") == record and kept in {
            None,
            record,
        }

    def unload_mentions(self) -> None:
        """Drop the mentions from memory; when they are needed, they are read again."""
        self.mentions = self.counts = None
        self._kept_bytes = 0

    def find_in_chunk(self, context: Context, document: int, chunk: int) -> list[EntityRecord]:
        """Return the entities that a chunk mentions, most mentioned first."""
        if not self.by_number:
            return []
        record = context.get(entity_records.mentions_key(document), bytes) or b""
        entities = self.by_match
        found = [
            (-mention.times, entities[mention.match])
            for mention in entity_records.unpack_mentions(record)
            if mention.chunk == chunk and mention.match in entities
        ]
        return [entity for _, entity in sorted(found, key=lambda each: (each[0], each[1].number))]

    @property
    def by_match(self) -> dict[int, EntityRecord]:
        """The entities by their match numbers."""
        if self._by_match is None:
            self._by_match = {entity.match: entity for entity in self.by_number.values()}
        return self._by_match

    @property
    def names(self) -> list[EntityName]:
        """All names of the entities."""
        if self._names is None:
            self._names = [
                EntityName(fold(name), entity.number)
                for entity in self.by_number.values()
                for name in entity.names
            ]
        return self._names

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the entities by their `fold` names, without aliases."""
        if self._numbers is None:
            self._numbers = {fold(entity.name): number for number, entity in self.by_number.items()}
        return self._numbers

    @property
    def relations(self) -> dict[int, list[DeclaredRelation]]:
        """Declared relations between existing entities; each is listed under both entities' numbers."""
        if self._relations is None:
            found: dict[int, list[DeclaredRelation]] = defaultdict(list)
            for source in self.by_number.values():
                for relation in source.relations:
                    target = self.numbers.get(fold(relation.to))
                    if target is not None:
                        for number in {source.number, target}:
                            found[number].append(DeclaredRelation(source.number, relation.type, target))
            self._relations = dict(found)
        return self._relations

    def matcher(self) -> EntityMatcher:
        """Return a matcher of names that finds match numbers; needs packages, see `can_match`."""
        if self._matcher is None:
            self._matcher = EntityMatcher(
                MatchedNames(entity.match, entity.names, entity.ambiguous, self._related(entity))
                for entity in self.by_number.values()
            )
        return self._matcher

    def _related(self, entity: EntityRecord) -> frozenset[int]:
        both = self.relations.get(entity.number, ())
        return frozenset(
            self.by_number[number].match for each in both for number in (each.source, each.target)
        )

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return _ENTITY_BYTES * len(self.by_number) + 3 * self._kept_bytes


def can_match() -> bool:
    """Return whether the matcher's packages are installed."""
    return not NAMES.missing
