"""Tells of handlers: after the commit, at least once across a crash, and once in effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.actors import ACTORS, Add, Append, Entries, Forward, Log, Misdirect, Read, Relay
from support.asking import Open, post
from support.committers import crash_at, crashing
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    Group,
    Message,
    Runtime,
    RuntimeOptions,
    UnknownKindError,
    handles,
)
from greenroom.testing import DAY, GatedCommitter

if TYPE_CHECKING:
    from greenroom.testing import VirtualClock

RELAY = Address("relay", "r")
LOG = Address("log", "log")
pytestmark = pytest.mark.promise("runtime.tells")


async def entries(runtime: Runtime, key: str = "log") -> list[str]:
    await wait_all_tasks_blocked()
    return await runtime.ask(Address("log", key), Entries())


async def test_a_tell_is_handed_over_after_its_commit_and_not_before(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, RELAY, Forward(entries=["a", "b"], to=["log"]))
        await gate.arrived()
        assert await runtime.ask(LOG, Entries()) == []
        gate.let_all_through()
        assert await entries(runtime) == ["a", "b"]
        assert runtime.statistics().store.rows == 3, "a delivered tell leaves no row"


async def test_a_tell_of_a_failed_handler_is_never_sent(reopen: Open) -> None:
    class Tell(Message[None], frozen=True):
        pass

    class Teller(Actor):
        kind = "teller"

        @handles(Tell)
        def tell(self, _message: Tell, context: Context) -> None:
            context.tell(LOG, Append(entry="never"))
            raise RuntimeError("told to")

    async with reopen(actors=[*ACTORS, Teller]) as runtime:
        with pytest.raises(Exception, match="rolled back"):
            await runtime.ask(Address("teller", "t"), Tell())
        assert await entries(runtime) == []


@pytest.mark.parametrize("commit", range(1, 6))
@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_anywhere_between_telling_and_handling_loses_and_doubles_nothing(
    reopen: Open,
    commit: int,
    after: bool,  # noqa: FBT001  pytest's parameter
) -> None:
    told = 0
    with crashing():
        async with reopen(committer=crash_at(commit, after=after)) as runtime:
            for begin in (0, 3, 6, 9):
                told = await runtime.ask(
                    RELAY, Forward(entries=[f"{begin + i}" for i in range(3)], to=["log"])
                )
            await trio.sleep_forever()
    async with reopen() as runtime:
        sent = await runtime.ask(RELAY, Read())
        assert sent >= told
        assert await entries(runtime) == [str(number) for number in range(sent)]


@pytest.mark.promise("runtime.in-order")
async def test_tells_of_an_earlier_process_come_before_new_ones(reopen: Open) -> None:
    for attempt in range(10):  # trio shuffles its tasks
        key = f"log {attempt}"
        with crashing():
            async with reopen(committer=crash_at(1, after=True)) as runtime:
                await runtime.ask(RELAY, Forward(entries=["old 1", "old 2"], to=[key]))
        async with reopen() as runtime:
            await runtime.ask(RELAY, Forward(entries=["new"], to=[key]))
            assert await entries(runtime, key) == ["old 1", "old 2", "new"]


@pytest.mark.promise("runtime.time-injected")
@pytest.mark.parametrize("back", [0, DAY])
async def test_a_clock_that_stands_or_goes_back_between_two_processes_loses_no_tell(
    reopen: Open, clock: VirtualClock, back: int
) -> None:
    """The mailbox takes one at a time: tells of one process still lie there when the next one tells."""
    small = RuntimeOptions(durability="process", mailbox_limit=1)
    for life in "012":
        with crashing():
            async with reopen(committer=crash_at(1, after=True), options=small) as runtime:
                told = [f"{life}{number}" for number in range(3)]
                await runtime.ask(Address("relay", life), Forward(entries=told, to=["log"]))
        clock.jump(-back)
    async with reopen() as runtime:
        await runtime.ask(RELAY, Forward(entries=["30"], to=["log"]))
        log = await entries(runtime)
        assert log == [f"{life}{number}" for life in "012" for number in range(3)] + ["30"]


async def test_one_message_may_tell_many_and_itself(reopen: Open) -> None:
    class Count(Message[int], frozen=True):
        left: int

    class Countdown(Actor):
        kind = "countdown"

        @handles(Count)
        def count(self, message: Count, context: Context) -> int:
            done = (context.get(b"done", int) or 0) + 1
            context.put(b"done", done)
            if message.left > 1:
                context.tell(context.address, Count(left=message.left - 1))
            return done

    async with reopen(actors=[*ACTORS, Countdown]) as runtime:
        keys = [f"log {number}" for number in range(30)]
        await runtime.ask(RELAY, Forward(entries=["x"], to=keys))
        for key in keys:
            assert await entries(runtime, key) == ["x"]
        await runtime.ask(Address("countdown", "c"), Count(left=50))
        await wait_all_tasks_blocked()
        assert await runtime.ask(Address("countdown", "c"), Count(left=1)) == 51


@pytest.mark.promise("runtime.bounded", "runtime.failure-contained")
@pytest.mark.parametrize(
    "address",
    [
        Address("nobody", "x"),
        Address("counter", "x"),
        Address("log", ""),
        Address("log", "a\0b"),
        Address("log", "x" * 201),
        Address("", ""),
    ],
)
async def test_a_tell_to_nobody_is_a_dead_letter_and_harms_nobody(reopen: Open, address: Address) -> None:
    for number in range(2):
        async with reopen() as runtime:
            assert await runtime.ask(RELAY, Misdirect(kind=address.kind, key=address.key)) == 1
            assert await runtime.ask(Address("counter", "c"), Add()) == number + 1
            await runtime.ask(RELAY, Forward(entries=["x"], to=["log"]))
            assert len(await entries(runtime)) == number + 1
            assert runtime.statistics().messages.dead_letters == 1


@pytest.mark.promise("runtime.bounded")
async def test_a_tell_to_nobody_that_a_crash_left_is_buried_at_the_next_start(reopen: Open) -> None:
    with crashing():
        async with reopen(committer=crash_at(1, after=True)) as runtime:
            await runtime.ask(RELAY, Misdirect(kind="log", key=""))
    for dead in (1, 0):
        async with reopen() as runtime:
            await wait_all_tasks_blocked()
            assert runtime.statistics().messages.dead_letters == dead


@pytest.mark.promise("runtime.bounded")
async def test_tells_to_a_kind_that_is_gone_are_dead_letters(reopen: Open) -> None:
    with crashing():
        async with reopen(committer=crash_at(1, after=True)) as runtime:
            await runtime.ask(RELAY, Forward(entries=["a", "b"], to=["log", "other"]))
    async with reopen(actors=[Relay]) as runtime:
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.dead_letters == 4
    async with reopen() as runtime:
        assert await entries(runtime) == []


async def test_a_tell_to_an_address_that_no_utf8_can_write_fails_its_sender(reopen: Open) -> None:
    async with reopen() as runtime:
        with pytest.raises(Exception, match="rolled back"):
            await runtime.ask(RELAY, Misdirect(kind="log", key="\ud800"))
        assert await runtime.ask(RELAY, Misdirect(kind="log", key="x")) == 1


@pytest.mark.promise("runtime.commit-failure", "runtime.bounded")
async def test_a_burial_within_a_failing_group_lets_nothing_slip_through(reopen: Open) -> None:
    """The work that buries a dead letter must not carry works along that ran on state that just failed."""
    gate = GatedCommitter()
    visits = Address("counter", "visits")
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, Address("counter", "first"), Add())
        await gate.arrived()
        await post(nursery, runtime, RELAY, Misdirect(kind="nobody", key="x"))
        failing = await post(nursery, runtime, visits, Add(by=1))
        await wait_all_tasks_blocked()
        gate.let_through()
        await gate.arrived()
        on_top = await post(nursery, runtime, visits, Add(by=10))
        await wait_all_tasks_blocked()
        gate.refuse(1)
        gate.let_all_through()
        for pending in (failing, on_top):
            with pytest.raises(Exception, match="no room"):
                await pending.reply()
        assert await runtime.ask(visits, Read()) == 0


async def test_a_small_mailbox_takes_a_flood_of_tells_from_many_in_order(reopen: Open) -> None:
    options = RuntimeOptions(durability="process", mailbox_limit=5, quantum=2)
    async with reopen(options=options) as runtime:

        async def send(relay: str) -> None:
            for number in range(20):
                await runtime.ask(
                    Address("relay", relay), Forward(entries=[f"{relay} {number:02}"], to=["log"])
                )

        async with trio.open_nursery() as nursery:
            for relay in "abcde":
                nursery.start_soon(send, relay)
        await trio.sleep(60)
        log = await entries(runtime)
        for relay in "abcde":
            assert [entry for entry in log if entry[0] == relay] == [
                f"{relay} {number:02}" for number in range(20)
            ]


async def test_a_tell_that_fails_twice_is_handled_before_those_behind_it(reopen: Open) -> None:
    Log.trouble["bad"] = 2
    async with reopen() as runtime:
        await runtime.ask(RELAY, Forward(entries=["bad", "next"], to=["log"], risky=True))
        await trio.sleep(10)
        assert await entries(runtime) == ["bad", "next"]


class Double(Message[int], frozen=True):
    """Ask a counter first, and double its answer."""

    of: str

    def precheck(self) -> tuple[Address, Message[int]]:
        return Address("counter", self.of), Read()


class Doubler(Actor):
    kind = "doubler"

    @handles(Double)
    def double(self, _message: Double, context: Context) -> int:
        answer: int = context.precheck_answer
        return 2 * answer


@pytest.mark.promise("runtime.question", "runtime.reply-means-durable")
async def test_a_request_with_a_question_gets_a_durable_answer_before_it_is_delivered(reopen: Open) -> None:
    gate = GatedCommitter()
    visits = Address("counter", "visits")
    async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, visits, Add(by=21))
        await gate.arrived()
        replies: list[int] = []

        async def ask() -> None:
            replies.append(await runtime.ask(Address("doubler", "d"), Double(of="visits")))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert replies == []
        gate.let_all_through()
        await wait_all_tasks_blocked()
        assert replies == [42]


@pytest.mark.promise("runtime.question")
async def test_a_question_that_fails_fails_the_request(reopen: Open) -> None:
    async with reopen(actors=[Doubler]) as runtime:
        with pytest.raises(UnknownKindError):
            await runtime.ask(Address("doubler", "d"), Double(of="visits"))


class Delegate(Message[None], frozen=True):
    """Tell oneself, or put on a timer, what has a question."""

    at: int | None = None


class Delegator(Doubler):
    kind = "delegator"

    @handles(Delegate)
    def delegate(self, message: Delegate, context: Context) -> None:
        if message.at is None:
            context.tell(context.address, Double(of="visits"))
        else:
            context.set_timer("later", message.at, Double(of="visits"))


@pytest.mark.promise("runtime.question")
async def test_what_has_a_question_is_not_told(reopen: Open) -> None:
    delegator = Address("delegator", "d")
    async with reopen(actors=[*ACTORS, Delegator]) as runtime:
        with pytest.raises(TypeError, match="Double has a precheck"):
            runtime.tell(delegator, Double(of="visits"))
        for message in (Delegate(), Delegate(at=0)):
            with pytest.raises(ActorFailedError) as failed:
                await runtime.ask(delegator, message)
            assert "use `ask`" in str(failed.value.__cause__)
        assert await runtime.ask(delegator, Double(of="visits")) == 0
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.dead_letters, messages.timers_fired) == (0, 0, 0)


async def test_tells_beyond_those_under_way_at_once_follow_without_a_pause(reopen: Open) -> None:
    entries = [f"entry {number}" for number in range(110)]
    logs = [f"log {number}" for number in range(14)]
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, RELAY, Forward(entries=entries, to=logs))
        await gate.arrived()
        gate.let_through()
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 1_000, "the others wait in the store"
        gate.let_all_through()
        await wait_all_tasks_blocked()
        assert trio.current_time() < 1
        for log in logs:
            assert await runtime.ask(Address("log", log), Entries()) == entries


@pytest.mark.promise("runtime.bounded", "runtime.in-order")
@pytest.mark.parametrize("mailbox_limit", [5, 10_000])
async def test_tells_that_one_mailbox_does_not_take_follow_in_order_and_then_cost_no_scans(
    reopen: Open, clock: VirtualClock, mailbox_limit: int
) -> None:
    told = [str(number) for number in range(300)]
    options = RuntimeOptions(durability="process", mailbox_limit=mailbox_limit)
    async with reopen(options=options) as runtime:
        await runtime.ask(RELAY, Forward(entries=told, to=["log"]))
        await trio.sleep(60)
        assert await entries(runtime) == told
        looked = clock.perf()
        await trio.sleep(600)
        assert clock.perf() - looked < 0.1, "not even a thousand looks at the clock"


@pytest.mark.promise("runtime.supervision", "runtime.in-order")
async def test_an_actor_set_aside_and_readmitted_during_one_scan_gets_its_tells_in_order(
    reopen: Open,
) -> None:
    told = [str(number) for number in range(120)]
    async with reopen(groups=[Group(kinds=("log",), intensity=1)]) as runtime:
        for attempt in range(10):  # trio shuffles its tasks
            bad, log = f"bad {attempt}", Address("log", f"log {attempt}")
            Log.trouble[bad] = 2
            await runtime.ask(RELAY, Forward(entries=[bad], to=[log.key], risky=True))
            await runtime.ask(RELAY, Forward(entries=told, to=[log.key]))
            await wait_all_tasks_blocked()
            assert runtime.readmit(log)
            while not runtime.readmit(log):
                await trio.lowlevel.checkpoint()
            await trio.sleep(10)
            assert await entries(runtime, log.key) == [bad, *told]


@pytest.mark.promise("runtime.supervision")
@pytest.mark.parametrize("when", ["before the scan reaches it", "after the scan"])
async def test_a_tell_that_is_handled_while_the_store_is_scanned_is_handled_once(
    reopen: Open, when: str
) -> None:
    """The scan sees the rows as they were when it began: one of them may be handled by then, or later."""
    waiting = [str(number) for number in range(100)]
    gate, once = GatedCommitter(), Address("log", "once")
    gate.open = True
    Log.trouble["bad"] = 1
    async with reopen(committer=gate, groups=[Group(kinds=("log",), intensity=1)]) as runtime:
        await runtime.ask(RELAY, Forward(entries=["bad"], to=["log"], risky=True))
        await wait_all_tasks_blocked()
        await runtime.ask(RELAY, Forward(entries=waiting, to=["log"]))  # which is set aside
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 0
        async with trio.open_nursery() as nursery:
            gate.open = False
            await post(nursery, runtime, RELAY, Forward(entries=["only one"], to=["once"]))
            await gate.arrived()
            gate.let_through()
            await gate.arrived()  # with what comes of the tell
            assert runtime.statistics().messages.waiting == 1
            assert runtime.readmit(LOG)
            if when == "after the scan":
                await wait_all_tasks_blocked()
                assert runtime.statistics().messages.waiting == 102
            else:
                while (waits := runtime.statistics().messages.waiting) == 1:
                    await trio.lowlevel.checkpoint()
                assert waits < 100, "the scan is under way"
            gate.let_all_through()
        assert await runtime.ask(once, Entries()) == ["only one"]
        assert await entries(runtime) == ["bad", *waiting]
        assert await runtime.ask(once, Entries()) == ["only one"]
