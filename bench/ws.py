"""Requests over WebSocket, beside trio-websocket's own server that only echoes, with one client for both.

Both servers are processes of their own. The echo is sent the very frames that Greenroom is sent and
answers with frames as long as Greenroom's, so it shows what the protocol below MCP takes. The
second half is what a client costs that says nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.channels import allow_channels
from bench.client import PATIENCE, Client, ToolCall, channel_to, connected
from bench.closed_loop import Contender, Cost, Driven, Load, cost, drive, verified
from bench.harness import Figure, Plan, Report, Table, Value, check, middle, take_turns
from bench.jobs import NOTE, Job, Messages, Pings, Reads
from bench.servers import ECHO_WEBSOCKET, greenroom_websocket, listening, memory_of
from bench.wires import Kind

MANY = 64
WARM = 100  # connections before the first measurement, so that what is made once is not counted
USED = ToolCall("set_memory", {"key": "used", "value": NOTE})
READ = ToolCall("get_memory", {"key": "used"}, {"value": NOTE})


def run(plan: Plan) -> Report:
    """Compare the rates and the memory."""
    table, figures = _rates(plan)
    tables = [table]
    if Path("/proc/self/status").exists():
        table, figure = _idle(plan)
        tables.append(table)
        figures.append(figure)
    else:
        print("ws: no /proc here, so RssAnon cannot be read", file=sys.stderr)
    return Report(tables=tables, figures=figures)


def _rates(plan: Plan) -> tuple[Table, list[Figure]]:
    rows: list[list[Value]] = []
    figures: list[Figure] = []
    reads, pings = Reads(), Pings()
    with ExitStack() as stack:
        folder = stack.enter_context(plan.folder())
        server = stack.enter_context(listening(greenroom_websocket(folder / "data")))
        ours = stack.enter_context(connected(server.url))
        reads.prepare(ours)
        messages = Messages(ours)
        contenders = {}
        for name, job in (("get_memory", reads), ("ping", pings)):
            contenders[name] = Contender(server.pid, [ours], job, verified)
            contenders[f"{name}'s echo"] = stack.enter_context(_echo(ours, job))
        contenders["add_message"] = Contender(server.pid, [ours], messages, verified)
        for in_flight in plan.size((1, 16, MANY), (1, 16)):
            load = Load(in_flight, plan.size(1.0, 0.1))
            turns = {name: partial(cost, contender, load) for name, contender in contenders.items()}
            rounds = take_turns(turns, plan.size(5, 1))
            for name, each in rounds.items():
                found = Cost(*middle(each))
                ratio = None
                if f"{name}'s echo" in rounds:
                    ratio = found.rate / Cost(*middle(rounds[f"{name}'s echo"])).rate
                rows.append([in_flight, name, found.rate, ratio, found.processor])
                if in_flight == MANY and ratio is not None:
                    what = f"{name} to its echo, messages a second, {MANY} in flight"
                    figures.append(Figure(what=what, value=ratio, least=0.7))
        messages.count(ours)
    columns = ["in flight", "what", "/s", "to its echo", "server's CPU µs each"]
    return Table(title="requests over WebSocket, one connection", columns=columns, rows=rows), figures


@contextmanager
def _echo(ours: Client, job: Job) -> Iterator[Contender]:
    """Start an echo that answers with frames as long as ours; they differ by a few digits."""
    length = len(drive([ours], job, Load(1, 0)).answers[0][0])
    with listening((*ECHO_WEBSOCKET, str(length))) as server:
        client = Client(channel_to(server.url))
        try:
            yield Contender(server.pid, [client], job, _echoed)
        finally:
            client.close()


def _echoed(contender: Contender, driven: Driven) -> None:
    """Check that a server said each message again."""
    said = [contender.job.body(contender.clients[0], number) for number in driven.sent[0]]
    check([answer.rstrip() for answer in driven.answers[0]] == said, "the echo is not what was said")


def _idle(plan: Plan) -> tuple[Table, Figure]:
    count, warm = plan.size(2_000, 50), plan.size(WARM, 10)
    allow_channels()
    with plan.folder() as folder:
        with listening(greenroom_websocket(folder / "data")) as ours:
            shaken, used = _our_growth(ours.url, ours.pid, warm, count)
        with listening(ECHO_WEBSOCKET) as peer:
            echo = _peer_growth(peer.url, peer.pid, warm, count)
    rows: list[list[str | float]] = [
        ["greenroom, after MCP's handshake", shaken],
        ["greenroom, after the handshake and a tool call", used],
        ["trio-websocket's echo, after a message", echo],
    ]
    title = f"memory of {count:,} idle connections"
    what = f"RssAnon KB of an idle connection, of {count:,}, after MCP's handshake"
    return (
        Table(title=title, columns=["server", "RssAnon KB each"], rows=rows),
        Figure(what=what, value=shaken, most=60),
    )


def _our_growth(url: str, pid: int, warm: int, count: int) -> tuple[float, float]:
    """Return the KB of each connection after the handshake, and after a tool call."""
    with ExitStack() as stack:
        for _ in range(warm):
            client = stack.enter_context(connected(url))
            client.call(USED)
            client.call(READ)
        before = memory_of(pid).anonymous
        clients = [stack.enter_context(connected(url)) for _ in range(count)]
        shaken = _kilobytes(before, pid, count)
        for client in clients:
            client.call(READ)
        used = _kilobytes(before, pid, count)
        for client in clients:  # each still answers
            client.call(READ)
    return shaken, used


def _peer_growth(url: str, pid: int, warm: int, count: int) -> float:
    channels = [channel_to(url) for _ in range(warm)]
    for channel in channels:
        channel.post(Kind(""), b"warm")
        channel.wait(PATIENCE)
    before = memory_of(pid).anonymous
    for number in range(count):
        channel = channel_to(url)
        channels.append(channel)
        channel.post(Kind(""), b"%d" % number)
        check(channel.wait(PATIENCE) == [b"%d" % number], "the echo is not what was said")
    grown = _kilobytes(before, pid, count)
    for channel in channels:
        channel.close()
    return grown


def _kilobytes(before: float, pid: int, count: int) -> float:
    return (memory_of(pid).anonymous - before) * 1_000 / count
