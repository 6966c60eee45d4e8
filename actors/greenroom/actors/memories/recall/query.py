"""The meaning of a query: its vectors, and the times that it names.

Times rank results and filter none. A query may also arrive as a vector that the client made with the server's
embedder.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from array import array
from typing import NamedTuple

import trio

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.core.validation.times import parse_time_argument, to_datetime, to_microseconds
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.actors.search.embedding.vectors import QueryVectors

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


class QueryMeaning(NamedTuple):
    """The vectors of a query.

    Attributes:
        absence: Why no memory can be compared with it, where some were meant to be.
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


_ISO = re.compile(
    r"\b(?:\d{4}-\d\d-\d\d|\d{8}|\d{4}-?w\d\d-?[1-7])"
    r"(?:[t ]\d\d(?::?\d\d){0,2}(?:[.,]\d+)?(?:z|[+-]\d\d:?\d\d)?)?\b",
    re.IGNORECASE | re.ASCII,
)
"""A date as `after` takes it, with or without a time of day."""
_BESIDE_DATES = """
after and before between by earlier from in later newer no not of older on onward onwards or prior
since starting than the through thru till to until up
"""
"""Words beside dates that do not depend on where a day begins."""
_OF_THE_MACHINE = frozenset({"localtime", "posixrules"})
"""Files among the time zones that stand for the setting of the server's machine."""


class Window(NamedTuple):
    """From ``after`` (included) until ``before`` (not included), in UTC; None for no bound."""

    after: dt.datetime | None
    before: dt.datetime | None


def time_window(
    now: dt.datetime,
    zone: dt.tzinfo,
    *,
    time_expr: str | None,
    after: str | None,
    before: str | None,
    bounds: dt.tzinfo = dt.UTC,
) -> Window:
    """Return the intersection of all given times.

    Args:
        now: The present instant, aware.
        zone: The time zone of ``time_expr``.
        time_expr: Words such as "last week".
        after: A date, which begins at its midnight in ``bounds``, or a time.
        before: The same; not included.
        bounds: The time zone of these two.

    Raises:
        Refusal: ``VALIDATION_ERROR``: A time is not understood, or ``after`` is later than ``before``.
    """
    start = None if after is None else parse_time_argument("after", after, bounds)
    end = None if before is None else parse_time_argument("before", before, bounds)
    if start is not None and end is not None:
        auth_errors.check_span("after", start, end)
    if time_expr is not None:
        first, last = _resolved(time_expr, now, zone)
        start = first if start is None else start if first is None else max(start, first)
        end = last if end is None else end if last is None else min(end, last)
    return Window(start, end)


def is_in_words(expression: str) -> bool:
    """Return whether an expression has more than dates in the form of `after` and `before`."""
    words = re.findall(r"\w+", _ISO.sub(" ", expression.casefold()))
    return not set(_BESIDE_DATES.split()).issuperset(words)


def time_zone(name: str | None) -> tuple[dt.tzinfo, str]:
    """Return a time zone and its name; the machine's for None."""
    import zoneinfo  # noqa: PLC0415 - few searches name a time

    if name is None:
        name = machine_zone()
    try:
        if name.casefold() not in _OF_THE_MACHINE:
            return zoneinfo.ZoneInfo(name), name
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        pass
    raise auth_errors.invalid(
        "timezone", f"timezone: it takes a name such as Europe/Berlin or UTC and got {name[:100]!r}"
    )


@functools.cache
def machine_zone() -> str:
    """Return the name of the machine's time zone; UTC if it is unknown."""
    import zoneinfo  # noqa: PLC0415 - as above

    import tzlocal  # noqa: PLC0415

    try:
        name = tzlocal.get_localzone_name()
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return "UTC"
    return name


def days_come_first() -> bool:
    """Return whether 3/4/2026 is in April: true if texts are not in English."""
    return "english" not in current_rules().languages


def _resolved(
    expression: str, now: dt.datetime, zone: dt.tzinfo
) -> tuple[dt.datetime | None, dt.datetime | None]:
    from greenroom.actors.content.times import EXAMPLES, resolve  # noqa: PLC0415 - few searches name a time

    try:
        return resolve(expression, now, zone, day_first=days_come_first())
    except ValueError as error:
        raise auth_errors.invalid("time_expr", f"time_expr: {error}", examples=list(EXAMPLES)) from None
