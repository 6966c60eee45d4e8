"""Subscribers hear of what was committed: at once, merged within a window, and of nothing else."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from support.asking import post

from greenroom.runtime import (
    Actor,
    Address,
    Context,
    Message,
    Refusal,
    Runtime,
    RuntimeClosedError,
    StorageFullError,
    Subscriber,
    handles,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from support.asking import Open


class Say(Message[None], frozen=True):
    """Publish these labels of a topic; then perhaps fail."""

    topic: str = "t"
    labels: tuple[str, ...] = ("public",)
    ending: str = ""
    writes: bool = True


class IsHeard(Message[bool], frozen=True):
    """Whether anybody wants to hear of a topic."""

    topic: str


class Speaker(Actor):
    kind = "speaker"

    @handles(IsHeard)
    def is_heard(self, message: IsHeard, context: Context) -> bool:
        return context.has_subscribers(message.topic)

    @handles(Say)
    def say(self, message: Say, context: Context) -> None:
        if message.writes:
            context.put(b"said", message.labels)
        for label in message.labels:
            context.publish(message.topic, label)
        if message.ending == "refuse":
            raise Refusal("NO", "no")
        if message.ending == "fail":
            raise RuntimeError("told to fail")


SPEAKER = Address("speaker", "s")


def public(label: str) -> bool:
    return label == "public"


class Listener:
    """A task that writes down when it hears of which topic."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.heard: list[tuple[float, str]] = []

    async def run(self) -> None:
        async for topic in self.subscriber:
            self.heard.append((round(trio.current_time(), 6), topic))


@asynccontextmanager
async def listening(runtime: Runtime, **topics: Any) -> AsyncIterator[Listener]:
    with runtime.subscriber() as subscriber:
        for topic, accepts in topics.items():
            subscriber.add(topic, accepts)
        listener = Listener(subscriber)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.run)
            await trio.testing.wait_all_tasks_blocked()
            yield listener
            await trio.sleep(10)
            nursery.cancel_scope.cancel()


def anything(_: object) -> bool:
    return True


