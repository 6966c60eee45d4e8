"""When a commit fails: for want of space its own actor suffers, for any other reason everything ends."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio
from support.actors import (
    Add,
    AddSlowly,
    Append,
    AppendOrFail,
    Counter,
    Entries,
    Forward,
    Log,
    Place,
    Read,
    Rows,
    Take,
)
from support.asking import Open, Pending, post
from support.committers import full
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    Context,
    Group,
    Idempotency,
    InlineCommitter,
    Message,
    Runtime,
    RuntimeClosedError,
    RuntimeOptions,
    StorageFullError,
    StoreFailedError,
    handles,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.runtime import Store, WriteBatch

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
LOG = Address("log", "log")


@pytest.mark.promise("runtime.commit-failure")
async def test_effects_without_room_fail_with_everything_that_ran_on_them_and_with_nobody_else(
    reopen: Open,
) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, OTHER, Add(by=1))  # holds the gate while the next group collects
        await gate.arrived()
        first = await post(nursery, runtime, VISITS, Add(by=5))
        bystander = await post(nursery, runtime, OTHER, Add(by=1))
        second = await post(nursery, runtime, VISITS, Add(by=6))
        seen = await post(nursery, runtime, VISITS, Read())
        gate.let_through()
        await gate.arrived()
        collected = await post(nursery, runtime, VISITS, Add(by=7))
        running = await post(nursery, runtime, VISITS, AddSlowly(steps=1_000_000))
        await wait_some_turns()
        gate.refuse(0)
        for pending in (first, second, seen, collected, running):
            with pytest.raises(StorageFullError, match="no room"):
                await pending.reply()
        assert await bystander.reply() == 2
        gate.let_all_through()
        assert await runtime.ask(VISITS, Read()) == 0, "the actor is rebuilt from the store"
        assert await runtime.ask(VISITS, Add(by=8)) == 8
    async with reopen() as runtime:
        assert (await runtime.ask(VISITS, Read()), await runtime.ask(OTHER, Read())) == (8, 2)


@pytest.mark.promise("runtime.commit-failure")
async def test_what_was_on_disk_before_stays_when_a_later_commit_finds_no_room(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        first = await post(nursery, runtime, VISITS, Add(by=5))
        await gate.arrived()
        second = await post(nursery, runtime, VISITS, Add(by=6))
        gate.let_through()
        await gate.arrived()
        gate.refuse(0)
        gate.let_all_through()
        assert await first.reply() == 5
        with pytest.raises(StorageFullError):
            await second.reply()
        assert await runtime.ask(VISITS, Read()) == 5


@pytest.mark.promise("runtime.commit-failure", "runtime.exactly-once")
async def test_a_request_that_found_no_room_may_be_repeated_with_its_key(reopen: Open) -> None:
    once = Idempotency("me add", "key", b"5")
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        first = await post(nursery, runtime, VISITS, Add(by=5), idempotency=once)
        await gate.arrived()
        repeat = await post(nursery, runtime, VISITS, Add(by=5), idempotency=once)
        await wait_all_tasks_blocked()
        gate.refuse(0)
        for pending in (first, repeat):
            with pytest.raises(StorageFullError):
                await pending.reply()
        gate.let_all_through()
        assert await runtime.ask(VISITS, Add(by=5), idempotency=once) == 5
        assert await runtime.ask(VISITS, Add(by=5), idempotency=once) == 5
        assert await runtime.ask(VISITS, Read()) == 5


@pytest.mark.promise("runtime.commit-failure", "runtime.tells", "runtime.in-order")
async def test_tells_whose_handling_found_no_room_are_handled_later_in_their_order(reopen: Open) -> None:
    refusals = 3  # an even number of reversals would look like none

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        nonlocal refusals
        mine = [work for work in works if getattr(work.owner, "address", None) == LOG]
        if mine and refusals:
            refusals -= 1
            mine[0].error = full()
        store.commit(works)

    async with reopen(committer=InlineCommitter(commit), options=RuntimeOptions(quantum=3)) as runtime:
        entries = [f"entry {number}" for number in range(9)]
        await runtime.ask(Address("relay", "r"), Forward(entries=entries, to=["log"]))
        await trio.sleep(10)
        assert await runtime.ask(LOG, Entries()) == entries
        assert runtime.statistics().messages.not_committed >= 3


@pytest.mark.promise("runtime.commit-failure")
async def test_what_is_asked_goes_on_while_a_tell_waits_for_room(reopen: Open) -> None:
    has_room = False

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        for work in works:
            handled = [envelope for envelope, _ in getattr(work, "replies", ())]
            if not has_room and handled and handled[0].is_durable:
                work.error = full()
        store.commit(works)

    async with reopen(committer=InlineCommitter(commit)) as runtime:
        told = ["one", "two", "three"]
        await runtime.ask(Address("relay", "r"), Forward(entries=told, to=["log"]))
        asked: list[str] = []
        for number in range(30):
            asked.append(f"asked {number}")
            once = Idempotency("scope", f"key {number}", b"")
            await runtime.ask(LOG, Append(entry=asked[-1]), idempotency=once if number % 2 else None)
            await trio.sleep(0.09)
        assert await runtime.ask(LOG, Entries()) == asked
        assert runtime.statistics().messages.not_committed >= 3
        has_room = True
        await trio.sleep(5)
        assert await runtime.ask(LOG, Entries()) == asked + told


@pytest.mark.promise("runtime.commit-failure", "store.space-reserve")
async def test_a_store_that_is_really_full_refuses_puts_and_still_deletes(reopen: Open) -> None:
    shelf = Address("shelf", "s")
    options = RuntimeOptions(max_size=1 << 20, min_free=0)
    async with reopen(options=options) as runtime:
        placed = 0
        with pytest.raises(StorageFullError):  # noqa: PT012  one of these, no matter which
            while True:
                await runtime.ask(shelf, Place(key=placed.to_bytes(4), value="x" * 10_000))
                placed += 1
        assert placed > 20
        assert len(await runtime.query(Rows())) == placed, "what was refused is nowhere"
        for number in range(placed // 2):
            await runtime.ask(shelf, Take(key=number.to_bytes(4)))
        await runtime.ask(shelf, Place(key=b"again", value="x" * 10_000))


@pytest.mark.promise("runtime.commit-failure")
async def test_one_oversized_actor_of_a_group_does_not_hurt_the_others(reopen: Open) -> None:
    options = RuntimeOptions(max_size=1 << 20, min_free=0)
    gate = GatedCommitter()
    async with reopen(committer=gate, options=options) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add())
        await gate.arrived()
        big = await post(nursery, runtime, Address("shelf", "big"), Place(key=b"k", value="x" * 2_000_000))
        small = [await post(nursery, runtime, Address("counter", str(key)), Add()) for key in range(5)]
        gate.let_all_through()
        assert [await pending.reply() for pending in small] == [1] * 5
        with pytest.raises(StorageFullError):
            await big.reply()


@pytest.mark.promise("runtime.fatal-commit")
async def test_after_any_other_commit_error_no_reply_leaves(reopen: Open) -> None:
    gate = GatedCommitter()
    asked: list[Pending[int]] = []
    async with trio.open_nursery() as outside:
        with pytest.raises(StoreFailedError, match="the disk is gone"):  # noqa: PT012  a whole life
            async with reopen(committer=gate) as runtime:
                asked.append(await post(outside, runtime, VISITS, Add()))
                await gate.arrived()
                asked.append(await post(outside, runtime, VISITS, Read()))
                asked.append(await post(outside, runtime, OTHER, Add()))
                await wait_all_tasks_blocked()
                gate.break_for_good()
                asked.append(await post(outside, runtime, OTHER, Read()))
                await trio.sleep_forever()
        for pending in asked:
            with pytest.raises(StoreFailedError):
                await pending.reply()
        with pytest.raises(StoreFailedError):
            await runtime.ask(VISITS, Read())
        with pytest.raises(StoreFailedError):
            await runtime.query(Rows())
        with pytest.raises(StoreFailedError):
            runtime.tell(VISITS, Add())


@pytest.mark.promise("runtime.fatal-commit")
async def test_a_read_that_was_already_waiting_for_its_turn_gets_no_reply_after_a_fatal_error(
    reopen: Open,
) -> None:
    gate = GatedCommitter()
    async with trio.open_nursery() as outside:
        for _ in range(6):  # trio shuffles who of the ready tasks goes first
            with pytest.raises(StoreFailedError):  # noqa: PT012  a whole life
                async with reopen(committer=gate) as runtime:
                    await post(outside, runtime, VISITS, Add())
                    await gate.arrived()
                    read = Pending[int]()
                    outside.start_soon(ask_read, runtime, read)
                    await trio.lowlevel.checkpoint()
                    gate.break_for_good()
                    await trio.sleep_forever()
            with pytest.raises((StoreFailedError, RuntimeClosedError)):
                await read.reply()


async def ask_read(runtime: Runtime, pending: Pending[int]) -> None:
    await pending.run(runtime, OTHER, Read(), {}, trio.TASK_STATUS_IGNORED)


@pytest.mark.promise("runtime.fatal-commit", "runtime.reply-means-durable")
async def test_a_query_that_waits_for_a_commit_hears_that_it_failed(reopen: Open) -> None:
    gate = GatedCommitter()
    heard: list[type[Exception]] = []
    async with trio.open_nursery() as outside:
        with pytest.raises(StoreFailedError):  # noqa: PT012  a whole life
            async with reopen(committer=gate) as runtime:

                async def ask() -> None:
                    try:
                        await runtime.query(Rows())
                    except StoreFailedError as error:
                        heard.append(type(error))

                await post(outside, runtime, LOG, Append(entry="x"))
                await gate.arrived()
                outside.start_soon(ask)
                await wait_all_tasks_blocked()
                gate.break_for_good()
                await trio.sleep_forever()
        with trio.move_on_after(10):
            await wait_all_tasks_blocked()
            outside.cancel_scope.deadline = trio.current_time() + 10
    assert heard == [StoreFailedError]


async def wait_some_turns() -> None:
    for _ in range(20):
        await trio.lowlevel.checkpoint()


@pytest.mark.promise("runtime.commit-failure", "runtime.supervision")
async def test_a_full_disk_does_not_shorten_the_pause_of_an_actor_that_fails(reopen: Open) -> None:
    Log.trouble["bad"] = 2
    gate = GatedCommitter()
    relay = Address("relay", "r")
    groups = [Group(kinds=("log",), backoff=30)]
    async with reopen(committer=gate, groups=groups) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, relay, Forward(entries=["good", "bad"], to=["log"], risky=True))
        await gate.arrived()
        gate.let_through()
        await gate.arrived()  # with the good one, while the bad one has failed twice
        assert Log.trouble["bad"] == 0
        gate.refuse(0)
        gate.open = True
        await runtime.ask(LOG, Entries())
        assert trio.current_time() >= 15
        await trio.sleep(2)
        assert await runtime.ask(LOG, Entries()) == ["good", "bad"]


@pytest.mark.promise("runtime.commit-failure", "runtime.in-order")
async def test_who_asked_behind_a_tell_without_room_is_handled_in_order_unless_they_gave_up(
    reopen: Open,
) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, Address("relay", "r"), Forward(entries=["told"], to=["log"]))
        await gate.arrived()
        gate.let_through()
        await gate.arrived()  # with what followed from the tell
        asked = [await post(nursery, runtime, LOG, Append(entry=each)) for each in ("a", "gone", "b", "c")]
        await wait_all_tasks_blocked()
        asked[1].scope.cancel()
        await asked[1].over.wait()
        gate.refuse(0)
        gate.let_all_through()
        assert [await asked[each].reply() for each in (0, 2, 3)] == [0, 1, 2]
        await trio.sleep(5)
        assert await runtime.ask(LOG, Entries()) == ["a", "b", "c", "told"]
        assert runtime.statistics().messages.waiting == 0


@pytest.mark.promise("runtime.commit-failure", "runtime.supervision")
async def test_who_asked_behind_a_tell_without_room_hears_that_the_actor_was_set_aside_since(
    reopen: Open,
) -> None:
    Log.trouble["bad"] = 1
    gate, groups = GatedCommitter(), [Group(kinds=("log",), intensity=1)]
    async with reopen(committer=gate, groups=groups) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, Address("relay", "r"), Forward(entries=["told"], to=["log"]))
        await gate.arrived()
        gate.let_through()
        await gate.arrived()  # with what followed from the tell
        asked = await post(nursery, runtime, LOG, Append(entry="asked"))
        with pytest.raises(ActorFailedError):
            await runtime.ask(LOG, AppendOrFail(entry="bad"))
        gate.refuse(0)
        gate.let_all_through()
        with pytest.raises(ActorQuarantinedError, match="set aside"):
            await asked.reply()
        assert runtime.readmit(LOG)
        await trio.sleep(5)
        assert await runtime.ask(LOG, Entries()) == ["told"]


@pytest.mark.promise("runtime.commit-failure")
async def test_the_pause_before_a_tell_without_room_is_tried_again_doubles_up_to_a_minute(
    reopen: Open,
) -> None:
    tried: list[float] = []

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        for work in works:
            if getattr(work.owner, "address", None) == LOG:
                tried.append(trio.current_time())
                work.error = full()
        store.commit(works)

    async with reopen(committer=InlineCommitter(commit)) as runtime:
        await runtime.ask(Address("relay", "r"), Forward(entries=["told"], to=["log"]))
        await trio.sleep(290)
        pauses = [later - earlier for earlier, later in pairwise(tried)]
        assert [int(pause) for pause in pauses] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


class Peek(Message[int], frozen=True):
    """Read, and leave a row that says so if there is room."""


class Watched(Counter):
    kind = "watched"

    @handles(Peek)
    def peek(self, _message: Peek, context: Context) -> int:
        context.use_reserve(dispensable=True)
        context.put_row("shelves", b"seen", "")
        return self.sum


@pytest.mark.promise("runtime.commit-failure")
async def test_a_read_whose_own_row_may_be_missing_fails_with_what_it_read(reopen: Open) -> None:
    gate, watched = GatedCommitter(), Address("watched", "w")
    async with reopen(committer=gate, actors=(Counter, Watched)) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, OTHER, Add())  # holds the gate while the next group collects
        await gate.arrived()
        added = await post(nursery, runtime, watched, Add(by=5))
        peeked = await post(nursery, runtime, watched, Peek())
        await wait_all_tasks_blocked()
        gate.let_through()
        await gate.arrived()
        gate.refuse(0)
        for pending in (added, peeked):
            with pytest.raises(StorageFullError):
                await pending.reply()
        alone = await post(nursery, runtime, watched, Peek())
        await gate.arrived()
        gate.refuse(0)
        assert await alone.reply() == 0
        assert runtime.statistics().messages.dispensed_with == 1
        gate.let_all_through()
