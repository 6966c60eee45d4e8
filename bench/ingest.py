"""`greenroom ingest`: folders of Markdown, again with nothing changed, and changes while it watches.

The documents are copies of this repository's own pages, and once pages as varied as real ones. Some have a
sentence planted in them, which a search over stdio must find. A change counts from the end of the write until
the command says that the corpus has it, and until a search in another process finds what is new. The *owner*
is the process that has the store; its memory is what is measured.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import psutil  # type: ignore[import-untyped]  # it has no hints

from bench.client import Client, ToolCall, serving
from bench.corpus import PLANTED
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.servers import environment, greenroom, memory_of, processor_seconds
from bench.varied import write_varied

DOCS = Path(__file__).parent.parent / "docs"
CHANGES = 30
PATIENCE = 120.0
_LOOK_SECONDS = 0.05
FLAGS = ("--embedder", "none", "--user", "bench")


class Filled(NamedTuple):
    """What an ingest took.

    Attributes:
        seconds: By the clock.
        owner: Of the processor, in the process that has the store.
        parsers: Likewise, in those that parse.
        memory: The most anonymous memory of the owner, in MB.
        done: What the command said.
    """

    seconds: float
    owner: float
    parsers: float
    memory: float
    done: dict[str, Any]

    def row(self, run: str, size: int) -> list[str | int | float | None]:
        """Return a row of the table."""
        return [
            run,
            size / 1e6,
            self.seconds,
            size / 1e6 / self.seconds,
            self.owner,
            self.parsers,
            self.memory,
        ]


def run(plan: Plan) -> Report:
    """Fill, fill again, watch, fill a large one, and report."""
    with plan.folder() as folder:
        docs, data = (folder / "docs").resolve(), folder / "data"
        count, size = _write(docs, copies=plan.size(30, 1))
        first = ingested(docs, data)
        check(first.done["added"] == count, f"{first.done['added']} of {count} documents were put in")
        again = ingested(docs, data)
        check(again.done["unchanged"] == count, f"{again.done['unchanged']} of {count} were the same")
        put, found = _watch(docs, data, plan.size(CHANGES, 3))
        _search(docs, data)
        own = _kept(data, size)
    with plan.folder() as folder:
        docs, data = (folder / "docs").resolve(), folder / "data"
        large_count, large = write_varied(docs, pages(), plan.size(100_000_000, 300_000))
        varied = ingested(docs, data)
        check(varied.done["added"] == large_count, f"{varied.done['added']} of {large_count} were put in")
        kept = _kept(data, large)
    tables = [
        Table(
            title=f"greenroom ingest, {count:,} pages of Markdown, and {large_count:,} varied ones",
            columns=["run", "MB", "s", "MB/s", "owner s", "parsers s", "most MB"],
            rows=[
                first.row("all new", size),
                again.row("nothing changed", size),
                varied.row("all new, varied", large),
            ],
        ),
        Table(
            title="--watch: from a save until the corpus has it, and until another process finds it",
            columns=["changes", "put in, 50 % ms", "95 % ms", "found, 50 % ms", "95 % ms"],
            rows=[
                [len(put), *(of(each) for each in (put, found) for of in (statistics.median, _slow))],
            ],
        ),
        Table(
            title="The pages served, and what their store takes as a share of them",
            columns=["pages", "first answer s", "MB after searches", "texts", "index and all else", "free"],
            rows=[
                ["Greenroom's own", *own],
                ["varied", *kept],
            ],
        ),
    ]
    return Report(
        tables=tables,
        figures=[
            Figure(what="Markdown put in, MB/s", value=size / 1e6 / first.seconds, least=2),
            Figure(what="varied Markdown put in, MB/s", value=large / 1e6 / varied.seconds, least=2),
            Figure(what="a changed file put in, 95 % ms", value=percentile(put, 95), most=100),
            Figure(what="a changed file found, 95 % ms", value=percentile(found, 95), most=100),
            Figure(what="100 MB put in, MB of memory", value=varied.memory, most=250),
            Figure(what="100 MB searched, MB of memory", value=kept.memory, most=250),
            Figure(what="100 MB, start and first answer s", value=kept.start, most=1),
            Figure(what="Greenroom's own pages, text by source", value=own.text, most=0.4),
            Figure(what="100 MB, text by source", value=kept.text, most=0.4),
            Figure(what="100 MB, index and all else by source", value=kept.rest, most=0.6),
        ],
    )


def _slow(waits: Sequence[float]) -> float:
    return percentile(waits, 95)


def pages() -> list[str]:
    """Return what this repository's own pages say."""
    return [page.read_text() for page in sorted(DOCS.rglob("*.md"))]


