"""A program: fills a corpus and is killed at each commit in turn; what is left is looked at and filled again.

It forks, so that nothing has to be imported for each kill. Prints a JSON line for each commit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio
import trio.lowlevel
from support.agents import FAST
from support.corpora import document_of

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
from greenroom.runtime import Refusal, RuntimeClient, Store, WriteBatch

ANN = Principal(agent_id="a", user="ann")


def _page(name: str, words: str, size: int) -> Document:
    return document_of(name, [([words], f"{words} {number} " + "reed " * 20) for number in range(size)])


FIRST = [_page(f"{number}.md", f"first {number}", 150) for number in range(8)]
SECOND = [_page(f"{number}.md", f"second {number}", 150) for number in range(3)]
WHOLE = {**{each.path: each for each in FIRST}, **{each.path: each for each in SECOND}}
GONE = "7.md"


async def _fill(runtime: RuntimeClient) -> None:
    for document in (*FIRST, *SECOND):
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=document), make=True)
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
    read = await Agent(runtime, ANN).ask(GetFullContent(chunk_ids=list(range(1, 11)), corpus="docs"))
    assert len(read.chunks) + len(read.unknown_ids) == 10
    return sorted(each.path for each in page.documents)


def _dies_at(commit: int, *, after: bool) -> None:
    """Have the process killed at this commit, counted from 1."""
    commits = 0
    original = Store.commit

    def counted(store: Store, works: Sequence[WriteBatch]) -> None:
        nonlocal commits
        commits += 1
        if commits == commit and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        original(store, works)
        if commits == commit and after:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.commit = counted  # type: ignore[assignment, method-assign]


def main(home: Path, step: int) -> None:
    """Kill at every commit until one is never reached."""
    commit = 1
    while True:
        folder = home / str(commit)
        child = os.fork()
        if not child:
            _dies_at(commit, after=bool(commit % 2))
            trio.run(_filled, folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status)
        found = trio.run(_look, folder)
        print(json.dumps({"commit": commit, "killed": was_killed, **found}), flush=True)  # noqa: T201
        if not was_killed:
            return
        commit += step


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
