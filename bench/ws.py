"""Tool calls over WebSocket, beside trio-websocket's own server that only echoes, with one client for both.

Both servers are processes of their own, and the client is trio-websocket without anything
around it. The echo is sent the very text of a `get_memory` call, so it shows what the protocol
below MCP and the client take. The second half is what a client costs that says nothing.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from bench.residents import memory_of
from bench.stdio_client import Load, ToolCall
from bench.websocket_client import (
    ECHO,
    Talk,
    checked_run,
    content,
    greenroom,
    listening,
    talking,
    talking_many,
)

KEYS = 100
WARM = 100  # connections before the first measurement, so that what is made once is not counted
CONTENT = "remember the milk " * 8


class Contender(NamedTuple):
    """What a server is asked, and how its answers are checked.

    Attributes:
        url: The server.
        calls: What it is asked, for as long as wanted.
        verify: Judges the answers' results in the order of the calls, or None for an echo.
    """

    url: str
    calls: Iterator[ToolCall]
    verify: Callable[[list[ToolCall], list[dict[str, Any]]], None] | None


def run(plan: Plan) -> Report:
    """Compare the rates and the memory."""
    tables, figures = [_rates(plan)], []
    if Path("/proc/self/status").exists():
        table, figure = _idle(plan)
        tables.append(table)
        figures.append(figure)
    else:
        print("ws: no /proc here, so RssAnon cannot be read", file=sys.stderr)
    return Report(tables=tables, figures=figures)


def _rates(plan: Plan) -> Table:
    rows: list[list[str | int | float]] = []
    with plan.folder() as folder, listening(greenroom(folder / "data")) as ours, listening(ECHO) as peer:
        session = checked_run(_prepared, ours.url)
        log = _Log(session)
        contenders = {
            "get_memory": Contender(ours.url, _reads(), _verify_reads),
            "add_message": Contender(ours.url, _messages(session), log.verify),
            "echo": Contender(peer.url, _reads(), None),
        }
        for in_flight in plan.size((1, 16, 64), (1, 16)):
            load = Load(in_flight, plan.size(1.0, 0.1))
            turns = {name: partial(checked_run, _drive, each, load) for name, each in contenders.items()}
            rates = medians(take_turns(turns, plan.size(5, 1)))
            read, write, echo = (rates[name] for name in contenders)
            rows.append([in_flight, read, write, echo, read / echo])
        checked_run(log.count, ours.url)
    columns = ["in flight", "get_memory /s", "add_message /s", "echo /s", "reads to echoes"]
    return Table(title="tool calls over WebSocket, one connection", columns=columns, rows=rows)


async def _prepared(url: str) -> str:
    """Store what is read, and return the id of the session that is written to."""
    async with talking(url) as talk:
        await talk.handshake()
        for key in range(KEYS):
            await talk.tool("set_memory", {"key": f"read-{key}", "value": _value(key)})
        session_id: str = (await talk.tool("create_session", {"purpose": "ws"}))["session_id"]
        return session_id


async def _drive(contender: Contender, load: Load) -> float:
    """Keep a server under a load; return the calls a second, once all answers are checked."""
    async with talking(contender.url) as talk:
        if contender.verify is not None:
            await talk.handshake()
        calls: list[ToolCall] = []
        sent: dict[int, str] = {}
        texts: list[str] = []

        async def send() -> None:
            calls.append(next(contender.calls))
            number, text = talk.call(calls[-1])
            sent[number] = text
            await talk.send(text)

        began = time.perf_counter()
        for _ in range(load.in_flight):
            await send()
        while len(texts) < len(sent):
            texts.append(await talk.receive())
            if time.perf_counter() - began < load.seconds:
                await send()
        elapsed = time.perf_counter() - began
    if contender.verify is None:
        check(texts == list(sent.values()), "the echo is not what was said")
    else:
        answers = {answer.get("id"): answer for answer in map(msgspec.json.decode, texts)}
        check(answers.keys() == sent.keys(), "the answers' ids are not those of the requests")
        contender.verify(calls, [answers[number].get("result", {}) for number in sent])
    return len(texts) / elapsed


def _value(number: int) -> dict[str, Any]:
    return {"number": number, "note": CONTENT}


def _reads() -> Iterator[ToolCall]:
    for key in itertools.cycle(range(KEYS)):
        yield ToolCall("get_memory", {"key": f"read-{key}"}, {"value": _value(key)})


def _messages(session: str) -> Iterator[ToolCall]:
    while True:
        yield ToolCall("add_message", {"session_id": session, "content": CONTENT}, {})


def _verify_reads(calls: list[ToolCall], results: list[dict[str, Any]]) -> None:
    for call, result in zip(calls, results, strict=True):
        found = content(result)
        check(found["value"] == call.expected["value"], f"{call.arguments} was answered with {found}")


class _Log:
    """The messages acknowledged so far in a session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._last = 0
        self._count = 0

    def verify(self, calls: list[ToolCall], results: list[dict[str, Any]]) -> None:
        """Judge answers: one writer's messages get rising numbers, in the order in which they were sent."""
        check(len(calls) == len(results), "not every message was answered")
        for result in results:
            number = content(result)["message_id"]
            check(number > self._last, f"message {number} came after message {self._last}")
            self._last = number
            self._count += 1

    async def count(self, url: str) -> None:
        """Check that the session holds what was acknowledged, nothing else."""
        async with talking(url) as talk:
            await talk.handshake()
            found = (await talk.tool("get_session", {"session_id": self._session}))["message_count"]
        check(found == self._count, f"{self._count} messages were acknowledged, and there are {found}")


