"""The map of memories: processor time of the request for 10,000 of them, and how long its reply is.

The memories are about a few matters each with words of its own, so that vectors and links say something.
Asked is in the process that owns the store, without HTTP; the first request of each kind, which loads the
index, is not counted. The time is that of all threads.
"""

from __future__ import annotations

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
from greenroom.actors import Agent, MemoryMap, MemoryMapped, Principal, open_greenroom
from greenroom.actors.schemas.memory_map import MOST_NODES, MapKind

if TYPE_CHECKING:
    from pathlib import Path

MATTERS = 40
WORDS = 12


def run(plan: Plan) -> Report:
    """Import memories, and ask for each kind of map."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size in plan.size((10_000, 100_000), (300,)):
        with plan.folder() as folder:
            source, secrets = folder / "memories.jsonl", folder / "secrets"
            source.write_text("".join(f"{json.dumps(each)}\n" for each in _memories(size)))
            import_memories(source, folder / "data", "--embedder", "static", "--secrets", str(secrets))
            for kind, seconds, mapped in trio.run(_asked, folder / "data", secrets, plan.size(5, 1)):
                _check(mapped, size)
                bytes_sent = len(msgspec.json.encode(mapped))
                placed = (len(mapped.nodes.id), len(mapped.edges.source))
                rows.append([size, kind, mapped.memories, *placed, bytes_sent / 1e6, seconds])
                what = f"map of {size:,} memories as {kind}, processor s"
                figures.append(Figure(what=what, value=seconds, most=2))
    columns = ["memories", "placed by", "shown", "nodes", "links", "reply MB", "processor s"]
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
    """Return the median processor time of each kind of map, in seconds, and the map."""
    found = []
    async with open_greenroom(data, embedder="static", secrets=secrets) as runtime:
        agent = Agent(runtime, Principal(agent_id="bench"))
        for kind in get_args(get_args(MapKind)[0]):
            first = await agent.ask(MemoryMap(kind=kind))
            seconds = []
            for _ in range(times):
                began = time.process_time()
                again = await agent.ask(MemoryMap(kind=kind))
                seconds.append(time.process_time() - began)
                check(again == first, f"the same memories lie elsewhere on a second {kind}")
            found.append((kind, median(seconds), first))
    return found


def _check(mapped: MemoryMapped, size: int) -> None:
    check(mapped.total == size, f"{mapped.total} of {size} memories were seen")
    check(mapped.memories == min(size, MOST_NODES), f"{mapped.memories} memories are on the map")
    check(len(set(mapped.nodes.id)) == len(mapped.nodes.id), "a node is on the map twice")
    check(mapped.kind == "list" or mapped.without_vectors == 0, "memories have no vectors")
