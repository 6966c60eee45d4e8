"""Whether what the tools say of themselves leads to the right one, and what listing them costs.

A model that has a task before it and a list of tools chooses by their words. How well these tell the tools
apart is measured with Greenroom's own search: each tool's name, title, description and words on its
parameters are stored as one memory (its key is a number, or the name would count twice), and each task of
`tool_tasks.toml` is searched for, with the embedder that is the default. That is no model, so it is harder
to please: it knows no more of the tools than they say.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bench import rivals
from bench.client import ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, check
from bench.imported import search, settle
from bench.servers import greenroom

if TYPE_CHECKING:
    from bench.harness import Value

TASKS = Path(__file__).with_name("tool_tasks.toml")
OURS = "memory_search"
DOCUMENTS = "documents"
FEW = 3
MOST_TOOLS, MOST_TOKENS = 16, 4_500
LEAST_FIRST = 90.0
LEAST_FRESH = 85.0
"""Of the tasks by another hand."""
LONG_AGO = "2000-01-01T00:00:00Z"
"""When the tools were stored: no task names that time, so the day of the run decides nothing."""
PER_TOKEN = 4
"""Bytes that are counted as a token."""

Listing = Sequence[Mapping[str, Any]]
Choose = Callable[[str], Sequence[str]]
"""Returns names of tools for what somebody says, best first."""


class Tasks(msgspec.Struct, frozen=True):
    """What people say, by the tool that is right.

    Attributes:
        tasks: For core.
        held_out: Not looked at when descriptions are written.
        fresh: Written from the tools' names alone.
        knowledge: For the tools for documents.
        knowledge_held_out: As above.
        knowledge_fresh: As above.
    """

    tasks: dict[str, list[str]]
    held_out: dict[str, list[str]]
    fresh: dict[str, list[str]]
    knowledge: dict[str, list[str]]
    knowledge_held_out: dict[str, list[str]]
    knowledge_fresh: dict[str, list[str]]


class Miss(NamedTuple):
    """A task whose right tool was not the first: at which place it was, and what was before it."""

    task: str
    right: str
    place: int
    before: Sequence[str]


class Choices(NamedTuple):
    """How the tasks came out."""

    asked: int
    misses: list[Miss]

    @property
    def first(self) -> float:
        """In how many per cent of the tasks the right tool was the first."""
        return 100 * (1 - len(self.misses) / self.asked)

    @property
    def among_few(self) -> float:
        """In how many per cent it was among the first three."""
        return 100 * (1 - sum(miss.place > FEW for miss in self.misses) / self.asked)


def tasks() -> Tasks:
    """Read the tasks."""
    return msgspec.convert(tomllib.loads(TASKS.read_text()), Tasks)


def run(plan: Plan) -> Report:
    """List the tools, weigh the list, and let each task find its tool."""
    given = tasks()
    every = _listed(plan, "--tools", "all")
    documents = _listed(plan, "--tools", "core,knowledge")
    with chooser(plan) as (core, searching):
        names = {tool["name"] for tool in core}
        check(names == given.tasks.keys(), f"{sorted(names)} are listed, not {sorted(given.tasks)}")
        some = plan.size(None, 1)
        rows: list[list[Value]] = []
        ours = choose(searching(core), _asked(given.tasks, some))
        knowing = choose(searching(documents), _asked(given.knowledge, some))
        fresh = choose(searching(core), _asked(given.fresh, some))
        knowing_fresh = choose(searching(documents), _asked(given.knowledge_fresh, some))
        sets = {
            "tasks": (given.tasks, given.held_out),
            DOCUMENTS: (given.knowledge, given.knowledge_held_out),
        }
        for name, listing, asked in (
            ("core", core, "tasks"),
            ("all", every, "tasks"),
            ("core, knowledge", documents, DOCUMENTS),
        ):
            for method, make in {OURS: searching, **BASELINES}.items():
                find = make(listing)
                chosen, unseen = (choose(find, _asked(each, some)) for each in sets[asked])
                rows.append([name, method, chosen.first, chosen.among_few, unseen.first, unseen.among_few])
    columns = ["listed", "ranked by", "first %", "among three %", "held out: first %", "among three %"]
    return Report(
        tables=[
            Table(title="the right tool for a task in plain words", columns=columns, rows=rows),
            Table(
                title=f"tasks whose tool {OURS} does not rank first, of core and for documents",
                columns=["task", "right", "place", "before it"],
                rows=[
                    [miss.task, miss.right, miss.place, ", ".join(miss.before)]
                    for each in (ours, knowing, fresh, knowing_fresh)
                    for miss in each.misses
                ],
            ),
            Table(
                title=f"what listing costs, in tokens of {PER_TOKEN} bytes",
                columns=["tool", "words", "parameters", "answer", "in all"],
                rows=[*_weighed("core", core), *_weighed("all", every, each=False)],
            ),
        ],
        figures=[
            Figure(what="tools of core", value=len(core), most=MOST_TOOLS),
            Figure(what="tokens of core's listing", value=tokens(core), most=MOST_TOKENS),
            Figure(what="right tool first, %", value=ours.first, least=LEAST_FIRST),
            Figure(what="right tool among three, %", value=ours.among_few, least=100),
            Figure(what="right tool for documents first, %", value=knowing.first, least=LEAST_FIRST),
            Figure(what="right tool for documents among three, %", value=knowing.among_few, least=100),
            Figure(what="right tool first for fresh tasks, %", value=fresh.first, least=LEAST_FRESH),
            Figure(
                what="right tool for documents first for fresh tasks, %",
                value=knowing_fresh.first,
                least=LEAST_FRESH,
            ),
        ],
    )


@contextmanager
def chooser(plan: Plan) -> Iterator[tuple[Listing, Callable[[Listing], Choose]]]:
    """Serve an empty store; give what it lists by default, and what makes a way to choose among tools."""
    with plan.folder() as folder, serving(greenroom(folder, "--agent", "bench")) as client:
        core: Listing = client.ask("tools/list")["tools"]

        def searching(listing: Listing) -> Choose:
            namespace = f"project:of-{len(listing)}"
            names = {f"tool-{number}": str(tool["name"]) for number, tool in enumerate(listing)}
            source = msgspec.json.encode(
                [
                    {"key": key, "content": words(tool), "created_at": LONG_AGO}
                    for key, tool in zip(names, listing, strict=True)
                ]
            )
            arguments = {"source": source.decode(), "namespace": namespace}
            client.call(ToolCall("import_memories", arguments))
            settle(client, namespace)

            def find(task: str) -> Sequence[str]:
                found = search(client, task, namespace, mode="semantic", limit=50, min_relevance=0)
                return [names[memory["key"]] for memory in found["memories"]]

            return find

        yield core, searching


def _listed(plan: Plan, *flags: str) -> Listing:
    with plan.folder() as folder, serving(greenroom(folder, "--agent", "bench", *flags)) as client:
        listing: Listing = client.ask("tools/list")["tools"]
        return listing


def choose(find: Choose, asked: Sequence[tuple[str, str]]) -> Choices:
    """Return how tasks, each with its right tool, come out."""
    misses = []
    for task, right in asked:
        found = list(find(task))
        place = found.index(right) + 1 if right in found else len(found) + 1
        if place > 1:
            misses.append(Miss(task, right, place, found[: min(place - 1, FEW)]))
    return Choices(len(asked), misses)


def words(tool: Mapping[str, Any]) -> str:
    """Return what a tool says of itself: name, title, description, and words on its parameters."""
    said = [f"{tool['name']}: {tool['title']}. {tool['description']}"]
    for name, schema in tool["inputSchema"]["properties"].items():
        said.append(f"{name}: {schema.get('description', '')}")
    return "\n".join(said)


def tokens(listing: object) -> int:
    """Return what something costs to list."""
    return len(msgspec.json.encode(listing)) // PER_TOKEN


def _asked(tasks: Mapping[str, Sequence[str]], some: int | None) -> list[tuple[str, str]]:
    return [(task, right) for right, said in tasks.items() for task in said[:some]]


def _weighed(name: str, listing: Listing, *, each: bool = True) -> Iterator[list[Value]]:
    for tool in listing if each else ():
        yield [str(tool["name"]), *_parts([tool]), tokens(tool)]
    yield [f"{name}: {len(listing)} tools", *_parts(listing), tokens(listing)]


def _parts(listing: Listing) -> list[Value]:
    return [
        sum(tokens(tool[part]) for tool in listing) for part in ("description", "inputSchema", "outputSchema")
    ]


def _rival(make: rivals.Make) -> Callable[[Listing], Choose]:
    return lambda listing: make({tool["name"]: words(tool) for tool in listing})


BASELINES: Mapping[str, Callable[[Listing], Choose]] = {
    "rank-bm25": _rival(rivals.rank_bm25),
    "SQLite FTS5, BM25": _rival(rivals.sqlite_fts5),
}
