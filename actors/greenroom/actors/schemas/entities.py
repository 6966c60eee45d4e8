"""Entities of a corpus: what is declared of them. Times inside are microseconds of UTC."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

EntityType = Literal["vendor", "library", "framework", "service"]
AnEntityType = Annotated[EntityType, Meta(description="what it is")]

MAX_NAME = 100
MAX_ENTITIES = 20_000
"""The most entities that a corpus has."""
MAX_DECLARED = 5_000
"""The most entities that one call declares."""
MAX_SOURCE_CHARACTERS = 4 * 1_048_576
"""The most that one YAML file or manifest has."""

EntityName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
EntityId = Annotated[str, Meta(pattern="^e[1-9][0-9]{0,14}(?!\\n)$", extra={"takes": "an entity_id"})]
RelationName = Annotated[str, Meta(min_length=1, max_length=50)]


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
