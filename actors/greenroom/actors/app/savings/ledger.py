"""The ledger of one process: counts in memory, written every minute and at the end.

No answer waits for a write: a call only adds to the counts. A crash loses the counts of at most the last
minute. A write with an unknown outcome is repeated with the same idempotency key, so nothing counts twice.
"""

from __future__ import annotations

import logging
import secrets
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import trio

from greenroom.actors.app.savings.actor import EVERYBODY, savings_address
from greenroom.actors.app.savings.baselines import BASELINES, USUAL_PRICE, Takes, usual
from greenroom.actors.app.savings.requests import (
    BOUNDS,
    AddSavings,
    ReadHours,
    ReadSavings,
    SavingsCount,
    SavingsRow,
)
from greenroom.actors.core.auth.namespaces import memory_address, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.paging import tokens_of_size
from greenroom.actors.core.replies.sources import Sources
from greenroom.actors.core.validation.times import HOUR
from greenroom.actors.memories.requests.requests import MemoryStats
from greenroom.actors.sessions.requests.requests import MeasureSession
from greenroom.runtime import Address, GreenroomError, Idempotency, RuntimeClient

logger = logging.getLogger(__name__)

WRITE_SECONDS: Final = 60.0
LAST_SECONDS: Final = 0.3
"""The time limit of the last write, which must not delay the end of the process."""
MOST_OWNERS: Final = 10_000
"""At most this many users have unwritten counts; savings of further users count only in the total."""
MOST_CLAIMS: Final = 100_000
"""At most this many sources are remembered as read today; further sources count as read before."""
MOST_MEASURED: Final = 1_000
"""At most this many stores of memories and sessions wait for a measurement."""

HOURS: Final = 24
"""The hours of a day."""

_Row = tuple[int, str, str]
"""An hour since 1970, an operation, a baseline."""


class Measure(NamedTuple):
    """A size to be requested when counts are written."""

    hour: int
    operation: str
    baseline: str
    principal: Principal
    session_id: str | None


class _Unsent(NamedTuple):
    key: str
    message: AddSavings


