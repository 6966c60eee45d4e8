"""How many bytes and rows Greenroom writes, and how large its stores are, beside LMDB, SQLite and the text.

A server over stdio gets an import, is asked, and is ended when nothing is written any more; the store is
measured then, and what was written is everything since its start. Likewise a workspace, documents, and
messages. Single writes are in `bench.write_costs`, what counts as written in `bench.meter`. The vectors are
static ones.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no hints
import trio

from bench import durable, durable_sqlite, ingest, meter, workspace
from bench.client import Client, ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, Value, check, medians, take_turns
from bench.imported import import_memories, search, settle
from bench.lmdb_peer import through_lmdb
from bench.records import Load
from bench.servers import greenroom, memory_of
from bench.source_trees import copies, write_tree
from bench.varied import write_varied
from bench.write_costs import NAMESPACE, SECRETS, TEXT_BYTES, WHO, Cost, costs, texts
from greenroom.actors import AddMessage, Agent, CreateSession, GetMessages, open_greenroom

FLAGS: Final = ("--embedder", "static", "--user", "bench", "--agent", "bench")
SESSIONS: Final = 30
ASKED: Final = 20
MOST_BYTES: Final[dict[str, float]] = {"set_memory": 35, "store_memory": 40}
MOST_ROWS: Final = {"add_message": 2, "set_memory": 3, "store_memory": 4}
MANY: Final = 300_000
"""Memories with which a server's own memory has its limit."""
_QUIET: Final = 10.0
"""Seconds in which next to nothing is written when a store is at rest; longer than derived rows wait."""
_MB: Final = 1e6


class Stored(NamedTuple):
    """What became of some texts.

    Attributes:
        items: How many there are.
        text: Their bytes.
        written: What was written until the store was closed, in bytes.
        file: The bytes of its file.
        used: Those of its pages in use.
        memory: The server's own memory at the end, in MB.
    """

    items: int
    text: int
    written: int
    file: int
    used: int
    memory: float = 0.0

    def row(self, name: str) -> list[Value]:
        """Return a row of the table."""
        return [
            *(name, self.items, self.text / _MB, self.written / _MB, self.file / _MB),
            *(self.written / self.file, self.file / self.text, self.used / self.text),
        ]


def run(plan: Plan) -> Report:
    """Measure all of it."""
    if not meter.CAN_MEASURE:
        return Report(tables=[Table(title="what is written is counted on Linux alone", columns=[], rows=[])])
    quiet = plan.size(_QUIET, 1.0)
    with plan.folder() as folder:
        each = costs(plan, folder / "data", quiet)
    stored = {}
    for name, fill in {
        "memories": _memories,
        "messages": _messages,
        "documents": _documents,
        "workspace": _workspace,
    }.items():
        with plan.folder() as folder:
            stored[name] = fill(plan, folder, quiet)
            if name == "memories":
                among = costs(plan, folder / "data", quiet)
    load = Load(1, plan.size(0.7, 0.05))
    contenders: dict[str, Callable[[], float]] = {
        "greenroom": partial(durable.through_the_runtime, "power", load, plan),
        "SQLite": partial(durable.through_sqlite, durable_sqlite.direct, "FULL", load, plan),
        "LMDB": partial(through_lmdb, load, plan),
    }
    return _report(each, among, stored, take_turns(contenders, plan.size(15, 1)))


def _of_single(title: str, each: dict[str, Cost]) -> Table:
    return Table(
        title=title,
        columns=["write", "kB", "kB of a put", "ratio", "rows", "rows with upkeep"],
        rows=[
            [
                *(name, cost.bytes / 1_024, cost.put / 1_024, cost.bytes / cost.put),
                *(cost.rows, cost.rows_with_upkeep),
            ]
            for name, cost in each.items()
        ],
    )


