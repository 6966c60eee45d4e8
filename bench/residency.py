"""A million sessions on disk: what an idle server holds in memory, and what touching many costs.

One process fills the store, another opens it and is measured, so that the filling leaves
nothing behind. What counts is RssAnon, the memory that is the process's own; the pages of
the store that it looked at are the system's cache (RssFile) and stand beside it. The last
row is `greenroom serve` itself, asked over stdio.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.harness import Figure, Plan, Report, Table, check
from bench.residents import Filled, Memory, Touched, chosen, memory_of, session_of
from bench.stdio_client import Load, ToolCall, greenroom, serving


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
        client.call(_read(0))
        idle = memory_of(client.process.pid)
        rate = client.drive(map(_read, chosen(sessions, touches)), Load(64, float("inf")))
        return (idle, memory_of(client.process.pid)), rate


def _read(number: int) -> ToolCall:
    session_id = session_of(number)
    return ToolCall("get_session", {"session_id": session_id}, {"message_count": 0})
