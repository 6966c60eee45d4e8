"""Connections that say nothing, and requests that never end: what they cost the others, and what is left."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.client import connected
from bench.harness import Figure, Plan, Report, Table
from bench.servers import greenroom, listening, memory_of

if TYPE_CHECKING:
    from bench.harness import Value
    from bench.servers import Listening

SILENT = 4_200
PATIENCE = 13.0  # seconds in which the silent ones are hung up on, and somewhat more
UNFINISHED = 150
BODY = 8 << 20
SETTLED = 2.0  # seconds after which what is left is looked at
SPARE = 100
HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def run(plan: Plan) -> Report:
    """Measure both."""
    silent, unfinished = plan.size(SILENT, 40), plan.size(UNFINISHED, 5)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, silent + SPARE), hard))
    rows: list[list[Value]] = []
    figures: list[Figure] = []
    for transport in ("ws", "http"):
        with (
            plan.folder() as folder,
            listening(greenroom(folder / "data", f"--{transport}", "127.0.0.1:0")) as server,
        ):
            longest, entry = _crowded(server, silent, plan.size(PATIENCE, 0.5))
        rows.append([transport, silent, longest * 1e3, entry * 1e3])
        what = f"{transport}: longest ms of a connected client beside {silent:,} silent ones"
        figures.append(Figure(what=what, value=longest * 1e3, most=100))
    with plan.folder() as folder, listening(greenroom(folder / "data", "--http", "127.0.0.1:0")) as server:
        memory = _unfinished(server, unfinished, plan.size(SETTLED, 0.1))
    figures.append(Figure(what="MB left of unfinished requests", value=memory[2] - memory[0], most=50))
    return Report(
        tables=[
            Table(
                title="silent connections of this machine",
                columns=["transport", "silent", "longest ms of a ping beside them", "ms to come in"],
                rows=rows,
            ),
            Table(
                title=f"{unfinished} requests of 8 MiB that never end, without keys: RssAnon in MB",
                columns=["before", "while they are open", "after"],
                rows=[list(memory)],
            ),
        ],
        figures=figures,
    )


def _crowded(server: Listening, silent: int, patience: float) -> tuple[float, float]:
    """Return the longest time of a ping, and that of coming in; both in seconds."""
    longest = 0.0
    with connected(server.url) as friend, ExitStack() as stack:
        for _ in range(silent):
            stack.enter_context(socket.create_connection(_place(server)))
        began = time.perf_counter()
        with connected(server.url) as late:
            late.ask("ping")
            entry = time.perf_counter() - began
        while time.perf_counter() - began < patience:
            asked = time.perf_counter()
            friend.ask("ping")
            longest = max(longest, time.perf_counter() - asked)
            time.sleep(0.005)
    return longest, entry


def _unfinished(server: Listening, count: int, settled: float) -> tuple[float, float, float]:
    before = memory_of(server.pid).anonymous
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(_place(server)))
            connection.sendall(HEAD % BODY + b" " * (BODY - (1 << 20)))
        during = memory_of(server.pid).anonymous
    time.sleep(settled)
    return before, during, memory_of(server.pid).anonymous


def _place(server: Listening) -> tuple[str, int]:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port
