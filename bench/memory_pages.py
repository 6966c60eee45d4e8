"""The console's pages of memories: processor time of each, with 10,000 and with 100,000 memories.

Asked is in the process that owns the store, and the answer is rendered, without HTTP; the first page, which
loads the index, is not counted. One memory in fifty says nearly what another one says.
"""

from __future__ import annotations

import json
import random
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import trio

from bench.harness import Figure, Plan, Report, Table, check
from bench.imported import import_memories
from greenroom.actors import Agent, Principal, open_greenroom
from greenroom.transports.web.console.page_cache import Turns
from greenroom.transports.web.console.rendering import render_long
from greenroom.transports.web.console.view import Place, Reader, View, ViewFunction
from greenroom.transports.web.console.views.memories import memories
from greenroom.transports.web.rest.browser_sessions import SessionView
from greenroom.transports.web.rest.impersonation import VisitorAgent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


WORDS = 20_000
LENGTH = 25
TWINS = 50
AIMS = {"list": 0.1, "pairs": 0.5}
"""Most seconds of processor time that a page may take, of a list and of a hundred memories compared."""
PAGES = {
    "newest first": ("", {}),
    "in a namespace": ("", {"namespace": ["project:bench:n3"]}),
    "with a tag": ("", {"tag": ["t3"]}),
    "longest untouched first": ("", {"order": ["untouched"]}),
    "with two words": ("", {"q": ["WORDS"]}),
    "stale": ("stale", {}),
    "unreviewed": ("unreviewed", {}),
    "near-duplicates": ("duplicates", {}),
    "contradictions": ("contradictions", {}),
    "one memory": ("ID", {}),
}


def run(plan: Plan) -> Report:
    """Import memories, and make each page."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size in plan.size((10_000, 100_000), (300,)):
        with plan.folder() as folder:
            source, secrets = folder / "memories.jsonl", folder / "secrets"
            source.write_text("".join(f"{json.dumps(each)}\n" for each in _memories(size)))
            import_memories(source, folder / "data", "--secrets", str(secrets))
            asked = partial(_pages, folder / "data", secrets, size, plan.size(9, 1))
            for name, seconds, bytes_made in trio.run(asked):
                rows.append([size, name, seconds, bytes_made / 1e3])
                kind = "pairs" if name in {"near-duplicates", "contradictions"} else "list"
                what = f"page of memories, {size:,}, {name}, processor s"
                figures.append(Figure(what=what, value=seconds, most=AIMS[kind]))
    table = Table(title="Pages of memories", columns=["memories", "page", "processor s", "kB"], rows=rows)
    return Report(tables=[table], figures=figures)


def _memories(size: int) -> Iterator[dict[str, Any]]:
    """Yield memories, always the same."""
    draw = random.Random(4)
    words = ["".join(draw.choices("aeioubdklmnrst", k=draw.randint(4, 9))) for _ in range(WORDS)]
    said = words[:LENGTH]
    for number in range(size):
        said = [*said[1:], "again"] if number % TWINS == TWINS - 1 else draw.choices(words, k=LENGTH)
        yield {
            "key": f"note {number}",
            "content": " ".join(said),
            "namespace": f"project:bench:n{number % 40}",
            "tags": [f"t{number % 37}", f"u{number % 5_000}"],
        }


async def _pages(data: Path, secrets: Path, size: int, times: int) -> list[tuple[str, float, int]]:
    """Return of each page the median processor time, in seconds, and its bytes."""
    found = []
    async with open_greenroom(data, embedder="none", secrets=secrets) as runtime:
        agent = Agent(runtime, Principal(agent_id="bench"))
        first, _ = await _page(agent, "", {"namespace": ["project:bench"]})
        check(
            first.values["page"].total == size, f"{first.values['page'].total} of {size} memories were seen"
        )
        shown = first.values["page"].memories[0]
        for name, (rest, given) in PAGES.items():
            path = rest.replace("ID", shown.memory_id)
            query = {"namespace": ["project:bench"], **given}
            if "q" in query:
                query["q"] = [" ".join(shown.preview.split()[:2])]
            seconds, made = [], b""
            for _ in range(times):
                began = time.process_time()
                view, made = await _page(agent, path, query)
                seconds.append(time.process_time() - began)
            _check(name, view, shown)
            found.append((name, median(seconds), len(made)))
    return found


async def _page(agent: Agent, rest: str, query: dict[str, list[str]]) -> tuple[View, bytes]:
    return await made_page(memories, agent, Place(f"/memories/{rest}".rstrip("/"), rest, query))


async def made_page(show: ViewFunction, agent: Agent, place: Place) -> tuple[View, bytes]:
    """Return what a page of the console shows, and its HTML."""
    who = SessionView(agent="bench", agent_type=None, user=None, projects=None, scopes=["*"])
    reader = Reader(VisitorAgent(agent), who)
    view = await show(reader, place)
    here = place.path.split("/")[1]
    shell = {"root": "./", "static": "./static", "who": who, "here": here, "kept": {}, "place": place}
    shown = {"title": view.title, "topics": view.topics, "every": view.every, **view.values}
    values = {**shell, "may": lambda _: True, "entries": [], "agents": reader.agent_names(), **shown}
    made = await render_long(view.template, values, Turns())
    return view, made


def _check(name: str, view: View, shown: Any) -> None:
    page: Any = view.values.get("page")
    if name in {"stale", "unreviewed"}:
        check(page.total == 0, f"{page.total} memories are {name}")
    elif name == "near-duplicates":
        check(len(page.pairs) > 0, "no memory is like another one")
    elif name == "with two words":
        check(
            shown.memory_id in [each.memory_id for each in page.memories], "a memory's words do not find it"
        )
    elif name == "one memory":
        check(view.values["text"].startswith(shown.preview), "a memory says something else")
    elif name != "contradictions":
        check(len(page.memories) > 0, f"no memory is on the page {name}")
