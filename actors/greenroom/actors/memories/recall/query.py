"""The meaning of a query: its vectors, and the times that it names.

Times rank the results, but filter out none. A query may also arrive as a vector that the client made with the
server's embedder.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
from array import array
from typing import NamedTuple

import trio

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.core.validation.times import to_datetime, to_microseconds
from greenroom.actors.memories.recall.time_window import days_come_first, time_zone
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.actors.search.embedding.rows import MINILM, STATIC
from greenroom.actors.search.embedding.vector_messages import QueryVectors

_MICROSECOND = dt.timedelta(microseconds=1)


class QueryTimes(NamedTuple):
    """A query's text without its times, and the times."""

    text: str | None
    times: tuple[TimeSpan, ...] = ()


async def times_of(text: str, now: int, zone: str | None) -> QueryTimes:
    """Split a query into the times that it names, relative to now, and the rest.

    ``zone`` is the name of the time zone in which days begin; None for the machine's.
    """
    await load_time_words()
    from greenroom.actors.content.times import remove_times, times_in  # noqa: PLC0415 - loaded by now

    found = times_in(text, to_datetime(now), time_zone(zone)[0], day_first=days_come_first())
    spans = tuple(
        TimeSpan(_microseconds(each.after), _microseconds(each.before), each.fading // _MICROSECOND)
        for each in found
    )
    return QueryTimes(remove_times(text, found), spans)


def _microseconds(time: dt.datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


async def load_time_words() -> None:
    """Load the rules for times in words, once, in a thread."""
    if not _warm.cache_info().currsize:
        await trio.to_thread.run_sync(_warm)


@functools.cache
def _warm() -> None:
    from greenroom.actors.content.times import warm  # noqa: PLC0415 - few searches name a time

    warm()


def knows_english_alone(vectors: QueryVectors) -> bool:
    """Return whether vectors are of an embedder that comes with Greenroom: both know English alone."""
    return vectors.space == STATIC or vectors.space.startswith(MINILM)


class QueryMeaning(NamedTuple):
    """The vectors of a query.

    Attributes:
        absence: Why no memory can be compared with the query, if some should be.
        may_come: Whether a later search would have vectors.
    """

    vectors: QueryVectors | None = None
    absence: str | None = None
    may_come: bool = False

    @property
    def comparable(self) -> QueryVectors | None:
        """The vectors, if a memory can be similar to them."""
        return self.vectors if self.absence is None else None


async def meaning_of(text: str, embedding: EmbeddingService) -> QueryMeaning:
    """Return the vectors of a query's text."""
    vectors = await embedding.query(text)
    if vectors is None:
        return QueryMeaning(absence=embedding.absence, may_come=not embedding.is_off)
    for each in (vectors, *vectors.older):
        if any(memoryview(each.rows if each.sentence is None else each.sentence).cast("f")):
            return QueryMeaning(vectors)
    if vectors.sentence is None:
        return QueryMeaning(vectors, "the embedder knows no word of the query")
    return QueryMeaning(vectors, "the embedder's vector of the query is all zeros, which is like no memory")


class QueryEmbedding(NamedTuple):
    """A vector from the client, and its space if the client names one."""

    numbers: list[float]
    space: str | None


async def vectors_of(given: QueryEmbedding, embedding: EmbeddingService | None) -> QueryVectors:
    """Return a client's vector in the form of an embedder's result.

    Raises:
        Refusal: ``VALIDATION_ERROR``: the vector cannot be compared with the vectors of the memories.
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
