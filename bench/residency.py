"""A million sessions on disk: what an idle server holds in memory, and what touching many costs.

One process fills the store, another opens it and is measured, so that the filling leaves
nothing behind. What counts is RssAnon, the memory that is the process's own; the pages of
the store that it looked at are the system's cache (RssFile) and stand beside it. The last
row is `greenroom serve` itself, asked over stdio.
"""

from __future__ import annotations

import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Client, ToolCall, serving
from bench.closed_loop import Contender, Load, cost, verified
from bench.harness import Figure, Plan, Report, Table, check
from bench.residents import Filled, Touched, chosen, session_of
from bench.servers import Memory, greenroom, memory_of
from bench.wires import Kind


def run(plan: Plan) -> Report:
    """Fill, touch, and report."""
    if not Path("/proc/self/status").exists():
        print("residency: no /proc here, so RssAnon cannot be read", file=sys.stderr)
        return Report(tables=[])
    sessions, touches = plan.size(1_000_000, 2_000), plan.size(100_000, 500)
    with plan.folder() as folder:
        data = folder / "data"
        filled = msgspec.json.decode(_child("fill", data, sessions), type=Filled)
        touched = msgspec.json.decode(_child("touch", data, sessions, touches), type=Touched)
        served, rate = _served(data, sessions, touches)
    rows: list[list[str | float]] = [
        ["in process, idle", *touched.idle.row()],
        [f"in process, {touches:,} touched", *touched.after.row()],
        ["`greenroom serve`, idle", *served[0].row()],
        [f"`greenroom serve`, {touches:,} touched", *served[1].row()],
    ]
    memory = Table(
        title=f"memory with {sessions:,} stored sessions",
        columns=["process", "RssAnon MB", "RssFile MB", "VmRSS MB"],
        rows=rows,
    )
    speed = Table(
        title="sessions",
        columns=["what", "value"],
        rows=[
            ["created, durability process, 512 in flight /s", filled.rate],
            ["bytes of the store's file for each", filled.file_bytes / sessions],
            ["opened and read, one after another, median ms", touched.median_ms],
            ["opened and read, one after another, 99 % ms", touched.percentile_ms],
            ["opened and read, 64 in flight /s", touched.rate],
            ["the same through `greenroom serve` /s", rate],
            ["resident at the end", touched.resident],
        ],
    )
    figures = [
        Figure(what=f"RssAnon MB, {who}, {when}", value=value.anonymous, most=most)
        for who, pair in (("in process", (touched.idle, touched.after)), ("serve", served))
        for value, when, most in ((pair[0], "idle", 90), (pair[1], f"{touches:,} touched", 250))
    ]
    return Report(tables=[memory, speed], figures=figures)


def _child(*arguments: object) -> bytes:
    command = [sys.executable, "-m", "bench.residents", *map(str, arguments)]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    check(child.returncode == 0, f"{arguments[0]} ended with code {child.returncode}")
    return child.stdout


def _served(data: Path, sessions: int, touches: int) -> tuple[tuple[Memory, Memory], float]:
    with serving(greenroom(data)) as client:
        assert client.pid is not None
        client.call(ToolCall("get_session", {"session_id": session_of(0)}, {"messages": []}))
        idle = memory_of(client.pid)
        openings = Contender(client.pid, [client], _Openings(sessions), verified)
        reached = cost(openings, Load(64, inf, touches))
        return (idle, memory_of(client.pid)), reached.rate


class _Openings:
    """Reads of sessions all over the store, none of them twice."""

    kind = Kind("tools/call", "get_session")

    def __init__(self, sessions: int) -> None:
        self._sessions = sessions

    def body(self, client: Client, number: int) -> bytes:
        return client.call_body(
            number, "get_session", b'{"session_id":"%b"}' % self._session(number).encode()
        )

    def judge(self, number: int, told: Any) -> None:
        found = told["session"]["session_id"]
        check(found == self._session(number), f"{found} answers the reading of {self._session(number)}")

    def _session(self, number: int) -> str:
        return session_of(chosen(number, self._sessions))
