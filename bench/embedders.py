"""The process that `embedding` starts: one embedder, alone and in a store that changes to it.

`python -m bench.embedders static 5000`, or of MiniLM `... numpy 500 MODELS` and `... onnxruntime 500 MODELS`,
where MODELS is the folder in which it is installed; what it prints is JSON.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the program has it

import sys
import tempfile
import time
from pathlib import Path

import msgspec
import trio

import greenroom.transports.ops.cli.commands.serve  # noqa: F401  a server has all of this loaded
from bench.corpus import PLANTED
from bench.harness import check, percentile
from bench.servers import memory_of
from greenroom.actors import (
    Agent,
    EmbedderChoice,
    GetEmbedding,
    MemorySearch,
    Principal,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.search.embedding.embedder import Embedder
from greenroom.actors.search.embedding.embedder_loader import load
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.runtime import RuntimeOptions

QUERIES = 200
NEAR = 0.999
LOOK_SECONDS = 0.25
SELDOM = 12
"""It is searched each twelfth look, so that most of the time nobody searches."""
FIRST = 4
"""Sentences like those of `PLANTED` come in fours, with other decoys and numbers."""


class Embedded(msgspec.Struct, frozen=True):
    """What an embedder took.

    Attributes:
        load_ms: From nothing to the first vectors, the libraries included.
        loaded_mb: Anonymous memory that this took.
        worked_mb: The same after all texts.
        rate: Texts a second, in batches, in as many threads as it takes.
        single_us: A text by itself, as a handler embeds it; None for an embedder that takes longer.
        query_ms: A query, median.
        change_s: Until a store of as many memories, which had other vectors, had all of its own.
        search_ms: A search in it before, median.
        during_ms: A search in it meanwhile, median.
    """

    load_ms: float
    loaded_mb: float
    worked_mb: float
    rate: float
    single_us: float | None
    query_ms: float
    change_s: float | None = None
    search_ms: float | None = None
    during_ms: float | None = None


def text_of(number: int) -> str:
    """Return a text of some 120 characters."""
    planted = PLANTED[number % len(PLANTED)]
    return f"{planted.sentence}, and {planted.decoys[number // 4 % 2]}, which was entry {number}"


def choice_of(name: str, models: Path | None) -> EmbedderChoice:
    """Return the embedder that is meant; without onnxruntime where numpy is."""
    if name == "static":
        return EmbedderChoice(kind="static")
    if name == "numpy":
        sys.modules["greenroom.actors.search.embedding.models.minilm_onnx"] = None  # type: ignore[assignment]
    return EmbedderChoice(kind="minilm", models=models)


def likeness(one: Vectors, other: Vectors) -> float:
    """Return the cosine of two texts' vectors."""
    pairs = zip(memoryview(one.values).cast("b"), memoryview(other.values).cast("b"), strict=True)
    return sum(a * b for a, b in pairs) * one.scale * other.scale


async def measure(name: str, count: int, models: Path | None) -> Embedded:
    """Measure it alone, and where it takes texts in the background also in a store."""
    choice = choice_of(name, models)
    alone = await embed(choice, count)
    if name == "static":
        return alone
    return msgspec.structs.replace(alone, **await change(choice, count))


async def embed(choice: EmbedderChoice, count: int) -> Embedded:
    """Load it and embed so many texts."""
    before = memory_of("self").anonymous
    began = time.perf_counter()
    made = await load(choice)
    first = await made.embed([text_of(0)])
    load_ms = (time.perf_counter() - began) * 1e3
    loaded = memory_of("self").anonymous - before
    texts = [text_of(number) for number in range(count)]
    began = time.perf_counter()
    vectors = []
    for start in range(0, count, made.batch):
        vectors += await made.embed(texts[start : start + made.batch])
    rate = count / (time.perf_counter() - began)
    check(likeness(vectors[0], first[0]) > NEAR, f"{choice} embeds a text in two ways")
    check(all(len(each.values) == made.dimensions for each in vectors), "a text has no vector")
    worked = memory_of("self").anonymous - before
    return Embedded(load_ms, loaded, worked, rate, _single(made, texts), await _query_ms(made))


def _single(made: Embedder, texts: list[str]) -> float | None:
    if made.quick is None:
        return None
    began = time.perf_counter()
    for text in texts:
        made.quick.embed([text])
    return (time.perf_counter() - began) / len(texts) * 1e6


async def _query_ms(made: Embedder) -> float:
    waits = []
    for number in range(QUERIES):
        began = time.perf_counter()
        await made.query(f"{PLANTED[number % len(PLANTED)].question} {number}")
        waits.append(time.perf_counter() - began)
    return percentile(waits, 50) * 1e3


async def change(choice: EmbedderChoice, count: int) -> dict[str, float]:
    """Change a store of so many memories to an embedder, and search it meanwhile."""
    options = RuntimeOptions(durability="process")
    with tempfile.TemporaryDirectory() as folder:
        async with open_greenroom(folder, embedder="static", options=options) as runtime:
            agent = Agent(runtime, Principal(agent_id="bench"))
            for number in range(count):
                await agent.ask(StoreMemory(content=text_of(number)))
            await _search(agent, 0)
            search = [await _search(agent, number) for number in range(QUERIES)]
        async with open_greenroom(folder, embedder=choice, options=options) as runtime:
            agent = Agent(runtime, Principal(agent_id="bench"))
            await _search(agent, 0)
            began = time.perf_counter()
            during: list[float] = []
            looks = 0
            while (found := await runtime.query(GetEmbedding())).actors_waiting or found.state != "ready":
                check(found.state in {"loading", "ready"}, f"{choice} does not embed: {found.trouble}")
                if looks % SELDOM == 0:
                    during.append(await _search(agent, len(during)))
                looks += 1
                await trio.sleep(LOOK_SECONDS)
            took = time.perf_counter() - began
            check(found.embedded == count, f"of {count} memories {found.embedded} were embedded")
            await _search(agent, 1)
    times = {"search_ms": percentile(search, 50) * 1e3}
    return times | {"change_s": took, "during_ms": percentile(during, 50) * 1e3 if during else 0.0}


async def _search(agent: Agent, number: int) -> float:
    """Search for what is there many times over; return how long it took."""
    planted = PLANTED[number % len(PLANTED)]
    began = time.perf_counter()
    found = await agent.ask(MemorySearch(query=f"{planted.question} {number}", limit=FIRST))
    took = time.perf_counter() - began
    contents = [str(each.content) for each in found.memories]
    check(any(planted.sentence in each for each in contents), f"{planted.question} finds {contents}")
    check(not found.partial, "a search is partial")
    return took


if __name__ == "__main__":
    place = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    print(msgspec.json.encode(trio.run(measure, sys.argv[1], int(sys.argv[2]), place)).decode())
