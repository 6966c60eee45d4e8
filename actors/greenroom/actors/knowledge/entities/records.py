"""Declarations of entities, and suggested names."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.corpora import EntityType
from greenroom.runtime import GreenroomError


class UnreadableDeclarationsError(GreenroomError):
    """A file has no readable declarations; the text names the file and says why."""


MAX_NAME = 100


MAX_SOURCE_CHARACTERS = 1_048_576
"""Maximum characters of one YAML file or manifest."""
EntityName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
EntityId = Annotated[str, Meta(pattern="^e[1-9][0-9]{0,14}(?!\\n)$", extra={"takes": "an entity_id"})]
RelationName = Annotated[str, Meta(min_length=1, max_length=50)]


class Relation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A declared relation of an entity; ignored while no other entity has the name ``to``."""

    to: EntityName
    type: RelationName = "related_to"


class EntityDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The declaration of an entity.

    Attributes:
        ambiguous: The names that also mean something else. Such a name counts only if another name of the
        entity, or of a related entity, is in the same document, or if the name is plainly code.
        version: The used version, from a manifest.
        entity_id: The entity to replace, if this declaration renames it.
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
    """A file with declarations; the name shows whether it is a manifest."""

    name: Annotated[str, Meta(min_length=1, max_length=4_096)]
    text: Annotated[str, Meta(max_length=MAX_SOURCE_CHARACTERS)]


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A name that texts repeat, in its most frequent spelling."""

    name: str
    looks_like: Literal["name", "code"]
    count: int
    chunks: int
    example: int


class NameCounts(msgspec.Struct, kw_only=True):
    """Counts of names in some texts.

    Attributes:
        examples: For each name, the first text that has it.
        small: How often a word occurs in small letters.
        code: The names that are identifiers of code.
    """

    counts: dict[str, int] = msgspec.field(default_factory=Counter)
    chunks: dict[str, int] = msgspec.field(default_factory=Counter)
    examples: dict[str, int] = msgspec.field(default_factory=dict)
    small: dict[str, int] = msgspec.field(default_factory=Counter)
    code: set[str] = msgspec.field(default_factory=set)
