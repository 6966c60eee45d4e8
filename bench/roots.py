"""A search over as many namespaces as one asks, beside the same memories in one.

Everybody sees them all, as after an import of lines that each name a namespace of their own. The searches
name no namespace; each asks for the rarest words of another memory, which must come first, and every second
one is mistyped. The store is opened anew, so the first search reads what there is.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bench.client import ToolCall, serving
from bench.closed_loop import Sequential, sequential
from bench.corpus import conversation
from bench.harness import Figure, Plan, Report, Table, check
from bench.heavy import Asked
from bench.imported import import_memories, settle
from bench.servers import greenroom, memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from bench.client import Client

ONE = "project:bench"
MOST = 2_000.0
"""Milliseconds that a search of 990 namespaces may take, median."""
STORED = 50
TOGETHER = 1_000
"""Memories that are imported at once."""


class Found(NamedTuple):
    """What one store came to; times in milliseconds, memory in MB."""

    first: float
    searches: Sequential
    asked: int
    after_write: float
    memory: float


def run(plan: Plan) -> Report:
    """Import the same memories twice, search, and report."""
    count = plan.size(990, 300)
    contents = [f"{post.content} {number}" for number, post in enumerate(conversation(count))]
    with plan.folder() as folder:
        many = _measured(plan, folder / "many", contents, [f"team:t{n}" for n in range(count)])
        one = _measured(plan, folder / "one", contents, [ONE] * count)
    table = Table(
        title=f"memory_search without a namespace over stdio, {count:,} memories, limit 10",
        columns=[
            "namespaces",
            "first search ms",
            "50 % ms",
            "99 % ms",
            "after a write 50 % ms",
            "owners asked",
            "RssAnon MB",
        ],
        rows=[
            [
                size,
                each.first,
                *each.searches,
                each.after_write,
                each.asked,
                each.memory,
            ]
            for size, each in ((count, many), (1, one))
        ],
    )
    return Report(
        tables=[table],
        figures=[
            Figure(what=f"search of {count:,} namespaces, median ms", value=many.searches.median, most=MOST),
            Figure(what="the same after a write, median ms", value=many.after_write, most=MOST),
        ],
    )


def _measured(plan: Plan, folder: Path, contents: list[str], namespaces: list[str]) -> Found:
    folder.mkdir()
    lines = [
        {"key": f"memory-{n}", "content": content, "namespace": namespace}
        for n, (content, namespace) in enumerate(zip(contents, namespaces, strict=True))
    ]
    source = folder / "memories.jsonl"
    for start in range(0, len(lines), TOGETHER):
        source.write_bytes(b"\n".join(map(msgspec.json.encode, lines[start : start + TOGETHER])))
        import_memories(source, folder / "data", "--agent", "bench")
    with serving(greenroom(folder / "data", "--agent", "bench")) as client:
        assert client.pid is not None
        first = _timed(client, contents[0], contents[0])
        settle(client, namespaces[0])
        searches = sequential(client, Asked("memory_search", {}, contents), plan.size(20.0, 0.1))
        debug = client.call(ToolCall("memory_search", {"query": contents[0], "include_debug": True}))["debug"]
        written = []
        for n in range(plan.size(STORED, 4)):
            fresh = f"{contents[n]} kingfisher{n}"
            client.call(ToolCall("store_memory", {"content": fresh, "namespace": namespaces[-n - 1]}))
            written.append(_timed(client, fresh, f"kingfisher{n}"))
        return Found(
            first,
            searches,
            debug["namespaces"],
            statistics.median(written),
            memory_of(client.pid).anonymous,
        )


def _timed(client: Client, content: str, query: str) -> float:
    """Return how long a search for a memory takes, in milliseconds, and check that it comes first."""
    began = time.perf_counter()
    told = client.call(ToolCall("memory_search", {"query": query}))
    took = (time.perf_counter() - began) * 1e3
    first = told["memories"][0]["content"]
    check(first == content, f"memory_search found {first!r}, and {content!r} was wanted")
    return took