class Ledger:
    """Counts savings.

    Args:
        now: Returns the wall clock in nanoseconds since 1970 UTC.
        token_price: The price of a million tokens.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        now: Callable[[], int],
        baselines: Mapping[str, str] | None = None,
        token_price: float = USUAL_PRICE,
    ) -> None:
        self._runtime = runtime
        self._now = now
        self.baselines = {**usual(), **(baselines or {})}
        self.token_price = token_price
        self._waiting: dict[str, dict[_Row, SavingsCount]] = {}
        self._unsent: dict[str, _Unsent] = {}
        self._since_start: dict[tuple[str, str], SavingsCount] = {}
        self._claimed: set[tuple[str, str]] = set()
        self._claimed_day = 0
        self._measures: list[Measure] = []
        self._writing = trio.Lock()

    def now(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC."""
        return self._now() // 1_000

    def today(self) -> int:
        """Return the day, counted since 1970 in UTC."""
        return self.hour() // HOURS

    def hour(self) -> int:
        """Return the hour, counted since 1970 in UTC."""
        return self.now() // HOUR

    def record(
        self,
        principal: Principal,
        operation: str,
        sources: Sources,
        answer_bytes: int,
        seconds: float,
        session_id: str | None = None,
    ) -> None:
        """Count one answer."""
        hour, owner = self.hour(), user_namespace(principal)
        baseline = self.baselines[operation]
        answered = tokens_of_size(answer_bytes)
        caches: dict[str, tuple[int, int]] = {}
        for level, is_hit in sources.caches:
            hits, misses = caches.get(level, (0, 0))
            caches[level] = hits + is_hit, misses + (not is_hit)
        times = [0] * (len(BOUNDS) + 1)
        times[bisect_left(BOUNDS, seconds)] = 1
        count = SavingsCount(
            calls=1,
            baseline=self._baseline(hour // HOURS, owner, operation, sources, answered),
            answered=answered,
            microseconds=round(seconds * 1_000_000),
            times=tuple(times),
            caches=caches,
        )
        self._add(owner, (hour, operation, baseline), count)
        takes = BASELINES[baseline].takes
        if takes in {"memories", "session"}:
            self._measure_later(takes, Measure(hour, operation, baseline, principal, session_id))

    def statistics(self) -> list[SavingsRow]:
        """Return the counts of this process since its start, with 0 as the day. Thread-safe."""
        return [SavingsRow(0, *which, count) for which, count in list(self._since_start.items())]

    async def read(self, owner: str, since: int) -> list[SavingsRow]:
        """Return an owner's stored counts since a day, with unwritten ones of this process."""
        async with self._writing:
            kept = await self._runtime.ask(savings_address(owner), ReadSavings(since=since))
            unsent = self._unsent.get(owner)
            waiting = by_day(self._hours_waiting(owner))
            return [
                *kept,
                *(() if unsent is None else unsent.message.rows),
                *(row for row in waiting if row.day >= since),
            ]

    async def read_hours(self, owner: str, since: int) -> list[SavingsRow]:
        """Return an owner's counts by hours since an hour, with unwritten ones of this process."""
        async with self._writing:
            kept = await self._runtime.ask(savings_address(owner), ReadHours(since=since))
            unsent = self._unsent.get(owner)
            return [
                *kept,
                *(() if unsent is None else unsent.message.hours),
                *(row for row in self._hours_waiting(owner) if row.day >= since),
            ]

    async def write(self) -> None:
        """Write pending counts; after a failure they stay pending."""
        async with self._writing:
            await self._measure()
            for owner in [*self._waiting]:
                if owner not in self._unsent:
                    hours = self._hours_waiting(owner)
                    del self._waiting[owner]
                    message = AddSavings(rows=by_day(hours), hours=hours)
                    self._unsent[owner] = _Unsent(secrets.token_hex(16), message)
            for owner, unsent in [*self._unsent.items()]:
                try:
                    await self._runtime.ask(
                        savings_address(owner),
                        unsent.message,
                        idempotency=Idempotency("savings", unsent.key, b""),
                    )
                except GreenroomError as error:  # a full store, or an unreachable owner
                    logger.debug("savings are written later: %s", error)
                else:
                    del self._unsent[owner]

    async def run(self) -> None:
        """Write every minute, until cancelled."""
        while True:
            await trio.sleep(WRITE_SECONDS)
            await self.write()

    def _hours_waiting(self, owner: str) -> list[SavingsRow]:
        return [SavingsRow(*row, count) for row, count in self._waiting.get(owner, {}).items()]

    def _baseline(self, day: int, owner: str, operation: str, sources: Sources, answered: int) -> int:
        """Return the baseline's tokens; tokens that need a measurement are added later."""
        takes = BASELINES[self.baselines[operation]].takes
        if takes == "answer":
            return answered
        if takes in {"memories", "session"}:
            return 0
        wholes: Iterable[tuple[str, int]] = sources.wholes[:1] if takes == "first" else sources.wholes
        found = sum(
            tokens_of_size(size) for what, size in wholes if not what or self._claim(day, owner, what)
        )
        return found + tokens_of_size(sources.again)

    def _claim(self, day: int, owner: str, what: str) -> bool:
        """Return whether an owner reads this source for the first time today, and record it."""
        if day != self._claimed_day:
            self._claimed_day, self._claimed = day, set()
        if (owner, what) in self._claimed or len(self._claimed) >= MOST_CLAIMS:
            return False
        self._claimed.add((owner, what))
        return True

    def _add(self, owner: str, row: _Row, count: SavingsCount) -> None:
        which = row[1:]
        self._since_start[which] = self._since_start.get(which, SavingsCount()).plus(count)
        for name in (owner, EVERYBODY):
            if name in self._waiting or len(self._waiting) < MOST_OWNERS or name == EVERYBODY:
                rows = self._waiting.setdefault(name, {})
                rows[row] = rows.get(row, SavingsCount()).plus(count)

    def _measure_later(self, takes: Takes, measure: Measure) -> None:
        what = f"session\0{measure.session_id}" if takes == "session" else "memories"
        is_known = takes == "memories" or measure.session_id is not None
        if (
            is_known
            and len(self._measures) < MOST_MEASURED
            and self._claim(measure.hour // HOURS, user_namespace(measure.principal), what)
        ):
            self._measures.append(measure)

    async def _measure(self) -> None:
        """Request the missing sizes; a size that cannot be read counts as nothing."""
        measures, self._measures = self._measures, []
        for each in measures:
            owner = user_namespace(each.principal)
            try:
                if each.session_id is None or BASELINES[each.baseline].takes == "memories":
                    stats = await self._runtime.ask(
                        memory_address(owner), MemoryStats(namespace=owner), principal=each.principal
                    )
                    tokens = stats.tokens
                else:
                    size = await self._runtime.ask(
                        Address("session", each.session_id), MeasureSession(), principal=each.principal
                    )
                    tokens = tokens_of_size(size)
            except GreenroomError as error:
                logger.debug("the baseline cannot be measured: %s", error)
                continue
            self._add(owner, (each.hour, each.operation, each.baseline), SavingsCount(baseline=tokens))


def by_day(hours: Iterable[SavingsRow]) -> list[SavingsRow]:
    """Sum up counts by hours to counts by days."""
    days: dict[_Row, SavingsCount] = {}
    for row in hours:
        which = row.day // HOURS, row.operation, row.baseline
        days[which] = days.get(which, SavingsCount()).plus(row.count)
    return [SavingsRow(*which, count) for which, count in days.items()]


@asynccontextmanager
async def open_savings(
    runtime: RuntimeClient,
    now: Callable[[], int],
    baselines: Mapping[str, str] | None = None,
    token_price: float = USUAL_PRICE,
) -> AsyncIterator[Ledger]:
    """Count savings while the block runs, and write the last counts at its end."""
    ledger = Ledger(runtime, now, baselines, token_price)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.run)
        try:
            yield ledger
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(LAST_SECONDS, shield=True):
                await ledger.write()
