"""Vectors on their way from the embedder, which makes them, to the actors, which keep them."""

import msgspec


class Vectors(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one text, as small integers.

    Attributes:
        scale: What ``values`` are multiplied with, so that the vector has unit length.
        values: The sentence's vector, int8.
        tokens: The vectors of its tokens, int8, one after the other; None where the embedder has none.
        token_scale: What ``tokens`` are multiplied with.
    """

    scale: float
    values: bytes
    tokens: bytes | None = None
    token_scale: float = 0.0


class QueryVectors(msgspec.Struct, frozen=True, kw_only=True):
    """A query as an embedder sees it.

    Attributes:
        space: Which vectors it can be compared with: the embedder's name, version and dimensions.
        words: The query's words.
        rows: Their vectors, float32, one after the other.
        sentence: The whole query's vector, float32; None: the mean of the words' vectors, weighted by
            how rare they are among the memories that are searched.
        older: The same query in spaces of embedders before this one, in which some still search.
    """

    space: str
    words: list[str]
    rows: bytes
    sentence: bytes | None = None
    older: tuple["QueryVectors", ...] = ()

    def in_space(self, space: str | None) -> "QueryVectors | None":
        """Return the query in this space, or None when it is not known there."""
        return next((each for each in (self, *self.older) if each.space == space), None)
