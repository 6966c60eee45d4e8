"""What has nothing to do with a query stays behind what has, also where much is alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
from harness import PATIENCE

from greenroom.actors import Agent, MemorySearch, Principal, StoreMemory, open_greenroom

if TYPE_CHECKING:
    from pathlib import Path

STRANGERS = (
    "my hobby is gardening",
    "My favourite hobby is gardening: on weekends I grow tomatoes, roses and a few herbs on the balcony.",
)


@pytest.mark.promise("memory.strangers")
@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_dozen_near_equal_memories_lift_no_stranger_to_the_top(tmp_path: Path, stranger: str) -> None:
    async with open_greenroom(tmp_path / "store") as runtime:
        ann = Agent(runtime, Principal(agent_id="planner", user="ann"))
        for number in range(1, 13):
            await ann.ask(StoreMemory(content=f"database config note {number}"))
        # As good as a memory can be that nobody has rated.
        await ann.ask(StoreMemory(content=stranger, metadata=msgspec.Raw(b'{"importance": 1.0}')))
        with trio.fail_after(PATIENCE):
            while True:
                debug = (await ann.ask(MemorySearch(query="x", include_debug=True))).debug
                if debug and debug.weights == ["static"]:
                    break
        for query in ("database config", "database config note", "database config note 99"):
            for mode in ("semantic", "hybrid"):
                found = (await ann.ask(MemorySearch(query=query, mode=mode, limit=20))).memories
                assert len(found) == 13
                assert found[0].content != stranger, (query, mode)
                assert mode == "hybrid" or found[-1].content == stranger, query
