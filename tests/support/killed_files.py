"""A program: ingests a folder, is killed at each commit in turn, and looks at what is left and goes on."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from support.agents import FAST
from support.killed_commits import kill_at_each
from support.killed_ingest import ANN

from greenroom.actors import (
    Agent,
    ListDocuments,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.runtime import Refusal

FILES = 5
SECTIONS = 30
"""So many that a document has several records of each kind."""


def write(docs: Path) -> None:
    """Write the folder."""
    docs.mkdir()
    for number in range(FILES):
        sections = [f"## Part {place}\n\nheron{number} reed{place}\n" for place in range(SECTIONS)]
        (docs / f"{number}.md").write_text(f"# Page {number}\n\n" + "\n".join(sections))


async def _ingested(docs: Path, folder: Path) -> None:
    async with (
        open_greenroom(folder, embedder="none", options=FAST) as runtime,
        open_ingestion(runtime, ANN, "docs") as ingestion,
    ):
        await ingestion.files([str(docs)])


async def _look(docs: Path, folder: Path) -> dict[str, Any]:
    """Say what is there, and what is found when the ingest has gone on."""
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        try:
            page = await ask_corpus(runtime, ANN, ListDocuments(corpus="docs"))
            before = [each.chunks for each in page.documents]
        except Refusal:
            before = []
        problems = (await runtime.query(VerifyMemories())).problems
        async with open_ingestion(runtime, ANN, "docs") as ingestion:
            done = await ingestion.files([str(docs)])
        verified = await runtime.query(VerifyMemories())
        found = []
        for number in range(FILES):
            asked = SemanticSearch(query=f"heron{number}", corpus="docs", top_k=50)
            chunks = (await Agent(runtime, ANN).ask(asked)).results
            found.append([len(chunks), len({each.chunk_id for each in chunks})])
    return {
        "before": before,
        "done": [done.added, done.unchanged, done.complete],
        "problems": [*problems, *verified.problems],
        "found": found,
    }


def main(home: Path) -> None:
    """Kill at every commit of an ingest of the same folder."""
    docs = home / "docs"
    write(docs)
    kill_at_each(home, partial(_ingested, docs), partial(_look, docs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
