"""Deadlines, givers-up, full mailboxes: what was not begun is not begun."""

from __future__ import annotations

import pytest
import trio
from support.actors import Add, AddSlowly, Append, Entries, FailAfter, Forward, Read
from support.asking import Open, post
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    ActorFailedError,
    Address,
    DeadlineExceededError,
    InvalidAddressError,
    OverloadedError,
    Runtime,
    RuntimeOptions,
    UnknownKindError,
)
from greenroom.testing import GatedCommitter

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
LOG = Address("log", "log")


async def pause(runtime: Runtime) -> None:
    """Make the actor wait before its next message, by failing it twice."""
    for _ in range(2):
        with pytest.raises(ActorFailedError):
            await runtime.ask(VISITS, FailAfter())


@pytest.mark.promise("runtime.deadlines")
async def test_a_message_whose_asker_gave_up_before_it_was_begun_leaves_the_mailbox(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        await pause(runtime)
        add = await post(nursery, runtime, VISITS, Add())
        assert runtime.statistics().messages.waiting == 1
        add.scope.cancel()
        await add.over.wait()
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.abandoned) == (0, 1)
        assert await runtime.ask(VISITS, Read()) == 0


@pytest.mark.promise("runtime.deadlines")
async def test_a_deadline_ends_the_wait_of_a_message_that_is_not_begun(reopen: Open) -> None:
    async with reopen() as runtime:
        await pause(runtime)
        with pytest.raises(trio.TooSlowError), trio.fail_after(0.001):
            await runtime.ask(VISITS, Add())
        assert runtime.statistics().messages.waiting == 0
        assert await runtime.ask(VISITS, Read()) == 0


@pytest.mark.promise("runtime.deadlines")
async def test_work_begun_commits_whole_though_its_asker_is_gone(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        add = await post(nursery, runtime, VISITS, Add(by=4))
        await gate.arrived()
        add.scope.cancel()
        await add.over.wait()
        assert not add.is_answered
        gate.let_all_through()
        assert await runtime.ask(VISITS, Read()) == 4


@pytest.mark.promise("runtime.deadlines", "runtime.all-or-nothing")
async def test_long_work_stops_when_its_asker_gives_up_and_leaves_nothing(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        slow = await post(nursery, runtime, VISITS, AddSlowly(steps=1_000_000_000))
        read = await post(nursery, runtime, VISITS, Read())
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        slow.scope.cancel()
        assert await read.reply() == 0, "what the stopped handler left in memory is gone, too"


@pytest.mark.promise("runtime.deadlines")
async def test_a_deadline_that_passed_before_the_turn_is_an_error(reopen: Open) -> None:
    async with reopen() as runtime:
        await pause(runtime)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 0.001) as scope:
            await runtime.ask(VISITS, Add())
        assert scope.cancelled_caught
        with trio.CancelScope(deadline=trio.current_time()) as scope:
            await runtime.ask(VISITS, Add())
        assert scope.cancelled_caught
        assert await runtime.ask(VISITS, Read()) == 0
        assert issubclass(DeadlineExceededError, Exception)


@pytest.mark.promise("runtime.bounded")
async def test_a_full_mailbox_refuses_and_says_when_to_come_again(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(mailbox_limit=10)) as runtime, trio.open_nursery() as nursery:
        await pause(runtime)
        waiting = [await post(nursery, runtime, VISITS, Add()) for _ in range(10)]
        for _ in range(3):
            with pytest.raises(OverloadedError, match="counter/visits is full") as error:
                await runtime.ask(VISITS, Add())
            assert error.value.retry_after_ms > 0
        with pytest.raises(OverloadedError):
            runtime.tell(VISITS, Add())
        assert await runtime.ask(OTHER, Add()) == 1, "another actor has room"
        waiting[4].scope.cancel()
        await waiting[4].over.wait()
        runtime.tell(VISITS, Add())
        assert runtime.statistics().messages.overloaded == 4
        await waiting[9].over.wait()
        assert await runtime.ask(VISITS, Read()) == 10


@pytest.mark.promise("runtime.bounded", "runtime.tells", "runtime.in-order")
async def test_tells_that_a_full_mailbox_cannot_take_come_later_in_their_order(reopen: Open) -> None:
    entries = [str(number) for number in range(100)]
    async with reopen(options=RuntimeOptions(mailbox_limit=8, quantum=4)) as runtime:
        for begin in range(0, 100, 50):
            await runtime.ask(Address("relay", "r"), Forward(entries=entries[begin : begin + 50], to=["log"]))
        await trio.sleep(60)
        assert await runtime.ask(LOG, Entries()) == entries


@pytest.mark.promise("runtime.bounded")
async def test_a_message_that_nobody_handles_is_refused_at_the_door(reopen: Open) -> None:
    async with reopen() as runtime:
        for address in (
            Address("nobody", "x"),
            Address("log", "x"),
            Address("counter", ""),
            Address("counter", "a\0b"),
            Address("counter", "x" * 201),
            Address("counter", "\ud800"),
            Address("", ""),
        ):
            with pytest.raises((InvalidAddressError, UnknownKindError)):
                await runtime.ask(address, Add())
            with pytest.raises((InvalidAddressError, UnknownKindError)):
                runtime.tell(address, Add())
        assert runtime.statistics().messages.waiting == 0
        assert await runtime.ask(Address("counter", "é" * 100), Add()) == 1


@pytest.mark.promise("runtime.bounded")
async def test_a_callback_that_fails_leaves_the_runtime_unharmed(reopen: Open) -> None:
    def fail() -> None:
        raise ValueError("callback")

    async with reopen() as runtime:
        with pytest.raises(ValueError, match="callback"):
            await runtime.ask(VISITS, Add(), on_accepted=fail)
        await wait_all_tasks_blocked()
        assert await runtime.ask(VISITS, Add()) == 2


@pytest.mark.slow
@pytest.mark.promise("runtime.in-order")
async def test_messages_of_one_sender_arrive_in_order_under_load(reopen: Open) -> None:
    gate = GatedCommitter()
    senders = [f"sender {number}" for number in range(8)]

    async with reopen(committer=gate, options=RuntimeOptions(quantum=5)) as runtime:

        async def send(sender: str) -> None:
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    await post(nursery, runtime, LOG, Append(entry=f"{sender} {number:02}"))

        async def commit_now_and_then() -> None:
            while True:
                await gate.arrived()
                await trio.sleep(1)
                gate.let_through()

        async with trio.open_nursery() as committing:
            committing.start_soon(commit_now_and_then)
            async with trio.open_nursery() as sending:
                for sender in senders:
                    sending.start_soon(send, sender)
            committing.cancel_scope.cancel()
        entries = await runtime.ask(LOG, Entries())
    for sender in senders:
        assert [entry for entry in entries if entry.startswith(sender)] == [
            f"{sender} {number:02}" for number in range(50)
        ]
