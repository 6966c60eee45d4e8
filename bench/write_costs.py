"""What one write costs in a store that is in use: bytes and rows, its upkeep included, beside one LMDB put.

The upkeep ends when nothing is written any more, and the store is closed. The put has the same bytes, in the
largest table of a copy of the same store, behind all that is there: no write can be cheaper in LMDB.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate, count, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import msgspec
import trio

from bench import meter
from bench.corpus import SEED, SYLLABLES
from bench.harness import Plan, check
from bench.servers import environment
from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMemory,
    GetMessages,
    MemorySearch,
    MemoryStats,
    Principal,
    SetMemory,
    StoreMemory,
    open_greenroom,
)

NAMESPACE: Final = "project:bench"
TEXT_BYTES: Final = 200
SESSION: Final = "measured"
WARM: Final = 100
SECRETS: Final = environment()["GREENROOM_SECRETS"]
WHO: Final = Principal(agent_id="bench", user="bench")
_ROOM: Final = 1 << 30
_APART: Final = 1_000_000
"""Between the numbers of the texts of two kinds."""


class Cost(NamedTuple):
    """What one write costs.

    Attributes:
        bytes: What is written.
        rows: What is committed until it is answered, in the median.
        rows_with_upkeep: What is committed until all is at rest, for each write.
        put: Bytes of a put of the same text in the same store.
        embedder: What makes vectors in the store.
    """

    bytes: float
    rows: float
    rows_with_upkeep: float
    put: float
    embedder: str


def texts(first: int = 0) -> Iterator[str]:
    """Yield texts of 200 bytes, without end, each with a word of its own: a number from the first one on."""
    chance = random.Random(SEED + first)
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(4_000)]
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    for number in count(first):
        said = f"note{number} " + " ".join(chance.choices(words, cum_weights=weights, k=40))
        yield said[: TEXT_BYTES - 1].rstrip().ljust(TEXT_BYTES, "x")


def costs(plan: Plan, folder: Path, quiet: float) -> dict[str, Cost]:
    """Return what each write costs, in the store of a folder, which is made there unless there is one."""
    times = plan.size(500, 20)
    trio.run(_fill, folder, times)
    return {
        name: _cost(plan, folder, Writes(name, (place + 1) * _APART), times, quiet)
        for place, name in enumerate(("add_message", "set_memory", "store_memory"))
    }


async def _fill(folder: Path, times: int) -> None:
    async with open_greenroom(folder, embedder="static", secrets=SECRETS) as runtime:
        agent = Agent(runtime, WHO)
        await agent.ask(CreateSession(session_id=SESSION, purpose="bench"))
        for number, text in enumerate(islice(texts(9 * _APART), times)):
            await agent.ask(AddMessage(session_id=SESSION, content=text))
            await agent.ask(SetMemory(key=f"filled-{number}", value=_json(text)))
            await agent.ask(StoreMemory(key=f"filled-{number}", namespace=NAMESPACE, content=text))


def _json(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(text))


class Writes:
    """Writes of one kind, each of another text.

    Args:
        name: The tool's.
        first: The number of the first text.
    """

    def __init__(self, name: str, first: int) -> None:
        self._name = name
        self._texts = texts(first)
        self._count = 0
        self._last = ""

    async def one(self, agent: Agent) -> None:
        """Write the next text."""
        self._count, self._last = self._count + 1, next(self._texts)
        key = f"{self._name}-{self._count}"
        match self._name:
            case "add_message":
                await agent.ask(AddMessage(session_id=SESSION, content=self._last))
            case "set_memory":
                await agent.ask(SetMemory(key=key, value=_json(self._last)))
            case _:
                await agent.ask(StoreMemory(key=key, namespace=NAMESPACE, content=self._last))

    async def check(self, agent: Agent) -> None:
        """Check that the last one is there."""
        key = f"{self._name}-{self._count}"
        match self._name:
            case "add_message":
                total = (await agent.ask(GetMessages(session_id=SESSION, limit=1))).total
                page = await agent.ask(GetMessages(session_id=SESSION, limit=1, offset=total - 1))
                found: Any = page.messages[-1].content
            case "set_memory":
                found = msgspec.json.decode((await agent.ask(GetMemory(key=key))).value)
            case _:
                found = (
                    (await agent.ask(MemorySearch(query=self._last, namespace=NAMESPACE))).memories[0].content
                )
        check(found == self._last, f"{self._name} wrote {self._last!r}, and there is {found!r}")


def _cost(plan: Plan, folder: Path, writes: Writes, times: int, quiet: float) -> Cost:
    put = _put(plan, folder, times)
    commits = meter.Commits()

    def written() -> int:
        if plan.sectors:
            return meter.disk_written(folder)
        return meter.handed_over("self") + commits.count * meter.PAGE

    async def work() -> tuple[int, list[int], int, str]:
        async with open_greenroom(folder, embedder="static", secrets=SECRETS) as runtime:
            agent = Agent(runtime, WHO)
            for _ in range(plan.size(WARM, 2)):
                await writes.one(agent)
            await meter.rest(written, quiet)
            before, first = written(), commits.rows
            rows = []
            for _ in range(times):
                earlier = commits.rows
                await writes.one(agent)
                rows.append(commits.rows - earlier)
            await meter.rest(written, quiet)
            await writes.check(agent)
            embedder = (await agent.ask(MemoryStats(namespace=NAMESPACE))).embedding_space
        return before, rows, first, str(embedder)

    with commits.counted():
        before, rows, first, embedder = trio.run(work)
    more = (commits.rows - first) / times
    return Cost((written() - before) / times, statistics.median(rows), more, put, embedder)


def _put(plan: Plan, folder: Path, times: int) -> float:
    """Return the bytes that a put writes."""
    with plan.folder() as other:
        copy = other / "copy.mdb"
        shutil.copyfile(folder / "greenroom.mdb", copy)
        room = copy.stat().st_size + _ROOM
        with closing(lmdb.open(os.fspath(copy), subdir=False, max_dbs=64, map_size=room)) as environment:
            table = environment.open_db(largest_table(environment), create=False)
            before = _of_lmdb(plan, other)
            for number, text in enumerate(islice(texts(), times)):
                with environment.begin(table, write=True) as transaction:
                    check(transaction.put(_key(number), text.encode()), "a put was refused")
            written = _of_lmdb(plan, other) - before
            with environment.begin(table) as transaction:
                found = transaction.get(_key(times - 1))
            check(found is not None and len(found) == TEXT_BYTES, "LMDB has lost a put")
        return written / times + (0 if plan.sectors else meter.PAGE)


def _of_lmdb(plan: Plan, folder: Path) -> int:
    return meter.disk_written(folder) if plan.sectors else meter.handed_over("self")


def _key(number: int) -> bytes:
    return b"\xff\xff%08d" % number


def largest_table(environment: lmdb.Environment) -> bytes:
    """Return the name of the table with most rows."""
    with environment.begin() as transaction:
        names = [
            name for name, _ in transaction.cursor() if b"." not in name
        ]  # what else is there is no table
    tables = {name: environment.open_db(name, create=False) for name in names}
    with environment.begin() as transaction:
        return max(names, key=lambda name: int(transaction.stat(tables[name])["entries"]))
