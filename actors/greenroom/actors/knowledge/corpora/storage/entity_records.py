"""The records of a corpus's entities and their keys. Numbers are big-endian.

    x           the header of all entities
    e entity    an entity
    m document  the entities that the document's chunks mention

Mentions refer to *match numbers*. When an entity's names change, the entity gets a new match number, so older
mentions at once refer to no entity. They are deleted when their document is matched again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.corpora import EntityType
from greenroom.actors.knowledge.entities.records import EntityDeclaration, Relation

HEADER: Final = b"x"
ENTITIES: Final = b"e"
MENTIONS: Final = b"m"
_ROW: Final = struct.Struct("<qII")


class EntitiesHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header of a corpus's entities.

    Attributes:
        matched_to: The first document that is not matched with the current names; None if all documents are
            matched.
        manifests: How often a manifest was added, changed or removed.
        manifests_read: The value of ``manifests`` when the libraries were last declared.
        matcher: The matcher of the last complete matching, as in `storage.readers`.
    """

    next_entity: int = 1
    next_match: int = 1
    matched_to: int | None = None
    manifests: int = 0
    manifests_read: int = 0
    matcher: str = ""


class EntityRecord(msgspec.Struct, frozen=True, array_like=True):
    """An entity.

    Attributes:
        match: The entity's match number; mentions refer to it.
        is_found: Whether only manifests in the corpus declared the entity; it is removed with them.
    """

    number: int
    match: int
    name: str
    type: EntityType
    aliases: list[str]
    ambiguous: list[str]
    description: str
    version: str | None
    relations: list[Relation]
    created_at: int
    is_found: bool = False

    @property
    def id(self) -> str:
        """The entity's public id; it stays the same when the entity is renamed."""
        return f"e{self.number}"

    @property
    def names(self) -> list[str]:
        """All names of the entity."""
        return list(dict.fromkeys([self.name, *self.aliases, *self.ambiguous]))


class Mention(NamedTuple):
    """How often a chunk mentions an entity; ``match`` is the entity's match number."""

    chunk: int
    match: int
    times: int


def make_record(declared: EntityDeclaration, number: int, created_at: int, *, is_found: bool) -> EntityRecord:
    """Make the record of a declared entity, without a match number."""
    return EntityRecord(
        number=number,
        match=0,
        name=declared.name,
        type=declared.type,
        aliases=declared.aliases,
        ambiguous=declared.ambiguous,
        description=declared.description,
        version=declared.version,
        relations=declared.relations,
        created_at=created_at,
        is_found=is_found,
    )


def entity_key(number: int) -> bytes:
    """Return the record key of an entity."""
    return ENTITIES + number.to_bytes(8)


def mentions_key(document: int) -> bytes:
    """Return the record key of a document's mentions."""
    return MENTIONS + document.to_bytes(8)


def pack_mentions(chunks: Iterable[int], found: Iterable[Mapping[int, int]]) -> bytes:
    """Pack the mentions of chunks, in order, into a record."""
    return b"".join(
        _ROW.pack(chunk, match, min(count, 0xFFFF_FFFF))
        for chunk, counts in zip(chunks, found, strict=True)
        for match, count in sorted(counts.items())
    )


def unpack_mentions(record: bytes) -> Iterator[Mention]:
    """Yield the mentions of a record."""
    return (Mention(*row) for row in _ROW.iter_unpack(record))
