"""What it costs to be attached to another process's folder, and how soon another one takes over.

Two servers over stdio on one folder, the one that owns it and one that is attached, take turns with the same
calls. Then owners are killed, each with a call on its way from an attached process, and the time to its
answer counts. While much is written through the attached process, the answers that the owner keeps for it
are counted on the disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import lmdb

from bench.channels import exchanging
from bench.client import PATIENCE, Client, ToolCall, read_answer, serving, started
from bench.closed_loop import Contender, Cost, Load, Sequential, cost, drive, sequential, verified
from bench.harness import Figure, Plan, Report, Table, Value, check, middle, percentile, take_turns
from bench.jobs import Job, Messages, Reads
from bench.servers import greenroom
from bench.troupe import owner_pid
from bench.wires import Kind

READ, WRITE = "get_memory", "add_message"
OWNER, ATTACHED = "owner", "attached"
MANY = 256
SLOWER = 2.0
"""How many times the owner's time a call of an attached process may take."""
SHARE = 0.6
"""How much of the owner's calls a second there must be."""
TAKEOVERS = 20
TAKEOVER_SECONDS = 2.0
KEPT = 4_096 + 512
"""Answers that may be kept for one attached process: what it has open, and what it confirms at once."""
SAMPLE_SECONDS = 0.02
MAP_SIZE = 1 << 36
PLACES = 3
STORE_FILE, TABLES, TABLE, RELAYED = "greenroom.mdb", 3, b"indexes", b"!relay\0"


def run(plan: Plan) -> Report:
    """Measure all three."""
    with plan.folder() as folder:
        command = greenroom(folder / "data")
        with serving(command) as owner, serving(command) as attached:
            contenders = _contenders(owner, attached)
            rates, rate_figures = _rates(plan, contenders)
            times, time_figures = _times(plan, contenders)
            kept, kept_figure = _kept(plan, folder / "data", attached)
            for contender in contenders.values():
                if isinstance(contender.job, Messages):
                    contender.job.count(owner)
    takeovers, takeover_figure = _takeovers(plan)
    return Report(
        tables=[rates, times, kept, takeovers],
        figures=[*rate_figures, *time_figures, kept_figure, takeover_figure],
    )


def _contenders(owner: Client, attached: Client) -> dict[str, Contender]:
    reads = Reads()
    reads.prepare(owner)
    contenders: dict[str, Contender] = {}
    for role, client in ((OWNER, owner), (ATTACHED, attached)):
        jobs: dict[str, Job] = {READ: reads, WRITE: Messages(client)}
        for name, job in jobs.items():
            assert client.pid is not None
            contenders[f"{name} {role}"] = Contender(client.pid, [client], job, verified)
    return contenders


def _rates(plan: Plan, contenders: dict[str, Contender]) -> tuple[Table, list[Figure]]:
    rows: list[list[Value]] = []
    figures = []
    for in_flight in plan.size((16, MANY), (16,)):
        load = Load(in_flight, plan.size(1.0, 0.1))
        turns = {place: partial(cost, contender, load) for place, contender in contenders.items()}
        rounds = take_turns(turns, plan.size(5, 1))
        found = {place: Cost(*middle(each)) for place, each in rounds.items()}
        for name in (READ, WRITE):
            own, relayed = found[f"{name} {OWNER}"], found[f"{name} {ATTACHED}"]
            share = relayed.rate / own.rate
            rows.append([name, in_flight, own.rate, relayed.rate, share, own.processor, relayed.processor])
            if in_flight == MANY:
                what = f"{name} a second through an attached process to the owner's own, {MANY} in flight"
                figures.append(Figure(what=what, value=share, least=SHARE))
    columns = ["what", "in flight", "owner /s", "attached /s", "ratio", "owner µs", "attached µs"]
    return Table(
        title="calls a second; processor time of the process asked", columns=columns, rows=rows
    ), figures


def _times(plan: Plan, contenders: dict[str, Contender]) -> tuple[Table, list[Figure]]:
    seconds = plan.size(0.5, 0.1)
    turns = {
        place: partial(sequential, contender.clients[0], contender.job, seconds)
        for place, contender in contenders.items()
    }
    rounds = take_turns(turns, plan.size(9, 1))
    found = {place: Sequential(*middle(each)) for place, each in rounds.items()}
    rows: list[list[Value]] = []
    figures = []
    for name in (READ, WRITE):
        own, relayed = found[f"{name} {OWNER}"], found[f"{name} {ATTACHED}"]
        times = relayed.median / own.median
        rows.append([name, own.median, relayed.median, times, own.percentile_99, relayed.percentile_99])
        what = f"{name} through an attached process to the owner's own, one after another, 50 %"
        figures.append(Figure(what=what, value=times, most=SLOWER))
    columns = ["what", "owner 50 % ms", "attached 50 % ms", "ratio", "owner 99 % ms", "attached 99 % ms"]
    return Table(title="one call after another", columns=columns, rows=rows), figures


