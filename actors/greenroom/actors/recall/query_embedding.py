"""A query that comes as a vector, which the client made with the server's embedder, in the place of words."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies.memory_types import QueryVectors
from greenroom.actors.search.embedding.embedding_service import EmbeddingService


class QueryEmbedding(NamedTuple):
    """A vector, and the space of which its client says it is, if it does."""

    numbers: list[float]
    space: str | None


async def vectors_of(given: QueryEmbedding, embedding: EmbeddingService | None) -> QueryVectors:
    """Return a client's vector as an embedder's would be.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it cannot be compared with the vectors of the memories.
    """
    embedder = None if embedding is None else await embedding.embedder()
    if embedding is None or embedder is None:
        absence = "no embedder runs" if embedding is None else embedding.absence
        raise auth_errors.invalid(
            "query_embedding", f"query_embedding: there is nothing to compare it with, for {absence}"
        )
    expected = {"embedding_space": embedder.space, "dimensions": embedder.dimensions}
    if given.space not in {None, embedder.space}:
        sentence = f"embedding_space: vectors here are of {embedder.space}, and yours is of {given.space}"
        raise auth_errors.invalid("embedding_space", sentence, **expected)
    if len(given.numbers) != embedder.dimensions:
        raise auth_errors.invalid(
            "query_embedding",
            f"query_embedding: vectors of {embedder.space} have {embedder.dimensions:,} dimensions, "
            f"and yours has {len(given.numbers):,}",
            **expected,
        )
    length = math.hypot(*given.numbers)
    if not 0 < length < math.inf:
        sentence = f"query_embedding: its length is {length}, and such a vector is like no memory"
        raise auth_errors.invalid("query_embedding", sentence)
    unit = array("f", (number / length for number in given.numbers))
    return QueryVectors(space=embedder.space, words=[], rows=b"", sentence=unit.tobytes())
