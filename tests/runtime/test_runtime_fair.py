"""Nobody starves: quanta, slices, generators, and what they tell the statistics."""

from __future__ import annotations

import pytest
import trio
from support.actors import ACTORS, INDEXES, Add, AddSlowly, Append, Counter, Entries, Place, Read
from support.asking import Open, Pending, post

from greenroom.runtime import (
    Actor,
    Address,
    Context,
    IndexReader,
    Message,
    Procedure,
    RuntimeOptions,
    Slices,
    handles,
)
from greenroom.testing import VirtualClock

BUSY = Address("counter", "busy")
QUIET = Address("counter", "quiet")
LOG = Address("log", "log")


class Finishes:
    """Notes the order in which asks are answered."""

    def __init__(self) -> None:
        self.order: list[str] = []

    async def watch(self, name: str, pending: Pending[int]) -> None:
        await pending.reply()
        self.order.append(name)


@pytest.mark.promise("runtime.fair")
async def test_a_flooded_actor_lets_a_quiet_one_have_its_turn_after_a_quantum(reopen: Open) -> None:
    order: list[str] = []

    class Note(Message[None], frozen=True):
        what: str

    class Noter(Actor):
        kind = "noter"

        @handles(Note)
        def note(self, message: Note, _context: Context) -> None:
            order.append(message.what)

    async with reopen(actors=[Noter], options=RuntimeOptions(quantum=10)) as runtime:
        for number in range(1_000):
            runtime.tell(Address("noter", "busy"), Note(what=f"busy {number}"))
        for number in range(3):
            runtime.tell(Address("noter", "quiet"), Note(what=f"quiet {number}"))
        await runtime.ask(Address("noter", "busy"), Note(what="end"))
    assert [order.index(f"quiet {number}") for number in range(3)] == [10, 11, 12]
    assert [what for what in order if what.startswith("busy")] == [
        f"busy {number}" for number in range(1_000)
    ]


@pytest.mark.promise("runtime.fair")
async def test_other_tasks_of_the_program_run_while_an_actor_is_flooded(reopen: Open) -> None:
    async with reopen() as runtime:
        for _ in range(4_000):
            runtime.tell(BUSY, Add())
        rounds = 0
        while runtime.statistics().messages.waiting:
            await trio.lowlevel.checkpoint()
            rounds += 1
        assert rounds > 20
        assert await runtime.ask(BUSY, Read()) == 4_000


