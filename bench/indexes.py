"""The processes that `index` starts: `fill` writes memories with vectors, `load` reads them in a new one."""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

import greenroom.transports.ops.cli.commands.serve  # noqa: F401  a server has all of this loaded
from bench.harness import check
from bench.servers import Memory, memory_of
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index import Document, MemoryIndex, TidyIndex
from greenroom.runtime import Actor, Address, Context, Message, Slices, handles, open_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Address("indexed", "here")
BATCH = 256
CHARACTERS = 120
DIMENSIONS = 256
SPACE = "random"
WORDS = 50_000
LOOKED_UP = 200
ADDED = 50
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or")]


class Filled(msgspec.Struct, frozen=True):
    """What `fill` prints: memories a second without vectors, and vectors a second."""

    memories: float
    vectors: float


class Loaded(msgspec.Struct, frozen=True):
    """What `load` prints; milliseconds unless said otherwise.

    Attributes:
        numpy: How long the import of numpy took.
        load: How long loading took after that.
        idle: Memory before both.
        after: Memory after both.
        lookup_us: The median of looking up the postings of one word.
        add: The median of adding one memory, until it is on disk.
        neighbours: The median of finding all neighbours anew after that.
        segments: How many segments there are.
    """

    numpy: float
    load: float
    idle: Memory
    after: Memory
    lookup_us: float
    add: float
    neighbours: float
    segments: int


class Put(Message[int], frozen=True):
    """Add memories."""

    documents: list[Document]


class Embed(Message[int], frozen=True):
    """Give some memories random vectors."""

    seed: int


class Load(Message[list[int]], frozen=True):
    """Return the sizes of the segments, and that of the tail."""


class LookUp(Message[list[int]], frozen=True):
    """Return how long finding a word takes, in nanoseconds, and who holds it."""

    word: str


class Neighbours(Message[int], frozen=True):
    """Return how long finding all neighbours takes, in nanoseconds."""


class Indexed(Actor):
    """Nothing but an index."""

    kind = "indexed"

    def activate(self, _: Context) -> None:
        """Begin with what is in the store."""
        self.index = MemoryIndex(str)

    @handles(Put)
    def put(self, message: Put, context: Context) -> Slices[int]:
        """Add memories."""
        for document in message.documents:
            yield from self.index.add(context, document)
        return len(message.documents)

    @handles(Embed)
    def embed(self, message: Embed, context: Context) -> Slices[int]:
        """Give some memories vectors."""
        ids = yield from self.index.without_vectors(context, SPACE, BATCH)
        chance = random.Random(message.seed)
        vectors = [(one, Vectors(scale=0.01, values=chance.randbytes(DIMENSIONS))) for one in ids]
        return (yield from self.index.set_vectors(context, SPACE, vectors))

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        """Keep the index in shape."""
        return self.index.compact(context)

    @handles(Load)
    def load(self, _: Load, context: Context) -> Slices[list[int]]:
        """Load it if it is not there."""
        corpus = yield from self.index.loaded(context)
        return [*(segment.size for segment in corpus.segments), corpus.tail_rows]

    @handles(LookUp)
    def look_up(self, message: LookUp, context: Context) -> Slices[list[int]]:
        """Find a word."""
        corpus = yield from self.index.loaded(context)
        began = time.perf_counter_ns()
        rows, _ = corpus.postings("text", message.word)
        elapsed = time.perf_counter_ns() - began
        return [elapsed, *map(int, corpus.ids[rows])]

    @handles(Neighbours)
    def neighbours(self, _: Neighbours, context: Context) -> Slices[int]:
        """Find them."""
        corpus = yield from self.index.loaded(context)
        began = time.perf_counter_ns()
        check(len(corpus.previous) == corpus.size, "there are neighbours of every memory")
        return time.perf_counter_ns() - began


def vocabulary() -> list[str]:
    """Return words that do not exist, always the same."""
    chance = random.Random(1)
    return list({"".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))): None for _ in range(WORDS)})


def documents(start: int, count: int, words: Sequence[str]) -> Iterator[Document]:
    """Yield memories, always the same; each has its own number as a word."""
    chance = random.Random(start)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    for number in range(start, start + count):
        text = f"n{number}"
        while len(text) < CHARACTERS:
            text += " " + chance.choices(words, cum_weights=weights)[0]
        yield Document(
            id=number,
            partition="private",
            namespace="user:me",
            text=text,
            author=f"author{number % 7}",
            tags=(f"tag{number % 50}",),
            conversation=f"talk{number // 20}",
            position=number,
        )


async def fill(data: Path, size: int) -> Filled:
    """Write so many memories, then their vectors."""
    words = vocabulary()
    async with open_runtime(data, actors=[Indexed]) as runtime:
        elapsed = 0.0
        for start in range(1, size + 1, BATCH):
            batch = list(documents(start, min(BATCH, size + 1 - start), words))
            began = time.perf_counter()
            check(await runtime.ask(HERE, Put(batch)) == len(batch), "all memories are written")
            elapsed += time.perf_counter() - began
        began = time.perf_counter()
        embedded = 0
        for seed in range(-(-size // BATCH)):
            embedded += await runtime.ask(HERE, Embed(seed))
        check(embedded == size, f"{embedded} of {size} memories have vectors")
        return Filled(size / elapsed, size / (time.perf_counter() - began))


async def load(data: Path, size: int) -> Loaded:
    """Load the index of a store, look words up, and add to it."""
    words = vocabulary()
    idle = memory_of("self")
    began = time.perf_counter()
    import numpy  # noqa: F401, ICN001, PLC0415 - what is measured

    numpy_ms = (time.perf_counter() - began) * 1e3
    async with open_runtime(data, actors=[Indexed]) as runtime:
        began = time.perf_counter()
        sizes = await runtime.ask(HERE, Load())
        load_ms = (time.perf_counter() - began) * 1e3
        check(sum(sizes) == size, f"{sum(sizes)} of {size} memories are in the index")
        after = memory_of("self")
        chance = random.Random(2)
        for number in chance.sample(range(1, size + 1), 20):
            _, *ids = await runtime.ask(HERE, LookUp(f"n{number}"))
            check(ids == [number], f"{ids} hold the word of memory {number}")
        lookups = [(await runtime.ask(HERE, LookUp(word)))[0] for word in words[:LOOKED_UP]]
        adds, neighbours = [], []
        for document in documents(size + 1, ADDED, words):
            began = time.perf_counter()
            await runtime.ask(HERE, Put([document]))
            adds.append((time.perf_counter() - began) * 1e3)
            neighbours.append(await runtime.ask(HERE, Neighbours()) / 1e6)
    return Loaded(
        numpy_ms,
        load_ms,
        idle,
        after,
        statistics.median(lookups) / 1e3,
        statistics.median(adds),
        statistics.median(neighbours),
        len(sizes) - 1,
    )


def main() -> None:
    """Do what the command line says and print the result as JSON."""
    verb, data, size = sys.argv[1:]
    do = partial(fill if verb == "fill" else load, Path(data), int(size))
    sys.stdout.buffer.write(msgspec.json.encode(trio.run(do)))


if __name__ == "__main__":
    main()
