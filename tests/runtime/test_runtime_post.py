"""Posted messages: a callback hears once what an ask would have ended with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import outcome
import pytest
import trio
from support.actors import ACTORS, Add, AddSlowly, Append, Entries, FailAfter, Read, RefuseAdd, Whoami
from support.asking import Open, post
from support.committers import crash_at, crashing
from support.postings import Posting, posting
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    DeadlineExceededError,
    Group,
    Idempotency,
    IdempotencyConflictError,
    InvalidAddressError,
    Message,
    OverloadedError,
    Refusal,
    RuntimeClosedError,
    RuntimeOptions,
    StorageFullError,
    StoreFailedError,
    UnknownKindError,
    handles,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from greenroom.runtime import Result, Runtime

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
LOG = Address("log", "log")
DOUBLER = Address("doubler", "d")
TROUBLE = -1
ONCE = Idempotency("me add", "key", b"args")
pytestmark = pytest.mark.promise("runtime.post")


def never(result: Result) -> None:
    pytest.fail(f"nobody waits for {result}")


async def pause(runtime: Runtime, address: Address = VISITS) -> None:
    """Make the actor wait before its next message, by failing it twice."""
    for _ in range(2):
        with pytest.raises(ActorFailedError):
            await runtime.ask(address, FailAfter())


class Double(Message[int], frozen=True):
    """Ask a counter first, and double its answer."""

    of: str = "visits"
    how: Message[int] = Read()

    def precheck(self) -> tuple[Address, Message[int]]:
        return Address("counter", self.of), self.how


class Quadruple(Message[int], frozen=True):
    """Ask a doubler first, which asks a counter first."""

    def precheck(self) -> tuple[Address, Message[int]]:
        return DOUBLER, Double()


class Doubler(Actor):
    kind = "doubler"

    @handles(Double)
    def double(self, _message: Double, context: Context) -> int:
        answer: int = context.precheck_answer
        assert answer != TROUBLE
        return 2 * answer

    @handles(Quadruple)
    def quadruple(self, _message: Quadruple, context: Context) -> int:
        answer: int = context.precheck_answer
        return 2 * answer


async def test_whoever_posts_is_called_once_when_the_reply_is_on_disk_and_not_before(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        add = posting(runtime.post, VISITS, Add(by=5))
        assert add.accepted
        read = posting(runtime.post, VISITS, Read())
        elsewhere = posting(runtime.post, OTHER, Read())
        assert not elsewhere.is_over, "never within the call"
        await gate.arrived()
        await wait_all_tasks_blocked()
        assert (add.is_over, read.is_over, elsewhere.is_over) == (False, False, True)
        gate.let_through()
        assert [await one.reply() for one in (add, read, elsewhere)] == [5, 5, 0]
        assert runtime.statistics().messages.waiting == 0
        add.posted.cancel()
        assert runtime.statistics().messages.abandoned == 0


async def test_principals_and_refusals_and_failures_come_as_with_an_ask(reopen: Open) -> None:
    async with reopen() as runtime:
        assert await posting(runtime.post, VISITS, Whoami(), principal="me").reply() == "me"
        with pytest.raises(Refusal, match="takes no more") as refused:
            await posting(runtime.post, VISITS, RefuseAdd(by=3)).reply()
        assert refused.value.details == {"limit": 7}
        with pytest.raises(ActorFailedError, match="can be repeated"):
            await posting(runtime.post, VISITS, FailAfter()).reply()
        assert await posting(runtime.post, VISITS, AddSlowly(steps=100)).reply() == 100


async def test_what_is_not_accepted_is_said_at_once_and_never_again(reopen: Open) -> None:
    group = Group(kinds=("counter",), intensity=1)
    options = RuntimeOptions(mailbox_limit=2)
    accepted: list[str] = []
    async with reopen(groups=[group], options=options) as runtime:
        for address in (Address("nobody", "x"), Address("log", "x"), Address("counter", "")):
            with pytest.raises((InvalidAddressError, UnknownKindError)):
                runtime.post(address, Add(), never, on_accepted=lambda: accepted.append("unknown"))
        for _ in range(2):
            runtime.post(VISITS, Add(), lambda _: None, on_accepted=lambda: accepted.append("yes"))
        with pytest.raises(OverloadedError):
            runtime.post(VISITS, Add(), never, on_accepted=lambda: accepted.append("full"))
        assert accepted == ["yes", "yes"]
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.waiting == 0
    with pytest.raises(RuntimeClosedError):
        runtime.post(VISITS, Add(), never)


async def test_posts_of_one_sender_take_effect_and_are_answered_in_order(reopen: Open) -> None:
    gate = GatedCommitter()
    heard: list[int] = []
    async with reopen(committer=gate, options=RuntimeOptions(quantum=7)) as runtime:
        for number in range(300):
            note: Callable[[Result], None] = lambda result: heard.append(result.unwrap())  # noqa: E731
            runtime.post(LOG, Append(entry=f"{number:03}"), note)
            if number % 50 == 49:
                await gate.arrived()
                gate.let_through()
        gate.let_all_through()
        await wait_all_tasks_blocked()
        assert heard == list(range(300))
        assert await runtime.ask(LOG, Entries()) == [f"{number:03}" for number in range(300)]


async def test_asks_and_posts_are_one_order(reopen: Open) -> None:
    async with reopen() as runtime, trio.open_nursery() as nursery:
        first = posting(runtime.post, VISITS, Add())
        second = await post(nursery, runtime, VISITS, Add())
        third = posting(runtime.post, VISITS, Add())
        assert (await first.reply(), await second.reply(), await third.reply()) == (1, 2, 3)


async def test_who_runs_what_is_ready_hears_at_once(reopen: Open) -> None:
    async with reopen() as runtime:
        with runtime.hold_dispatch():
            add = posting(runtime.post, VISITS, Add())
            slow = posting(runtime.post, OTHER, AddSlowly(steps=1_000))
            assert not add.is_over
            runtime.run_ready()
            assert add.is_over
            assert not slow.is_over, "one slice is no longer than others"
        assert (await add.reply(), await slow.reply()) == (1, 1_000)
    runtime.run_ready()


async def test_what_is_posted_while_held_has_its_turn_afterwards(reopen: Open) -> None:
    async with reopen() as runtime:
        await wait_all_tasks_blocked()
        with runtime.hold_dispatch():
            add = posting(runtime.post, VISITS, Add())
            with runtime.hold_dispatch():
                read = posting(runtime.post, VISITS, Read())
        assert not add.is_over
        assert (await add.reply(), await read.reply()) == (1, 1)


# -- giving up ---------------------------------------------------------------


async def test_a_deadline_that_passed_before_the_turn_is_an_error(reopen: Open) -> None:
    async with reopen() as runtime:
        await pause(runtime)
        late = posting(runtime.post, VISITS, Add(), deadline=trio.current_time() + 0.001)
        with pytest.raises(DeadlineExceededError, match="nothing was done"):
            await late.reply()
        assert runtime.statistics().messages.expired == 1
        in_time = posting(runtime.post, VISITS, Add(), deadline=trio.current_time() + 1)
        assert await in_time.reply() == 1


async def test_an_abandoned_message_that_is_not_begun_leaves_the_mailbox(reopen: Open) -> None:
    async with reopen() as runtime:
        await pause(runtime)
        abandoned = runtime.post(VISITS, Add(by=10), never)
        assert runtime.statistics().messages.waiting == 1
        abandoned.cancel()
        abandoned.cancel()
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.abandoned) == (0, 1)
        assert await runtime.ask(VISITS, Read()) == 0


async def test_long_work_stops_when_it_is_abandoned_and_leaves_nothing(reopen: Open) -> None:
    async with reopen() as runtime:
        slow = runtime.post(VISITS, AddSlowly(steps=1_000_000_000), never)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        slow.cancel()
        assert await posting(runtime.post, VISITS, Read()).reply() == 0
        assert runtime.statistics().messages.waiting == 0


async def test_what_is_abandoned_while_it_is_committed_takes_effect_and_tells_nobody(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        add = runtime.post(VISITS, Add(by=5), never)
        read = posting(runtime.post, VISITS, Read())
        await gate.arrived()
        add.cancel()
        gate.let_all_through()
        assert await read.reply() == 5
        assert runtime.statistics().messages.waiting == 0


async def test_what_is_over_but_untold_can_still_be_abandoned(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        runtime.post(VISITS, Add(), lambda _: second.cancel())
        second = runtime.post(VISITS, Add(), never)
        third = posting(runtime.post, VISITS, Add())
        await gate.arrived()
        gate.let_all_through()
        assert await third.reply() == 3
        assert runtime.statistics().messages.abandoned == 0, "it was over"


# -- repeats -----------------------------------------------------------------


async def test_a_repeat_is_answered_with_the_first_answer(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        first = posting(runtime.post, VISITS, Add(by=2), idempotency=ONCE)
        repeat = posting(runtime.post, VISITS, Add(by=2), idempotency=ONCE)
        asked = await post(nursery, runtime, VISITS, Add(by=2), idempotency=ONCE)
        gone = runtime.post(VISITS, Add(by=2), never, idempotency=ONCE)
        other = posting(runtime.post, VISITS, Add(by=3), idempotency=ONCE._replace(fingerprint=b"other"))
        await gate.arrived()
        gone.cancel()
        first.posted.cancel()
        await wait_all_tasks_blocked()
        assert not repeat.is_over
        gate.let_all_through()
        assert (await repeat.reply(), await asked.reply()) == (2, 2)
        assert not first.is_over
        assert await posting(runtime.post, VISITS, Add(by=2), idempotency=ONCE).reply() == 2
        with pytest.raises(IdempotencyConflictError):
            await other.reply()
        assert await runtime.ask(VISITS, Read()) == 2


# -- questions ---------------------------------------------------------------


async def test_a_question_is_asked_first_and_its_answer_is_on_disk(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
        runtime.post(VISITS, Add(by=21), lambda _: None)
        await gate.arrived()
        double = posting(runtime.post, DOUBLER, Double())
        quadruple = posting(runtime.post, DOUBLER, Quadruple())
        await wait_all_tasks_blocked()
        assert not double.accepted
        gate.let_all_through()
        assert not double.is_over
        assert (await double.reply(), await quadruple.reply()) == (42, 84)
        assert double.accepted


async def test_a_question_has_the_principal_and_the_deadline_of_what_asks_it(reopen: Open) -> None:
    async with reopen(actors=[*ACTORS, Doubler]) as runtime:
        named = posting(runtime.post, DOUBLER, Double(how=Whoami()), principal="me")  # type: ignore[arg-type]
        assert await named.reply() == "meme"
        await pause(runtime)
        late = posting(runtime.post, DOUBLER, Double(), deadline=trio.current_time() + 0.001)
        with pytest.raises(DeadlineExceededError):
            await late.reply()
        assert not late.accepted


async def test_what_a_question_ends_with_instead_of_an_answer_is_the_end(reopen: Open) -> None:
    async with reopen(actors=[*ACTORS, Doubler]) as runtime:
        for how, error in ((RefuseAdd(), Refusal), (FailAfter(), ActorFailedError)):
            asked = posting(runtime.post, DOUBLER, Double(how=how))
            with pytest.raises(error):
                await asked.reply()
            assert not asked.accepted
        with pytest.raises(InvalidAddressError):
            runtime.post(DOUBLER, Double(of=""), never)
        lost = posting(runtime.post, Address("counter", "c"), Double())
        with pytest.raises(UnknownKindError, match="handles Double"):
            await lost.reply()
        assert not lost.accepted


async def test_a_message_that_is_not_accepted_after_its_question_ends_with_that(reopen: Open) -> None:
    group = Group(kinds=("doubler",), backoff=100, backoff_limit=100)
    settings = {"actors": [*ACTORS, Doubler], "groups": [group], "options": RuntimeOptions(mailbox_limit=1)}
    async with reopen(**settings) as runtime:
        for answer in (TROUBLE, -TROUBLE):
            with pytest.raises(ActorFailedError):
                await runtime.ask(DOUBLER, Double(of=str(answer), how=Add(by=TROUBLE)))
        waits = posting(runtime.post, DOUBLER, Double())
        await wait_all_tasks_blocked()
        assert waits.accepted
        refused = posting(runtime.post, DOUBLER, Double())
        with pytest.raises(OverloadedError):
            await refused.reply()
        waits.posted.cancel()
        assert runtime.statistics().messages.waiting == 0


async def test_an_abandoned_question_ends_everything(reopen: Open) -> None:
    gate = GatedCommitter()
    accepted: list[None] = []
    options: dict[str, Any] = {"on_accepted": lambda: accepted.append(None)}
    async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
        await pause(runtime)
        not_begun = runtime.post(DOUBLER, Double(), never, **options)
        not_begun.cancel()
        assert runtime.statistics().messages.waiting == 0
        committing = runtime.post(DOUBLER, Double(how=Add(by=5)), never, **options)
        await gate.arrived()
        committing.cancel()
        gate.let_all_through()
        running = runtime.post(DOUBLER, Double(how=AddSlowly(steps=1_000_000_000)), never, **options)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        running.cancel()
        assert await runtime.ask(VISITS, Read()) == 5
        answered = runtime.post(DOUBLER, Double(), never, **options)
        runtime.post(VISITS, Read(), lambda _: answered.cancel())
        await wait_all_tasks_blocked()
        assert len(accepted) == 1, "the last one had its answer, and was given up in its own mailbox"
        assert runtime.statistics().messages.waiting == 0


# -- callbacks ---------------------------------------------------------------


async def test_a_callback_that_fails_hurts_nobody(reopen: Open, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Result) -> None:
        raise ValueError("callback")

    gate = GatedCommitter()
    async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
        with caplog.at_level(logging.ERROR):
            runtime.post(VISITS, Add(), fail)
            after = posting(runtime.post, VISITS, Add())
            runtime.post(OTHER, Read(), fail)
            runtime.post(DOUBLER, Double(how=FailAfter()), fail)
            await gate.arrived()
            gate.let_all_through()
            assert await after.reply() == 2
            await wait_all_tasks_blocked()
        assert [record.message for record in caplog.records].count(
            "a callback failed; its message has ended anyway"
        ) == 3
        assert await runtime.ask(VISITS, Add()) == 3
        assert runtime.statistics().messages.waiting == 0


async def test_a_failing_on_accepted_comes_out_of_post_and_the_message_is_handled(reopen: Open) -> None:
    def fail() -> None:
        raise ValueError("accepted")

    async with reopen(actors=[*ACTORS, Doubler]) as runtime:
        with pytest.raises(ValueError, match="accepted"):
            runtime.post(VISITS, Add(), never, on_accepted=fail)
        asked: list[Result] = []
        runtime.post(DOUBLER, Double(), asked.append, on_accepted=fail)
        await wait_all_tasks_blocked()
        assert isinstance(asked[0], outcome.Error)
        assert isinstance(asked[0].error, ValueError)
        assert await runtime.ask(VISITS, Read()) == 1


async def test_callbacks_may_post_to_anyone_though_memory_holds_one_actor(reopen: Open) -> None:
    """A callback within a turn would let the actor whose turn it is be passivated."""
    steps: list[int] = []
    async with reopen(options=RuntimeOptions(resident_limit=1)) as runtime:
        over = trio.Event()

        def step(result: Result) -> None:
            steps.append(result.unwrap())
            if len(steps) == 60:
                over.set()
                return
            message = Add() if len(steps) % 3 else Read()
            runtime.post(Address("counter", str(len(steps) % 4)), message, step)
            runtime.post(OTHER, Read(), lambda _: None)

        runtime.post(VISITS, Read(), step)
        await over.wait()
        counts = [await runtime.ask(Address("counter", str(key)), Read()) for key in range(4)]
        assert sum(counts) == sum(1 for number in range(1, 60) if number % 3)
        assert runtime.statistics().actors.resident <= 2


# -- the end -----------------------------------------------------------------


async def test_closing_answers_what_was_accepted(reopen: Open) -> None:
    gate = GatedCommitter()
    late: list[str] = []

    def post_again(_: Result) -> None:
        try:
            runtime.post(VISITS, Add(), never)
        except RuntimeClosedError as error:
            late.append(str(error))

    async with trio.open_nursery() as outside:
        async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
            adds = [posting(runtime.post, VISITS, Add()) for _ in range(3)]
            runtime.post(VISITS, Add(), post_again)
            await gate.arrived()
            double = posting(runtime.post, DOUBLER, Double())
            outside.start_soon(open_the_gate, gate)
        assert [await one.reply() for one in adds] == [1, 2, 3]
        with pytest.raises(RuntimeClosedError):
            await double.reply()
        assert not double.accepted
        assert late == ["the runtime is closing and takes no more messages"]


async def open_the_gate(gate: GatedCommitter) -> None:
    await trio.sleep(1)
    gate.let_all_through()


async def hear_of_the_end(runtime: Runtime, gate: GatedCommitter) -> list[Posting]:
    """Post one for each place in which a message can be: committing, collected, running, waiting, asking."""
    asks = [posting(runtime.post, VISITS, Add(), idempotency=ONCE) for _ in range(2)]
    await gate.arrived()
    asks.append(posting(runtime.post, VISITS, Add()))
    asks.append(posting(runtime.post, OTHER, AddSlowly(steps=1_000_000_000)))
    asks.append(posting(runtime.post, DOUBLER, Double()))
    for _ in range(10):
        await trio.lowlevel.checkpoint()
    asks.append(posting(runtime.post, OTHER, Read()))
    asks.append(posting(runtime.post, DOUBLER, Double(of="other")))
    return asks


async def test_a_cancelled_block_tells_every_poster_once(reopen: Open) -> None:
    gate = GatedCommitter()
    asks: list[Posting] = []
    with trio.CancelScope() as scope:
        async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
            asks = await hear_of_the_end(runtime, gate)
            runtime.post(OTHER, Read(), never).cancel()
            scope.cancel()
            await trio.sleep_forever()
    for one in asks:
        with pytest.raises(RuntimeClosedError):
            await one.reply()
    with pytest.raises(RuntimeClosedError):
        runtime.post(VISITS, Add(), never)


async def test_a_dead_disk_tells_every_poster_once(reopen: Open) -> None:
    gate = GatedCommitter()
    asks: list[Posting] = []
    with pytest.raises(StoreFailedError):  # noqa: PT012  the whole life of the runtime is the subject
        async with reopen(actors=[*ACTORS, Doubler], committer=gate) as runtime:
            asks = await hear_of_the_end(runtime, gate)
            gate.break_for_good()
            with pytest.raises(StoreFailedError):
                runtime.post(VISITS, Add(), never)
            await trio.sleep_forever()
    for one in asks:
        with pytest.raises(StoreFailedError, match="the disk is gone"):
            await one.reply()


async def test_a_crash_of_the_runtime_tells_every_poster_once(reopen: Open) -> None:
    asks: list[Posting] = []
    with crashing():
        async with reopen(committer=crash_at(1, after=True)) as runtime:
            asks += [posting(runtime.post, VISITS, Add()) for _ in range(3)]
            await trio.sleep_forever()
    for one in asks:
        with pytest.raises(RuntimeClosedError):
            await one.reply()


async def test_a_callback_that_ends_the_program_keeps_nobody_else_from_hearing(reopen: Open) -> None:
    def end(_: Result) -> None:
        raise KeyboardInterrupt

    asks: list[Posting] = []
    with pytest.raises(BaseExceptionGroup) as ended:  # noqa: PT012  the whole life of the runtime is the subject
        async with reopen() as runtime:
            asks.append(posting(runtime.post, VISITS, Read()))
            runtime.post(VISITS, Read(), end)
            asks.append(posting(runtime.post, VISITS, Read()))
            await trio.sleep_forever()
    assert ended.group_contains(KeyboardInterrupt)
    assert [await one.reply() for one in asks] == [0, 0]


async def test_effects_without_room_are_told_to_all_who_saw_them(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        add = posting(runtime.post, VISITS, Add(by=5))
        read = posting(runtime.post, VISITS, Read())
        other = posting(runtime.post, OTHER, Add())
        await gate.arrived()
        gate.refuse(0)
        for one in (add, read):
            with pytest.raises(StorageFullError):
                await one.reply()
        assert await other.reply() == 1
        gate.let_all_through()
        assert await runtime.ask(VISITS, Read()) == 0
