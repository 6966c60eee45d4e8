"""Stored messages of actors that fail: they wait while the actor is set aside, and end as dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.actors import (
    Add,
    Alarm,
    Append,
    Counter,
    Entries,
    FailAfter,
    Forward,
    Log,
    Read,
    Rings,
    SetAlarm,
)
from support.asking import Open, post
from support.committers import crash_at, crashing
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import ActorFailedError, ActorQuarantinedError, Address, Group, Runtime, RuntimeOptions
from greenroom.testing import START, GatedCommitter

if TYPE_CHECKING:
    from greenroom.testing import VirtualClock

VISITS = Address("counter", "visits")
LOG = Address("log", "log")


@pytest.mark.promise("runtime.supervision", "runtime.tells", "runtime.timers")
async def test_tells_and_timers_of_an_actor_set_aside_wait_in_the_store(
    reopen: Open, clock: VirtualClock
) -> None:
    groups = [Group(kinds=("log",), intensity=1), Group(kinds=("alarm",), intensity=1)]
    alarm = Address("alarm", "a")
    Log.trouble["bad"] = 1
    Alarm.trouble["bad"] = 1
    async with reopen(groups=groups) as runtime:
        relay = Address("relay", "r")
        await runtime.ask(relay, Forward(entries=["bad"], to=["log"], risky=True))
        await runtime.ask(alarm, SetAlarm(name="bad", due=clock.now()))
        await trio.sleep(1)
        assert sorted(runtime.statistics().actors.set_aside) == ["alarm/a", "log/log"]
        await runtime.ask(relay, Forward(entries=["second", "third"], to=["log"]))
        await trio.sleep(100)
        assert runtime.statistics().messages.dead_letters == 0
        assert runtime.readmit(LOG)
        assert runtime.readmit(alarm)
        await trio.sleep(1)
        assert await runtime.ask(LOG, Entries()) == ["bad", "second", "third"]
        assert [note for note, _ in await runtime.ask(alarm, Rings())] == ["bad"]
        assert runtime.statistics().messages.timers_fired == 2


@pytest.mark.promise("runtime.supervision", "runtime.tells")
async def test_a_set_aside_actor_starts_afresh_with_the_next_runtime(reopen: Open) -> None:
    Log.trouble["bad"] = 1
    groups = [Group(kinds=("log",), intensity=1)]
    async with reopen(groups=groups) as runtime:
        await runtime.ask(Address("relay", "r"), Forward(entries=["bad", "good"], to=["log"], risky=True))
        await trio.sleep(1)
        with pytest.raises(ActorQuarantinedError):
            await runtime.ask(LOG, Entries())
    async with reopen(groups=groups) as runtime:
        assert await runtime.ask(LOG, Entries()) == ["bad", "good"]


@pytest.mark.promise("runtime.tells", "runtime.bounded")
async def test_a_tell_that_keeps_failing_is_tried_thrice_and_becomes_a_dead_letter(reopen: Open) -> None:
    Log.trouble["bad"] = 100
    async with reopen() as runtime:
        await runtime.ask(
            Address("relay", "r"), Forward(entries=["one", "bad", "two"], to=["log"], risky=True)
        )
        await trio.sleep(100)
        assert Log.trouble["bad"] == 97
        assert await runtime.ask(LOG, Entries()) == ["one", "two"]
        messages = runtime.statistics().messages
        assert (messages.dead_letters, messages.failed, messages.waiting) == (1, 3, 0)
    async with reopen() as runtime:
        assert await runtime.ask(LOG, Entries()) == ["one", "two"]
        assert Log.trouble["bad"] == 97


@pytest.mark.promise("runtime.tells", "runtime.bounded")
async def test_a_tell_that_is_refused_becomes_a_dead_letter_at_once(reopen: Open) -> None:
    Log.trouble["bad"] = -1
    async with reopen() as runtime:
        await runtime.ask(
            Address("relay", "r"), Forward(entries=["one", "bad", "two"], to=["log"], risky=True)
        )
        await trio.sleep(1)
        assert await runtime.ask(LOG, Entries()) == ["one", "two"]
        assert runtime.statistics().messages.dead_letters == 1


@pytest.mark.promise("runtime.bounded")
async def test_a_tell_of_the_program_that_fails_is_counted(reopen: Open) -> None:
    async with reopen() as runtime:
        runtime.tell(VISITS, FailAfter())
        runtime.tell(VISITS, Add())
        assert await runtime.ask(VISITS, Read()) == 1
        assert runtime.statistics().messages.dead_letters == 1


@pytest.mark.promise("runtime.supervision", "runtime.tells")
async def test_a_dead_letter_on_its_way_to_disk_is_not_handed_over_again(reopen: Open) -> None:
    Log.trouble["bad"] = 100
    gate = GatedCommitter()
    groups = [Group(kinds=("alarm",), intensity=1), Group(kinds=("log",), intensity=100)]
    async with reopen(committer=gate, groups=groups) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, Address("relay", "r"), Forward(entries=["bad"], to=["log"], risky=True))
        await gate.arrived()
        gate.let_through()
        await gate.arrived()  # three failures later the burial is at the gate
        assert Log.trouble["bad"] == 97
        await fail_alarm(runtime)
        assert runtime.readmit(Address("alarm", "a")), "looks through the whole store for messages"
        await wait_all_tasks_blocked()
        gate.let_all_through()
        assert await runtime.ask(LOG, Entries()) == []
        assert Log.trouble["bad"] == 97
        assert runtime.statistics().messages.dead_letters == 1


async def fail_alarm(runtime: Runtime) -> None:
    with pytest.raises(ActorFailedError):
        await runtime.ask(Address("alarm", "a"), SetAlarm(name="x" * 300, due=START))


@pytest.mark.promise("runtime.in-order")
async def test_a_log_entry_of_the_program_and_of_a_handler_both_arrive(reopen: Open) -> None:
    async with reopen() as runtime:
        runtime.tell(LOG, Append(entry="program"))
        await runtime.ask(Address("relay", "r"), Forward(entries=["handler"], to=["log"]))
        assert await runtime.ask(LOG, Entries()) == ["program", "handler"]


@pytest.mark.promise("runtime.supervision", "runtime.tells", "runtime.in-order")
async def test_an_actor_readmitted_while_stored_tells_are_looked_through_gets_its_own_in_order(
    reopen: Open,
) -> None:
    groups = [Group(kinds=("log",), intensity=1)]
    entries = [str(number) for number in range(300)]
    Log.trouble.update({"bad": 1, "worse": 1})
    async with reopen(groups=groups) as runtime:
        relay = Address("relay", "r")
        await runtime.ask(relay, Forward(entries=["bad"], to=["log"], risky=True))
        await runtime.ask(relay, Forward(entries=["worse"], to=["other"], risky=True))
        await runtime.ask(relay, Forward(entries=entries, to=["log"]))
        await wait_all_tasks_blocked()
        assert len(runtime.statistics().actors.set_aside) == 2
        runtime.readmit(Address("log", "other"))
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        runtime.readmit(LOG)
        await trio.sleep(10)
        assert await runtime.ask(LOG, Entries()) == ["bad", *entries]


@pytest.mark.promise("runtime.bounded", "runtime.timers")
async def test_a_mailbox_that_was_full_once_costs_no_looks_later(reopen: Open) -> None:
    alarm = Address("alarm", "a")
    async with reopen(options=RuntimeOptions(durability="process", mailbox_limit=5)) as runtime:
        for number in range(20):
            await runtime.ask(alarm, SetAlarm(name=str(number), due=START + 1_000_000))
        await trio.sleep(60)
        assert len(await runtime.ask(alarm, Rings())) == 20
        overloaded = runtime.statistics().messages.overloaded
        await trio.sleep(600)
        assert runtime.statistics().messages.overloaded == overloaded


@pytest.mark.promise("runtime.tells", "runtime.bounded")
async def test_a_tell_to_a_kind_that_is_gone_is_buried_once(reopen: Open) -> None:
    with crashing():
        async with reopen(committer=crash_at(1, after=True)) as runtime:
            await runtime.ask(Address("relay", "r"), Forward(entries=["a", "b"], to=["log"]))
    gate = GatedCommitter()
    groups = [Group(kinds=("counter",), intensity=1)]
    async with reopen(actors=[Counter], groups=groups, committer=gate) as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(VISITS, FailAfter())
        await gate.arrived()
        runtime.readmit(VISITS)  # has the stored messages looked through again
        await wait_all_tasks_blocked()
        gate.let_all_through()
        assert await runtime.ask(VISITS, Add()) == 1
        assert runtime.statistics().messages.dead_letters == 2
