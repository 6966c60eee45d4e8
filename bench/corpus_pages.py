"""The console's heaviest pages of corpora: processor time of each, and its bytes.

Asked is in the process that owns the store, without HTTP. A filter that nothing fits looks at as many
documents as one page does; a document may have a heading in each line.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import trio

from bench.harness import Figure, Plan, Report, Table, check
from bench.memory_pages import made_page
from greenroom.actors import Agent, DocumentText, IngestDocuments, Principal, open_greenroom
from greenroom.transports.web.console.view import Place
from greenroom.transports.web.console.views.knowledge import HEADINGS, knowledge

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = "user:bench:docs"
AT_ONCE = 1_000
LINES = 40_000
AIM = 0.25
"""Most seconds of processor time that a page may take."""


def run(plan: Plan) -> Report:
    """Fill a corpus, and make each page."""
    size, lines = plan.size(10_000, 200), plan.size(LINES, 2_000)
    with plan.folder() as folder:
        rows = trio.run(_pages, folder, size, lines, plan.size(9, 1))
    title = f"Pages of a corpus of {size:,} documents"
    table = Table(title=title, columns=["page", "processor s", "kB"], rows=[list(row) for row in rows])
    figures = [
        Figure(what=f"page of a corpus, {name}, processor s", value=seconds, most=AIM)
        for name, seconds, _ in rows
    ]
    return Report(tables=[table], figures=figures)


async def _pages(folder: Path, size: int, lines: int, times: int) -> list[tuple[str, float, float]]:
    """Return of each page the median processor time, in seconds, and its kB."""
    found = []
    async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
        agent = Agent(runtime, Principal(agent_id="bench", user="bench"))
        texts = [DocumentText(f"notes/{n}.md", f"# Note {n}\n\nIt says {n}.\n") for n in range(size)]
        texts.append(DocumentText("headings.md", "".join(f"# Heading {n}\n" for n in range(lines))))
        for start in range(0, len(texts), AT_ONCE):
            some = IngestDocuments(texts=texts[start : start + AT_ONCE], corpus=CORPUS)
            check((await agent.ask(some)).complete, "not all documents were taken in")
        for name, query in {
            "the first": {},
            "a filter that nothing fits": {"holding": ["nowhere"]},
            "a document of headings": {"document": ["headings.md"]},
        }.items():
            seconds, made = [], b""
            for _ in range(times):
                began = time.process_time()
                view, made = await made_page(knowledge, agent, Place(f"/knowledge/{CORPUS}", CORPUS, query))
                seconds.append(time.process_time() - began)
            if name == "the first":
                check(len(view.values["page"].documents) == 50, "the first page is not full")
            elif "holding" in query:
                check(not view.values["page"].documents, "something fits")
            else:
                check(len(view.values["sections"]) == HEADINGS, "not as many headings are shown")
            found.append((name, median(seconds), len(made) / 1e3))
    return found