def _report(
    each: dict[str, Cost],
    among: dict[str, Cost],
    stored: dict[str, Stored],
    rounds: dict[str, list[float]],
) -> Report:
    rates = medians(rounds)
    embedder = next(iter(each.values())).embedder
    tables = [
        _of_single(f"one write of {TEXT_BYTES} bytes, vectors: {embedder}", each),
        _of_single(f"the same in the store of {stored['memories'].items:,} memories", among),
        Table(
            title=f"until all is at rest, and the store then; vectors: {embedder}",
            columns=[
                *("what", "count", "text MB", "written MB", "store MB"),
                *("written to store", "store to text", "pages in use to text"),
            ],
            rows=[one.row(name) for name, one in stored.items()],
        ),
        Table(
            title="one durable write at a time",
            columns=[
                "inside the runtime /s",
                "SQLite, WAL, FULL /s",
                "LMDB /s",
                "SQLite to it",
                "SQLite to LMDB",
            ],
            rows=[[*rates.values(), _slower(rounds, "greenroom"), _slower(rounds, "LMDB")]],
        ),
    ]
    message = among["add_message"]
    figures = [
        Figure(what="bytes of one add_message, to an LMDB put", value=message.bytes / message.put, most=1.1),
        *(
            Figure(what=f"kB of one {name}", value=among[name].bytes / 1_024, most=most)
            for name, most in MOST_BYTES.items()
        ),
        *(
            Figure(what=f"rows of one {name}", value=among[name].rows, most=most)
            for name, most in MOST_ROWS.items()
        ),
        _ratio("written by an import, to its store", stored["memories"].written, stored["memories"].file, 2),
        _ratio(
            "written for a workspace, to its store", stored["workspace"].written, stored["workspace"].file, 3
        ),
        *(
            _ratio(f"store of {name}, to their text", stored[name].file, stored[name].text, most)
            for name, most in (("memories", 5), ("messages", 2.8), ("documents", 1.7))
        ),
        Figure(what="a durable write, to SQLite's", value=_slower(rounds, "greenroom"), most=3),
    ]
    memories = stored["memories"]
    if memories.items >= MANY:
        figures.append(
            Figure(what=f"RssAnon MB of {memories.items:,} memories", value=memories.memory, most=250)
        )
    return Report(tables=tables, figures=figures)


def _slower(rounds: dict[str, list[float]], name: str) -> float:
    """Return how many times as long as SQLite's a write takes, in the median of the rounds."""
    return statistics.median(peer / own for own, peer in zip(rounds[name], rounds["SQLite"], strict=True))


def _ratio(what: str, value: float, beside: float, most: float) -> Figure:
    return Figure(what=what, value=value / beside, most=most)


# -- a server that is filled --------------------------------------------------------------


class Server:
    """A server whose writes are counted.

    Args:
        client: Its client.
        folder: What it serves.
        plan: Says how bytes are counted.
        quiet: After so many seconds it is at rest.
        main_thread: See `meter.handed_over`.

    Attributes:
        client: Its client.
    """

    def __init__(self, client: Client, folder: Path, plan: Plan, quiet: float, *, main_thread: bool) -> None:
        assert client.pid is not None
        self.client = client
        self._pid = client.pid
        self._folder = folder
        self._sectors = plan.sectors
        self._quiet = quiet
        self._main_thread = main_thread
        self._commits = self._parsers = 0
        self._before = meter.disk_written(folder) if plan.sectors else 0

    def ended(self) -> tuple[int, float]:
        """Wait until it is at rest, and end it; return the bytes written since its start, and its RssAnon."""
        trio.run(meter.rest, self._written, self._quiet)
        memory = memory_of(self._pid).anonymous
        self._commits = workspace.stats(self._folder)["store"]["commits"]
        # What its parsers have written into pipes is its own once it has waited for them.
        children = psutil.Process(self._pid).children(recursive=True)
        self._parsers = sum(meter.handed_over(child.pid) for child in children)
        self.client.close()
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        return self._written(), memory

    def _written(self) -> int:
        if self._sectors:
            return meter.disk_written(self._folder) - self._before
        handed_over = meter.handed_over(self._pid, main_thread=self._main_thread)
        return handed_over - self._parsers + self._commits * meter.PAGE


@contextmanager
def _served(
    plan: Plan, folder: Path, quiet: float, *flags: str, main_thread: bool = True
) -> Iterator[Server]:
    with serving(greenroom(folder / "data", *FLAGS, *flags)) as client:
        yield Server(client, folder, plan, quiet, main_thread=main_thread)


