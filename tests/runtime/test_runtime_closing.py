"""The end of a runtime: drained, cancelled, failed, crashed; and two of them on one folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio
from support.actors import ACTORS, INDEXES, Add, AddSlowly, Append, Entries, FailAfter, Forward, Read, Rows
from support.asking import Open, Pending, post
from support.committers import crash_at, crashing

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    Group,
    Message,
    Runtime,
    RuntimeClosedError,
    RuntimeOptions,
    StoreError,
    StoreOwnedError,
    handles,
    open_runtime,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from pathlib import Path

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
LOG = Address("log", "log")


@pytest.mark.promise("runtime.drain")
async def test_closing_handles_what_was_accepted_and_refuses_what_comes_later(reopen: Open) -> None:
    gate = GatedCommitter()
    asks: list[Pending[int]] = []
    async with trio.open_nursery() as outside:
        async with reopen(committer=gate) as runtime:
            asks += [await post(outside, runtime, VISITS, Add()) for _ in range(3)]
            await gate.arrived()
            asks += [await post(outside, runtime, VISITS, Add()) for _ in range(3)]
            runtime.tell(OTHER, Add())
            outside.start_soon(open_the_gate, gate, runtime)
        assert [await ask.reply() for ask in asks] == [1, 2, 3, 4, 5, 6]
        with pytest.raises(RuntimeClosedError):
            await runtime.ask(VISITS, Add())
        with pytest.raises(RuntimeClosedError):
            runtime.tell(VISITS, Add())
        with pytest.raises(RuntimeClosedError):
            await runtime.query(Rows())
    async with reopen() as runtime:
        assert (await runtime.ask(VISITS, Read()), await runtime.ask(OTHER, Read())) == (6, 1)


async def open_the_gate(gate: GatedCommitter, runtime: Runtime) -> None:
    await trio.sleep(1)
    with pytest.raises(RuntimeClosedError):
        await runtime.ask(VISITS, Add())
    gate.let_all_through()


@pytest.mark.promise("runtime.drain")
async def test_closing_an_idle_runtime_takes_no_time(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(VISITS, Add())
        runtime.tell(Address("relay", "r"), Forward(entries=["x"], to=["log"]))
    assert trio.current_time() < 1
    async with reopen() as runtime:
        assert await runtime.ask(LOG, Entries()) == ["x"], (
            "a tell that came too late waits for the next start"
        )


@pytest.mark.promise("runtime.drain", "runtime.deadlines")
async def test_long_work_that_nobody_waits_for_does_not_hold_the_end_up(reopen: Open) -> None:
    async with trio.open_nursery() as outside:
        async with reopen() as runtime:
            slow = await post(outside, runtime, VISITS, AddSlowly(steps=1_000_000_000))
            behind = await post(outside, runtime, VISITS, Add())
            await trio.lowlevel.checkpoint()
            slow.scope.cancel()
        assert await behind.reply() == 1
        assert trio.current_time() == 0


@pytest.mark.promise("runtime.drain")
async def test_who_is_not_served_within_the_time_limit_hears_so(reopen: Open) -> None:
    group = Group(kinds=("counter",), backoff=100, backoff_limit=100)
    async with trio.open_nursery() as outside:
        async with reopen(groups=[group], options=RuntimeOptions(drain_seconds=3)) as runtime:
            for _ in range(2):
                with pytest.raises(ActorFailedError):
                    await runtime.ask(VISITS, FailAfter())
            waiting = await post(outside, runtime, VISITS, Add())
            closing = trio.current_time()
        assert trio.current_time() == closing + 3
        with pytest.raises(RuntimeClosedError):
            await waiting.reply()
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == 0


@pytest.mark.promise("runtime.drain", "runtime.deadlines")
async def test_a_cancelled_block_ends_at_once_and_whoever_waits_hears_so(reopen: Open) -> None:
    gate = GatedCommitter()
    asks: list[Pending[int]] = []
    async with trio.open_nursery() as outside:
        with trio.move_on_after(1) as scope:
            async with reopen(committer=gate) as runtime:
                asks.append(await post(outside, runtime, VISITS, Add()))
                await gate.arrived()
                asks.append(await post(outside, runtime, VISITS, Add()))
                asks.append(await post(outside, runtime, VISITS, AddSlowly(steps=1_000)))
                await trio.sleep_forever()
        assert scope.cancelled_caught
        for ask in asks:
            with pytest.raises(RuntimeClosedError):
                await ask.reply()
        with pytest.raises(RuntimeClosedError):
            await runtime.ask(VISITS, Read())


@pytest.mark.promise("runtime.drain")
@pytest.mark.parametrize(
    "error", [ValueError("mine"), KeyboardInterrupt(), ExceptionGroup("mine", [KeyError()])]
)
async def test_an_error_of_the_block_comes_out_as_it_is(reopen: Open, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:  # noqa: PT012  the whole life of the runtime is the subject
        async with reopen() as runtime:
            runtime.tell(VISITS, Add())
            raise error
    assert raised.value is error
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == 1, "what was accepted was handled nevertheless"


@pytest.mark.promise("runtime.drain")
async def test_an_error_of_a_cancelled_block_is_not_lost(reopen: Open) -> None:
    with pytest.raises(ValueError, match="on the way out"), trio.move_on_after(1):  # noqa: PT012  as above
        async with reopen() as runtime:
            runtime.tell(VISITS, Add())
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("on the way out")


@pytest.mark.promise("runtime.drain")
async def test_a_block_that_ends_cancelled_ends_cancelled(reopen: Open) -> None:
    gate = GatedCommitter()
    with trio.CancelScope() as scope:
        async with reopen(committer=gate) as runtime:
            runtime.tell(VISITS, Add())
            await gate.arrived()
            scope.cancel()
        pytest.fail("the drain was to be cancelled")
    assert scope.cancelled_caught


@pytest.mark.quick
@pytest.mark.promise("runtime.one-owner", "store.owner")
async def test_two_runtimes_cannot_have_one_folder(reopen: Open, folder: Path) -> None:
    async with reopen() as runtime:
        await runtime.ask(VISITS, Add())
        with pytest.raises(StoreOwnedError) as error:
            async with reopen():
                pytest.fail("not owned")
        assert error.value.pid == os.getpid()
        assert await runtime.ask(VISITS, Add()) == 2
    (folder.parent / "link").symlink_to(folder)
    async with reopen() as runtime:
        with pytest.raises(StoreOwnedError):
            async with open_runtime(folder.parent / "link", actors=ACTORS):
                pytest.fail("not owned")
        assert await runtime.ask(VISITS, Add()) == 3


@pytest.mark.promise("runtime.one-owner")
async def test_two_folders_are_two_worlds(reopen: Open, tmp_path: Path) -> None:
    async with reopen() as one, open_runtime(tmp_path / "two", actors=ACTORS, indexes=INDEXES) as two:
        await one.ask(VISITS, Add())
        assert await two.ask(VISITS, Read()) == 0


@pytest.mark.promise("store.fork")
async def test_a_forked_child_cannot_use_the_runtimes_store(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(VISITS, Add())
        child = os.fork()
        if child == 0:
            try:
                runtime.statistics()
            except StoreError as error:
                os._exit(0 if "fork" in str(error) else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # noqa: ASYNC222  it exits at once
        assert await runtime.ask(VISITS, Add()) == 2


@pytest.mark.promise("runtime.failure-contained", "store.kill")
async def test_a_crash_of_the_runtime_itself_answers_nobody_and_leaves_the_folder_usable(
    reopen: Open,
) -> None:
    asks: list[Pending[int]] = []
    async with trio.open_nursery() as outside:
        with crashing():
            async with reopen(committer=crash_at(1, after=True)) as runtime:
                asks += [await post(outside, runtime, VISITS, Add()) for _ in range(3)]
                await trio.sleep_forever()
        for ask in asks:
            with pytest.raises(RuntimeClosedError):
                await ask.reply()
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) in {1, 2, 3}


class Poison(Message[None], frozen=True):
    pass


class Poisoner(Actor):
    kind = "poisoner"

    @handles(Poison)
    def poison(self, _message: Poison, _context: Context) -> None:
        raise SystemExit(3)


@pytest.mark.promise("runtime.failure-contained")
async def test_an_exit_raised_by_a_handler_ends_the_runtime_and_hangs_nobody(reopen: Open) -> None:
    async with trio.open_nursery() as outside:
        with pytest.raises((SystemExit, BaseExceptionGroup)):  # noqa: PT012  as above
            async with reopen(actors=[Poisoner, *ACTORS]) as runtime:
                poison = await post(outside, runtime, Address("poisoner", "p"), Poison())
                await trio.sleep_forever()
        with pytest.raises(RuntimeClosedError):
            await poison.reply()


@pytest.mark.promise("runtime.drain")
async def test_a_burial_under_way_does_not_delay_the_end(reopen: Open) -> None:
    gate = GatedCommitter()
    async with trio.open_nursery() as outside:
        async with reopen(committer=gate) as runtime:
            outside.start_soon(open_after_a_second, gate)
            runtime.tell(LOG, Append(entry="x"))
            runtime.tell(VISITS, Add())
        assert trio.current_time() == 1


async def open_after_a_second(gate: GatedCommitter) -> None:
    await trio.sleep(1)
    gate.let_all_through()
