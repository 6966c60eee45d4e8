"""The records of a corpus's entities and their keys. Numbers are big-endian.

    x           what holds for all of them
    e entity    an entity
    m document  which entities the chunks of a document mention

What is found in texts is kept by *match numbers*. An entity gets a new one with new names, so that what was
found by its old ones is nobody's at once, and goes as its document is gone through again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityDeclaration, Relation
from greenroom.actors.schemas.corpus_words import EntityType

HEADER: Final = b"x"
ENTITIES: Final = b"e"
MENTIONS: Final = b"m"
_ROW: Final = struct.Struct("<qII")


class EntitiesHeader(msgspec.Struct, frozen=True, array_like=True):
    """What holds for all entities of a corpus.

    Attributes:
        next_entity: The number of the next one.
        next_match: The next match number.
        matched_to: The first document in which the present names are still to be looked for; None: there
            is none.
        manifests: How often a manifest was put in, changed or removed.
        manifests_read: What that was when their libraries were declared last.
        matcher: What looked for names in all documents last, as `corpus.readers` has it.
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
        number: What it is known by inside.
        match: What it is known by in what is found in texts.
        name: What it is called, and so on as in `EntityDeclaration`.
        created_at: When it was declared first.
        is_found: Whether nobody declared it but the manifests in the corpus: it goes with them.
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
        """What it is known by outside; its name may change."""
        return f"e{self.number}"

    @property
    def names(self) -> list[str]:
        """Everything that it is called."""
        return list(dict.fromkeys([self.name, *self.aliases, *self.ambiguous]))


class Mention(NamedTuple):
    """How often a chunk mentions an entity, which is known by its match number."""

    chunk: int
    match: int
    times: int


def entity_record(
    declared: EntityDeclaration, number: int, created_at: int, *, is_found: bool
) -> EntityRecord:
    """Return the record of an entity as it is declared, without a match number."""
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
    """Return the record key of what the document with a number mentions."""
    return MENTIONS + document.to_bytes(8)


def packed_mentions(chunks: Iterable[int], found: Iterable[Mapping[int, int]]) -> bytes:
    """Return the record of what chunks mention, one after the other."""
    return b"".join(
        _ROW.pack(chunk, match, min(count, 0xFFFF_FFFF))
        for chunk, counts in zip(chunks, found, strict=True)
        for match, count in sorted(counts.items())
    )


def unpacked_mentions(record: bytes) -> Iterator[Mention]:
    """Yield what a record says."""
    return (Mention(*row) for row in _ROW.iter_unpack(record))
