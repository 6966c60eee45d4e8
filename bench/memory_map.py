"""The map of memories: processor time of the request for 10,000 of them, and how long its reply is.

The memories are about a few matters each with words of its own, so that vectors and links say something.
Asked is in the process that owns the store, without HTTP, after the index was loaded. The first map reads
every memory on it; before each of the others a memory was stored, since an open map is drawn anew only when
something has changed. What its page asks again and again is a list of 100 memories, with nothing stored
before. The time is that of all threads; the linear algebra has one, as the program has it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import random
import time
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, get_args

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check
from bench.imported import import_memories
from greenroom.actors import Agent, MemoryMap, MemoryMapped, Principal, StoreMemory, open_greenroom
from greenroom.actors.memories.requests.map_replies import MOST_NODES, MapKind

if TYPE_CHECKING:
    from pathlib import Path

MATTERS = 40
WORDS = 12
ADDED = 20
"""Memories that are stored at most while it is measured, and have no vectors at once."""
MOST_SECONDS = {"the first, graph": 2.0, "whether it changed": 0.1}
"""Aims; of everything else a second."""


def run(plan: Plan) -> Report:
    """Import memories, and ask for each kind of map."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size in plan.size((10_000, 100_000), (300,)):
        with plan.folder() as folder:
            source, secrets = folder / "memories.jsonl", folder / "secrets"
            source.write_text("".join(f"{json.dumps(each)}\n" for each in _memories(size)))
            import_memories(source, folder / "data", "--embedder", "static", "--secrets", str(secrets))
            for what, seconds, mapped in trio.run(_asked, folder / "data", secrets, plan.size(5, 1)):
                bytes_sent = len(msgspec.json.encode(mapped))
                placed = (len(mapped.nodes.id), len(mapped.edges.source))
                rows.append([size, what, mapped.memories, *placed, bytes_sent / 1e6, seconds])
                most = MOST_SECONDS.get(what, 1.0)
                told = f"map of {size:,} memories, {what}, processor s"
                figures.append(Figure(what=told, value=seconds, most=most))
    columns = ["memories", "asked", "shown", "nodes", "links", "reply MB", "processor s"]
    return Report(tables=[Table(title="The map of memories", columns=columns, rows=rows)], figures=figures)


def _memories(size: int) -> Iterator[dict[str, str]]:
    """Yield memories, always the same, in three namespaces and some conversations."""
    draw = random.Random(4)
    matters = [
        ["".join(draw.choices("aeioubdklmnrst", k=draw.randint(4, 9))) for _ in range(WORDS)]
        for _ in range(MATTERS)
    ]
    for number in range(size):
        matter = draw.randrange(MATTERS)
        memory = {
            "key": f"note {number}",
            "content": " ".join(draw.choices(matters[matter], k=10)),
            "namespace": f"project:bench:{matter % 3}",
        }
        yield memory | ({} if number % 4 else {"conversation_id": f"talk {matter}"})


async def _asked(data: Path, secrets: Path, times: int) -> list[tuple[str, float, MemoryMapped]]:
    """Return what was asked, its median processor time in seconds, and the last map of it."""
    async with open_greenroom(data, embedder="static", secrets=secrets) as runtime:
        agent = Agent(runtime, Principal(agent_id="bench"))
        size = (await agent.ask(MemoryMap(kind="list", limit=1))).total
        found = [("the first, graph", *await _timed(agent, MemoryMap()))]
        for kind in get_args(get_args(MapKind)[0]):
            seconds = []
            for _ in range(times):
                size += 1
                await agent.ask(StoreMemory(content=f"one more {size}", namespace="project:bench"))
                taken, mapped = await _timed(agent, MemoryMap(kind=kind))
                seconds.append(taken)
                _check(mapped, size)
            found.append((kind, median(seconds), await _unchanged(agent, kind)))
        looks = [await _timed(agent, MemoryMap(kind="list", limit=100)) for _ in range(times)]
        check(looks[-1][1].revision == found[-1][2].revision, "it seems that something has changed")
        found.append(("whether it changed", median(taken for taken, _ in looks), looks[0][1]))
        return found


async def _unchanged(agent: Agent, kind: MapKind) -> MemoryMapped:
    """Return a map that was asked for twice, with nothing changed between, not even by the embedder."""
    before = await agent.ask(MemoryMap(kind=kind))
    while True:
        again = await agent.ask(MemoryMap(kind=kind))
        if again.revision == before.revision:
            check(again == before, f"the same memories lie elsewhere on a second {kind}")
            return again
        before = again


async def _timed(agent: Agent, request: MemoryMap) -> tuple[float, MemoryMapped]:
    began = time.process_time()
    mapped = await agent.ask(request)
    return time.process_time() - began, mapped


def _check(mapped: MemoryMapped, size: int) -> None:
    check(mapped.total == size, f"{mapped.total} of {size} memories were seen")
    check(mapped.memories == min(size, MOST_NODES), f"{mapped.memories} memories are on the map")
    check(len(set(mapped.nodes.id)) == len(mapped.nodes.id), "a node is on the map twice")
    check(mapped.kind == "list" or mapped.without_vectors <= ADDED, "memories have no vectors")
