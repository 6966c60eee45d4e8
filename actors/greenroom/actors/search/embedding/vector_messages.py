"""Vectors of texts, and the messages by which actors get them; none is a tool."""

from __future__ import annotations

import msgspec

from greenroom.runtime import Message


class Vectors(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of a text and its tokens, in int8; scaled they have unit length."""

    scale: float
    values: bytes
    tokens: bytes | None = None
    token_scale: float = 0.0


class QueryVectors(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of a query.

    Attributes:
        space: The space of its vectors: the embedder's name, version and dimensions.
        rows: The words' vectors, float32, one after the other.
        sentence: The whole query's vector, float32. None stands for the mean of the words' vectors, weighted
            by the words' rarity among the searched memories.
        older: The same query in the spaces of earlier embedders in which some actors still search.
    """

    space: str
    words: list[str]
    rows: bytes
    sentence: bytes | None = None
    older: tuple[QueryVectors, ...] = ()

    def in_space(self, space: str | None) -> QueryVectors | None:
        """Return the query in this space; None if it has no vectors there."""
        return next((each for each in (self, *self.older) if each.space == space), None)


class UnembeddedText(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's text for the embedder."""

    id: int
    text: str


class UnembeddedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `TextsToEmbed`; ``remaining`` is about how many more there are."""

    texts: list[UnembeddedText]
    remaining: int


class VectorsStored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `StoreVectors`."""

    stored: int
    remaining: int


class TextsToEmbed(Message[UnembeddedTexts], frozen=True, kw_only=True):
    """Return texts that have no vectors of this space yet; not a tool."""

    space: str
    limit: int = 256


class StoreVectors(Message[VectorsStored], frozen=True, kw_only=True):
    """Store the vectors of these texts, except those that changed meanwhile; not a tool."""

    space: str
    vectors: list[tuple[int, Vectors]]
