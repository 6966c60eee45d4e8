"""A workspace over stdio: how soon it is searchable, how soon a change is found, and what that costs.

The folders are this repository's own source, Python's library, and copies of that with other names. Some
files have a function planted in them, which must be found in that file. The *owner* is the server, whose
parsers are processes of their own; memory is what all of them have at one moment.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psutil  # type: ignore[import-untyped]  # it has no hints

from bench.client import Client, ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.servers import environment, greenroom, memory_of
from bench.source_trees import SourceTree, copies, library, own_source, write_tree

if TYPE_CHECKING:
    from pathlib import Path

CHANGES: Final = 30
QUESTIONS: Final = 140
TURNS: Final = 600
"""Of a session, each a message that is added and a session that is read, while nothing is indexed."""
PATIENCE: Final = 3_600.0
_LOOK_SECONDS: Final = 0.1
_TURN_SECONDS: Final = 0.01
_FLAGS: Final = ("--embedder", "none", "--user", "bench")


class Indexed(NamedTuple):
    """What indexing took.

    Attributes:
        seconds: By the clock, from the first search until everything is searchable.
        owner: Of the processor, in the server.
        parsers: Likewise, in its parsers.
        memory: The most anonymous memory of them together, in MB.
        owner_memory: The most that the server had, in MB.
        hold: The longest time for which the actors held the event loop since the start, in ms.
        corpus: What `list_corpora` says.
        kept: Bytes of the store.
    """

    seconds: float
    owner: float
    parsers: float
    memory: float
    owner_memory: float
    hold: float
    corpus: dict[str, Any]
    kept: int

    @property
    def by_clock(self) -> float:
        """Files a second, by the clock."""
        return float(self.corpus["documents"] / self.seconds)

    @property
    def by_processor(self) -> float:
        """Files a second if nothing else had the two processors, and neither ever waited."""
        return float(self.corpus["documents"] / ((self.owner + self.parsers) / 2))

    @property
    def text(self) -> float:
        """The texts, by the source."""
        return float(self.corpus["stored_bytes"] / self.corpus["bytes"])

    @property
    def rest(self) -> float:
        """All else in the store, by the source."""
        return self.kept / float(self.corpus["bytes"]) - self.text


class Asked(NamedTuple):
    """Milliseconds of answers, one each: by the clock, and of the server's processor time."""

    waits: list[float]
    spent: list[float]

    def row(self) -> list[float]:
        """Return half and 95 % of both."""
        return [percentile(each, percent) for each in (self.waits, self.spent) for percent in (50, 95)]


def run(plan: Plan) -> Report:
    """Index, search, change, and measure a session beside indexing."""
    indexed: dict[str, Indexed] = {}
    asked: dict[str, Asked] = {}
    changes: list[float] = []
    with plan.folder() as folder:
        tree = write_tree(folder / "code", own_source(), plan.size(100_000_000, 400_000))
        with served(folder) as client:
            indexed["own source"] = index_all(client, folder, tree)
            asked["own source"] = _ask(client, tree, plan.size(QUESTIONS, 3))
    with plan.folder() as folder:
        tree = write_tree(folder / "code", library(), plan.size(25_000_000, 300_000))
        with served(folder) as client:
            indexed["library"] = index_all(client, folder, tree)
            changes = _change(client, folder, tree, plan.size(CHANGES, 3))
        alone, beside = _sessions(folder, plan.size(TURNS, 20))
    with plan.folder() as folder:
        tree = write_tree(folder / "code", copies(), plan.size(125_000_000, 500_000))
        with served(folder) as client:
            indexed["copies"] = index_all(client, folder, tree)
            asked["copies"] = _ask(client, tree, plan.size(QUESTIONS, 3))
    return _report(indexed, asked, changes, (alone, beside))


