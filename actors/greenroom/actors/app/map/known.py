"""Names that memories link to: names of entities, purposes of sessions."""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.requests.map_replies import MappedEntity

NAMES: Final = 4
"""At most this many names of an entity are searched."""


class Known(NamedTuple):
    """The data of a map besides the memories.

    Attributes:
        conflicts: Pairs of memory ids: a memory, and an older memory that it may contradict.
    """

    principal: Principal
    entities: list[MappedEntity]
    purposes: dict[str, str]
    conflicts: list[tuple[str, str]]
    notes: list[str]


def words_of(entity: MappedEntity) -> list[list[str]]:
    """Return for each name of an entity the words that a mention contains."""
    return [
        sorted({term for token in tokens(name.casefold()) for term in token.posted})
        for name in entity.names[:NAMES]
    ]
