"""Tool calls over stdio, beside the SDK's own server and beside a bare loop, with one cheap client for all.

The SDK's server has one tool, which only echoes; the bare loop does nothing but JSON, so it is
what can be reached with trio and msgspec. With many requests in flight the calls a second
count, with one the time that it takes. The processor time of the server is told as well: on a
busy machine it changes least. A durable write is held against what the disk itself takes for
a `fdatasync`, measured in turn with it in the same folder.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.client import Client, serving
from bench.closed_loop import Contender, Cost, Load, Sequential, cost, sequential, verified
from bench.harness import Figure, Plan, Report, Table, Value, middle, percentile, take_turns
from bench.jobs import Echoes, Job, Messages, Reads
from bench.servers import BARE, ECHO, greenroom

MANY = 256
READ, WRITE, PEER, BOUND = "get_memory", "add_message", "SDK echo", "bare loop"
DISK = "fdatasync"
PAGE = 4096
PAGES = 256


def run(plan: Plan) -> Report:
    """Compare the rates, then the times."""
    with (
        plan.folder() as folder,
        serving(greenroom(folder / "data")) as ours,
        serving(ECHO) as peer,
        serving(BARE) as bare,
    ):
        reads, messages = Reads(), Messages(ours)
        contenders = {
            READ: _contender(ours, reads),
            WRITE: _contender(ours, messages),
            PEER: _contender(peer, Echoes()),
            BOUND: _contender(bare, Reads()),
        }
        for client in (ours, bare):
            reads.prepare(client)
        tables, figures = _rates(plan, contenders)
        times, time_figures = _times(plan, contenders, folder)
        messages.count(ours)
    return Report(tables=[*tables, times], figures=[*figures, *time_figures])


def _contender(client: Client, job: Job) -> Contender:
    assert client.pid is not None
    return Contender(client.pid, [client], job, verified)


def _rates(plan: Plan, contenders: dict[str, Contender]) -> tuple[list[Table], list[Figure]]:
    rates: list[list[Value]] = []
    costs: list[list[Value]] = []
    figures: list[Figure] = []
    for in_flight in plan.size((1, 16, MANY), (1, 16)):
        load = Load(in_flight, plan.size(1.0, 0.1))
        turns = {name: partial(cost, contender, load) for name, contender in contenders.items()}
        rounds = take_turns(turns, plan.size(5, 1))
        found = {name: Cost(*middle(each)) for name, each in rounds.items()}
        read, write, peer, bound = (each.rate for each in found.values())
        rates.append([in_flight, read, write, peer, bound, read / peer, write / peer, read / bound])
        read_cost, write_cost, peer_cost, bound_cost = (each.processor for each in found.values())
        # A short load on a busy machine may take less than the system counts in.
        shares = [peer_cost / each if each else None for each in (read_cost, write_cost)]
        costs.append([in_flight, read_cost, write_cost, peer_cost, bound_cost, *shares])
        if in_flight == MANY:
            what = f"{WRITE} (durable) to {PEER}, {MANY} in flight"
            figures.append(Figure(what=f"{READ} to {PEER}, {MANY} in flight", value=read / peer, least=20))
            figures.append(Figure(what=what, value=write / peer, least=12))
    ratios = ["reads to echoes", "writes to echoes", "reads to bare"]
    columns = ["in flight", *(f"{name} /s" for name in contenders), *ratios]
    table = Table(title="tool calls over stdio", columns=columns, rows=rates)
    columns = ["in flight", *(f"{name} µs" for name in contenders), "echoes to reads", "echoes to writes"]
    return [
        table,
        Table(title="processor time of the server for a call", columns=columns, rows=costs),
    ], figures


def _times(plan: Plan, contenders: dict[str, Contender], folder: Path) -> tuple[Table, list[Figure]]:
    seconds = plan.size(0.5, 0.1)
    turns: dict[str, Callable[[], Sequential]] = {
        name: partial(sequential, contender.clients[0], contender.job, seconds)
        for name, contender in contenders.items()
    }
    turns[DISK] = partial(_synced, folder / "page", seconds)
    rounds = take_turns(turns, plan.size(9, 1))
    found = {name: Sequential(*middle(each)) for name, each in rounds.items()}
    rows: list[list[Value]] = [[name, *times] for name, times in found.items()]
    above = found[WRITE].median - found[DISK].median
    share = found[READ].median / found[PEER].median
    return (
        Table(title="one call after another over stdio", columns=["what", "50 % ms", "99 % ms"], rows=rows),
        [
            Figure(what=f"{READ} to {PEER}, one after another, 50 %", value=share, most=1 / 6),
            Figure(what=f"ms of {WRITE} above a bare {DISK}, one after another, 50 %", value=above, most=0.5),
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