def _write(docs: Path, copies: int) -> tuple[int, int]:
    """Write the documents; return how many there are, and their bytes."""
    texts = pages()
    texts += [f"# Planted\n\n{planted.sentence}\n" for planted in PLANTED]
    for copy in range(copies):
        (docs / str(copy)).mkdir(parents=True)
        for number, page in enumerate(texts):
            (docs / str(copy) / f"{number}.md").write_text(page)
    size = sum(file.stat().st_size for file in docs.rglob("*.md"))
    return copies * len(texts), size


def _command(docs: Path, data: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "greenroom.transports.cli", "ingest", str(docs), "--data", str(data)]
    return [*program, "--json", *FLAGS, *more]


def ingested(docs: Path, data: Path) -> Filled:
    """Put a folder into a store."""
    start, before = time.perf_counter(), _children()
    owner = memory = 0.0
    with subprocess.Popen(
        _command(docs, data), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            with suppress(OSError, psutil.NoSuchProcess):
                memory = max(memory, memory_of(process.pid).anonymous)
                owner = processor_seconds(process.pid)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
        seconds = time.perf_counter() - start
        told, said = process.communicate()
    check(process.returncode == 0, f"the command ended with {process.returncode}: {said[-500:]!r}")
    return Filled(seconds, owner, _children() - before - owner, memory, json.loads(told))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(docs: Path, data: Path, changes: int) -> tuple[list[float], list[float]]:
    """Change a file again and again; return after how many milliseconds each was put in, and found."""
    put, found = [], []
    with subprocess.Popen(
        _command(docs, data, "--watch"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with serving(greenroom(data, *FLAGS)) as client:
            for number in range(2 * changes):
                # One after the other: who searches is on the same processors as who puts in.
                is_searched = number % 2 == 1
                with (docs / "0/0.md").open("a") as page:
                    page.write(f"\nchange{number}x\n")
                saved = time.perf_counter()
                if is_searched:
                    _find(client, f"change{number}x")
                    found.append((time.perf_counter() - saved) * 1e3)
                done = json.loads(process.stdout.readline())
                if not is_searched:
                    put.append((time.perf_counter() - saved) * 1e3)
                check(done["changed"] == 1, f"a change was told as {done}")
        process.terminate()
    return put, found


def _find(client: Client, word: str) -> None:
    """Search for a word until there is one; of words that nobody knows others like them are found."""
    last = time.perf_counter() + PATIENCE
    told: Any = None
    while time.perf_counter() < last:
        told = client.call(ToolCall("semantic_search", {"query": word, "top_k": 1}))
        if any(word in result["chunk_text"] for result in told["results"]):
            return
    check(False, f"{word} was not found: {told}")


class Kept(NamedTuple):
    """A store that is full.

    Attributes:
        start: Seconds from the start of a server until it has answered a search.
        memory: Its anonymous memory after some searches, in MB.
        text: What the texts take, by the source.
        rest: What everything else takes, likewise; of pages of the store's file that are in use, in full.
        free: What other pages of the file take: merges have left them, and the store uses them again.
    """

    start: float
    memory: float
    text: float
    rest: float
    free: float


def _kept(data: Path, size: int) -> Kept:
    began = time.perf_counter()
    with serving(greenroom(data, *FLAGS)) as client:
        start = 0.0
        for query in ("where is the store", *(planted.sentence for planted in PLANTED)):
            client.call(ToolCall("semantic_search", {"query": query, "top_k": 10}))
            start = start or time.perf_counter() - began
        assert client.pid is not None
        memory = memory_of(client.pid).anonymous
        told: Any = client.call(ToolCall("list_corpora", {}))
    text, file = told["corpora"][0]["stored_bytes"], data / "greenroom.mdb"
    in_use = used(file)
    return Kept(
        start, memory, text / size, (in_use - text) / size, (file.stat().st_blocks * 512 - in_use) / size
    )


def used(file: Path) -> int:
    """Return how many bytes the pages have that hold something, of a store that nobody has open."""
    with lmdb.open(str(file), subdir=False, readonly=True, lock=False, max_dbs=8) as environment:
        found = [environment.stat()]
        with environment.begin() as transaction:
            tables = [
                name for name, _ in transaction.cursor() if b"." not in name
            ]  # what else is there is no table
        for name in tables:
            table = environment.open_db(name, create=False)
            with environment.begin() as transaction:
                found.append(transaction.stat(table))
    return sum(
        stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]) for stat in found
    )


def _search(docs: Path, data: Path) -> None:
    """Check that what was planted is found."""
    with serving(greenroom(data, *FLAGS)) as client:
        for planted in PLANTED:
            told: Any = client.call(ToolCall("semantic_search", {"query": planted.sentence, "top_k": 1}))
            found = Path(told["results"][0]["source_file"])
            check(planted.sentence in found.read_text(), f"{planted.sentence!r} was looked for in {found}")
            check(found.is_relative_to(docs), f"{found} was found and is none of the documents")
