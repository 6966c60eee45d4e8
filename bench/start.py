"""From starting the program to its answers, beside a server on the SDK that can only echo.

An AI tool starts its servers with itself, so this is waiting time of a person. What is read
was stored before, so the first read opens the store and an actor.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from bench.client import ToolCall, serving, started
from bench.harness import Figure, Plan, Report, Table, check, medians, middle, take_turns
from bench.servers import ECHO, greenroom

ECHOED = ToolCall("echo", {"text": "hello"}, {"text": "hello"})
STORED = ToolCall("set_memory", {"key": "greeting", "value": "hello"}, {"version": 1})
READ = ToolCall("get_memory", {"key": "greeting"}, {"value": "hello"})


IMPORTED = ("sys", "greenroom.runtime", "greenroom.actors", "greenroom.transports.ops.cli.main")


class Start(NamedTuple):
    """Seconds from the start to the answers: the handshake's, the list's, that of the first call."""

    handshake: float
    listed: float
    called: float


def run(plan: Plan) -> Report:
    """Compare the waiting times."""
    with plan.folder() as folder:
        command = greenroom(folder / "data")
        with serving(command) as client:
            client.call(STORED)
        contenders: dict[str, Callable[[], Start]] = {
            "greenroom": partial(_start, command, "greenroom", READ),
            "SDK echo server": partial(_start, ECHO, "echo", ECHOED),
        }
        if not plan.smoke:
            take_turns(contenders, 1)  # so that no contender reads its modules from the disk
        results = take_turns(contenders, plan.size(15, 1))
    ours, theirs = [Start(*middle(starts)) for starts in results.values()]
    rows: list[list[str | float]] = [
        [name, *(seconds * 1e3 for seconds in start)]
        for name, start in zip(results, (ours, theirs), strict=True)
    ]
    ratios = [mine / peer for mine, peer in zip(ours, theirs, strict=True)]
    rows.append(["ratio", *ratios])
    columns = ["server", "to initialize ms", "to tools/list ms", "to the first call ms"]
    figures = [
        Figure(what=f"start {column.removesuffix(' ms')}, to that of the echo server", value=ratio, most=0.5)
        for column, ratio in zip(columns[1:], ratios, strict=True)
    ]
    started_in = Table(title="starting a server on stdio", columns=columns, rows=rows)
    return Report(tables=[started_in, _imports(plan)], figures=figures)


def _imports(plan: Plan) -> Table:
    """Measure what a program waits for that imports a part of Greenroom, the interpreter's start included."""
    contenders = {name: partial(_import_seconds, name) for name in IMPORTED}
    results = medians(take_turns(contenders, plan.size(15, 1)))
    rows: list[list[str | float]] = [[name, seconds * 1e3] for name, seconds in results.items()]
    return Table(title="importing in a new process", columns=["module", "processor time ms"], rows=rows)


def _import_seconds(name: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(command: Sequence[str], name: str, call: ToolCall) -> Start:
    began = time.perf_counter()
    with started(command) as client:
        result = client.begin()
        handshake = time.perf_counter() - began
        tools = client.ask("tools/list")["tools"]
        listed = time.perf_counter() - began
        client.call(call)
        called = time.perf_counter() - began
        check(result["serverInfo"]["name"] == name, f"{name} did not answer with its name: {result}")
        check(call.tool in [tool["name"] for tool in tools], f"{call.tool} is not listed")
    return Start(handshake, listed, called)
