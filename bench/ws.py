"""Tool calls over WebSocket beside trio-websocket's bare echo, and what idle connections cost.

The echo sends a message of a call's size back without looking at it, so it shows what the
transport's share is. The client is the same for both.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.harness import Figure, Plan, Report, Table, medians, take_turns
from bench.stdio_client import Load, ToolCall, greenroom
from bench.websocket_client import Server, SocketClient, listening

ECHO = (sys.executable, "-m", "bench.websocket_echo_server")
KEYS = 100
NOTE = "remember the milk " * 8
KB_EACH = 60.0


def run(plan: Plan) -> Report:
    """Compare the rates, then count the memory."""
    with plan.folder() as folder:
        calls = _calls(plan, folder)
        idle, figure = _idle(plan, folder)
    return Report(tables=[calls, idle], figures=[figure])


def _calls(plan: Plan, folder: Path) -> Table:
    rows: list[list[str | int | float]] = []
    with listening(_ours(folder)) as server, listening(ECHO) as peer:
        ours, echo = SocketClient(server.port), SocketClient(peer.port)
        ours.handshake()
        for key in range(KEYS):
            ours.call(ToolCall("set_memory", {"key": f"read-{key}", "value": NOTE}, {"version": 1}))
        for in_flight in plan.size((1, 16, 64), (1, 16)):
            seconds = plan.size(1.0, 0.1)
            contenders: dict[str, Callable[[], float]] = {
                "get_memory": partial(ours.drive, _reads(), Load(in_flight, seconds)),
                "echo": partial(echo.echoes, NOTE, in_flight, seconds),
            }
            rates = medians(take_turns(contenders, plan.size(5, 1)))
            rows.append([in_flight, rates["get_memory"], rates["echo"], rates["get_memory"] / rates["echo"]])
        ours.close()
        echo.close()
    columns = ["in flight", "get_memory /s", "bare echo /s", "calls to echoes"]
    return Table(title="tool calls over WebSocket", columns=columns, rows=rows)


def _idle(plan: Plan, folder: Path) -> tuple[Table, Figure]:
    count = plan.size(2_000, 50)
    rows: list[list[str | int | float]] = []
    for state, prepare in (("connected", None), ("after the handshake and a call", _prepared)):
        with listening(_ours(folder)) as server:
            kept = [_client(server, prepare) for _ in range(50)]  # what the first ones cost is for all
            before = server.resident_kb()
            kept += [_client(server, prepare) for _ in range(count)]
            rows.append([state, count, (server.resident_kb() - before) / count])
            for client in kept:
                client.close()
    table = Table(title="idle connections", columns=["state", "connections", "KB each"], rows=rows)
    return table, Figure(what="memory of an idle connection, KB", value=float(rows[-1][2]), most=KB_EACH)


def _client(server: Server, prepare: Callable[[SocketClient], None] | None) -> SocketClient:
    client = SocketClient(server.port)
    if prepare is not None:
        prepare(client)
    return client


def _prepared(client: SocketClient) -> None:
    client.handshake()
    client.call(ToolCall("list_sessions", {}, {}))


def _ours(folder: Path) -> tuple[str, ...]:
    return (*greenroom(folder / "data"), "--ws", "127.0.0.1:0")


def _reads() -> Iterator[ToolCall]:
    for key in itertools.cycle(range(KEYS)):
        yield ToolCall("get_memory", {"key": f"read-{key}"}, {"value": NOTE})
