"""The process that `embedding` starts: load one embedder, embed texts with it, tell what it took.

`python -m bench.embedders static 5000`; what it prints is JSON.
"""

from __future__ import annotations

import sys
import time

import msgspec
import trio

import greenroom.transports.cli.commands.serve  # noqa: F401  a server has all of this loaded
from bench.corpus import PLANTED
from bench.harness import check, percentile
from bench.servers import memory_of
from greenroom.actors import read_choice
from greenroom.actors.embedding.loader import load

QUERIES = 200


class Embedded(msgspec.Struct, frozen=True):
    """What an embedder took.

    Attributes:
        load_ms: From nothing to the first vectors, the libraries included.
        loaded_mb: Anonymous memory that this took.
        worked_mb: The same after all texts.
        rate: Texts a second, in batches, in one thread.
        single_us: A text by itself, as a handler embeds it; None for an embedder that takes longer.
        query_ms: A query, median.
    """

    load_ms: float
    loaded_mb: float
    worked_mb: float
    rate: float
    single_us: float | None
    query_ms: float


def text_of(number: int) -> str:
    """Return a text of some 120 characters."""
    planted = PLANTED[number % len(PLANTED)]
    return f"{planted.sentence}, and {planted.decoys[number // 4 % 2]}, which was entry {number}"


async def embed(embedder: str, count: int) -> Embedded:
    """Load it and embed so many texts."""
    before = memory_of("self").anonymous
    began = time.perf_counter()
    made = await load(read_choice(embedder))
    first = await made.embed([text_of(0)])
    load_ms = (time.perf_counter() - began) * 1e3
    loaded = memory_of("self").anonymous - before
    texts = [text_of(number) for number in range(count)]
    began = time.perf_counter()
    vectors = []
    for start in range(0, count, made.batch):
        vectors += await made.embed(texts[start : start + made.batch])
    rate = count / (time.perf_counter() - began)
    check(vectors[0] == first[0], f"{embedder} embeds a text in two ways")
    check(all(len(each.values) == made.dimensions for each in vectors), "a text has no vector")
    single = None
    if made.quick is not None:
        began = time.perf_counter()
        for text in texts:
            made.quick.embed([text])
        single = (time.perf_counter() - began) / count * 1e6
    waits = []
    for number in range(QUERIES):
        began = time.perf_counter()
        await made.query(PLANTED[number % len(PLANTED)].question)
        waits.append(time.perf_counter() - began)
    return Embedded(
        load_ms, loaded, memory_of("self").anonymous - before, rate, single, percentile(waits, 50) * 1e3
    )


if __name__ == "__main__":
    print(msgspec.json.encode(trio.run(embed, sys.argv[1], int(sys.argv[2]))).decode())
