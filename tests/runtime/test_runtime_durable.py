"""A reply means durable; effects are all or nothing; writers share commits."""

from __future__ import annotations

import pytest
import trio
from support.actors import Add, Counter, FailAfter, Find, Place, Read, RefuseAdd, Rows
from support.asking import Open, post
from support.committers import crash_at, crashing
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import ActorFailedError, Address, Refusal
from greenroom.testing import GatedCommitter

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
SHELF = Address("shelf", "one")


@pytest.mark.promise("runtime.reply-means-durable")
async def test_a_reply_waits_for_the_commit_of_its_effects(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        add = await post(nursery, runtime, VISITS, Add(by=3))
        await gate.arrived()
        await wait_all_tasks_blocked()
        assert not add.is_answered
        gate.let_all_through()
        assert await add.reply() == 3


@pytest.mark.promise("runtime.reply-means-durable")
async def test_a_reader_waits_for_writes_that_it_saw_and_that_are_still_in_flight(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add(by=1))
        await gate.arrived()
        read = await post(nursery, runtime, VISITS, Read())
        later = await post(nursery, runtime, VISITS, Add(by=10))
        last = await post(nursery, runtime, VISITS, Read())
        await wait_all_tasks_blocked()
        assert not read.is_answered
        gate.let_through()
        assert await read.reply() == 1
        await gate.arrived()
        newest = await post(nursery, runtime, VISITS, Read())  # an earlier write is on disk, the last is not
        await wait_all_tasks_blocked()
        assert not any(each.is_answered for each in (later, last, newest))
        gate.let_all_through()
        assert [await each.reply() for each in (later, last, newest)] == [11, 11, 11]


@pytest.mark.promise("runtime.reply-means-durable")
async def test_a_reader_of_an_actor_without_writes_in_flight_waits_for_nobody(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add())
        await gate.arrived()
        assert await runtime.ask(OTHER, Read()) == 0
        gate.let_all_through()


@pytest.mark.promise("runtime.reply-means-durable")
async def test_a_refusal_that_may_tell_of_writes_in_flight_waits_for_them(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add())
        await gate.arrived()
        refused = await post(nursery, runtime, VISITS, RefuseAdd())
        await wait_all_tasks_blocked()
        assert refused.error is None
        gate.let_all_through()
        with pytest.raises(Refusal, match="takes no more"):
            await refused.reply()


@pytest.mark.promise("runtime.reply-means-durable", "runtime.shared-indexes")
async def test_a_query_that_saw_a_group_waits_until_its_commit_is_reported(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        assert await runtime.query(Rows()) == []
        await post(nursery, runtime, SHELF, Place(key=b"k", value="v"))
        await gate.arrived()
        works = gate.reach_the_disk()
        rows: list[object] = []

        async def ask() -> None:
            rows.extend(await runtime.query(Rows()))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert rows == []
        gate.open = True
        gate.report(works)
        await wait_all_tasks_blocked()
        assert rows == [(b"k", "one", "v")]


@pytest.mark.promise("runtime.reply-means-durable", "store.kill")
async def test_what_was_answered_is_there_after_the_runtime_is_opened_again(reopen: Open) -> None:
    async with reopen() as runtime:
        for by in range(5):
            await runtime.ask(VISITS, Add(by=by))
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == 10


@pytest.mark.promise("runtime.group-commit")
async def test_writers_that_come_while_a_commit_runs_share_the_next_one(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add())
        await gate.arrived()
        adds = [await post(nursery, runtime, Address("counter", str(key % 20)), Add()) for key in range(40)]
        await wait_all_tasks_blocked()
        assert runtime.statistics().commits.collected == 40
        gate.let_all_through()
        assert [await add.reply() for add in adds] == [1] * 20 + [2] * 20
        assert gate.group_sizes == [1, 40]


@pytest.mark.promise("runtime.all-or-nothing", "runtime.failure-contained")
async def test_nothing_that_a_failed_handler_staged_stays(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(VISITS, Add(by=5))
        with pytest.raises(ActorFailedError, match="can be repeated") as failure:
            await runtime.ask(VISITS, FailAfter(by=100))
        assert isinstance(failure.value.__cause__, RuntimeError)
        assert await runtime.ask(VISITS, Read()) == 5
        assert runtime.statistics().messages.failed == 1
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == 5


@pytest.mark.promise("runtime.all-or-nothing", "runtime.failure-contained")
async def test_a_failed_actor_is_rebuilt_upon_what_is_still_in_flight(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add(by=5))
        await gate.arrived()
        with pytest.raises(ActorFailedError):
            await runtime.ask(VISITS, FailAfter(by=100))
        read = await post(nursery, runtime, VISITS, Read())
        gate.let_all_through()
        assert await read.reply() == 5
        assert Counter.alive == ["visits", "visits"]


@pytest.mark.promise("runtime.all-or-nothing")
async def test_a_refusal_after_staging_leaves_nothing_on_disk_or_in_memory(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(VISITS, Add(by=5))
        with pytest.raises(Refusal) as refusal:
            await runtime.ask(VISITS, RefuseAdd(by=100))
        assert (refusal.value.code, refusal.value.details) == ("NO_MORE", {"limit": 7})
        assert await runtime.ask(VISITS, Read()) == 5
        with pytest.raises(Refusal):
            await runtime.ask(VISITS, RefuseAdd())
        assert Counter.alive == ["visits"] * 2, "a refusal before any change costs no rebuild"
        assert runtime.statistics().messages.refused == 2


@pytest.mark.promise("runtime.all-or-nothing", "runtime.shared-indexes")
@pytest.mark.parametrize("after", [False, True])
async def test_records_and_shared_rows_live_and_die_together(reopen: Open, after: bool) -> None:  # noqa: FBT001  pytest's parameter
    with crashing():
        async with reopen(committer=crash_at(1, after=after)) as runtime:
            await runtime.ask(SHELF, Place(key=b"k", value="v"))
    async with reopen() as runtime:
        found = await runtime.ask(SHELF, Find(key=b"k"))
        assert found == ("v" if after else None)
        assert await runtime.query(Rows()) == ([(b"k", "one", "v")] if after else [])
