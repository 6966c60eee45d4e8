"""Tool calls over stdio, beside the SDK's own server and beside a bare loop, with one cheap client for all.

The SDK's server has one tool, which only echoes; the bare loop does nothing but JSON, so it is
what can be reached with trio and msgspec. With many requests in flight the calls a second
count, with one the time that it takes; a durable write is then held against what the disk
itself takes for a `fdatasync`, measured in turn with it in the same folder.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.client import Client, serving
from bench.closed_loop import Load, Sequential, rate, sequential
from bench.harness import Figure, Plan, Report, Table, Value, medians, percentile, take_turns
from bench.jobs import Echoes, Job, Messages, Reads
from bench.servers import BARE, ECHO, greenroom

MANY = 256
READ, WRITE, PEER, BOUND = "get_memory", "add_message", "SDK echo", "bare loop"
PAGE = 4096
PAGES = 256
Jobs = dict[str, tuple[Client, Job]]


def run(plan: Plan) -> Report:
    """Compare the rates, then the times."""
    with (
        plan.folder() as folder,
        serving(greenroom(folder / "data")) as ours,
        serving(ECHO) as peer,
        serving(BARE) as bare,
    ):
        reads, messages = Reads(), Messages(ours)
        jobs: Jobs = {
            READ: (ours, reads),
            WRITE: (ours, messages),
            PEER: (peer, Echoes()),
            BOUND: (bare, Reads()),
        }
        for client in (ours, bare):
            reads.prepare(client)
        rates, rate_figures = _rates(plan, jobs)
        times, time_figures = _times(plan, jobs, folder)
        messages.count(ours)
    return Report(tables=[rates, times], figures=[*rate_figures, *time_figures])


def _rates(plan: Plan, jobs: Jobs) -> tuple[Table, list[Figure]]:
    rows: list[list[str | int | float]] = []
    figures: list[Figure] = []
    for in_flight in plan.size((1, 16, MANY), (1, 16)):
        load = Load(in_flight, plan.size(1.0, 0.1))
        contenders = {name: partial(rate, [client], job, load) for name, (client, job) in jobs.items()}
        found = medians(take_turns(contenders, plan.size(5, 1)))
        read, write = found[READ] / found[PEER], found[WRITE] / found[PEER]
        rows.append([in_flight, *found.values(), read, write, found[READ] / found[BOUND]])
        if in_flight == MANY:
            figures.append(Figure(what=f"{READ} to {PEER}, {MANY} in flight", value=read, least=20))
            figures.append(
                Figure(what=f"{WRITE} (durable) to {PEER}, {MANY} in flight", value=write, least=12)
            )
    columns = [
        "in flight",
        *(f"{name} /s" for name in jobs),
        "reads to echoes",
        "writes to echoes",
        "reads to bare",
    ]
    return Table(title="tool calls over stdio", columns=columns, rows=rows), figures


def _times(plan: Plan, jobs: Jobs, folder: Path) -> tuple[Table, list[Figure]]:
    seconds = plan.size(0.5, 0.1)
    contenders: dict[str, Callable[[], Sequential]] = {
        name: partial(sequential, client, job, seconds) for name, (client, job) in jobs.items()
    }
    disk = "fdatasync"
    contenders[disk] = partial(_synced, folder / "page", seconds)
    rounds = take_turns(contenders, plan.size(9, 1))
    found = {
        name: Sequential(*(statistics.median(values) for values in zip(*each, strict=True)))
        for name, each in rounds.items()
    }
    rows: list[list[Value]] = [[name, each.median, each.percentile_99] for name, each in found.items()]
    above = found[WRITE].median - found[disk].median
    share = found[READ].median / found[PEER].median
    return (
        Table(title="one call after another over stdio", columns=["what", "50 % ms", "99 % ms"], rows=rows),
        [
            Figure(what=f"{READ} to {PEER}, one after another, 50 %", value=share, most=1 / 6),
            Figure(what=f"ms of {WRITE} above a bare {disk}, one after another, 50 %", value=above, most=0.5),
        ],
    )


def _synced(path: Path, seconds: float) -> Sequential:
    """Overwrite pages of a file, one after another, each waiting for the disk."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.write(descriptor, bytes(PAGE * PAGES))
        os.fsync(descriptor)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            os.pwrite(descriptor, os.urandom(PAGE), len(times) % PAGES * PAGE)
            _sync(descriptor)
            times.append((time.perf_counter() - began) * 1e3)
    finally:
        os.close(descriptor)
    return Sequential(statistics.median(times), percentile(times, 99))


_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # which macOS has not
