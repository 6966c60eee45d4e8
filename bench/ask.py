"""Ask and tell within one process, beside pykka.

The job: counters that many callers add to. Every reply is a number that nobody else
gets, which is how lost, doubled and misordered messages show. Nothing is written, so
this is the price of a message alone. Callers are tasks here and threads with pykka, as
users of each would have it. A tell has no reply and a mailbox of ours has a limit, so
callers tell in bursts and ask once after each burst.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec
import pykka
import trio

from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from greenroom.runtime import Actor, Address, Context, Message, handles, open_runtime

WAITING_TELLS = 2_048
"""Told and not yet asked about, over all callers: half a mailbox."""


class Add(Message[int], frozen=True):
    """Add one to the count and reply with the count."""

    by: int = 1


class Counter(Actor):
    """Our contender."""

    kind = "counter"

    def activate(self, context: Context) -> None:  # noqa: ARG002  nothing is stored
        """Begin at nothing."""
        self.count = 0

    @handles(Add)
    def add(self, message: Add, context: Context) -> int:  # noqa: ARG002  nothing is stored
        """Count."""
        self.count += message.by
        return self.count


class PykkaCounter(pykka.ThreadingActor):
    """The peer."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def on_receive(self, message: Add) -> int:
        """Count."""
        self.count += message.by
        return self.count


class Job(msgspec.Struct, frozen=True):
    """Who asks whom for how long.

    Attributes:
        burst: How many messages a caller tells before each ask; 0 only asks.
    """

    callers: int
    actors: int
    burst: int
    seconds: float


Replies = list[list[int]]
"""What each caller was answered."""


def run(plan: Plan) -> Report:
    """Compare the rates."""
    rows: list[list[str | int | float]] = []
    figures = []
    for verb in ("ask", "tell"):
        for actors in (1, 64):
            for callers in (n for n in plan.size((1, 64, 1_024), (1, 64)) if n >= actors):
                burst = 0 if verb == "ask" else min(63, WAITING_TELLS // callers - 1)
                job = Job(callers, actors, burst, plan.size(0.5, 0.02))
                contenders: dict[str, Callable[[], float]] = {
                    "greenroom": partial(_greenroom, job, plan),
                    "pykka": partial(_pykka, job),
                }
                rates = medians(take_turns(contenders, plan.size(5, 1)))
                ratio = rates["greenroom"] / rates["pykka"]
                rows.append([verb, callers, actors, rates["greenroom"], rates["pykka"], ratio])
                if (verb, callers, actors) == ("ask", 64, 1):
                    what = "ask, 64 callers of one actor, a second"
                    figures.append(Figure(what=what, value=rates["greenroom"], least=60_000))
    columns = ["job", "callers", "actors", "greenroom /s", "pykka /s", "ratio"]
    table = Table(title="messages within one process", columns=columns, rows=rows)
    return Report(tables=[table], figures=figures)


def _greenroom(job: Job, plan: Plan) -> float:
    async def main() -> tuple[Replies, float]:
        replies: Replies = [[] for _ in range(job.callers)]
        with plan.folder() as folder:
            async with open_runtime(folder, actors=[Counter]) as runtime:
                for actor in range(job.actors):  # both contenders' actors are awake before the clock runs
                    await runtime.ask(Address("counter", str(actor)), Add(by=0))
                began = time.perf_counter()
                end = began + job.seconds

                async def caller(number: int) -> None:
                    address = Address("counter", str(number % job.actors))
                    mine = replies[number]
                    while time.perf_counter() < end:
                        for _ in range(job.burst):
                            runtime.tell(address, Add())
                        mine.append(await runtime.ask(address, Add()))

                async with trio.open_nursery() as nursery:
                    for number in range(job.callers):
                        nursery.start_soon(caller, number)
                return replies, time.perf_counter() - began

    return _rate(job, *trio.run(main), "greenroom")


def _pykka(job: Job) -> float:
    replies: Replies = [[] for _ in range(job.callers)]
    actors = [PykkaCounter.start() for _ in range(job.actors)]
    barrier = threading.Barrier(job.callers + 1)
    end = 0.0

    def caller(number: int) -> None:
        actor = actors[number % job.actors]
        mine = replies[number]
        barrier.wait()
        while time.perf_counter() < end:
            for _ in range(job.burst):
                actor.tell(Add())
            mine.append(actor.ask(Add(), block=True))

    threads = [threading.Thread(target=caller, args=[number]) for number in range(job.callers)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    end = began + job.seconds
    barrier.wait()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    for actor in actors:
        actor.stop()
    return _rate(job, replies, elapsed, "pykka")


def _rate(job: Job, replies: Replies, seconds: float, who: str) -> float:
    """Return the messages a second, once every count is accounted for."""
    step = job.burst + 1
    for actor in range(job.actors):
        answered = [reply for caller in replies[actor :: job.actors] for reply in caller]
        check(len(set(answered)) == len(answered), f"{who} gave one count to two callers")
        check(not answered or max(answered) == len(answered) * step, f"{who} lost or doubled a message")
    for caller in replies:
        check(all(a + step <= b for a, b in itertools.pairwise(caller)), f"{who} answered out of order")
    return sum(map(len, replies)) * step / seconds
