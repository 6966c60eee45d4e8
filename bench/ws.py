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
from bench.closed_loop import Load, drive, rate
from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
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
    rows: list[list[str | int | float]] = []
    figures: list[Figure] = []
    reads, pings = Reads(), Pings()
    with ExitStack() as stack:
        folder = stack.enter_context(plan.folder())
        server = stack.enter_context(listening(greenroom_websocket(folder / "data")))
        ours = stack.enter_context(connected(server.url))
        reads.prepare(ours)
        messages = Messages(ours)
        read_echo = stack.enter_context(_echo(_answer_length(ours, reads)))
        ping_echo = stack.enter_context(_echo(_answer_length(ours, pings)))
        for in_flight in plan.size((1, 16, MANY), (1, 16)):
            load = Load(in_flight, plan.size(1.0, 0.1))
            contenders = {
                "get_memory": partial(rate, [ours], reads, load),
                "its echo": partial(_echoed, read_echo, reads, load),
                "ping": partial(rate, [ours], pings, load),
                "its echo ": partial(_echoed, ping_echo, pings, load),
                "add_message": partial(rate, [ours], messages, load),
            }
            read, echo, ping, short_echo, write = medians(take_turns(contenders, plan.size(5, 1))).values()
            rows.append([in_flight, read, echo, read / echo, ping, short_echo, ping / short_echo, write])
            if in_flight == MANY:
                figures += [
                    Figure(what=f"{what} to its echo, {MANY} in flight", value=ratio, least=0.7)
                    for what, ratio in (("get_memory", read / echo), ("ping", ping / short_echo))
                ]
        messages.count(ours)
    columns = ["in flight", "get_memory /s", "its echo /s", "ratio", "ping /s", "its echo /s", "ratio"]
    columns.append("add_message /s")
    return Table(title="requests over WebSocket, one connection", columns=columns, rows=rows), figures


@contextmanager
def _echo(length: int) -> Iterator[Client]:
    with listening((*ECHO_WEBSOCKET, str(length))) as server:
        client = Client(channel_to(server.url))
        try:
            yield client
        finally:
            client.close()


def _answer_length(client: Client, job: Job) -> int:
    """Return how long an answer is; they differ by a few digits."""
    return len(drive([client], job, Load(1, 0)).answers[0][0])


def _echoed(client: Client, job: Job, load: Load) -> float:
    """Return the messages a second of a server that says each again."""
    driven = drive([client], job, load)
    said = [job.body(client, number) for number in driven.sent[0]]
    check([answer.rstrip() for answer in driven.answers[0]] == said, "the echo is not what was said")
    return driven.rate


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
