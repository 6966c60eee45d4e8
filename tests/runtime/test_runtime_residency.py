"""Actors exist when they are addressed, and leave memory when idle or when it is short."""

from __future__ import annotations

import pytest
import trio
from support.actors import Add, AddSlowly, Counter, Read
from support.asking import Open, post

from greenroom.runtime import Actor, Address, Context, Message, RuntimeOptions, handles
from greenroom.testing import GatedCommitter

pytestmark = pytest.mark.promise("runtime.one-owner")


def counter(number: int) -> Address:
    return Address("counter", str(number))


async def test_an_actor_exists_as_soon_as_it_is_addressed_and_is_activated_once(reopen: Open) -> None:
    async with reopen() as runtime:
        assert runtime.statistics().actors.resident == 0
        assert await runtime.ask(counter(1), Read()) == 0
        for _ in range(3):
            await runtime.ask(counter(1), Add())
        assert Counter.alive == ["1"]
        assert runtime.statistics().store.rows == 1


async def test_many_stored_actors_cost_disk_not_memory(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(durability="process", resident_limit=10)) as runtime:
        for number in range(200):
            assert await runtime.ask(counter(number), Add(by=number)) == number
            assert runtime.statistics().actors.resident <= 10
        actors = runtime.statistics().actors
        assert actors.passivations == 190
        for number in range(200):
            assert await runtime.ask(counter(number), Read()) == number
        assert runtime.statistics().actors.activations == 400
        assert runtime.statistics().store.rows == 200


async def test_the_least_recently_used_leave_first(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(resident_limit=3)) as runtime:
        for number in (1, 2, 3, 1, 4):
            await runtime.ask(counter(number), Read())
        Counter.alive.clear()
        for number in (3, 1, 4):
            await runtime.ask(counter(number), Read())
        assert Counter.alive == []
        await runtime.ask(counter(2), Read())
        assert Counter.alive == ["2"]


async def test_idle_actors_leave(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(idle_seconds=300)) as runtime:
        for number in range(5):
            await runtime.ask(counter(number), Add(by=number))
        for _ in range(10):
            await trio.sleep(60)
            await runtime.ask(counter(4), Read())
        actors = runtime.statistics().actors
        assert (actors.resident, actors.passivations) == (1, 4)
        await trio.sleep(400)
        assert runtime.statistics().actors.resident == 0
        assert runtime.statistics().actors.resident_bytes == 0
        assert await runtime.ask(counter(3), Read()) == 3


class Grow(Message[int], frozen=True):
    to: int


class Balloon(Actor):
    """Says it is as large as it was told to be."""

    kind = "balloon"
    told = 0

    @handles(Grow)
    def grow(self, message: Grow, _context: Context) -> int:
        self.told = message.to
        return message.to

    def resident_bytes(self) -> int:
        return self.told


async def test_actors_leave_when_their_bytes_are_too_many(reopen: Open) -> None:
    options = RuntimeOptions(resident_bytes=1_000)
    async with reopen(actors=[Balloon], options=options) as runtime:
        for number in range(10):
            await runtime.ask(Address("balloon", str(number)), Grow(to=300))
            assert runtime.statistics().actors.resident_bytes <= 1_000
        assert runtime.statistics().actors.resident == 3
        await runtime.ask(Address("balloon", "9"), Grow(to=5_000))
        await runtime.ask(Address("balloon", "new"), Grow(to=100))
        actors = runtime.statistics().actors
        assert (actors.resident, actors.resident_bytes) == (1, 100)


async def test_one_as_large_as_a_corpus_of_100_000_passages_stays_when_others_come(reopen: Open) -> None:
    async with reopen(actors=[Balloon]) as runtime:
        await runtime.ask(Address("balloon", "corpus"), Grow(to=125_000_000))
        for number in range(10):
            await runtime.ask(Address("balloon", str(number)), Grow(to=1_000_000))
        assert runtime.statistics().actors.passivations == 0


async def test_actors_that_grow_while_they_are_in_memory_make_others_leave(reopen: Open) -> None:
    async with reopen(actors=[Balloon], options=RuntimeOptions(resident_bytes=1_000)) as runtime:
        for size in (1, 900):
            for number in range(20):
                await runtime.ask(Address("balloon", str(number)), Grow(to=size))
        assert runtime.statistics().actors.resident_bytes <= 1_000
        await runtime.ask(Address("balloon", "19"), Grow(to=5_000))
        actors = runtime.statistics().actors
        assert (actors.resident, actors.resident_bytes) == (1, 5_000), "who is at work stays"


async def test_busy_actors_stay_though_memory_is_short(reopen: Open) -> None:
    gate = GatedCommitter()
    options = RuntimeOptions(resident_limit=1)
    async with reopen(committer=gate, options=options) as runtime, trio.open_nursery() as nursery:
        in_flight = await post(nursery, runtime, counter(1), Add(by=1))
        await gate.arrived()
        slow = await post(nursery, runtime, counter(2), AddSlowly(steps=1_000))
        collected = await post(nursery, runtime, counter(3), Add(by=3))
        await trio.lowlevel.checkpoint()
        for number in range(10, 20):
            assert await runtime.ask(counter(number), Read()) == 0
        assert 3 <= runtime.statistics().actors.resident <= 5
        assert {"1", "2", "3"} <= set(Counter.alive)
        assert all(Counter.alive.count(key) == 1 for key in ("1", "2", "3"))
        gate.let_all_through()
        assert [await pending.reply() for pending in (in_flight, slow, collected)] == [1, 1_000, 3]
        for number in (1, 2, 3):
            assert await runtime.ask(counter(number), Read()) in (1, 1_000, 3)


async def test_a_flood_of_addresses_is_bounded(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(durability="process", resident_limit=50)) as runtime:

        async def visit(number: int) -> None:
            assert await runtime.ask(counter(number % 300), Add()) >= 1

        async with trio.open_nursery() as nursery:
            for number in range(900):
                nursery.start_soon(visit, number)
        await runtime.ask(counter(1_000), Read())
        assert runtime.statistics().actors.resident <= 900
        for number in range(1_001, 1_010):
            await runtime.ask(counter(number), Read())
        assert runtime.statistics().actors.resident <= 50
        assert [await runtime.ask(counter(number), Read()) for number in range(300)] == [3] * 300