@pytest.mark.promise("runtime.fair")
async def test_a_generator_handler_gives_way_after_each_slice(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        slow = await post(nursery, runtime, BUSY, AddSlowly(steps=10_000, yields=False))
        for number in range(20):
            assert await runtime.ask(QUIET, Add()) == number + 1
            assert not slow.is_answered
        assert await slow.reply() == 10_000
        assert runtime.statistics().dispatcher.longest_slice_ms < 5


@pytest.mark.promise("runtime.fair", "runtime.in-order")
async def test_a_generator_keeps_its_own_actor_waiting(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        slow = await post(nursery, runtime, BUSY, AddSlowly(steps=500))
        assert await runtime.ask(BUSY, Add(by=1_000)) == 1_500
        assert await slow.reply() == 500


@pytest.mark.promise("runtime.fair")
async def test_generators_of_many_actors_take_turns(reopen: Open) -> None:
    finishes = Finishes()
    async with reopen() as runtime, trio.open_nursery() as nursery:
        long = await post(nursery, runtime, BUSY, AddSlowly(steps=2_000, yields=False))
        short = await post(nursery, runtime, QUIET, AddSlowly(steps=200, yields=False))
        nursery.start_soon(finishes.watch, "long", long)
        nursery.start_soon(finishes.watch, "short", short)
    assert finishes.order == ["short", "long"]


class Chew(Message[int], frozen=True):
    looks: int


class Glutton(Actor):
    """Looks at the clock so often before it gives way."""

    kind = "glutton"

    @handles(Chew)
    def chew(self, message: Chew, context: Context) -> Slices[int]:
        for _ in range(message.looks):
            context.should_yield()
        yield
        return message.looks


@pytest.mark.promise("runtime.fair", "runtime.statistics", "runtime.time-injected")
async def test_the_longest_slice_is_told(reopen: Open) -> None:
    async with reopen(actors=[Glutton]) as runtime:
        await runtime.ask(Address("glutton", "g"), Chew(looks=1_000))
        longest = runtime.statistics().dispatcher.longest_slice_ms
        assert 100 <= longest < 101, "1,000 looks at a clock of 0.1 ms a look"
        await runtime.ask(Address("glutton", "g"), Chew(looks=10))
        assert runtime.statistics().dispatcher.longest_slice_ms == longest


class Work(Message[int], frozen=True):
    most: int


class Ask(Message[int], frozen=True):
    pass


class Worker(Actor):
    """Works in its turn until a principal waits, and says how many steps it came."""

    kind = "worker"

    @handles(Work)
    def work(self, message: Work, context: Context) -> Slices[int]:
        for step in range(message.most):
            context.put(b"%d" % step, step)
            assert context.count_rows() == step + 1
            if context.has_callers(besides=Chew):
                return step
            yield
        return message.most

    @handles(Ask)
    def answer(self, _: Ask, context: Context) -> int:
        assert context.count_rows() == 0
        return 1

    @handles(Chew)
    def chew(self, message: Chew, _: Context) -> int:
        return message.looks


@pytest.mark.promise("runtime.fair")
@pytest.mark.parametrize(
    ("message", "principal", "is_noticed"),
    [(Ask(), "ann", 1), (Ask(), None, 0), (Chew(looks=1), "ann", 0)],
    ids=["a-principal", "the-program-itself", "what-does-not-count"],
)
async def test_long_work_sees_whether_somebody_waits_for_its_actor(
    reopen: Open, message: Message[int], principal: str | None, is_noticed: int
) -> None:
    worker = Address("worker", "w")
    async with reopen(actors=[Worker]) as runtime, trio.open_nursery() as nursery:
        work = await post(nursery, runtime, worker, Work(most=2_000))
        assert await runtime.ask(worker, message, principal=principal) == 1
        assert (await work.reply() < 2_000) == bool(is_noticed)


class CountSlowly(Procedure[int], frozen=True):
    runs = "snapshot"

    index: str = "shelves"

    def run(self, reader: IndexReader) -> Slices[int]:
        count = 0
        for _ in reader.rows(self.index, str):
            count += 1
            yield
        return count


@pytest.mark.promise("runtime.fair", "runtime.shared-indexes")
async def test_a_long_query_gives_way_and_sees_one_state(reopen: Open) -> None:
    shelf = Address("shelf", "s")
    async with reopen() as runtime, trio.open_nursery() as nursery:
        for number in range(300):
            runtime.tell(shelf, Place(key=number.to_bytes(4), value="v"))
        await runtime.ask(shelf, Place(key=b"\xff", value="v"))
        counts: list[int] = []

        async def count() -> None:
            counts.append(await runtime.query(CountSlowly()))

        nursery.start_soon(count)
        added = 0
        while not counts:
            await runtime.ask(shelf, Place(key=(1_000 + added).to_bytes(4), value="v"))
            added += 1
        assert counts[0] - 301 <= 1 < added, "a row may have come before the query began, the others not"
        assert await runtime.query(CountSlowly()) == 301 + added
        assert runtime.statistics().dispatcher.longest_slice_ms < 6


@pytest.mark.promise("runtime.fair", "runtime.in-order")
async def test_a_slice_ends_a_turn_and_order_is_kept(reopen: Open) -> None:
    clock = VirtualClock(tick=0.003)
    async with reopen(clock=clock) as runtime:
        for number in range(50):
            runtime.tell(LOG, Append(entry=str(number)))
        assert await runtime.ask(LOG, Entries()) == [str(number) for number in range(50)]


@pytest.mark.promise("runtime.failure-contained")
async def test_a_generator_that_will_not_be_stopped_harms_nobody(reopen: Open) -> None:
    class Cling(Message[None], frozen=True):
        pass

    class Clinger(Actor):
        kind = "clinger"

        @handles(Cling)
        def cling(self, _message: Cling, _context: Context) -> Slices[None]:
            while True:
                try:
                    yield
                except GeneratorExit:
                    yield
                    raise ValueError("not me") from None

    async with reopen(actors=[*ACTORS, Clinger], indexes=INDEXES) as runtime, trio.open_nursery() as nursery:
        cling = await post(nursery, runtime, Address("clinger", "c"), Cling())
        await trio.lowlevel.checkpoint()
        cling.scope.cancel()
        await cling.over.wait()
        assert await runtime.ask(QUIET, Add()) == 1
        assert runtime.statistics().messages.waiting == 0


@pytest.mark.promise("runtime.fair", "runtime.bounded")
async def test_more_long_handlers_than_may_stand_between_slices_all_come_to_their_end(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        slow = [
            await post(nursery, runtime, Address("counter", str(key)), AddSlowly(steps=5))
            for key in range(600)
        ]
        slow[0].scope.cancel()
        for pending in slow[1:]:
            assert await pending.reply() == 5
        assert runtime.statistics().messages.waiting == 0


async def test_no_more_long_handlers_than_the_limit_stand_between_slices(reopen: Open) -> None:
    async with reopen() as runtime:
        for key in range(300):
            runtime.tell(Address("counter", str(key)), AddSlowly(steps=50))
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        assert len(Counter.alive) == 256
        await trio.sleep(1)
        assert len(Counter.alive) == 300
