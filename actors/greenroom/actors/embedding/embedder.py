"""The interface of embedders: texts in, vectors out; and the words of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from greenroom.actors.schemas.vectors import QueryVectors, Vectors
from greenroom.actors.text.analyze import spans

EMBEDDED_CHARACTERS = 8_192
"""Of a longer text this many characters are embedded: the rest is found by its words."""


def embedded_part(text: str) -> str:
    """Return the part of a text that is embedded: its beginning, with ``?`` for what has no UTF-8."""
    beginning = text[:EMBEDDED_CHARACTERS]
    return beginning if beginning.isascii() else beginning.encode(errors="replace").decode()


class LocalEmbedder(Protocol):
    """An embedder that calculates in this process. It may be used by several threads at once.

    Attributes:
        space: The name of its vectors: no two embedders whose vectors cannot be compared have the same.
        dimensions: How many numbers a vector has.
        has_tokens: Whether it also has vectors of a text's tokens.
        is_quick: Whether a text takes so little time that the event loop can do it by the way.
        batch: How many texts to give it at once, so that it returns within some tenths of a second.
    """

    space: str
    dimensions: int
    has_tokens: bool
    is_quick: bool
    batch: int

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept. One without any word has vectors of zeros."""

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for."""


class Embedder(Protocol):
    """An embedder that is waited for, be it a thread of this process or an endpoint.

    Attributes:
        space: As in `LocalEmbedder`.
        dimensions: As in `LocalEmbedder`.
        has_tokens: As in `LocalEmbedder`.
        batch: As in `LocalEmbedder`.
        quick: The embedder itself when its `LocalEmbedder.is_quick` is true, else None.
    """

    space: str
    dimensions: int
    has_tokens: bool
    batch: int
    quick: LocalEmbedder | None

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept.

        Raises:
            TextRefusedError: one of the texts cannot be embedded.
            EmbedderError: nothing can be embedded now.
        """

    async def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for.

        Raises:
            EmbedderError: nothing can be embedded now.
        """

    async def aclose(self) -> None:
        """Give back what it holds."""


class Word(NamedTuple):
    """A word and where in the text it stands."""

    start: int
    end: int
    spelling: str


def words_of(text: str) -> list[Word]:
    """Return a text's words in order; runs of symbols are none."""
    return [Word(*found) for found in spans(text) if any(map(str.isalnum, found[2]))]
