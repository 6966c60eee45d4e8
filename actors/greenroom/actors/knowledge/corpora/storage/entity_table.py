"""The entities of a corpus in memory, and what its documents mention."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from greenroom.actors.entities import NAMES, EntityMatcher, EntityName, MatchedNames, folded
from greenroom.actors.knowledge.corpora.storage import entity_records as records
from greenroom.actors.knowledge.corpora.storage.entity_records import EntitiesHeader, EntityRecord
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts

_ENTITY_BYTES: Final = 1_500


class DeclaredRelation(NamedTuple):
    """What an entity is declared to be to another."""

    source: int
    type: str
    target: int


class EntityTable:
    """What an activation of a corpus knows of its entities; read when it is first needed.

    Attributes:
        header: What holds for all.
        by_number: The entities.
        mentions: What each document mentions, by its number; None until it is read.
        counts: The same, counted; None after a change.
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

    def loaded(self, context: Context) -> Slices[EntityTable]:
        """Read the entities, once."""
        if not self._is_loaded:
            header = context.get(records.HEADER, EntitiesHeader) or EntitiesHeader()
            found: dict[int, EntityRecord] = {}
            for _, record in context.scan(EntityRecord, prefix=records.ENTITIES):
                found[record.number] = record
                if context.should_yield():
                    yield
            self.replace(header, found)
            self._is_loaded = True
        return self

    def replace(self, header: EntitiesHeader, entities: dict[int, EntityRecord]) -> None:
        """Take note of other entities."""
        self.header = header
        self.by_number = entities
        self._matcher = self._names = self._numbers = self._relations = self._by_match = self.counts = None

    def put_header(self, context: Context, header: EntitiesHeader) -> None:
        """Stage what holds for all, and take note of it."""
        context.put(records.HEADER, header)
        self.header = header

    def note_manifest(self, context: Context) -> None:
        """Stage that a manifest is not as it was, so that its libraries are to be declared; it is loaded."""
        self.put_header(context, replace(self.header, manifests=self.header.manifests + 1))

    def put_mentions(self, context: Context, document: int, record: bytes) -> None:
        """Stage what a document mentions, and take note of it."""
        key = records.mentions_key(document)
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

    def take_mentions(self, found: dict[int, bytes]) -> None:
        """Take note of what all documents mention."""
        self.mentions = found
        self._kept_bytes = sum(map(len, found.values()))

    def has_mentions(self, context: Context, document: int, record: bytes) -> bool:
        """Return whether a record is what a document mentions, on disk and in memory."""
        kept = None if self.mentions is None else self.mentions.get(document, b"")
        return (context.get(records.mentions_key(document), bytes) or b"") == record and kept in {
            None,
            record,
        }

    def forget_mentions(self) -> None:
        """Let what documents mention be read again when it is needed."""
        self.mentions = self.counts = None
        self._kept_bytes = 0

    def of_chunk(self, context: Context, document: int, chunk: int) -> list[EntityRecord]:
        """Return the entities that a chunk mentions, the one that it mentions most first."""
        if not self.by_number:
            return []
        record = context.get(records.mentions_key(document), bytes) or b""
        entities = self.by_match
        found = [
            (-mention.times, entities[mention.match])
            for mention in records.unpacked_mentions(record)
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
        """All that the entities are called."""
        if self._names is None:
            self._names = [
                EntityName(folded(name), entity.number)
                for entity in self.by_number.values()
                for name in entity.names
            ]
        return self._names

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the entities by their names, `folded`, without aliases."""
        if self._numbers is None:
            self._numbers = {folded(entity.name): number for number, entity in self.by_number.items()}
        return self._numbers

    @property
    def relations(self) -> dict[int, list[DeclaredRelation]]:
        """What was declared between entities that there are, by the numbers of both."""
        if self._relations is None:
            found: dict[int, list[DeclaredRelation]] = defaultdict(list)
            for source in self.by_number.values():
                for relation in source.relations:
                    target = self.numbers.get(folded(relation.to))
                    if target is not None:
                        for number in {source.number, target}:
                            found[number].append(DeclaredRelation(source.number, relation.type, target))
            self._relations = dict(found)
        return self._relations

    def matcher(self) -> EntityMatcher:
        """Return what finds the entities' names, by match numbers; see `can_match`."""
        if self._matcher is None:
            self._matcher = EntityMatcher(
                MatchedNames(entity.match, entity.names, entity.ambiguous, self._related(entity))
                for entity in self.by_number.values()
            )
        return self._matcher

    def _related(self, entity: EntityRecord) -> frozenset[int]:
        """Return the match numbers of the entities that an entity is related to."""
        both = self.relations.get(entity.number, ())
        return frozenset(
            self.by_number[number].match for each in both for number in (each.source, each.target)
        )

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return _ENTITY_BYTES * len(self.by_number) + 3 * self._kept_bytes


def can_match() -> bool:
    """Return whether names can be looked for here."""
    return not NAMES.missing
