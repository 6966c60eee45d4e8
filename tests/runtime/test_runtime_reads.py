"""A posted read is handled at once where its actor has nothing in hand; what it shows is on disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import outcome
import pytest
import trio
from support.actors import ACTORS
from support.asking import Open, post
from support.committers import crash_at, crashing
from support.effort import by_night
from support.flipped import flip, records_of
from support.postings import Posting, posting
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    Context,
    DeadlineExceededError,
    Group,
    Idempotency,
    Message,
    RecordDamagedError,
    Refusal,
    Result,
    RuntimeClosedError,
    RuntimeOptions,
    Slices,
    StoreFailedError,
    current_settings,
    handles,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from greenroom.runtime import Runtime

LEDGE = Address("ledge", "a")
OTHER = Address("ledge", "b")
pytestmark = pytest.mark.promise("runtime.reads-at-once")


class Put(Message[int], frozen=True):
    number: int
    key: bytes = b"k"


class Get(Message[int], frozen=True):
    """Read a record; ``note`` stages something, ``then`` fails or refuses."""

    only_reads: ClassVar[bool] = True

    key: bytes = b"k"
    note: bool = False
    then: str = ""


class Sum(Message[int], frozen=True):
    """Read all records in slices."""

    only_reads: ClassVar[bool] = True

    pauses: int = 0


class Chew(Message[int], frozen=True):
    """Read for 3 ms, by a clock of 0.1 ms a look."""

    only_reads: ClassVar[bool] = True


class Peek(Message[int], frozen=True):
    """Change the state, have the actor read meanwhile, and fail or not."""

    number: int
    fails: bool
    done: Callable[[Result], None]


class Settings(Message[str], frozen=True):
    only_reads: ClassVar[bool] = True


class Ledge(Actor):
    """Keeps numbers in records, and what it last saw in memory."""

    kind = "ledge"
    handled: ClassVar[list[str]] = []
    """What any ledge has handled."""

    def activate(self, context: Context) -> None:
        Ledge.handled.append(f"activate {context.address.key}")
        self.last = context.get(b"k", int) or 0

    @handles(Put)
    def put(self, message: Put, context: Context) -> int:
        Ledge.handled.append(f"put {message.number}")
        context.put(message.key, message.number)
        self.last = message.number
        return message.number

    @handles(Get)
    def get(self, message: Get, context: Context) -> int:
        Ledge.handled.append(f"get {context.address.key}")
        if message.then == "fail":
            self.last = -1
            raise RuntimeError(message.then)
        if message.then == "refuse":
            raise Refusal("NOT_THIS", "no")
        if message.then == "end":
            raise KeyboardInterrupt
        if message.note:
            context.put(b"noted", self.last)
        found = context.get(message.key, int) or 0
        assert message.key != b"k" or found == self.last
        return found

    @handles(Sum)
    def sum(self, message: Sum, context: Context) -> Slices[int]:
        Ledge.handled.append("sum")
        for _ in range(message.pauses):
            yield
        return sum(number for _, number in context.scan(int))

    @handles(Chew)
    def chew(self, _message: Chew, context: Context) -> int:
        Ledge.handled.append(f"chew {context.address.key}")
        for _ in range(30):
            context.should_yield()
        return self.last

    @handles(Peek)
    def peek(self, message: Peek, context: Context) -> int:
        self.last = message.number
        context.sidecar.post(context.address, Get(), message.done)
        if message.fails:
            raise RuntimeError("fails")
        context.put(b"k", message.number)
        return message.number

    @handles(Settings)
    def settings(self, _message: Settings, _context: Context) -> str:
        return str(current_settings())


def open_with(reopen: Open, **options: Any) -> AbstractAsyncContextManager[Runtime]:
    return reopen(actors=[*ACTORS, Ledge], **options)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Ledge.handled.clear()


def never(result: Result) -> None:
    pytest.fail(f"nobody waits for {result}")


async def awake(runtime: Runtime, *numbers: int, address: Address = LEDGE) -> None:
    """Have a ledge in memory, with numbers on disk, and nothing in hand."""
    assert await runtime.ask(address, Get()) >= 0
    for number in numbers:
        await runtime.ask(address, Put(number=number))
    await wait_all_tasks_blocked()
    Ledge.handled.clear()


# -- at once, and never before earlier work ------------------------------------------------------


async def test_a_read_of_an_idle_actor_is_handled_within_the_post_and_told_after_it(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 5)
        read = posting(runtime.post, LEDGE, Get())
        assert (Ledge.handled, read.accepted, read.is_over) == (["get a"], True, False)
        assert await read.reply() == 5
        assert runtime.statistics().messages.waiting == 0
        with runtime.hold_dispatch():
            held = posting(runtime.post, LEDGE, Get())
            assert not held.is_over
            runtime.run_ready()
            assert held.is_over
        with runtime.hold_dispatch():
            held = posting(runtime.post, LEDGE, Get())
        assert await held.reply() == 5


async def test_a_read_waits_behind_an_earlier_write_that_is_not_handled(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        write = posting(runtime.post, LEDGE, Put(number=2))
        read = posting(runtime.post, LEDGE, Get())
        assert Ledge.handled == []
        assert (await read.reply(), write.is_over) == (2, True)


async def test_a_read_of_what_is_on_its_way_to_disk_is_told_when_it_is_there(reopen: Open) -> None:
    gate = GatedCommitter()
    async with open_with(reopen, committer=gate) as runtime:
        assert await runtime.ask(LEDGE, Get()) == 0
        write = posting(runtime.post, LEDGE, Put(number=2))
        await gate.arrived()
        Ledge.handled.clear()
        read, other_key = posting(runtime.post, LEDGE, Get()), posting(runtime.post, LEDGE, Get(key=b"x"))
        assert Ledge.handled == [], "an actor whose work is on its way takes its turn"
        await wait_all_tasks_blocked()
        assert [one.is_over for one in (write, read, other_key)] == [False, False, False]
        gate.let_all_through()
        assert [await one.reply() for one in (write, read, other_key)] == [2, 2, 0]


async def test_another_senders_read_shows_nothing_that_is_not_on_disk(reopen: Open) -> None:
    gate = GatedCommitter()
    async with open_with(reopen, committer=gate) as runtime, trio.open_nursery() as nursery:
        assert await runtime.ask(LEDGE, Get()) == 0
        mine = await post(nursery, runtime, LEDGE, Put(number=3), principal="me")
        yours = posting(runtime.post, LEDGE, Get(), principal="you")
        elsewhere = posting(runtime.post, OTHER, Get(), principal="you")
        await gate.arrived()
        await wait_all_tasks_blocked()
        assert (yours.is_over, elsewhere.is_over) == (False, True)
        gate.let_all_through()
        assert (await mine.reply(), await yours.reply()) == (3, 3)


async def test_a_read_before_a_write_does_not_see_it(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        read = posting(runtime.post, LEDGE, Get())
        posting(runtime.post, LEDGE, Put(number=2))
        again = posting(runtime.post, LEDGE, Get())
        assert (await read.reply(), await again.reply()) == (1, 2)


async def test_a_read_that_notes_something_is_answered_when_that_is_on_disk(reopen: Open) -> None:
    gate = GatedCommitter()
    async with open_with(reopen, committer=gate) as runtime:
        assert await runtime.ask(LEDGE, Get()) == 0
        read = posting(runtime.post, LEDGE, Get(note=True))
        behind = posting(runtime.post, LEDGE, Get(key=b"noted"))
        assert Ledge.handled == ["activate a", "get a", "get a"]
        await gate.arrived()
        assert (read.is_over, behind.is_over) == (False, False)
        gate.let_all_through()
        assert (await read.reply(), await behind.reply()) == (0, 0)


async def test_long_reads_run_in_slices_and_others_wait_behind_them(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 4)
        long = posting(runtime.post, LEDGE, Sum(pauses=50))
        assert Ledge.handled == ["sum"]
        write, read = posting(runtime.post, LEDGE, Put(number=9)), posting(runtime.post, LEDGE, Get())
        assert Ledge.handled == ["sum"]
        assert (await long.reply(), await write.reply(), await read.reply()) == (4, 9, 9)


async def test_a_read_with_a_key_of_its_own_takes_its_turn_and_is_answered_once(reopen: Open) -> None:
    once = Idempotency("me", "key", b"")
    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        first = posting(runtime.post, LEDGE, Get(), idempotency=once)
        assert Ledge.handled == []
        assert await first.reply() == 1
        await runtime.ask(LEDGE, Put(number=2))
        assert await posting(runtime.post, LEDGE, Get(), idempotency=once).reply() == 1


@pytest.mark.parametrize("fails", [False, True])
async def test_a_read_that_is_posted_while_a_handler_of_its_actor_runs_waits_for_it(
    reopen: Open, *, fails: bool
) -> None:
    @asynccontextmanager
    async def beside(runtime: Runtime) -> AsyncIterator[Runtime]:
        yield runtime

    read = Posting()
    async with open_with(reopen, sidecar=beside) as runtime:
        await awake(runtime, 1)
        peek = posting(runtime.post, LEDGE, Peek(number=2, fails=fails, done=read.done))
        await wait_all_tasks_blocked()
        assert peek.is_over
        assert await read.reply() == (1 if fails else 2)


# -- giving up ------------------------------------------------------------------------------------


async def test_a_read_that_is_given_up_tells_nobody(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        read = runtime.post(LEDGE, Get(), never)
        assert Ledge.handled == ["get a"]
        read.cancel()
        read.cancel()
        long = runtime.post(LEDGE, Sum(pauses=1_000_000_000), never)
        await trio.lowlevel.checkpoint()
        long.cancel()
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 0
        assert await runtime.ask(LEDGE, Get()) == 1


async def test_a_read_whose_deadline_passed_is_not_begun(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        late = posting(runtime.post, LEDGE, Get(), deadline=trio.current_time())
        with pytest.raises(DeadlineExceededError, match="nothing was done"):
            await late.reply()
        assert Ledge.handled == []
        assert runtime.statistics().messages.expired == 1


async def test_an_on_accepted_that_fails_comes_out_of_the_post_of_a_read(reopen: Open) -> None:
    def fail() -> None:
        raise ValueError("accepted")

    async with open_with(reopen) as runtime:
        await awake(runtime, 1)
        with pytest.raises(ValueError, match="accepted"):
            runtime.post(LEDGE, Get(), never, on_accepted=fail)
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 0


# -- actors that are not there, fail, or are set aside ----------------------------------------------


async def test_an_actor_that_left_memory_is_read_at_its_turn(reopen: Open) -> None:
    async with open_with(reopen, options=RuntimeOptions(resident_limit=1)) as runtime:
        await awake(runtime, 7)
        await runtime.ask(OTHER, Get())
        Ledge.handled.clear()
        read = posting(runtime.post, LEDGE, Get())
        assert Ledge.handled == []
        assert await read.reply() == 7
        assert Ledge.handled == ["activate a", "get a"]


async def test_an_actor_that_is_only_read_stays_in_memory(reopen: Open) -> None:
    async with open_with(reopen, options=RuntimeOptions(idle_seconds=10)) as runtime:
        await awake(runtime, 7)
        for _ in range(30):
            await trio.sleep(6)  # more than half of the time, so that a mark of the read before is too old
            assert await posting(runtime.post, LEDGE, Get()).reply() == 7
        assert Ledge.handled == ["get a"] * 30


async def test_a_read_that_fails_hurts_nobody_and_the_actor_is_rebuilt_from_disk(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 5)
        fails, next_one = posting(runtime.post, LEDGE, Get(then="fail")), posting(runtime.post, LEDGE, Get())
        with pytest.raises(ActorFailedError, match="can be repeated"):
            await fails.reply()
        assert await next_one.reply() == 5
        with pytest.raises(Refusal, match="no"):
            await posting(runtime.post, LEDGE, Get(then="refuse")).reply()
        assert Ledge.handled == ["get a", "activate a", "get a", "get a"]
        assert runtime.statistics().actors.restarts == 1


async def test_reads_that_fail_too_often_set_the_actor_aside(reopen: Open) -> None:
    group = Group(kinds=("ledge",), intensity=2)
    async with open_with(reopen, groups=[group]) as runtime:
        await awake(runtime, 5)
        for _ in range(2):
            with pytest.raises(ActorFailedError):
                await posting(runtime.post, LEDGE, Get(then="fail")).reply()
        Ledge.handled.clear()
        with pytest.raises(ActorQuarantinedError):
            runtime.post(LEDGE, Get(), never)
        assert Ledge.handled == []
        assert runtime.readmit(LEDGE)
        assert await posting(runtime.post, LEDGE, Get()).reply() == 5


async def test_a_damaged_record_is_said_and_other_reads_go_on(
    reopen: Open, folder: Path, tmp_path: Path
) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 5)
        await runtime.ask(LEDGE, Put(number=6, key=b"x"))
        await runtime.verify()  # now it lies in its table
        [record] = [each for each in records_of(folder, tmp_path) if each.key.endswith(b"x")]
        flip(folder, record)
        with pytest.raises(RecordDamagedError):
            await posting(runtime.post, LEDGE, Get(key=b"x")).reply()
        assert await posting(runtime.post, LEDGE, Get()).reply() == 5
        await runtime.ask(LEDGE, Put(number=8, key=b"x"))
        assert await posting(runtime.post, LEDGE, Get(key=b"x")).reply() == 8


# -- fairness ---------------------------------------------------------------------------------------


async def test_as_many_reads_as_a_turn_has_go_first_and_all_are_answered_in_order(reopen: Open) -> None:
    heard: list[int] = []

    def hear(number: int, _: Result) -> None:
        heard.append(number)

    async with open_with(reopen, options=RuntimeOptions(quantum=5)) as runtime:
        await awake(runtime, 1)
        for number in range(20):
            runtime.post(LEDGE, Get(), partial(hear, number))
        assert Ledge.handled == ["get a"] * 5
        runtime.post(LEDGE, Put(number=2), partial(hear, 20))
        await wait_all_tasks_blocked()
        assert heard == list(range(21))


async def test_reads_between_two_passes_hold_the_event_loop_for_one_slice(reopen: Open) -> None:
    ledges = [Address("ledge", str(number)) for number in range(60)]
    async with open_with(reopen) as runtime:
        for ledge in ledges:
            await runtime.ask(ledge, Get())
        Ledge.handled.clear()
        reads = [posting(runtime.post, ledge, Chew()) for ledge in ledges]
        assert Ledge.handled == ["chew 0", "chew 1"], "a slice is 4 ms, and a read 3"
        for read in reads:
            assert await read.reply() == 0
        assert 6 <= runtime.statistics().dispatcher.longest_slice_ms < 8
        posting(runtime.post, ledges[7], Chew())
        assert Ledge.handled[-1] == "chew 7", "after a pass there is a new slice"


async def test_no_more_long_reads_are_begun_than_may_stand_between_two_slices(reopen: Open) -> None:
    ledges = [Address("ledge", str(number)) for number in range(260)]
    async with open_with(reopen) as runtime:
        for ledge in ledges:
            await runtime.ask(ledge, Get())
        reads = []
        for ledge in ledges:
            reads.append(runtime.post(ledge, Sum(pauses=1_000_000_000), never))
            await trio.lowlevel.checkpoint()  # a pass, after which there is a new slice
        assert Ledge.handled.count("sum") == 256
        for read in reads:
            read.cancel()
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 0


async def test_callbacks_that_read_again_and_again_starve_nobody(reopen: Open) -> None:
    reads = 0

    async with open_with(reopen) as runtime:
        await awake(runtime, 1)

        def read_again(_: Result) -> None:
            nonlocal reads
            reads += 1
            if is_on:
                runtime.post(LEDGE, Get(), read_again)

        is_on = True
        runtime.post(LEDGE, Get(), read_again)
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        assert await runtime.ask(OTHER, Put(number=3)) == 3
        is_on = False
        await wait_all_tasks_blocked()
        assert reads > 20
        assert runtime.statistics().messages.waiting == 0


async def test_handlers_of_reads_see_the_settings_of_their_store(reopen: Open) -> None:
    async with open_with(reopen, settings="of the store") as runtime:
        await awake(runtime)
        assert await posting(runtime.post, LEDGE, Settings()).reply() == "of the store"


# -- the end ----------------------------------------------------------------------------------------


async def test_a_read_that_was_handled_is_told_though_the_runtime_closes(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 5)
        read = posting(runtime.post, LEDGE, Get())
    assert await read.reply() == 5
    with pytest.raises(RuntimeClosedError):
        runtime.post(LEDGE, Get(), never)


async def test_a_handler_that_ends_the_program_comes_out_of_the_post(reopen: Open) -> None:
    async with open_with(reopen) as runtime:
        await awake(runtime, 5)
        with pytest.raises(KeyboardInterrupt):
            runtime.post(LEDGE, Get(then="end"), never)
        assert runtime.statistics().messages.waiting == 0
        assert await posting(runtime.post, LEDGE, Get()).reply() == 5


async def test_no_read_is_answered_once_the_disk_is_gone(reopen: Open) -> None:
    gate = GatedCommitter()
    reads: list[Posting] = []
    with pytest.raises(StoreFailedError):  # noqa: PT012  the whole life of the runtime is the subject
        async with open_with(reopen, committer=gate) as runtime:
            assert await runtime.ask(LEDGE, Get()) == 0
            runtime.post(LEDGE, Put(number=1), lambda _: None)
            reads.append(posting(runtime.post, LEDGE, Get()))
            await gate.arrived()
            reads.append(posting(runtime.post, LEDGE, Get()))
            gate.break_for_good()
            with pytest.raises(StoreFailedError):
                runtime.post(LEDGE, Get(), never)
            await trio.sleep_forever()
    for read in reads:
        with pytest.raises(StoreFailedError):
            await read.reply()


@pytest.mark.parametrize("seed", range(by_night(200, by_day=12)))
async def test_what_a_read_was_told_is_on_disk_whenever_the_process_ends(reopen: Open, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    told = acknowledged = asked = 0
    stale: list[int] = []  # what was read and is older than an acknowledged write before it

    def hear(least: int, result: Result) -> None:
        nonlocal told
        if isinstance(result, outcome.Value):
            told = max(told, result.value)
            stale.extend([result.value] if result.value < least else [])

    def hear_write(result: Result) -> None:
        nonlocal acknowledged
        if isinstance(result, outcome.Value):
            acknowledged = max(acknowledged, result.value)

    with crashing():
        async with open_with(
            reopen, committer=crash_at(chance.randint(2, 9), after=chance.random() < 0.5)
        ) as runtime:
            while True:
                if chance.random() < 0.3:
                    asked += 1
                    runtime.post(LEDGE, Put(number=asked), hear_write)
                runtime.post(LEDGE, Get(), partial(hear, acknowledged))
                if chance.random() < 0.5:
                    await trio.lowlevel.checkpoint()
    async with open_with(reopen) as runtime:
        found = await runtime.ask(LEDGE, Get())
        assert max(told, acknowledged) <= found <= asked
    assert stale == []
