"""A program: keeps a workspace, is killed at each commit in turn, and looks at what is left and goes on."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from support.agents import FAST
from support.killed_commits import kill_at_each
from support.killed_ingest import ANN
from support.workspaces import folder_of_code

from greenroom.actors import (
    REQUESTS,
    Agent,
    ListCorpora,
    ListDocuments,
    Reach,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
    parse_request,
)
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.runtime import RuntimeClient

FILES = 4
SEARCH = parse_request(REQUESTS["search_code_semantic"], b'{"query":"anchor"}')
SYMBOLS = parse_request(REQUESTS["symbol_search"], b'{"symbol":"*","limit":100}')


@asynccontextmanager
async def _opened(folder: Path, *, is_kept: bool = True) -> AsyncIterator[tuple[Agent, RuntimeClient]]:
    reach = Reach(workspaces=(str((folder / "code").resolve()),))
    async with (
        open_greenroom(folder / "store", embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):
        yield Agent(runtime, ANN, reach=reach, workspaces=kept if is_kept else None), runtime


async def _watched(agent: Agent) -> None:
    while (await agent.ask(SEARCH)).freshness.state != "watching":
        await trio.lowlevel.checkpoint()


async def _kept(folder: Path) -> None:
    """Index a folder, and take in what changes, comes and goes."""
    code = folder_of_code(folder, FILES)
    async with _opened(folder) as (agent, _):
        await _watched(agent)
        (code / "part_0.py").write_text("def changed():\n    return 'anchor'\n")
        (code / "part_1.py").unlink()
        (code / "late.py").write_text("def late():\n    return 'anchor'\n")
        await _watched(agent)


async def _look(folder: Path) -> dict[str, Any]:
    """Say what is there, how fresh that is said to be, and what is found when it has gone on."""
    async with _opened(folder, is_kept=False) as (agent, runtime):
        left = (await agent.ask(SEARCH)).freshness
        problems = (await runtime.query(VerifyMemories())).problems
    async with _opened(folder) as (agent, runtime):
        await _watched(agent)
        found = await agent.ask(SYMBOLS)
        (corpus,) = (await agent.ask(ListCorpora())).corpora
        page = await ask_corpus(runtime, ANN, ListDocuments(corpus=corpus.corpus))
        problems += (await runtime.query(VerifyMemories())).problems
    return {
        "state": left.state,
        "problems": problems,
        "documents": sorted(each.path for each in page.documents),
        "files": sorted(each.name for each in (folder / "code").iterdir()),
        "symbols": sorted(f"{each.file_path}:{each.symbol}" for each in found.definitions),
        "wanted": sorted(
            f"{each.name}:{each.read_text()[4:].partition('(')[0]}" for each in (folder / "code").iterdir()
        ),
    }


if __name__ == "__main__":
    kill_at_each(Path(sys.argv[1]), _kept, _look)
