"""What is known of what memories are linked to: names of entities, purposes of sessions."""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.requests.map_replies import MappedEntity

NAMES: Final = 4
"""Names of an entity that are looked for."""


class Known(NamedTuple):
    """What is known beside memories.

    Attributes:
        principal: Who asks.
        entities: What memories may mention.
        purposes: Of sessions, by their ids.
        conflicts: Ids of memories, each with that of an older one that it may contradict.
        notes: What is missing so far.
    """

    principal: Principal
    entities: list[MappedEntity]
    purposes: dict[str, str]
    conflicts: list[tuple[str, str]]
    notes: list[str]


def words_of(entity: MappedEntity) -> list[list[str]]:
    """Return for each name of an entity the words that a text has that mentions it."""
    return [
        sorted({term for token in tokens(name.casefold()) for term in token.posted})
        for name in entity.names[:NAMES]
    ]
