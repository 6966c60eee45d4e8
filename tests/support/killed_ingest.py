"""A program: fills a corpus, is killed at each commit in turn, and looks at what is left and fills again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import trio
import trio.lowlevel
from support.agents import FAST
from support.corpora import document_of, ids_in
from support.killed_commits import kill_at_each

from greenroom.actors import (
    Agent,
    Document,
    GetFullContent,
    ListDocuments,
    Principal,
    PutDocument,
    RemoveDocuments,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import PutDocuments
from greenroom.runtime import Refusal, RuntimeClient

ANN = Principal(agent_id="a", user="ann")


def _page(name: str, words: str, size: int) -> Document:
    return document_of(name, [([words], f"{words} {number} " + "reed " * 20) for number in range(size)])


FIRST = [_page(f"{number}.md", f"first {number}", 150) for number in range(8)]
SECOND = [_page(f"{number}.md", f"second {number}", 150) for number in range(3)]
WHOLE = {**{each.path: each for each in FIRST}, **{each.path: each for each in SECOND}}
GONE = "7.md"
ALONE = 4
"""So many of the first documents come one by one, the others in two batches."""


async def _fill(runtime: RuntimeClient) -> None:
    puts = [PutDocument(corpus="docs", document=document) for document in (*FIRST, *SECOND)]
    for put in puts[:ALONE]:
        await ask_corpus(runtime, ANN, put, make=True)
    for batch in (puts[ALONE : len(FIRST)], puts[len(FIRST) :]):
        await ask_corpus(runtime, ANN, PutDocuments(corpus="docs", puts=batch))
    await ask_corpus(runtime, ANN, RemoveDocuments(corpus="docs", paths=[GONE]))


async def _filled(folder: Path) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        await _fill(runtime)
        await trio.lowlevel.checkpoint()


async def _look(folder: Path) -> dict[str, Any]:
    """Say what is in the folder, whole documents alone, and what it is after everything was done again."""
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        before = await _whole(runtime)
        await _fill(runtime)
        after = await _whole(runtime)
    return {"before": before, "after": after}


async def _whole(runtime: RuntimeClient) -> list[str]:
    problems = (await runtime.query(VerifyMemories())).problems
    assert not problems, problems
    try:
        page = await ask_corpus(runtime, ANN, ListDocuments(corpus="docs"))
    except Refusal:
        return []
    known = {each.digest: each for each in (*FIRST, *SECOND)}
    chunks = 0
    for listed in page.documents:
        assert listed.chunks == len(known[listed.digest].chunks)
        chunks += listed.chunks
    verified = await runtime.query(VerifyMemories())
    assert verified.chunks == chunks
    ids = await ids_in(runtime, "docs", *range(1, 11))
    read = await Agent(runtime, ANN).ask(GetFullContent(chunk_ids=ids))
    assert len(read.chunks) + len(read.unknown_ids) == 10
    return sorted(each.path for each in page.documents)


if __name__ == "__main__":
    kill_at_each(Path(sys.argv[1]), _filled, _look)
