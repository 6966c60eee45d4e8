"""Writes that are answered when they are safe, beside SQLite.

The job: many callers, each writing small records one after another and going on only
when the last is acknowledged. Afterwards the store is opened anew and everything that was
acknowledged must be there, and nothing else. `power` and `FULL` wait for the disk;
`process` and `NORMAL` survive the process only. SQLite (WAL) gets one transaction a write, as
a server without group commit does it, in two ways: by the caller's own thread under a lock,
and by one writer thread with a queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from bench.durable_sqlite import Synchronous, direct, read_all, through_a_thread
from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from bench.records import Load, Written, key_of, record_of
from greenroom.runtime import Actor, Address, Context, Message, RuntimeOptions, Slices, handles, open_runtime

if TYPE_CHECKING:
    from pathlib import Path

ACTORS = 64
FLOORS = {1: 1_000, 256: 15_000}
"""Callers and the writes a second to reach with them, waiting for the disk."""


class Write(Message[None], frozen=True):
    """Store a record."""

    key: bytes
    record: bytes


class ReadAll(Message[dict[bytes, bytes]], frozen=True):
    """Reply with all records."""


class Notebook(Actor):
    """Keeps records."""

    kind = "notebook"

    @handles(Write)
    def write(self, message: Write, context: Context) -> None:
        """Store."""
        context.put(message.key, message.record)

    @handles(ReadAll)
    def read_all(self, message: ReadAll, context: Context) -> Slices[dict[bytes, bytes]]:  # noqa: ARG002  no fields
        """Read everything, giving the event loop back now and then."""
        found = {}
        for key, record in context.scan(bytes):
            found[key] = record
            yield
        return found


def run(plan: Plan) -> Report:
    """Compare the rates."""
    rows: list[list[str | int | float]] = []
    figures = []
    for callers in plan.size((1, 16, 64, 256, 1_024), (1, 64)):
        load = Load(callers, plan.size(0.5, 0.05))
        contenders: dict[str, Callable[[], float]] = {
            "power": partial(through_the_runtime, "power", load, plan),
            "FULL direct": partial(through_sqlite, direct, "FULL", load, plan),
            "FULL thread": partial(through_sqlite, through_a_thread, "FULL", load, plan),
            "process": partial(through_the_runtime, "process", load, plan),
            "NORMAL direct": partial(through_sqlite, direct, "NORMAL", load, plan),
            "NORMAL thread": partial(through_sqlite, through_a_thread, "NORMAL", load, plan),
        }
        rates = medians(take_turns(contenders, plan.size(5, 1)))
        for ours, peers in (("power", "FULL"), ("process", "NORMAL")):
            by_lock, by_thread = rates[f"{peers} direct"], rates[f"{peers} thread"]
            ratio = rates[ours] / max(by_lock, by_thread)
            rows.append([callers, f"{ours} / {peers}", rates[ours], by_lock, by_thread, ratio])
        if callers in FLOORS:
            what = f"durable writes a second, {callers} callers"
            figures.append(Figure(what=what, value=rates["power"], least=FLOORS[callers]))
    columns = ["callers", "durability", "greenroom /s", "SQLite, lock /s", "SQLite, thread /s", "ratio"]
    table = Table(title="acknowledged writes; ratio to the better SQLite", columns=columns, rows=rows)
    return Report(tables=[table], figures=figures)


def through_the_runtime(durability: Literal["power", "process"], load: Load, plan: Plan) -> float:
    """Return how many writes a second were acknowledged."""
    options = RuntimeOptions(durability=durability)

    async def write(folder: Path) -> Written:
        counts = [0] * load.callers
        async with open_runtime(folder, actors=[Notebook], options=options) as runtime:
            for actor in range(ACTORS):
                await runtime.ask(Address("notebook", str(actor)), ReadAll())
            began = time.perf_counter()
            end = began + load.seconds

            async def caller(number: int) -> None:
                address = Address("notebook", str(number % ACTORS))
                while time.perf_counter() < end:
                    key = key_of(number, counts[number])
                    await runtime.ask(address, Write(key=key, record=record_of(key)))
                    counts[number] += 1

            async with trio.open_nursery() as nursery:
                for number in range(load.callers):
                    nursery.start_soon(caller, number)
            return Written(counts, time.perf_counter() - began)

    async def read(folder: Path) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        async with open_runtime(folder, actors=[Notebook], options=options) as runtime:
            for actor in range(ACTORS):
                records = await runtime.ask(Address("notebook", str(actor)), ReadAll())
                found |= records
        return found

    with plan.folder() as folder:
        written = trio.run(write, folder)
        check(trio.run(read, folder) == written.records(), f"greenroom ({durability}) lost or made up writes")
    return written.rate()


def through_sqlite(
    write: Callable[[Path, Synchronous, Load], Written], synchronous: Synchronous, load: Load, plan: Plan
) -> float:
    """Return how many writes a second SQLite has acknowledged."""
    with plan.folder() as folder:
        written = write(folder / "peer.db", synchronous, load)
        found = read_all(folder / "peer.db")
        check(found == written.records(), f"SQLite ({synchronous}) lost or made up writes")
    return written.rate()