def _report(
    indexed: dict[str, Indexed],
    asked: dict[str, Asked],
    changes: list[float],
    sessions: tuple[list[float], list[float]],
) -> Report:
    main = indexed["library"]
    alone, beside = (percentile(each, 99) for each in sessions)
    tables = [
        Table(
            title="Indexed, from the first search until everything is searchable by words",
            columns=[
                *("folder", "files", "chunks", "MB", "s", "owner s", "parsers s"),
                *("files/s", "by processor time"),
                *("most MB", "owner most MB", "longest slice ms", "text, share", "all else, share"),
            ],
            rows=[
                [
                    *(name, each.corpus["documents"], each.corpus["chunks"], each.corpus["bytes"] / 1e6),
                    *(each.seconds, each.owner, each.parsers, each.by_clock, each.by_processor),
                    *(each.memory, each.owner_memory, each.hold, each.text, each.rest),
                ]
                for name, each in indexed.items()
            ],
        ),
        Table(
            title="search_code_semantic, each question for the first time",
            columns=["folder", "chunks", "50 % ms", "95 % ms", "processor, 50 % ms", "95 % ms"],
            rows=[[name, indexed[name].corpus["chunks"], *each.row()] for name, each in asked.items()],
        ),
        Table(
            title="From a save until it is found",
            columns=["changes", "50 % ms", "95 % ms"],
            rows=[[len(changes), statistics.median(changes), percentile(changes, 95)]],
        ),
        Table(
            title="A session's calls in the same server",
            columns=["", "calls", "50 % ms", "99 % ms", "longest ms"],
            rows=[
                [name, len(each), percentile(each, 50), percentile(each, 99), max(each)]
                for name, each in zip(("nothing is indexed", "beside indexing"), sessions, strict=True)
            ],
        ),
    ]
    figures = [
        Figure(what="files/s searchable by words", value=main.by_clock, least=250),
        Figure(what="files/s by processor time of two", value=main.by_processor, least=250),
        Figure(what="a changed file found, 95 % ms", value=percentile(changes, 95), most=100),
        *(
            Figure(what=f"a query, {name}, {form}, 95 % ms", value=percentile(times, 95), most=most)
            for name, most in (("own source", 5.0), ("copies", 25.0))
            for form, times in zip(("clock", "processor"), asked[name], strict=True)
        ),
        Figure(what="index and text by source", value=main.text + main.rest, most=0.6),
        Figure(what="MB of memory while indexing", value=main.memory, most=250),
        Figure(what="longest hold of the event loop, ms", value=main.hold, most=10),
        Figure(what="a session's p99 beside indexing, by that without", value=beside / alone, most=2),
    ]
    return Report(tables=tables, figures=figures)


# -- indexing ------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[Client]:
    """Serve the code of a folder from its data."""
    flags = (*_FLAGS, "--workspace", str((folder / "code").resolve()))
    with serving(greenroom(folder / "data", *flags)) as client:
        yield client


def index_all(client: Client, folder: Path, tree: SourceTree) -> Indexed:
    """Have everything indexed, and check that what was planted is found."""
    assert client.pid is not None
    server = psutil.Process(client.pid)
    before = processor(client)
    most = owner_most = parsers = 0.0
    began = time.perf_counter()
    for _ in indexing(client):
        owner_memory = memory_of(client.pid).anonymous
        memory = owner_memory
        used = 0.0
        for child in server.children(recursive=True):
            try:
                memory += memory_of(child.pid).anonymous
                times = child.cpu_times()
            except (OSError, psutil.NoSuchProcess):  # it ended just now
                continue
            used += times.user + times.system
        parsers = max(parsers, used)
        most, owner_most = max(most, memory), max(owner_most, owner_memory)
        time.sleep(_LOOK_SECONDS)
    seconds = time.perf_counter() - began
    owner = processor(client) - before
    hold = stats(folder)["dispatcher"]["longest_slice_ms"]
    corpus = check_indexed(client, tree)
    kept = (folder / "data" / "greenroom.mdb").stat().st_blocks * 512
    return Indexed(seconds, owner, parsers, most, owner_most, hold, corpus, kept)


def check_indexed(client: Client, tree: SourceTree) -> dict[str, Any]:
    """Check that all is indexed, and that what was planted is found; return what `list_corpora` says."""
    for planted in islice(tree.planted, 20):
        told = client.call(ToolCall("symbol_search", {"symbol": planted.symbol}))
        where = [each["file_path"] for each in told["definitions"]]
        check(where == [planted.path], f"{planted.symbol} is in {planted.path}, and was found in {where}")
    corpus: dict[str, Any] = client.call(ToolCall("list_corpora", {}))["corpora"][0]
    check(corpus["documents"] >= 0.95 * tree.files, f"{corpus['documents']} of {tree.files} were indexed")
    return corpus


