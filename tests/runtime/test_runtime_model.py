"""A model of the runtime: ledgers under requests, crashes at every commit, full disks, and clocks that jump.

Each rule is one life of a runtime on the same folder. What was answered must be there afterwards, what was
not is there whole or not at all, and tells and timers take effect once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from support.asking import Pending
from support.committers import crash_at, full
from support.effort import by_night
from support.ledgers import INDEXES, Book, DeedRows, Ledger, Perform, Report
from trio.testing import MockClock

from greenroom.runtime import (
    Address,
    Idempotency,
    InlineCommitter,
    OverloadedError,
    Refusal,
    Runtime,
    RuntimeOptions,
    StorageFullError,
    open_runtime,
)
from greenroom.testing import HOUR, SECOND, START, CrashError, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from greenroom.runtime import Store, WriteBatch

pytestmark = pytest.mark.slow

LEDGERS = ("a", "b", "c")
OPTIONS = RuntimeOptions(durability="process", mailbox_limit=8, quantum=3, resident_limit=2, idle_seconds=5)


@dataclass(frozen=True)
class Request:
    """One request of a batch.

    Attributes:
        gives_up: Whether its asker is cancelled right after it was accepted.
    """

    ledger: str
    tells: tuple[str, ...]
    rings_in: int | None
    keyed: bool
    refuse: bool
    gives_up: bool


REQUESTS = st.builds(
    Request,
    ledger=st.sampled_from(LEDGERS),
    tells=st.lists(st.sampled_from(LEDGERS), max_size=3).map(tuple),
    rings_in=st.none() | st.sampled_from([0, SECOND, 20 * SECOND, HOUR]),
    keyed=st.booleans(),
    refuse=st.sampled_from([False, False, False, True]),
    gives_up=st.sampled_from([False, False, False, True]),
)
BATCHES = st.lists(REQUESTS, min_size=2, max_size=12)


class Ledgers(RuleBasedStateMachine):
    """Lives of a runtime, and what must have come of them."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.wall = self.latest = START  # now, and the latest time that a timer was set at
        self.requested = 0
        self.answered: dict[tuple[str, str], int] = {}
        self.uncertain: dict[tuple[str, str], Perform] = {}  # may or may not have taken effect
        self.impossible: set[tuple[str, str]] = set()  # refused, or without room
        self.retried: dict[tuple[str, str], int] = {}  # answers that must not change

    def teardown(self) -> None:
        self.directory.cleanup()

    # -- lives -------------------------------------------------------------

    @rule(batch=BATCHES, pause=st.sampled_from([0, 1, 30]), look=st.booleans())
    def live(self, *, batch: Sequence[Request], pause: float, look: bool) -> None:
        self._life(InlineCommitter(), batch, pause)
        if look:
            self.look()

    @rule(
        batch=BATCHES,
        commit=st.sampled_from([1, 1, 1, 2, 2, 3, 4, 6]),  # most batches are few commits
        after=st.booleans(),
        look=st.booleans(),
    )
    def crash(self, *, batch: Sequence[Request], commit: int, after: bool, look: bool) -> None:
        try:
            self._life(crash_at(commit, after=after), batch, 1)
        except* CrashError:
            pass
        if look:
            self.look()

    @rule(batch=BATCHES, fulls=st.dictionaries(st.integers(1, 4), st.lists(st.integers(0, 6)), min_size=1))
    def run_out_of_room(self, *, batch: Sequence[Request], fulls: dict[int, list[int]]) -> None:
        commits = 0

        def fault(store: Store, works: Sequence[WriteBatch]) -> None:
            nonlocal commits
            commits += 1
            for number in fulls.get(commits, ()):
                if number < len(works) and works[number].owner is not works[number]:
                    works[number].error = full()
            store.commit(works)

        self._life(InlineCommitter(fault), batch, 10)

    @rule(microseconds=st.sampled_from([-HOUR, -SECOND, SECOND, HOUR]))
    def jump(self, microseconds: int) -> None:
        self.wall += microseconds

    # -- what must be true -------------------------------------------------

    @rule()
    def look(self) -> None:
        """Compare what is there with what was answered, and one ledger's words with another's."""
        books: dict[str, Book] = {}
        rows: list[tuple[str, str, int]] = []

        async def read(runtime: Runtime, clock: VirtualClock) -> None:
            clock.jump(self.latest - clock.now() + 2 * HOUR)  # beyond every timer
            await trio.sleep(100)
            for key in LEDGERS:
                books[key] = await runtime.ask(Address("ledger", key), Report())
            rows.extend(await runtime.query(DeedRows()))
            assert runtime.statistics().messages.dead_letters == 0
            assert runtime.statistics().messages.failed == 0

        wall, latest = self.wall, self.latest
        self._simulate(InlineCommitter(), read)
        self.wall, self.latest = wall, latest
        deeds = {
            (key, name): deed
            for key, work_context in books.items()
            for name, deed in work_context.deeds.items()
        }
        assert {request: deed.number for request, deed in deeds.items()}.items() >= self.answered.items()
        assert deeds.keys() <= self.answered.keys() | self.uncertain.keys()
        assert not deeds.keys() & self.impossible
        for key, work_context in books.items():
            assert sorted(deed.number for deed in work_context.deeds.values()) == list(
                range(1, work_context.total + 1)
            )
            assert sorted(work_context.woken) == sorted(
                name for name, deed in work_context.deeds.items() if deed.rings
            )
            for sender in LEDGERS:
                told = [
                    deed.number
                    for deed in sorted(books[sender].deeds.values())
                    for told_key in deed.tells
                    if told_key == key
                ]
                assert [number for heard_from, number in work_context.heard if heard_from == sender] == told
        assert sorted(rows) == sorted((key, name, deed.number) for (key, name), deed in deeds.items())
        # A life that ended in a crash left requests open; now it is known what came of them.
        for request in list(self.uncertain):
            if request in deeds:
                self.answered[request] = deeds[request].number
            elif not is_keyed(request):
                self.impossible.add(request)
            if not is_keyed(request):
                del self.uncertain[request]

    @rule()
    def repeat_what_was_open(self) -> None:
        """Every request with a key may be sent again, and takes effect once."""
        again = {request: perform for request, perform in self.uncertain.items() if is_keyed(request)}

        async def repeat(runtime: Runtime, _clock: VirtualClock) -> None:
            await trio.sleep(100)  # the mailboxes are small and an earlier life may have left many tells
            for (key, name), perform in again.items():
                for _ in range(2):
                    number = await runtime.ask(Address("ledger", key), perform, idempotency=once(name))
                    assert self.answered.setdefault((key, name), number) == number

        self._simulate(InlineCommitter(), repeat)
        for request in again:
            del self.uncertain[request]

    # -- how ---------------------------------------------------------------

    def _life(self, committer: InlineCommitter, batch: Sequence[Request], pause: float) -> None:
        asks: list[tuple[tuple[str, str], Perform, Pending[int]]] = []

        async def live(runtime: Runtime, _clock: VirtualClock) -> None:
            async with trio.open_nursery() as nursery:
                for request in batch:
                    self.requested += 1
                    name = f"{self.requested}{' keyed' if request.keyed else ''}"
                    perform = Perform(
                        name=name, tells=request.tells, rings_in=request.rings_in, refuse=request.refuse
                    )
                    pending: Pending[int] = Pending()
                    asks.append(((request.ledger, name), perform, pending))
                    options: dict[str, Any] = {"idempotency": once(name)} if request.keyed else {}
                    address = Address("ledger", request.ledger)
                    await nursery.start(pending.run, runtime, address, perform, options)
                    if request.gives_up:
                        pending.scope.cancel()
            await trio.sleep(pause)

        try:
            self._simulate(committer, live)
        finally:
            for request, perform, pending in asks:
                if pending.is_answered:
                    self.answered[request] = pending.the_reply
                elif isinstance(pending.error, (Refusal, StorageFullError, OverloadedError)):
                    self.impossible.add(request)
                elif not perform.refuse:
                    self.uncertain[request] = perform

    def _simulate(self, committer: InlineCommitter, main: Callable[[Runtime, VirtualClock], Any]) -> None:
        async def life() -> None:
            clock = VirtualClock(self.wall)
            try:
                async with open_runtime(
                    Path(self.directory.name) / "data",
                    actors=[Ledger],
                    indexes=INDEXES,
                    options=OPTIONS,
                    clock=clock,
                    committer=committer,
                ) as runtime:
                    await main(runtime, clock)
            finally:
                self.wall = clock.now()
                self.latest = max(self.latest, self.wall)

        trio.run(life, clock=MockClock(autojump_threshold=0))


def is_keyed(request: tuple[str, str]) -> bool:
    return request[1].endswith("keyed")


def once(name: str) -> Idempotency:
    return Idempotency("model perform", name, b"same")


@pytest.mark.promise(
    "runtime.reply-means-durable",
    "runtime.all-or-nothing",
    "runtime.exactly-once",
    "runtime.commit-failure",
    "runtime.tells",
    "runtime.timers",
    "runtime.shared-indexes",
    "store.kill",
)
def test_ledgers_keep_every_promise_through_crashes_and_full_disks() -> None:
    run_state_machine_as_test(
        Ledgers,
        settings=settings(
            max_examples=by_night(300, by_day=12),
            stateful_step_count=12,
            suppress_health_check=list(HealthCheck),
        ),
    )