@pytest.mark.promise("bus.debounce")
async def test_a_quiet_topic_is_told_at_once_and_a_burst_once_more(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        async with listening(runtime, t=anything) as listener:
            start = trio.current_time()
            for _ in range(5):
                await runtime.ask(SPEAKER, Say())
                await trio.sleep(0.01)
        at = [round(time - start, 3) for time, _ in listener.heard]
        assert at == [0.0, 0.1]
        assert runtime.statistics().bus.published == 5


@pytest.mark.promise("bus.debounce")
async def test_topics_do_not_delay_each_other(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        async with listening(runtime, t=anything, u=anything) as listener:
            start = trio.current_time()
            for topic in ("t", "u", "t", "u", "v"):
                await runtime.ask(SPEAKER, Say(topic=topic))
                await trio.sleep(0.02)
        heard = [(round(time - start, 3), topic) for time, topic in listener.heard]
        assert heard == [(0.0, "t"), (0.02, "u"), (0.1, "t"), (0.12, "u")]


@pytest.mark.promise("bus.hidden")
async def test_what_is_not_accepted_neither_wakes_nor_delays(reopen: Open) -> None:
    heard = {}
    for hidden in (False, True):
        async with (
            reopen(actors=[Speaker], indexes=[]) as runtime,
            listening(runtime, t=public) as listener,
        ):
            start = trio.current_time()
            for number in range(40):
                seen = number % 7 == 3
                if seen or hidden:
                    await runtime.ask(SPEAKER, Say(labels=("public",) if seen else ("secret",)))
                await trio.sleep(0.015)
            wakes = len(listener.heard)
            statistics = runtime.statistics().bus
        heard[hidden] = [(round(time - start, 6), topic) for time, topic in listener.heard]
        assert statistics.told == wakes
    assert heard[True] == heard[False] != []


@pytest.mark.promise("bus.hidden")
async def test_labels_of_one_message_are_judged_each(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        async with listening(runtime, t=public) as listener:
            await runtime.ask(SPEAKER, Say(labels=("secret", "other")))
            await runtime.ask(SPEAKER, Say(labels=("secret", "public")))
        assert len(listener.heard) == 1


@pytest.mark.promise("bus.hidden")
async def test_who_cannot_judge_hears_nothing_and_harms_nobody(
    reopen: Open, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(label: str) -> bool:
        raise ValueError(label)

    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        async with listening(runtime, t=broken) as confused, listening(runtime, t=public) as listener:
            await runtime.ask(SPEAKER, Say())
        assert (confused.heard, len(listener.heard)) == ([], 1)
        assert "could not judge" in caplog.text


@pytest.mark.promise("bus.committed")
@pytest.mark.parametrize("ending", ["refuse", "fail"])
async def test_a_publication_of_what_was_rolled_back_never_appears(reopen: Open, ending: str) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        async with listening(runtime, t=anything) as listener:
            with pytest.raises(Exception, match=r"no|failed"):
                await runtime.ask(SPEAKER, Say(ending=ending))
        assert listener.heard == []
        assert runtime.statistics().bus.published == 0


@pytest.mark.promise("bus.committed")
async def test_a_publication_waits_for_its_commit_and_a_failed_one_is_forgotten(reopen: Open) -> None:
    committer = GatedCommitter()
    async with reopen(actors=[Speaker], indexes=[], committer=committer) as runtime:
        async with listening(runtime, t=anything) as listener, trio.open_nursery() as nursery:
            first = await post(nursery, runtime, SPEAKER, Say())
            await committer.arrived()
            await trio.sleep(5)
            assert listener.heard == []
            committer.refuse(0)
            with pytest.raises(StorageFullError):
                await first.reply()
            await trio.sleep(5)
            assert listener.heard == []
            second = await post(nursery, runtime, SPEAKER, Say())
            await committer.arrived()
            at = trio.current_time()
            committer.let_all_through()
            await second.reply()
        assert [time for time, _ in listener.heard] == [round(at, 6)]


@pytest.mark.promise("bus.committed")
async def test_a_publication_alone_goes_after_what_was_staged_before(reopen: Open) -> None:
    committer = GatedCommitter()
    async with reopen(actors=[Speaker], indexes=[], committer=committer) as runtime:
        async with listening(runtime, t=anything) as listener, trio.open_nursery() as nursery:
            await post(nursery, runtime, SPEAKER, Say(topic="other"))
            await committer.arrived()
            alone = await post(nursery, runtime, SPEAKER, Say(writes=False))
            await trio.sleep(5)
            assert listener.heard == []
            committer.let_all_through()
            await alone.reply()
        assert len(listener.heard) == 1


@pytest.mark.promise("bus.bounded")
async def test_who_never_reads_is_told_once(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        with runtime.subscriber() as subscriber:
            subscriber.add("t")
            subscriber.add("u")
            for _ in range(300):
                await runtime.ask(SPEAKER, Say())
                await runtime.ask(SPEAKER, Say(topic="u"))
                await trio.sleep(0.03)
            heard = []
            with trio.move_on_after(60):
                while True:
                    heard.append(await subscriber.next())
            assert heard == ["t", "u"]


@pytest.mark.promise("bus.bounded")
@pytest.mark.slow
async def test_who_leaves_leaves_nothing_behind(reopen: Open) -> None:
    async def come_and_go(runtime: Runtime, number: int) -> None:
        with runtime.subscriber() as subscriber:
            subscriber.add("t")
            subscriber.add(f"own {number}")
            with trio.move_on_after(number % 3):
                await subscriber.next()
                await subscriber.next()

    def subscribers() -> list[Subscriber]:
        gc.collect()
        return [thing for thing in gc.get_objects() if type(thing) is Subscriber]

    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        await runtime.ask(SPEAKER, Say())
        before, others = runtime.statistics(), subscribers()
        tasks = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as nursery:
            for number in range(1_000):
                nursery.start_soon(come_and_go, runtime, number)
                if number % 50 == 0:
                    await runtime.ask(SPEAKER, Say())
                    await runtime.ask(SPEAKER, Say(topic=f"own {number}"))
        after = runtime.statistics()
        assert after.bus.told > 0
        assert (after.bus.subscribers, after.bus.subscriptions, after.bus.topics) == (0, 0, 0)
        assert after.bus.waiting == 0
        assert after.actors.resident == before.actors.resident
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert [thing for thing in subscribers() if thing not in others] == []


@pytest.mark.promise("bus.bounded")
async def test_a_removed_topic_is_heard_of_no_more(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        with runtime.subscriber() as subscriber:
            subscriber.add("t")
            subscriber.add("u")
            await runtime.ask(SPEAKER, Say())
            await trio.sleep(1)
            assert "t" in subscriber
            assert len(subscriber) == 2
            assert subscriber.remove("t")
            assert not subscriber.remove("t")
            await runtime.ask(SPEAKER, Say())
            await runtime.ask(SPEAKER, Say(topic="u"))
            assert await subscriber.next() == "u"
            with trio.move_on_after(5):
                raise AssertionError(await subscriber.next())


@pytest.mark.quick
@pytest.mark.promise("bus.fair")
@pytest.mark.slow
async def test_thousands_of_subscribers_are_all_told_and_delay_no_other_topic(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime, trio.open_nursery() as nursery:
        crowd: list[Listener] = []
        for _ in range(5_000):
            subscriber = runtime.subscriber()
            subscriber.add("t", public)
            crowd.append(Listener(subscriber))
            nursery.start_soon(crowd[-1].run)
        async with listening(runtime, u=anything) as other:
            await runtime.ask(SPEAKER, Say())
            await runtime.ask(SPEAKER, Say(topic="u"))
            told_before_other = 0
            while not other.heard:
                await trio.sleep(0.001)
                told_before_other = sum(len(one.heard) for one in crowd)
            assert told_before_other < 1_000
        assert [len(one.heard) for one in crowd] == [1] * 5_000
        for one in crowd:
            one.subscriber.close()


@pytest.mark.promise("bus.bounded")
async def test_the_end_of_the_runtime_ends_every_subscriber(reopen: Open) -> None:
    async with trio.open_nursery() as nursery:
        async with reopen(actors=[Speaker], indexes=[]) as runtime:
            listener = Listener(runtime.subscriber())
            listener.subscriber.add("t")
            nursery.start_soon(listener.run)
            waiting = runtime.subscriber()
            await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RuntimeClosedError):
            await waiting.next()
        with pytest.raises(RuntimeClosedError):
            waiting.add("t")
        with pytest.raises(RuntimeClosedError):
            runtime.subscriber()


async def test_an_actor_is_told_whether_anybody_wants_to_hear(reopen: Open) -> None:
    async with reopen(actors=[Speaker], indexes=[]) as runtime:
        assert not await runtime.ask(SPEAKER, IsHeard("t"))
        with runtime.subscriber() as one, runtime.subscriber() as two:
            one.add("t")
            two.add("t")
            assert (one.topics, await runtime.ask(SPEAKER, IsHeard("t"))) == (["t"], True)
            one.remove("t")
            assert await runtime.ask(SPEAKER, IsHeard("t"))
            assert not await runtime.ask(SPEAKER, IsHeard("u"))
        assert not await runtime.ask(SPEAKER, IsHeard("t"))
