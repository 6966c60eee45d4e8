"""What lists and the map call a contradiction: on fifty labelled pairs, nearly all of it is one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.changes import OTHERS
from support.embedding import WAITS, Loaded, Settled

from greenroom.actors import InspectMemory, ListMemoryPairs, MemoryMap, StoreMemory
from greenroom.testing import DAY

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import Agent

pytestmark = pytest.mark.slow

LABELLED: Final = tomllib.loads(
    (Path(__file__).parent.parent / "data" / "contradictions.toml").read_text(encoding="utf-8")
)["pairs"]
RIGHT: Final = 0.8
FOUND: Final = 10


async def _keep_all(agent: Agent, at: Any) -> None:
    for number, text in enumerate(OTHERS):
        await agent.ask(StoreMemory(key=f"other-{number}", content=text))
    for side in ("older", "newer"):
        for number, pair in enumerate(LABELLED):
            await agent.ask(StoreMemory(key=f"{side}-{number}", content=pair[side]))
        at.clock.jump(30 * DAY)
    await at.runtime.query(Settled())


@pytest.mark.quick
@pytest.mark.promise("memory.contradictions")
@pytest.mark.parametrize("embedder", ["static", "none"])
async def test_four_of_five_contradictions_are_one(enter: Enter, embedder: str) -> None:
    labels = {(f"newer-{at}", f"older-{at}"): pair["contradicts"] for at, pair in enumerate(LABELLED)}
    assert (len(labels), sum(labels.values())) == (50, 22)
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        await _keep_all(ann, at)
        found: list[tuple[str, str]] = []
        cursor = None
        while True:
            page = await ann.ask(ListMemoryPairs(kind="conflicts", limit=200, cursor=cursor))
            found += [(pair.newer.key, pair.older.key) for pair in page.pairs]
            cursor = page.next_cursor
            if cursor is None:
                break
        right = sum(labels.get(pair, False) for pair in found)
        assert right >= RIGHT * len(found), [pair for pair in found if not labels.get(pair)]
        assert right >= FOUND
        mapped = await ann.ask(MemoryMap())
        drawn = mapped.edges.type.count(mapped.links.index("contradicts"))
        assert 0 < drawn <= len(found), "the map draws the pairs of the list"


@pytest.mark.promise("memory.contradictions")
async def test_both_sides_of_a_contradiction_name_the_other(enter: Enter) -> None:
    async with enter(embedder="static", queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        await _keep_all(ann, at)
        (first, *_) = (await ann.ask(ListMemoryPairs(kind="conflicts"))).pairs
        newer = await ann.ask(InspectMemory(memory_id=first.newer.memory_id))
        older = await ann.ask(InspectMemory(memory_id=first.older.memory_id))
        assert [each.memory_id for each in newer.replaces] == [first.older.memory_id]
        assert [each.memory_id for each in older.replaced_by] == [first.newer.memory_id]
