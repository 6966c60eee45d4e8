"""Failure is contained; restarts follow the group; who fails too often is set aside."""

from __future__ import annotations

from typing import ClassVar

import pytest
import trio
from support.actors import (
    Add,
    Counter,
    FailAfter,
    Read,
)
from support.asking import Open, post

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    ConfigurationError,
    Context,
    Group,
    Message,
    Refusal,
    Runtime,
    RuntimeOptions,
    Slices,
    Strategy,
    handles,
)
from greenroom.testing import GatedCommitter

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
LOG = Address("log", "log")


async def fail(runtime: Runtime, address: Address = VISITS, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(ActorFailedError):
            await runtime.ask(address, FailAfter())


@pytest.mark.promise("runtime.failure-contained")
async def test_a_failure_is_the_senders_and_nobody_elses(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        before = await post(nursery, runtime, VISITS, Add(by=1))
        failing = await post(nursery, runtime, VISITS, FailAfter(by=100))
        after = await post(nursery, runtime, VISITS, Add(by=1))
        bystander = await post(nursery, runtime, OTHER, Add(by=1))
        assert (await before.reply(), await after.reply(), await bystander.reply()) == (1, 2, 1)
        with pytest.raises(ActorFailedError):
            await failing.reply()


@pytest.mark.promise("runtime.supervision", "runtime.time-injected")
async def test_restarts_pause_ever_longer_with_jitter(reopen: Open) -> None:
    """The first restart comes at once; then 0.5 to 1.5 times 1, 2, 4, 4 seconds."""
    group = Group(kinds=("counter",), intensity=100, period=1_000, backoff=1, backoff_limit=4)
    waits: list[list[float]] = []
    async with reopen(groups=[group]) as runtime:
        for actor in range(8):
            address = Address("counter", str(actor))
            waits.append([])
            for _ in range(5):
                await fail(runtime, address)
                failed_at = trio.current_time()
                assert await runtime.ask(address, Read()) == 0
                waits[-1].append(trio.current_time() - failed_at)
        assert runtime.statistics().actors.restarts == 40
    for wait in waits:
        assert wait[0] == 0
        for measured, base in zip(wait[1:], (1, 2, 4, 4), strict=True):
            assert 0.5 * base <= measured < 1.5 * base + 0.001
    assert len({wait[1] for wait in waits}) > 1, "jitter"


@pytest.mark.promise("runtime.supervision")
async def test_failures_that_are_long_past_do_not_count(reopen: Open) -> None:
    group = Group(kinds=("counter",), intensity=3, period=10)
    async with reopen(groups=[group]) as runtime:
        for _ in range(10):
            await fail(runtime, times=2)
            await trio.sleep(11)
        assert runtime.statistics().actors.set_aside == []


@pytest.mark.promise("runtime.supervision")
async def test_who_fails_too_often_is_set_aside_until_readmitted(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        await runtime.ask(VISITS, Add(by=5))
        await fail(runtime, times=4)
        last = await post(nursery, runtime, VISITS, FailAfter())
        waiting = [await post(nursery, runtime, VISITS, Add()) for _ in range(3)]
        with pytest.raises(ActorFailedError):
            await last.reply()
        for pending in waiting:
            with pytest.raises(ActorQuarantinedError, match="failed 5 times"):
                await pending.reply()
        with pytest.raises(ActorQuarantinedError):
            await runtime.ask(VISITS, Read())
        with pytest.raises(ActorQuarantinedError):
            runtime.tell(VISITS, Add())
        statistics = runtime.statistics()
        assert statistics.actors.set_aside == ["counter/visits"]
        assert (statistics.messages.waiting, statistics.messages.failed) == (0, 5)
        assert await runtime.ask(OTHER, Add()) == 1
        assert runtime.readmit(VISITS)
        assert not runtime.readmit(VISITS)
        assert await runtime.ask(VISITS, Read()) == 5
        await fail(runtime, times=4)
        assert await runtime.ask(VISITS, Read()) == 5, "the count of failures began anew"


@pytest.mark.promise("runtime.supervision")
async def test_readmitting_an_actor_that_is_not_set_aside_changes_nothing(reopen: Open) -> None:
    async with reopen() as runtime:
        assert not runtime.readmit(VISITS)


@pytest.mark.promise("runtime.supervision", "runtime.commit-failure")
async def test_what_was_in_flight_for_an_actor_set_aside_still_gets_its_answer(reopen: Open) -> None:
    gate = GatedCommitter()
    groups = [Group(kinds=("counter",), intensity=1)]
    async with reopen(committer=gate, groups=groups) as runtime, trio.open_nursery() as nursery:
        add = await post(nursery, runtime, VISITS, Add(by=3))
        await gate.arrived()
        await fail(runtime)
        assert not add.is_answered
        gate.let_all_through()
        assert await add.reply() == 3


class Do(Message[str], frozen=True):
    what: str = ""


class Sibling(Actor):
    """One of a group; says when it is activated and how it was stopped."""

    events: ClassVar[list[str]] = []

    def activate(self, context: Context) -> None:
        Sibling.events.append(f"{context.address} up")
        if context.address.key == "never":
            raise RuntimeError("never")
        if context.address.key == "refused":
            raise Refusal("CLOSED", "closed today")

    @handles(Do)
    def do(self, message: Do, context: Context) -> str | Slices[str]:
        if message.what == "fail":
            raise RuntimeError("told to")
        if message.what == "slow":
            return self.slow(context)
        return "done"

    def slow(self, context: Context) -> Slices[str]:
        context.put(b"slow", 1)
        while True:
            yield


class First(Sibling):
    kind = "first"


class Second(Sibling):
    kind = "second"


class Third(Sibling):
    kind = "third"


KINDS = ("first", "second", "third")


@pytest.mark.promise("runtime.supervision", "runtime.system-first")
@pytest.mark.parametrize(
    ("strategy", "restarted"),
    [
        (Strategy.ONE_FOR_ONE, ["second"]),
        (Strategy.ONE_FOR_ALL, ["first", "second", "third"]),
        (Strategy.REST_FOR_ONE, ["second", "third"]),
    ],
)
async def test_siblings_of_the_same_key_restart_by_the_groups_strategy(
    reopen: Open, strategy: Strategy, restarted: list[str]
) -> None:
    Sibling.events.clear()
    groups = [Group(kinds=KINDS, strategy=strategy)]
    async with reopen(actors=[First, Second, Third], groups=groups) as runtime:
        for key in ("k", "other"):
            for kind in KINDS:
                await runtime.ask(Address(kind, key), Do())
        Sibling.events.clear()
        with pytest.raises(ActorFailedError):
            await runtime.ask(Address("second", "k"), Do(what="fail"))
        for key in ("k", "other"):
            for kind in KINDS:
                assert await runtime.ask(Address(kind, key), Do()) == "done"
        assert Sibling.events == [f"{kind}/k up" for kind in restarted]
        assert runtime.statistics().actors.restarts == len(restarted)


@pytest.mark.promise("runtime.system-first")
async def test_a_restart_goes_before_the_messages_that_wait_and_ends_work_under_way(reopen: Open) -> None:
    Sibling.events.clear()
    groups = [Group(kinds=KINDS, strategy=Strategy.ONE_FOR_ALL)]
    async with (
        reopen(actors=[First, Second, Third], groups=groups) as runtime,
        trio.open_nursery() as nursery,
    ):
        slow = await post(nursery, runtime, Address("third", "k"), Do(what="slow"))
        await trio.lowlevel.checkpoint()
        waiting = await post(nursery, runtime, Address("third", "k"), Do())
        with pytest.raises(ActorFailedError):
            await runtime.ask(Address("first", "k"), Do(what="fail"))
        with pytest.raises(ActorFailedError, match="third/k was restarted because first/k failed"):
            await slow.reply()
        assert await waiting.reply() == "done"
        assert Sibling.events == ["third/k up", "first/k up", "third/k up"]


class Work(Message[None], frozen=True):
    pass


class Send(Message[None], frozen=True):
    """Tell the third of the group to work."""


class Sender(First):
    @handles(Send)
    def send(self, _message: Send, context: Context) -> None:
        context.tell(Address("third", context.address.key), Work())


class Worker(Third):
    """Is done when it begins for the second time."""

    @handles(Work)
    def work(self, _message: Work, context: Context) -> Slices[None]:
        Sibling.events.append("begun")
        context.put(b"work", 1)
        while Sibling.events.count("begun") == 1:
            yield


@pytest.mark.promise("runtime.system-first", "runtime.tells")
async def test_a_tell_whose_work_a_restart_ended_is_handled_anew(reopen: Open) -> None:
    Sibling.events.clear()
    first, groups = Address("first", "k"), [Group(kinds=KINDS, strategy=Strategy.ONE_FOR_ALL)]
    async with reopen(actors=[Sender, Second, Worker], groups=groups) as runtime:
        await runtime.ask(first, Send())
        while "begun" not in Sibling.events:
            await trio.lowlevel.checkpoint()
        with pytest.raises(ActorFailedError):
            await runtime.ask(first, Do(what="fail"))
        await trio.sleep(1)
        assert Sibling.events == ["first/k up", "third/k up", "begun", "third/k up", "begun"]
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.dead_letters) == (0, 0)


@pytest.mark.promise("runtime.failure-contained", "runtime.supervision")
async def test_an_actor_that_cannot_be_activated_fails_its_asker_and_is_set_aside(reopen: Open) -> None:
    async with reopen(actors=[First]) as runtime:
        for _ in range(5):
            with pytest.raises(ActorFailedError):
                await runtime.ask(Address("first", "never"), Do())
        with pytest.raises(ActorQuarantinedError):
            await runtime.ask(Address("first", "never"), Do())
        with pytest.raises(Refusal, match="closed today"):
            await runtime.ask(Address("first", "refused"), Do())
        assert await runtime.ask(Address("first", "k"), Do()) == "done"


@pytest.mark.promise("runtime.failure-contained")
async def test_an_actor_that_cannot_tell_its_size_harms_nobody(reopen: Open) -> None:
    class Shy(Actor):
        kind = "shy"

        def resident_bytes(self) -> int:
            raise RuntimeError("shy")

        @handles(Do)
        def do(self, _message: Do, _context: Context) -> str:
            return "done"

    async with reopen(actors=[Shy, Counter]) as runtime:
        assert await runtime.ask(Address("shy", "s"), Do()) == "done"
        assert await runtime.ask(VISITS, Add()) == 1


@pytest.mark.promise("runtime.supervision")
async def test_a_pause_that_ends_while_memory_is_short_harms_nobody(reopen: Open) -> None:
    group = Group(kinds=("counter",), intensity=1_000, period=10_000, backoff=1, backoff_limit=1)
    async with reopen(groups=[group], options=RuntimeOptions(resident_limit=1)) as runtime:
        for number in range(40):
            address = Address("counter", str(number))
            await fail(runtime, address, times=2)
            until = trio.current_time()
            for _ in range(30):
                await trio.sleep_until(until + 0.05)
                until += 0.05
                await runtime.ask(OTHER, Read())
        assert await runtime.ask(VISITS, Add()) == 1


@pytest.mark.promise("runtime.supervision")
@pytest.mark.parametrize(
    "groups", [[Group(kinds=("counter", "b"))], [Group(kinds=("counter",)), Group(kinds=("log", "counter"))]]
)
async def test_a_group_names_kinds_that_exist_once(reopen: Open, groups: list[Group]) -> None:
    with pytest.raises(ConfigurationError, match="unknown or in another group"):
        async with reopen(groups=groups):
            pytest.fail("not opened")


class Show(Message[int], frozen=True):
    refuses: bool = False


class Stage(Actor):
    """Counts in memory alone, and stages one shared row each time."""

    kind = "stage"
    shown = 0

    @handles(Show)
    def show(self, message: Show, context: Context) -> int:
        self.shown += 1
        context.put_row("shelves", b"row", "")
        if message.refuses:
            raise Refusal("NOT_THIS", "told to refuse")
        return self.shown


@pytest.mark.promise("runtime.failure-contained")
async def test_who_refuses_with_one_row_staged_is_rebuilt(reopen: Open) -> None:
    stage = Address("stage", "s")
    async with reopen(actors=(Stage,)) as runtime:
        assert await runtime.ask(stage, Show()) == 1
        with pytest.raises(Refusal):
            await runtime.ask(stage, Show(refuses=True))
        assert await runtime.ask(stage, Show()) == 1
