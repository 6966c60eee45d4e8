"""What a request over HTTP costs the server, beside an app that does nothing and beside the SDK's own.

All are on hypercorn's trio worker, and are asked over connections that are kept. What counts is
the processor time of the server's process, which, unlike a rate, the client does not share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.client import ERAS, Client, Era, channel_to, connected
from bench.closed_loop import Contender, Cost, Driven, Load, cost, drive, verified
from bench.harness import Figure, Plan, Report, Table, Value, check, middle, take_turns
from bench.jobs import Echoes, Reads
from bench.servers import (
    ASGI,
    Listening,
    greenroom,
    listening,
)

CONNECTIONS = 8
EMPTY, OURS = "empty app", "greenroom"


def run(plan: Plan) -> Report:
    """Compare the costs."""
    load = Load(CONNECTIONS, plan.size(1.0, 0.2))
    with ExitStack() as stack:
        contenders = _contenders(plan, stack)
        turns = {name: partial(cost, each, load) for name, each in contenders.items()}
        rounds = take_turns(turns, plan.size(5, 1))
    found = {name: Cost(*middle(each)) for name, each in rounds.items()}
    milliseconds = {name: each.processor / 1e3 for name, each in found.items()}
    floor = milliseconds[EMPTY]
    rows: list[list[Value]] = [
        [name, each, each - floor, found[name].rate] for name, each in milliseconds.items()
    ]
    columns = ["server", "CPU ms a request", "above the empty app ms", "requests/s"]
    figures = [
        Figure(
            what=f"CPU ms a request above the empty app, {era} era",
            value=milliseconds[f"{OURS}, {era} era"] - floor,
            most=0.3,
        )
        for era in ERAS
    ]
    title = f"a tool call over HTTP, {CONNECTIONS} connections"
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=figures)


def _contenders(plan: Plan, stack: ExitStack) -> dict[str, Contender]:
    folder = stack.enter_context(plan.folder())
    ours = stack.enter_context(listening(greenroom(folder / "data", "--http", "127.0.0.1:0")))
    peers = {how: stack.enter_context(listening((*ASGI, how))) for how in ("sse", "json")}
    contenders: dict[str, Contender] = {}
    reads = Reads()
    length = 0
    for era in ERAS:
        clients = stack.enter_context(_clients(ours, era))
        reads.prepare(clients[0])  # they are all one agent's
        length = len(drive(clients[:1], reads, Load(1, 0)).answers[0][0])
        contenders[f"{OURS}, {era} era"] = Contender(ours.pid, clients, reads, verified)
        for how, peer in peers.items():
            clients = stack.enter_context(_clients(peer, era))
            name = f"SDK's app, {how}, {era} era"
            contenders[name] = Contender(peer.pid, clients, Echoes(), verified)
    empty = stack.enter_context(listening((*ASGI, str(length))))
    clients = [Client(channel_to(empty.url)) for _ in range(CONNECTIONS)]
    for client in clients:
        stack.callback(client.close)
    contenders[EMPTY] = Contender(empty.pid, clients, reads, _unchanged)
    return contenders


@contextmanager
def _clients(server: Listening, era: Era) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connected(server.url, era=era)) for _ in range(CONNECTIONS)]


def _unchanged(_contender: Contender, driven: Driven) -> None:
    """Check that the empty app gave one answer only."""
    check(len({answer for each in driven.answers for answer in each}) == 1, "the empty app varies")
