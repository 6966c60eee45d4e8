"""What the record of a deed costs: none, a row of an index, a linked row, a note; and checking linked rows.

In process, durability power, 64 callers. Processor time of the whole process, the writer's thread included.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import trio

from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    Index,
    IndexReader,
    Journal,
    JournalReport,
    Message,
    Procedure,
    handles,
    open_runtime,
)

if TYPE_CHECKING:
    from pathlib import Path

CALLERS = 64
ROUNDS = 5
MOST_LINK_MICROSECONDS = 15.0
LEAST_CHECKED = 100_000.0
Way = Literal["no record", "row of an index", "linked row", "note"]
WAYS: tuple[Way, ...] = ("no record", "row of an index", "linked row", "note")
RECORD = (0, "alice", "session", "add_message", {"message_id": 1, "characters": 100}, "done")


class Do(Message[int], frozen=True):
    """Count, and record that in some way."""

    way: Way


class Doer(Actor):
    """Counts what it does."""

    kind = "doer"

    @handles(Do)
    def do(self, message: Do, context: Context) -> int:
        """Do it."""
        count = (context.get(b"count", int) or 0) + 1
        context.put(b"count", count)
        if message.way == "row of an index":
            context.put_row("rows", context.now.to_bytes(8) + context.random.randbytes(8), RECORD)
        elif message.way == "linked row":
            context.append("deeds", RECORD)
        elif message.way == "note":
            context.append_soon("deeds", (*RECORD, context.address.key, count))
        return count


class Check(Procedure[JournalReport], frozen=True, kw_only=True):
    """Check the journal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Any:
        """Answer with what was found."""
        return reader.check("deeds")


def run(plan: Plan) -> Report:
    """Measure all ways, one after the other in turns, then a check."""
    deeds = plan.size(20_000, 640)
    with plan.folder() as folder:
        contenders: dict[str, partial[float]] = {
            way: partial(trio.run, _spent, folder, way, deeds) for way in WAYS
        }
        spent = medians(take_turns(contenders, plan.size(ROUNDS, 1)))
        rows, seconds, hold = trio.run(_checked, folder)
    none = spent["no record"]
    table = Table(
        title=f"{deeds:,} deeds of {CALLERS} callers, in process, durability power",
        columns=["record", "processor time a deed, us", "more than without, us"],
        rows=[[way, spent[way], spent[way] - none] for way in WAYS],
    )
    checks = Table(
        title="checking",
        columns=["records", "records a second", "longest hold of the event loop, ms"],
        rows=[[rows, rows / seconds, hold]],
    )
    figures = [
        Figure(what="linked row, us", value=spent["linked row"] - none, most=MOST_LINK_MICROSECONDS),
        Figure(what="records checked a second", value=rows / seconds, least=LEAST_CHECKED),
    ]
    return Report(tables=[table, checks], figures=figures)


def _opened(folder: Path) -> Any:
    return open_runtime(
        folder / "data",
        actors=[Doer],
        indexes=[Index("rows")],
        journals=[Journal("deeds")],
        secrets=folder / "secrets",
    )


async def _spent(folder: Path, way: Way, deeds: int) -> float:
    """Return the microseconds of processor time of a deed."""
    async with _opened(folder) as runtime:

        async def call(number: int) -> None:
            address = Address("doer", f"{way} {number}")
            first = await runtime.ask(address, Do(way=way))
            for count in range(1, deeds // CALLERS):
                check(await runtime.ask(address, Do(way=way)) == first + count, "a deed was not counted")

        began = time.process_time()
        async with trio.open_nursery() as nursery:
            for number in range(CALLERS):
                nursery.start_soon(call, number)
        return (time.process_time() - began) / deeds * 1e6


async def _checked(folder: Path) -> tuple[int, float, float]:
    async with _opened(folder) as runtime:
        began = time.perf_counter()
        report = await runtime.query(Check())
        seconds = time.perf_counter() - began
        check(not report.findings, f"the journal is not whole: {report.findings}")
        check(report.rows > 0, "there are no records")
        return report.rows, seconds, runtime.statistics().dispatcher.longest_slice_ms
