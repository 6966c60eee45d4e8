"""Exactly once, when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.actors import Add, AddSlowly, FailAfter, Read, RefuseAdd, Whoami
from support.asking import Open, post
from support.committers import crash_at, crashing
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    Idempotency,
    IdempotencyConflictError,
    InlineCommitter,
    Message,
    Refusal,
    RuntimeOptions,
    handles,
)
from greenroom.testing import DAY, HOUR, GatedCommitter

if TYPE_CHECKING:
    from greenroom.testing import VirtualClock

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
ONCE = Idempotency("me add", "key", b"args")
pytestmark = pytest.mark.promise("runtime.exactly-once")


async def test_a_repeat_gets_the_first_answer_and_has_no_effect(reopen: Open) -> None:
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 2
        assert await runtime.ask(VISITS, Add(by=10)) == 12
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 2
        assert await runtime.ask(VISITS, Read()) == 12
        assert runtime.statistics().messages.repeated == 1


async def test_without_a_key_a_repeat_is_another_request(reopen: Open) -> None:
    async with reopen() as runtime:
        assert [await runtime.ask(VISITS, Add(by=2)) for _ in range(2)] == [2, 4]


async def test_another_key_or_scope_is_another_request(reopen: Open) -> None:
    async with reopen() as runtime:
        others = [
            ONCE,
            ONCE._replace(key="kez"),
            ONCE._replace(scope="you add"),
            ONCE._replace(scope="me ad", key="dkey"),
        ]
        assert [await runtime.ask(VISITS, Add(), idempotency=other) for other in others] == [1, 2, 3, 4]


async def test_concurrent_repeats_wait_for_the_first_and_get_its_answer(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        asks = [await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE) for _ in range(4)]
        await gate.arrived()
        asks.append(await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE))
        await wait_all_tasks_blocked()
        assert not any(ask.is_answered for ask in asks)
        gate.let_all_through()
        assert [await ask.reply() for ask in asks] == [2] * 5
        assert await runtime.ask(VISITS, Read()) == 2


async def test_a_repeat_waits_for_a_first_request_whose_asker_gave_up(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        first = await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        await gate.arrived()
        first.scope.cancel()
        await first.over.wait()
        repeat = await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        gone = await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        await wait_all_tasks_blocked()
        gone.scope.cancel()
        gate.let_all_through()
        assert await repeat.reply() == 2
        assert runtime.statistics().messages.waiting == 0


async def test_long_work_with_a_key_goes_on_when_its_asker_gives_up(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        first = await post(nursery, runtime, VISITS, AddSlowly(steps=1_000), idempotency=ONCE)
        await trio.lowlevel.checkpoint()
        first.scope.cancel()
        assert await runtime.ask(VISITS, AddSlowly(steps=1_000), idempotency=ONCE) == 1_000


@pytest.mark.parametrize("after", [False, True])
async def test_a_repeat_after_a_crash_has_an_effect_once(reopen: Open, after: bool) -> None:  # noqa: FBT001  pytest's parameter
    with crashing():
        async with reopen(committer=crash_at(2, after=after)) as runtime:
            await runtime.ask(VISITS, Add(by=10))
            await runtime.ask(VISITS, Add(by=2), idempotency=ONCE)
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Read()) == (12 if after else 10)
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 12
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 12
        assert await runtime.ask(VISITS, Read()) == 12


async def test_the_same_key_with_other_arguments_is_a_conflict(reopen: Open) -> None:
    gate = GatedCommitter()
    other = ONCE._replace(fingerprint=b"other args")
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        first = await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        await gate.arrived()
        with pytest.raises(IdempotencyConflictError, match="'key'"):
            await runtime.ask(VISITS, Add(by=3), idempotency=other)
        gate.let_all_through()
        assert await first.reply() == 2
        with pytest.raises(IdempotencyConflictError):
            await runtime.ask(VISITS, Add(by=3), idempotency=other)
    async with reopen() as runtime:
        with pytest.raises(IdempotencyConflictError):
            await runtime.ask(OTHER, Add(by=3), idempotency=other)
        assert await runtime.ask(VISITS, Read()) == 2


async def test_a_refusal_is_an_answer_and_is_kept(reopen: Open) -> None:
    for _ in range(2):
        async with reopen() as runtime:
            for _ in range(2):
                with pytest.raises(Refusal, match="takes no more") as refusal:
                    await runtime.ask(VISITS, RefuseAdd(by=3), idempotency=ONCE)
                assert (refusal.value.code, refusal.value.details) == ("NO_MORE", {"limit": 7})
            assert await runtime.ask(VISITS, Read()) == 0


async def test_a_failure_is_no_answer_and_the_repeat_is_tried(reopen: Open) -> None:
    async with reopen() as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(VISITS, FailAfter(), idempotency=ONCE)
        assert await runtime.ask(VISITS, Add(), idempotency=ONCE) == 1


async def test_a_key_holds_across_actors(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        elsewhere = await post(nursery, runtime, OTHER, Add(by=2), idempotency=ONCE)
        gate.let_all_through()
        assert await elsewhere.reply() == 2
        assert {await runtime.ask(VISITS, Read()), await runtime.ask(OTHER, Read())} == {0, 2}


@pytest.mark.promise("runtime.time-injected")
async def test_an_answer_is_kept_for_a_day_and_no_longer(reopen: Open, clock: VirtualClock) -> None:
    async with reopen() as runtime:
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 2
        await runtime.ask(VISITS, Add(by=10))
        clock.jump(DAY - HOUR)
        await trio.sleep(120)
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 2
        rows = runtime.statistics().store.rows
        clock.jump(HOUR)
        await trio.sleep(120)
        assert runtime.statistics().rows_expired == 1
        assert runtime.statistics().store.rows == rows - 2, "the answer and its time are gone"
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 14
        clock.jump(HOUR)
        assert await runtime.ask(VISITS, Add(by=2), idempotency=ONCE) == 14


@pytest.mark.promise("runtime.time-injected")
async def test_many_answers_expire_in_batches(reopen: Open, clock: VirtualClock) -> None:
    async with reopen() as runtime:
        for number in range(1_203):
            await runtime.ask(VISITS, Add(), idempotency=ONCE._replace(key=str(number)))
        clock.jump(DAY)
        await trio.sleep(120)
        assert runtime.statistics().rows_expired == 1_203
        assert runtime.statistics().store.rows == 1


class Give(Message[list[Any]], frozen=True):
    what: str


class Odd(Actor):
    """Gives what cannot be stored, or cannot be read back."""

    kind = "odd"

    @handles(Give)
    def give(self, message: Give, context: Context) -> Any:
        context.put(b"given", 1)
        if message.what == "refusal":
            raise Refusal("ODD", "odd", thing=object())
        return {"object": [object()], "wrong": "no list", "cycle": CYCLE, "fine": [1]}[message.what]

    @handles(Whoami)
    def whoami(self, _message: Whoami, context: Context) -> str:
        return str(context.get(b"given", int))


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ODD = Address("odd", "odd")


@pytest.mark.promise("runtime.failure-contained")
@pytest.mark.parametrize("what", ["object", "cycle", "refusal"])
async def test_an_answer_that_cannot_be_stored_is_the_actors_failure(reopen: Open, what: str) -> None:
    async with reopen(actors=[Odd]) as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(ODD, Give(what=what), idempotency=ONCE)
        assert await runtime.ask(ODD, Whoami()) == "None"
        assert await runtime.ask(ODD, Give(what="fine"), idempotency=ONCE) == [1]


@pytest.mark.promise("runtime.failure-contained")
async def test_a_stored_answer_that_cannot_be_read_back_hurts_its_asker_only(reopen: Open) -> None:
    async with reopen(actors=[Odd]) as runtime:
        assert await runtime.ask(ODD, Give(what="wrong"), idempotency=ONCE) == "no list"  # type: ignore[comparison-overlap]  # the actor lies
        for _ in range(2):
            with pytest.raises(ActorFailedError):
                await runtime.ask(ODD, Give(what="wrong"), idempotency=ONCE)
        assert await runtime.ask(ODD, Whoami()) == "1"


async def test_a_repeat_during_a_crash_is_answered_after_it(reopen: Open) -> None:
    """The first request's commit and a repeat's arrival at every distance from each other."""
    for commit in range(1, 6):
        once = ONCE._replace(key=f"crash {commit}")
        with crashing():
            async with (
                reopen(committer=crash_at(commit, after=True)) as runtime,
                trio.open_nursery() as nursery,
            ):
                for _ in range(commit - 1):
                    await runtime.ask(OTHER, Add())
                await post(nursery, runtime, VISITS, Add(), idempotency=once)
                await post(nursery, runtime, VISITS, Add(), idempotency=once)
                await trio.sleep_forever()
        async with reopen(committer=InlineCommitter()) as runtime:
            assert await runtime.ask(VISITS, Add(), idempotency=once) == commit


async def test_the_time_that_answers_are_kept_is_an_option(reopen: Open, clock: VirtualClock) -> None:
    async with reopen(options=RuntimeOptions(idempotency_seconds=60)) as runtime:
        await runtime.ask(VISITS, Add(), idempotency=ONCE)
        clock.jump(61_000_000)
        await trio.sleep(120)
        assert await runtime.ask(VISITS, Add(), idempotency=ONCE) == 2
