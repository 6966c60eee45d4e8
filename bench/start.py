"""From starting the program to its first answer, beside a server that can only echo.

An AI tool starts its servers with itself, so this is waiting time of a person. The SDK's
import is in both; what is above it is ours: the store, the lock, the tools' schemas.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from bench.harness import Figure, Plan, Report, Table, check, take_turns
from bench.stdio_client import ECHO, Client, ToolCall, greenroom

ECHOED = ToolCall("echo", {"text": "hello"}, {"text": "hello"})
STORED = ToolCall("set_memory", {"key": "greeting", "value": "hello"}, {"key": "greeting"})


def run(plan: Plan) -> Report:
    """Compare the waiting times."""
    with plan.folder() as folder:
        contenders: dict[str, Callable[[], tuple[float, float]]] = {
            "greenroom": partial(_start, greenroom(folder / "data"), STORED, "greenroom"),
            "SDK echo server": partial(_start, ECHO, ECHOED, "echo"),
        }
        if not plan.smoke:
            take_turns(contenders, 1)  # so that no contender reads its modules from the disk
        results = take_turns(contenders, plan.size(15, 1))
    first = {name: statistics.median(first for first, _ in times) for name, times in results.items()}
    called = {name: statistics.median(called for _, called in times) for name, times in results.items()}
    rows: list[list[str | float]] = [[name, first[name] * 1e3, called[name] * 1e3] for name in results]
    ours, theirs = results
    above = first[ours] - first[theirs]
    rows.append(["difference", above * 1e3, (called[ours] - called[theirs]) * 1e3])
    columns = ["server", "to the first answer ms", "to the first tool's answer ms"]
    return Report(
        tables=[Table(title="starting a server on stdio", columns=columns, rows=rows)],
        figures=[Figure(what="start to first answer, seconds above the echo server", value=above, most=0.5)],
    )


def _start(command: Sequence[str], call: ToolCall, name: str) -> tuple[float, float]:
    """Return the seconds from the start to the answer to the handshake and to that of the first tool."""
    began = time.perf_counter()
    client = Client(command)
    try:
        result = client.handshake()
        answered = time.perf_counter() - began
        client.call(call)
        called = time.perf_counter() - began
        check(result["serverInfo"]["name"] == name, f"{name} did not answer with its name: {result}")
        client.close()
    finally:
        client.process.kill()
    return answered, called