def _idle(plan: Plan) -> tuple[Table, Figure]:
    count = plan.size(2_000, 50)
    warm = plan.size(WARM, 10)
    with plan.folder() as folder:
        with listening(greenroom(folder / "data")) as ours:
            connected, shaken, used = checked_run(_our_growth, ours.url, ours.pid, warm, count)
        with listening(ECHO) as peer:
            echo = checked_run(_peer_growth, peer.url, peer.pid, warm, count)
    rows: list[list[str | float]] = [
        ["greenroom, connected", connected],
        ["greenroom, after MCP's handshake", shaken],
        ["greenroom, after the handshake and a tool call", used],
        ["trio-websocket's echo, connected", echo],
    ]
    table = Table(
        title=f"memory of {count:,} idle connections", columns=["server", "RssAnon KB each"], rows=rows
    )
    what = f"RssAnon KB of an idle connection, of {count:,}, after MCP's handshake"
    return table, Figure(what=what, value=shaken, most=60)


async def _our_growth(url: str, pid: int, warm: int, count: int) -> list[float]:
    """Return the KB of each connection as it comes further."""
    grown = []
    async with talking_many(url, warm) as first:
        for talk in first:
            await _begin(talk)
            await talk.tool("set_memory", {"key": "used", "value": CONTENT})
            await _use(talk)
        before = memory_of(pid).anonymous
        async with talking_many(url, count) as talks:
            grown.append(_kilobytes(before, pid, count))
            for step in (_begin, _use):
                for talk in talks:
                    await step(talk)
                grown.append(_kilobytes(before, pid, count))
            for talk in talks:  # each still answers
                await _use(talk)
    return grown


async def _begin(talk: Talk) -> None:
    await talk.handshake()


async def _use(talk: Talk) -> None:
    found = await talk.tool("get_memory", {"key": "used"})
    check(found["value"] == CONTENT, f"a read was answered with {found}")


async def _peer_growth(url: str, pid: int, warm: int, count: int) -> float:
    async with talking_many(url, warm):
        before = memory_of(pid).anonymous
        async with talking_many(url, count) as talks:
            grown = _kilobytes(before, pid, count)
            for number, talk in enumerate(talks):
                await talk.send(str(number))
                check(await talk.receive() == str(number), "the echo is not what was said")
    return grown


def _kilobytes(before: float, pid: int, count: int) -> float:
    return (memory_of(pid).anonymous - before) * 1_000 / count
