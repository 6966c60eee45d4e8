"""An agent's key-value memory: how long one caller waits, and how long a sweep of expired entries takes.

A write is answered when it is on disk. The sweep is the memory's own timer: a clock
that is two hours ahead when the store is opened again makes everything expire at once,
and what is measured is the mean of the batches in which it goes.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check, percentile
from greenroom.actors import Agent, GetMemory, ListMemory, Principal, SetMemory, open_greenroom
from greenroom.actors.memories.storage.records import GROUPS
from greenroom.runtime import RuntimeOptions, SystemClock

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3_600
OWNER = Principal(agent_id="rememberer")
VALUE = msgspec.json.encode({"note": "remember the milk " * 40, "tags": ["shopping", "today"]})
WRITERS = 64
POLL_SECONDS = 0.001
PATIENCE_SECONDS = 60


class Sweep(NamedTuple):
    """How many batches a sweep took, their mean, and the longest hold of the event loop; milliseconds."""

    batches: int
    mean: float
    hold: float


class ClockAhead(SystemClock):
    """The system's clock, two hours later."""

    def now(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC, and two hours."""
        return super().now() + 2 * HOUR * 1_000_000


def run(plan: Plan) -> Report:
    """Measure the waiting times."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    with plan.folder() as folder:
        writes, reads = trio.run(_one_caller, folder, plan.size(1_000, 50))
    for job, times in (("set_memory", writes), ("get_memory", reads)):
        rows.append([job, len(times), statistics.median(times), percentile(times, 99), max(times)])
        figures.append(Figure(what=f"{job}, median ms", value=statistics.median(times), most=10))
    with plan.folder() as folder:
        entries = plan.size(4_000, 400)
        sweep = trio.run(_sweep, folder, entries)
    rows.append([f"sweep of {entries:,} entries, a batch", sweep.batches, sweep.mean, None, None])
    rows.append(["the event loop's holds during the sweep", None, None, None, sweep.hold])
    figures.append(Figure(what="sweep, ms a batch", value=sweep.mean, most=20))
    figures.append(Figure(what="longest hold of the event loop in a sweep, ms", value=sweep.hold, most=10))
    columns = ["job", "times", "median ms", "99 % ms", "longest ms"]
    table = Table(title="an agent's memory, in process, durability power", columns=columns, rows=rows)
    return Report(tables=[table], figures=figures)


async def _one_caller(folder: Path, times: int) -> tuple[list[float], list[float]]:
    writes, reads = [], []
    async with open_greenroom(folder) as runtime:
        agent = Agent(runtime, OWNER)
        for number in range(times):
            began = time.perf_counter()
            stored = await agent.ask(SetMemory(key=f"note-{number}", value=msgspec.Raw(VALUE)))
            writes.append((time.perf_counter() - began) * 1e3)
            check(stored.version == 1, f"note-{number} was there before")
        for number in range(times):
            began = time.perf_counter()
            read = await agent.ask(GetMemory(key=f"note-{number}"))
            reads.append((time.perf_counter() - began) * 1e3)
            check(bytes(read.value) == VALUE, f"note-{number} is not what was stored")
    return writes, reads


async def _sweep(folder: Path, entries: int) -> Sweep:
    """Let so many entries expire, and measure their removal from disk."""
    async with open_greenroom(folder, options=RuntimeOptions(durability="process")) as runtime:
        agent = Agent(runtime, OWNER)
        await agent.ask(SetMemory(key="kept", value=msgspec.Raw(VALUE)))
        before = runtime.statistics().store.rows

        async def write(start: int) -> None:
            for number in range(start, entries, WRITERS):
                value = msgspec.Raw(VALUE)
                await agent.ask(SetMemory(key=f"expiring-{number}", value=value, expires_in=HOUR))

        async with trio.open_nursery() as nursery:
            for start in range(WRITERS):
                nursery.start_soon(write, start)
    async with open_greenroom(folder, clock=ClockAhead()) as runtime:
        began = time.perf_counter()
        # Of each entry only its record in the audit stays, one for each batch, and how far versions went.
        while runtime.statistics().store.rows - before > entries * 1.1 + GROUPS:
            check(time.perf_counter() - began < PATIENCE_SECONDS, "expired entries stay on disk")
            await trio.sleep(POLL_SECONDS)
        elapsed = time.perf_counter() - began
        found = runtime.statistics()
        left = await Agent(runtime, OWNER).ask(ListMemory())
        check([entry.key for entry in left.entries] == ["kept"], f"after the sweep there is {left.entries}")
    batches = found.messages.timers_fired
    return Sweep(batches, elapsed / batches * 1e3, found.dispatcher.longest_slice_ms)
