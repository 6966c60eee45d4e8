"""Memory search at the wire: imported by `greenroom import`, asked over stdio, while memories are stored.

Every question has a planted answer, which must come first, with typing errors too; what is stored meanwhile
may say the same. A search follows a write
each time in the second column, so what it finds is always newer than its index was. The memory is RssAnon,
what is the process's own. Latencies are of a client that asks one thing after the other.
"""

from __future__ import annotations

import statistics
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.client import Client, ToolCall, serving
from bench.corpus import PLANTED, conversation
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.imported import import_memories, search, settle
from bench.servers import greenroom, memory_of

NAMESPACE = "project:bench"
SIZES = {600: (2, 5), 10_000: (6, 12), 100_000: (30, 60)}
"""Memories, and the most milliseconds that a search of so many may take: median, 95 %."""
STORED = 300


class Found(NamedTuple):
    """What one size came to; times in milliseconds, memory in MB."""

    imported: float
    first: float
    quiet: list[float]
    writing: list[float]
    stored: list[float]
    before: float
    after: float


def run(plan: Plan) -> Report:
    """Import, search, and report."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size, most in SIZES.items() if not plan.smoke else [(600, (2, 5))]:
        with plan.folder() as folder:
            found = _measure(folder, size, searches=plan.size(400, 16))
        rows.append(
            [
                size,
                size / found.imported,
                found.first,
                statistics.median(found.quiet),
                percentile(found.quiet, 95),
                statistics.median(found.writing),
                percentile(found.writing, 95),
                percentile(found.writing, 99),
                statistics.median(found.stored),
                found.before,
                found.after,
            ]
        )
        median, tail = statistics.median(found.writing), percentile(found.writing, 95)
        figures += [
            Figure(what=f"search of {size:,} amid writes, median ms", value=median, most=most[0]),
            Figure(what=f"search of {size:,} amid writes, 95 % ms", value=tail, most=most[1]),
        ]
    figures += [
        Figure(what="store_memory, one at a time, median ms", value=float(rows[-1][8] or 0), most=2),
        Figure(what="memories imported a second, the largest", value=float(rows[-1][1] or 0), least=2_000),
    ]
    table = Table(
        title="memory_search over stdio, hybrid, limit 10",
        columns=[
            "memories",
            "imported /s",
            "first search ms",
            "50 % ms",
            "95 % ms",
            "50 % amid writes",
            "95 % amid writes",
            "99 % amid writes",
            "store 50 % ms",
            "RssAnon MB before",
            "RssAnon MB after",
        ],
        rows=rows,
    )
    return Report(tables=[table], figures=figures)


def _measure(folder: Path, size: int, *, searches: int) -> Found:
    data = folder / "data"
    source = folder / "memories.jsonl"
    lines = [
        {"key": f"memory-{number}", "content": post.content, "created_by": post.sender}
        for number, post in enumerate(conversation(size))
    ]
    source.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    began = time.perf_counter()
    import_memories(source, data, "--agent", "bench", "--namespace", NAMESPACE)
    imported = time.perf_counter() - began
    with serving(greenroom(data, "--agent", "bench")) as client:
        assert client.pid is not None
        before = memory_of(client.pid).anonymous
        first, _ = _search(client, PLANTED[0].question)
        settle(client, NAMESPACE)
        quiet = [_checked(client, question) for question in islice(_questions(), searches)]
        writing, stored = [], []
        for number, question in enumerate(islice(_questions(), searches)):
            stored.append(_store(client, number))
            writing.append(_checked(client, question))
        after = memory_of(client.pid).anonymous
    return Found(imported, first, quiet, writing, stored, before, after)


def _questions() -> Any:
    return cycle(
        [(planted.question, planted.sentence) for planted in PLANTED]
        + [(planted.mistyped, planted.sentence) for planted in PLANTED]
    )


def _checked(client: Client, asked: tuple[str, str]) -> float:
    question, sentence = asked
    taken, told = _search(client, question)
    found = [memory["content"] for memory in told["memories"]]
    check(sentence in "".join(found[:1]), f"{question!r} found {found}, and {sentence!r} was wanted")
    return taken


def _search(client: Client, query: str) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    told = search(client, query, NAMESPACE)
    return (time.perf_counter() - began) * 1e3, told


def _store(client: Client, number: int) -> float:
    content = f"note {number}: {conversation_line(number)}"
    arguments = {"content": content, "key": f"note-{number}", "namespace": NAMESPACE}
    began = time.perf_counter()
    client.call(ToolCall("store_memory", arguments, {"version": 1}))
    return (time.perf_counter() - began) * 1e3


_LINES = [post.content for post in conversation(STORED)]


def conversation_line(number: int) -> str:
    """Return a made-up sentence."""
    return _LINES[number % STORED]
