"""Tool calls over stdio, beside a server that can only echo, with one cheap client for both.

The echo server does nothing but MCP, so it shows what the protocol's share is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.harness import Plan, Report, Table, medians, take_turns
from bench.stdio_client import ECHO, Load, ToolCall, greenroom, serving

KEYS = 100


def run(plan: Plan) -> Report:
    """Compare the rates."""
    rows: list[list[str | int | float]] = []
    versions: Counter[int] = Counter()
    with plan.folder() as folder, serving(greenroom(folder / "data")) as ours, serving(ECHO) as peer:
        for key in range(KEYS):
            ours.call(ToolCall("set_memory", {"key": f"read-{key}", "value": _value(key)}, {"version": 1}))
        for in_flight in plan.size((1, 16, 64), (1, 16)):
            load = Load(in_flight, plan.size(1.0, 0.1))
            contenders: dict[str, Callable[[], float]] = {
                "get_memory": partial(ours.drive, _reads(), load),
                "set_memory": partial(ours.drive, _writes(versions), load),
                "echo": partial(peer.drive, _echoes(), load),
            }
            rates = medians(take_turns(contenders, plan.size(5, 1)))
            read, write, echo = (rates[name] for name in ("get_memory", "set_memory", "echo"))
            rows.append([in_flight, read, write, echo, read / echo])
        for key, version in versions.items():
            ours.call(ToolCall("get_memory", {"key": f"write-{key}"}, {"version": version}))
    columns = ["in flight", "get_memory /s", "set_memory /s", "SDK echo /s", "reads to echoes"]
    return Report(tables=[Table(title="tool calls over stdio", columns=columns, rows=rows)])


def _value(number: int) -> dict[str, Any]:
    return {"number": number, "note": "remember the milk " * 8}


def _reads() -> Iterator[ToolCall]:
    for key in itertools.cycle(range(KEYS)):
        yield ToolCall("get_memory", {"key": f"read-{key}"}, {"value": _value(key)})


def _writes(versions: Counter[int]) -> Iterator[ToolCall]:
    """Yield writes whose answers must count the versions of each key, so that a lost or doubled one shows."""
    for key in itertools.cycle(range(KEYS)):
        versions[key] += 1
        yield ToolCall(
            "set_memory", {"key": f"write-{key}", "value": _value(key)}, {"version": versions[key]}
        )


def _echoes() -> Iterator[ToolCall]:
    for number in itertools.count():
        text = f"{number} " + "remember the milk " * 8
        yield ToolCall("echo", {"text": text}, {"text": text})
