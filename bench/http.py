"""What a request over HTTP costs the server, beside an app that does nothing and beside the SDK's own.

All are on hypercorn's trio worker, and are asked over connections that are kept. What counts is
the processor time of the server's process, which, unlike a rate, the client does not share.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from bench.client import ERAS, Client, Era, channel_to, connected
from bench.closed_loop import Load, drive, measured
from bench.harness import Figure, Plan, Report, Table, Value, check, take_turns
from bench.jobs import Echoes, Job, Reads
from bench.servers import (
    ASGI,
    Listening,
    greenroom,
    listening,
    processor_seconds,
)

CONNECTIONS = 8
EMPTY, OURS = "empty app", "greenroom"


class Contender(NamedTuple):
    """Some clients of a server and what they ask; an app without MCP is known by having no job to judge."""

    server: Listening
    clients: Sequence[Client]
    job: Job
    judged: bool


class Cost(NamedTuple):
    """The ms of processor time that a request takes the server, and the requests a second."""

    milliseconds: float
    rate: float


def run(plan: Plan) -> Report:
    """Compare the costs."""
    load = Load(CONNECTIONS, plan.size(1.0, 0.2))
    with ExitStack() as stack:
        folder = stack.enter_context(plan.folder())
        ours = stack.enter_context(listening(greenroom(folder / "data", "--http", "127.0.0.1:0")))
        peers = {how: stack.enter_context(listening((*ASGI, how))) for how in ("sse", "json")}
        contenders: dict[str, Contender] = {}
        reads = Reads()
        length = 0
        for era in ERAS:
            clients = stack.enter_context(_clients(ours, era))
            for client in clients:
                reads.prepare(client)
            length = len(drive(clients[:1], reads, Load(1, 0)).answers[0][0])
            contenders[f"{OURS}, {era} era"] = Contender(ours, clients, reads, judged=True)
            for how, peer in peers.items():
                clients = stack.enter_context(_clients(peer, era))
                name = f"SDK's app, {how}, {era} era"
                contenders[name] = Contender(peer, clients, Echoes(), judged=True)
        empty = stack.enter_context(listening((*ASGI, str(length))))
        clients = [Client(channel_to(empty.url)) for _ in range(CONNECTIONS)]
        contenders[EMPTY] = Contender(empty, clients, reads, judged=False)
        turns = {name: partial(_cost, each, load) for name, each in contenders.items()}
        rounds = take_turns(turns, plan.size(5, 1))
    found = {
        name: Cost(*(statistics.median(values) for values in zip(*each, strict=True)))
        for name, each in rounds.items()
    }
    floor = found[EMPTY].milliseconds
    rows: list[list[Value]] = [
        [name, each.milliseconds, each.milliseconds - floor, each.rate] for name, each in found.items()
    ]
    columns = ["server", "CPU ms a request", "above the empty app ms", "requests/s"]
    figures = [
        Figure(
            what=f"CPU ms a request above the empty app, {era} era",
            value=found[f"{OURS}, {era} era"].milliseconds - floor,
            most=0.3,
        )
        for era in ERAS
    ]
    title = f"a tool call over HTTP, {CONNECTIONS} connections"
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=figures)


@contextmanager
def _clients(server: Listening, era: Era) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connected(server.url, era=era)) for _ in range(CONNECTIONS)]


def _cost(contender: Contender, load: Load) -> Cost:
    before = processor_seconds(contender.server.pid)
    if contender.judged:
        driven = measured(contender.clients, contender.job, load)
    else:
        driven = drive(contender.clients, contender.job, load)
        check(len({answer for each in driven.answers for answer in each}) == 1, "the empty app varies")
    computed = processor_seconds(contender.server.pid) - before
    return Cost(computed * 1e3 / driven.answered, driven.rate)
