"""What was saved: how it is counted, kept and told."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.runtime import Message

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the time classes, in seconds; a last class has no bound."""

CacheLevel = Literal["client", "memory"]
"""What this client has read already, as the process that it is connected to remembers; answers in memory."""

KEPT_DAYS: Final = 90
KEPT_HOURS: Final = 48
Days = Annotated[int, Meta(ge=1, le=KEPT_DAYS, description="how many days, today included")]


class SavingsCount(msgspec.Struct, frozen=True, array_like=True):
    """What one operation did, in one day, against one baseline. Sums of such are such.

    Attributes:
        calls: How often it was answered.
        baseline: Tokens that would have been read instead.
        answered: Tokens of its answers.
        microseconds: Their times together.
        times: How many took how long: one count for each of `BOUNDS`, and one beyond.
        caches: By level, how often a cache had it, and how often not.
    """

    calls: int = 0
    baseline: int = 0
    answered: int = 0
    microseconds: int = 0
    times: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    caches: dict[str, tuple[int, int]] = {}

    def plus(self, other: SavingsCount) -> SavingsCount:
        """Return the sum of both."""
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
    """A count, with the day (since 1970, in UTC), the operation and the baseline that it is of."""

    day: int
    operation: str
    baseline: str
    count: SavingsCount


class AddSavings(Message[None], frozen=True, kw_only=True):
    """Add counts to those that are kept; not a tool.

    Attributes:
        rows: By days.
        hours: The same by hours since 1970; an older program tells none.
    """

    rows: list[SavingsRow]
    hours: list[SavingsRow] = msgspec.field(default_factory=list)


class ReadSavings(Message[list[SavingsRow]], frozen=True, kw_only=True):
    """Read the counts since a day, oldest first; not a tool."""

    since: int


class ReadHours(Message[list[SavingsRow]], frozen=True, kw_only=True):
    """Read the counts by hours since one of them, oldest first; not a tool."""

    since: int


class OperationSavings(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation saved against one baseline.

    Attributes:
        operation: The tool.
        baseline: The baseline's name.
        would_have_read: What it means: what an agent would have read otherwise.
        baseline_tokens: How many tokens that is.
        answer_tokens: How many tokens the answers were.
        saved_tokens: The difference; below zero where the answers cost more.
        saved_cost: The same at the price of a token.
        half_within_ms: Half of the calls took no longer; null where they took longer than the longest class.
        most_within_ms: Nineteen of twenty took no longer, likewise.
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
    """How often a cache had what an operation was asked for.

    Attributes:
        level: ``client``: what this client has read already; ``memory``: answers kept in memory.
        cache: Which cache that is, in words.
        rate: Hits by lookups, 0 to 1.
    """

    level: CacheLevel
    operation: str
    cache: str
    hits: int
    misses: int
    rate: float


class DaySavings(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved in one day, in UTC."""

    day: date
    calls: int
    baseline_tokens: int
    answer_tokens: int
    saved_tokens: int
    saved_cost: float


class SavingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved.

    Attributes:
        whose: ``mine``: what the caller's user did, by all agents; ``all``: what everybody did.
        since: The first day that was looked at, in UTC.
        until: The last one, today.
        saved_tokens: All operations together; below zero where the answers cost more.
        token_price: What a million tokens costs, by which costs are counted.
        counted: How tokens are counted.
        operations: Each operation, those first that saved most.
        caches: Each cache.
        days: Each day on which something was counted.
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