def _stored(folder: Path, count: int, text: int, written: int, memory: float = 0.0) -> Stored:
    file = folder / "data" / "greenroom.mdb"
    return Stored(count, text, written, file.stat().st_blocks * 512, ingest.used(file), memory)


def _memories(plan: Plan, folder: Path, quiet: float) -> Stored:
    count = plan.size(plan.memories, 300)
    source = folder / "memories.jsonl"
    with source.open("wb") as file:
        for number, text in enumerate(islice(texts(), count)):
            file.write(msgspec.json.encode({"key": f"memory-{number}", "content": text}) + b"\n")
    with _served(plan, folder, quiet) as server:
        import_memories(
            source, folder / "data", "--agent", "bench", "--user", "bench", "--namespace", NAMESPACE
        )
        settle(server.client, NAMESPACE)
        for number in range(0, count, max(1, count // ASKED)):
            found = search(server.client, f"note{number}", NAMESPACE, limit=1)["memories"]
            check(found and found[0]["key"] == f"memory-{number}", f"note{number} was answered with {found}")
        written, memory = server.ended()
    with serving(greenroom(folder / "data", *FLAGS)) as client:
        told = client.call(ToolCall("memory_stats", {"namespace": NAMESPACE}))
        right = (told["memories"], told["embedding_waiting"]) == (count, 0)
        check(
            right,
            f"of {count} memories there are {told['memories']}, without vectors {told['embedding_waiting']}",
        )
    return _stored(folder, count, count * TEXT_BYTES, written, memory)


def _messages(plan: Plan, folder: Path, quiet: float) -> Stored:
    """Fill sessions side by side, within this process."""
    count = plan.size(30_000, 300) // SESSIONS
    commits = meter.Commits()

    def written() -> int:
        if plan.sectors:
            return meter.disk_written(folder)
        return meter.handed_over("self") + commits.count * meter.PAGE

    async def write(agent: Agent, session: str, said: Iterator[str]) -> None:
        await agent.ask(CreateSession(session_id=session, purpose="bench"))
        for text in said:
            await agent.ask(AddMessage(session_id=session, content=text))
        told = (await agent.ask(GetMessages(session_id=session, limit=1))).total
        check(told == count, f"{session} has {told} messages of {count}")

    async def fill() -> None:
        async with open_greenroom(folder / "data", embedder="static", secrets=SECRETS) as runtime:
            async with trio.open_nursery() as nursery:
                for number in range(SESSIONS):
                    said = islice(texts(number * count), count)
                    nursery.start_soon(write, Agent(runtime, WHO), f"session-{number}", said)
            await meter.rest(written, quiet)

    before = written()
    with commits.counted():
        trio.run(fill)
    return _stored(folder, count * SESSIONS, count * SESSIONS * TEXT_BYTES, written() - before)


def _documents(plan: Plan, folder: Path, quiet: float) -> Stored:
    docs = (folder / "docs").resolve()
    count, size = write_varied(docs, ingest.pages(), plan.size(10_000_000, 300_000))
    with _served(plan, folder, quiet) as server:
        done = ingest.ingested(docs, folder / "data").done
        check(done["added"] == count, f"{done['added']} of {count} documents were put in")
        found = server.client.call(ToolCall("semantic_search", {"query": "where is the store", "top_k": 1}))
        check(found["results"], "nothing was found in the documents")
        written, memory = server.ended()
    return _stored(folder, count, size, written, memory)


def _workspace(plan: Plan, folder: Path, quiet: float) -> Stored:
    code = (folder / "code").resolve()
    tree = write_tree(code, islice(copies(), plan.size(plan.files, 20)), sys.maxsize)
    with _served(plan, folder, quiet, "--workspace", str(code), main_thread=False) as server:
        for _ in workspace.indexing(server.client):
            trio.run(trio.sleep, 0.1)
        workspace.check_indexed(server.client, tree)
        written, memory = server.ended()
    return _stored(folder, tree.files, tree.size, written, memory)