def _kept(plan: Plan, data: Path, attached: Client) -> tuple[Table, Figure]:
    """Count what is kept for the attached process while it writes."""
    job = Messages(attached)
    with _counting(data) as counts:
        driven = drive([attached], job, Load(MANY, plan.size(5.0, 0.2)))
    verified(Contender(attached.pid or 0, [attached], job, verified), driven)
    job.count(attached)
    most = max(counts)
    row: list[Value] = [driven.answered, driven.rate, percentile(counts, 50), most]
    columns = ["writes", "writes /s", "answers kept, 50 %", "answers kept, most"]
    return (
        Table(title="answers that the owner keeps until they are confirmed", columns=columns, rows=[row]),
        Figure(what=f"answers kept at {driven.rate:,.0f} writes/s", value=most, most=KEPT),
    )


@contextmanager
def _counting(data: Path) -> Iterator[list[int]]:
    """Count the answers kept on the disk for relays, over and over."""
    counts: list[int] = []
    over = threading.Event()
    environment = lmdb.open(
        str(data / STORE_FILE), subdir=False, readonly=True, max_dbs=TABLES, map_size=MAP_SIZE
    )

    def count() -> None:
        table = environment.open_db(TABLE, create=False)
        while not over.wait(SAMPLE_SECONDS):
            with environment.begin(table) as reading:
                counts.append(_rows(reading))

    counter = threading.Thread(target=count)
    counter.start()
    try:
        yield counts
    finally:
        over.set()
        counter.join()
        environment.close()


def _rows(reading: lmdb.Transaction[bytes]) -> int:
    cursor = reading.cursor()
    count = 0
    if cursor.set_range(RELAYED):
        for key in cursor.iternext(values=False):
            if not key.startswith(RELAYED):
                break
            count += 1
    return count


def _takeovers(plan: Plan) -> tuple[Table, Figure]:
    """Kill owners, and take the time until each attached process has answered a call made then."""
    first: list[float] = []
    last: list[float] = []
    version = 0
    with plan.folder() as folder, ExitStack() as all_:
        command = greenroom(folder / "data")
        troupe: dict[int, tuple[Client, ExitStack]] = {}
        for _ in range(plan.size(TAKEOVERS, 2)):
            while len(troupe) < PLACES:
                stack = all_.enter_context(ExitStack())
                client = stack.enter_context(started(command, ends_well=False))
                client.begin()
                version += 1
                client.call(ToolCall("set_memory", {"key": "taken", "value": version}, {"version": version}))
                troupe[client.pid or 0] = client, stack
            _, killed = troupe.pop(owner_pid(folder / "data"))
            waits, versions = _killed(killed, [client for client, _ in troupe.values()])
            check(versions == [version + 1, version + 2], f"{versions} came after version {version}")
            version += len(versions)
            first.append(min(waits) * 1e3)
            last.append(max(waits) * 1e3)
    rows: list[list[Value]] = [
        [name, len(waits), percentile(waits, 50), max(waits)]
        for name, waits in (("the first answer", first), ("an answer from every process", last))
    ]
    columns = ["from the death of the owner to", "times", "50 % ms", "most ms"]
    return (
        Table(title=f"takeovers among {PLACES} processes", columns=columns, rows=rows),
        Figure(
            what=f"s from the death of the owner to an answer from every process, most of {len(last)}",
            value=max(last) / 1e3,
            most=TAKEOVER_SECONDS,
        ),
    )


def _killed(owner: ExitStack, survivors: list[Client]) -> tuple[list[float], list[int]]:
    """Kill the owner; return the seconds until each survivor has answered a write, and the versions."""
    kind = Kind("tools/call", "set_memory")
    owner.close()
    began = time.perf_counter()
    for client in survivors:
        client.channel.post(kind, client.call_body(client.number(), kind.name, b'{"key":"taken","value":0}'))
        client.channel.flush()
    waits: dict[int, float] = {}
    versions: list[int] = []
    with exchanging([client.channel for client in survivors]) as exchange:
        while len(waits) < len(survivors):
            come = exchange.turn(PATIENCE)
            check(come, "nobody took over")
            for number, messages in come:
                for answer in map(read_answer, messages):
                    check(
                        answer.result is not None and not answer.result.is_error, f"it is answered {answer}"
                    )
                    assert answer.result is not None
                    waits[number] = time.perf_counter() - began
                    versions.append(answer.result.told()["version"])
    return list(waits.values()), sorted(versions)
