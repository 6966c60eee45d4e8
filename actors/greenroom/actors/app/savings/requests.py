"""Savings: how they are counted, stored and reported."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.sources import CacheLevel
from greenroom.actors.core.resources.resources import Resource, ResourceInfo
from greenroom.runtime import Message

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the time classes, in seconds; the last class has no bound."""


KEPT_DAYS: Final = 90
KEPT_HOURS: Final = 48
Days = Annotated[int, Meta(ge=1, le=KEPT_DAYS, description="how many days, today included")]


class SavingsCount(msgspec.Struct, frozen=True, array_like=True):
    """Counts of one operation in one day against one baseline; they can be added.

    Attributes:
        baseline: The tokens that the agent would have read instead.
        times: The count of each time class: a class for each of `BOUNDS`, and one for longer times.
        caches: By level, the hits and misses of a cache.
    """

    calls: int = 0
    baseline: int = 0
    answered: int = 0
    microseconds: int = 0
    times: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    caches: dict[str, tuple[int, int]] = {}

    def plus(self, other: SavingsCount) -> SavingsCount:
        """Return the sum of two counts."""
        caches = dict(self.caches)
        for level, (hits, misses) in other.caches.items():
            had, lacked = caches.get(level, (0, 0))
            caches[level] = had + hits, lacked + misses
        return SavingsCount(
            self.calls + other.calls,
            self.baseline + other.baseline,
            self.answered + other.answered,
            self.microseconds + other.microseconds,
            tuple(one + more for one, more in zip(self.times, other.times, strict=True)),
            caches,
        )


class SavingsRow(msgspec.Struct, frozen=True, array_like=True):
    """A count with its day (since 1970, in UTC), operation and baseline."""

    day: int
    operation: str
    baseline: str
    count: SavingsCount


class AddSavings(Message[None], frozen=True, kw_only=True):
    """Add to the stored counts; not a tool.

    Attributes:
        hours: The same counts by hours since 1970; older programs send none.
    """

    rows: list[SavingsRow]
    hours: list[SavingsRow] = msgspec.field(default_factory=list)


class ReadSavings(Message[list[SavingsRow]], frozen=True, kw_only=True):
    """Read the counts since a day, oldest first; not a tool."""

    since: int


class ReadHours(Message[list[SavingsRow]], frozen=True, kw_only=True):
    """Read the counts by hours, oldest first; not a tool."""

    since: int


class OperationSavings(msgspec.Struct, frozen=True, kw_only=True):
    """The savings of one operation against one baseline.

    Attributes:
        would_have_read: The baseline in words: what an agent would have read instead.
        saved_tokens: The difference; below zero if the answers cost more.
        half_within_ms: Half of the calls took at most this time; null beyond the longest class.
        most_within_ms: 95 % of the calls took at most this time; null beyond the longest class.
    """

    operation: str
    baseline: str
    would_have_read: str
    calls: int
    baseline_tokens: int
    answer_tokens: int
    saved_tokens: int
    saved_cost: float
    half_within_ms: float | None
    most_within_ms: float | None


class CacheSavings(msgspec.Struct, frozen=True, kw_only=True):
    """The hits of a cache.

    Attributes:
        level: ``client``: what this client has already read; ``memory``: cached answers.
        rate: Hits by lookups, 0 to 1.
    """

    level: CacheLevel
    operation: str
    cache: str
    hits: int
    misses: int
    rate: float


class DaySavings(msgspec.Struct, frozen=True, kw_only=True):
    """The savings of one day, in UTC."""

    day: date
    calls: int
    baseline_tokens: int
    answer_tokens: int
    saved_tokens: int
    saved_cost: float


class SavingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The savings of a caller's user, or of all users.

    Attributes:
        whose: ``mine``: the caller's user, with all agents; ``all``: all users.
        since: The first day of the report, in UTC.
        until: The last day, which is today.
        saved_tokens: All operations together; below zero if the answers cost more.
        token_price: The price of a million tokens.
        counted: How tokens are counted.
        operations: Each operation, the largest savings first.
    """

    whose: Literal["mine", "all"]
    since: date
    until: date
    calls: int
    baseline_tokens: int
    answer_tokens: int
    saved_tokens: int
    saved_cost: float
    token_price: float
    counted: str = "bytes of UTF-8 by 4, of each answer as JSON and of what would have been read"
    operations: list[OperationSavings]
    caches: list[CacheSavings]
    days: list[DaySavings]


class PeriodSavings(msgspec.Struct, frozen=True, kw_only=True):
    """The savings of one hour or day, in UTC.

    Attributes:
        total_tokens: The sum of this and all earlier periods.
        hit_rates: Hits by look-ups, for each level of caches that was used.
    """

    begins: datetime
    saved_tokens: int
    total_tokens: int
    by_operation: dict[str, int]
    hit_rates: dict[str, float]


class SavingsHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Savings over time, for each of the last 48 hours and 90 days.

    Attributes:
        whose: ``all``: all users; ``mine``: the caller's user.
    """

    whose: Literal["mine", "all"]
    hours: list[PeriodSavings]
    days: list[PeriodSavings]
    report: SavingsReport


class SavingsResource(Resource, frozen=True, kw_only=True):
    """The savings of the reader's user, on all stored days."""

    savings: SavingsReport
    resource_info: ResourceInfo
