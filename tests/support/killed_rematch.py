"""A program: entities get and lose names, and it is killed at each commit, half through the documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import trio
import trio.lowlevel
from support.agents import FAST
from support.corpora import document_of
from support.killed_commits import kill_at_each

from greenroom.actors import (
    Agent,
    DefineEntities,
    EntityDeclaration,
    FindVendorInfo,
    Principal,
    PutDocument,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann")
PAGES = 5
NAMES = ("Redis", "Valkey")
TEXT = "Redis is beside Valkey and Valkey. " + "reed " * 80_000


def _declared(name: str, entity_id: str | None = None) -> DefineEntities:
    entity = EntityDeclaration(name=name, type="service", entity_id=entity_id)
    return DefineEntities(corpus="docs", entities=[entity])


async def _fill(folder: Path) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        for number in range(PAGES):
            page = document_of(f"{number}.md", [(["A"], TEXT)])
            await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=page), make=True)


async def _rename(folder: Path) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await agent.ask(_declared("Redis"))
        await _counts(runtime)
        await agent.ask(_declared("Valkey", "e1"))
        await _counts(runtime)
        await agent.ask(DefineEntities(corpus="docs", remove=["Valkey"]))
        await _counts(runtime)


async def _look(folder: Path) -> dict[str, Any]:
    """Say which names are known, which others are in answers, and what is counted in the end."""
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        found = await agent.ask(FindVendorInfo(vendor_filter="*", corpus="docs"))
        passages = await agent.ask(SemanticSearch(query="reed", corpus="docs"))
        known = {each.name for each in found.entities}
        answers = repr(found.entities) + repr([each.vendor_names for each in passages.results])
        return {
            "known": sorted(known),
            "traces": [name for name in NAMES if name not in known and f"{name!r}" in answers],
            "problems": (await runtime.query(VerifyMemories())).problems,
            "counts": await _counts(runtime),
            "problems_after": (await runtime.query(VerifyMemories())).problems,
        }


async def _counts(runtime: RuntimeClient) -> dict[str, int]:
    """Return how often each is mentioned, when all documents were gone through."""
    while True:
        found = await Agent(runtime, ANN).ask(FindVendorInfo(vendor_filter="*", corpus="docs"))
        if not found.waiting_for_matching:
            return {each.name: each.mention_count for each in found.entities}
        await trio.lowlevel.checkpoint()


if __name__ == "__main__":
    begun = Path(sys.argv[1]) / "begun"
    trio.run(_fill, begun)
    kill_at_each(Path(sys.argv[1]), _rename, _look, begun=begun)