def indexing(client: Client) -> Iterator[None]:
    """Begin, and go on until all is indexed; once at least, however soon that is."""
    last = time.perf_counter() + PATIENCE
    client.call(ToolCall("search_code_semantic", {"query": "anything at all"}))
    corpus = client.call(ToolCall("list_corpora", {}))["corpora"][0]["corpus"]
    while True:
        yield
        told = client.ask("resources/read", {"uri": f"greenroom://workspace/{corpus}"})
        freshness = json.loads(told["contents"][0]["text"])["freshness"]
        if freshness["state"] == "watching":
            return
        check(time.perf_counter() < last, f"after {PATIENCE} s it is {freshness}")


def stats(folder: Path) -> Any:
    """Return what the server says of itself."""
    command = [sys.executable, "-m", "greenroom.transports.cli", "stats", "--json"]
    done = subprocess.run(
        [*command, "--data", str(folder / "data")], env=environment(), capture_output=True, check=True
    )
    return json.loads(done.stdout)


def processor(client: Client) -> float:
    """Return the seconds that the server has computed, to the microsecond; `psutil` tells hundredths."""
    assert client.pid is not None
    return time.clock_gettime((~client.pid << 3) | 2)  # the clock of a process, as `clock_getcpuclockid`


# -- searching -----------------------------------------------------------------------------


def _ask(client: Client, tree: SourceTree, count: int) -> Asked:
    """Ask for what was planted."""
    asked = Asked([], [])
    for number in range(count + 1):
        planted = tree.planted[number % len(tree.planted)]
        words = "" if number < len(tree.planted) else f" again {number}"
        began, used = time.perf_counter(), processor(client)
        told = client.call(ToolCall("search_code_semantic", {"query": planted.question + words}))
        spent, wait = processor(client) - used, time.perf_counter() - began
        best = [each["file_path"] for each in told["results"][:3]]
        check(planted.path in best, f"{planted.question!r} is answered by {best}, not by {planted.path}")
        check(not told["cache_hit"], "it was asked before")
        if number:  # the first reads the index
            asked.waits.append(wait * 1_000)
            asked.spent.append(spent * 1_000)
    return asked


def _change(client: Client, folder: Path, tree: SourceTree, changes: int) -> list[float]:
    """Add functions to files; return after how many milliseconds each was found."""
    waits: list[float] = []
    for number in range(changes):
        planted = tree.planted[number % len(tree.planted)]
        name = f"kelp{number}forest"
        with (folder / "code" / planted.path).open("a") as file:
            file.write(f"\n\ndef {name}():\n    return {number}\n")
        began = time.perf_counter()
        while not _has(client, name, planted.path):
            check(time.perf_counter() < began + PATIENCE, f"{name} was not found")
        waits.append((time.perf_counter() - began) * 1_000)
    return waits


def _has(client: Client, name: str, path: str) -> bool:
    """Return whether a name is found; of names that are not there others like them are."""
    told = client.call(ToolCall("search_code_semantic", {"query": name, "limit": 1}))
    return any(name in each["excerpt"] and each["file_path"] == path for each in told["results"])


# -- a session -----------------------------------------------------------------------------


def _sessions(folder: Path, turns: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of a session's calls before its workspace is indexed, and meanwhile."""
    alone: list[float] = []
    beside: list[float] = []
    flags = (*_FLAGS, "--workspace", str((folder / "code").resolve()))
    with serving(greenroom(folder / "data-2", *flags)) as client:
        session = client.call(ToolCall("create_session", {"purpose": "bench"}))["session_id"]
        turn = partial(_turn, client, session)
        for _ in range(turns):
            alone += turn()
        for number, _ in enumerate(_indexing_beside(client, turn, beside)):
            check(number < PATIENCE / _TURN_SECONDS, "it is not indexed")
        count = client.call(ToolCall("get_session", {"session_id": session}))["statistics"]["message_count"]
        check(count == (len(alone) + len(beside)) // 2, f"there are {count} messages")
    return alone, beside


def _indexing_beside(client: Client, turn: Callable[[], list[float]], waits: list[float]) -> Iterator[None]:
    """Have turns taken while it is indexed."""
    for _ in indexing(client):
        for _ in range(10):
            waits += turn()
            yield


def _turn(client: Client, session: str) -> list[float]:
    """Add a message and read its session; return what each took in milliseconds, and pause."""
    waits = []
    for tool, more in (("add_message", {"content": "remember the milk"}), ("get_session", {})):
        began = time.perf_counter()
        client.call(ToolCall(tool, {"session_id": session, **more}))
        waits.append((time.perf_counter() - began) * 1_000)
    time.sleep(_TURN_SECONDS)
    return waits
