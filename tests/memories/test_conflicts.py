"""What `store_memory` says of older notes that a new one may replace: offered, not applied, not leaked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.changes import OTHERS, PAIRS
from support.embedding import WAITS, Loaded

from greenroom.actors import MemorySearch, StoreMemory, UpdateMemory
from greenroom.testing import DAY

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import Agent, MemorySaved

pytestmark = pytest.mark.slow


async def _keep(agent: Agent, key: str, content: str, **more: Any) -> MemorySaved:
    return await agent.ask(StoreMemory(key=key, content=content, **more))


def _offered(saved: MemorySaved) -> list[str]:
    return [each.key for each in saved.conflicts_with]


@pytest.mark.quick
@pytest.mark.promise("memory.conflicts")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_what_a_new_note_replaces_is_offered_and_little_else(enter: Enter, embedder: str) -> None:
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        ordinary = [await _keep(ann, f"other-{number}", text) for number, text in enumerate(OTHERS)]
        ordinary += [await _keep(ann, key, pair.older) for key, pair in PAIRS.items()]
        at.clock.jump(90 * DAY)
        right = {
            key: key in _offered(await _keep(ann, f"{key}-2", pair.newer)) for key, pair in PAIRS.items()
        }
        assert sum(right.values()) >= len(PAIRS) - 1, right
        assert sum(bool(saved.conflicts_with) for saved in ordinary) <= 1
        assert all(len(saved.conflicts_with) <= 3 for saved in ordinary)


@pytest.mark.promise("memory.conflicts")
async def test_nothing_is_replaced_before_somebody_says_so(enter: Enter) -> None:
    pair = PAIRS["chat"]
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        for number, text in enumerate(OTHERS):
            await _keep(ann, f"other-{number}", text)
        older = await _keep(ann, "older", pair.older)
        at.clock.jump(DAY)
        newer = await _keep(ann, "newer", pair.newer)
        (offer,) = newer.conflicts_with
        assert (offer.memory_id, offer.namespace, offer.preview) == (older.memory_id, "user:ann", pair.older)
        assert 0 < offer.similarity < 1

        async def found() -> set[str]:
            reply = await ann.ask(MemorySearch(query="support team customers", limit=2))
            return {each.key for each in reply.memories}

        assert await found() == {"older", "newer"}
        settled = await ann.ask(UpdateMemory(memory_id=newer.memory_id, supersedes=offer.memory_id))
        assert settled.conflicts_with == []
        assert "older" not in await found()


@pytest.mark.promise("memory.conflicts")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_what_the_writer_does_not_see_is_not_offered(enter: Enter, embedder: str) -> None:
    pair = PAIRS["chat"]
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        alice, bob = at.agent("a", user="alice"), at.agent("b", user="bob")
        for number, text in enumerate(OTHERS):
            await _keep(alice, f"other-{number}", text, namespace="team:x")
        await _keep(alice, "secret", pair.older, namespace="team:x", metadata={"scope": "private"})
        at.clock.jump(DAY)
        mine = await _keep(alice, "mine", pair.newer, namespace="team:x", metadata={"scope": "private"})
        assert "secret" in _offered(mine)
        await _keep(alice, "elsewhere", pair.older, namespace="team:x:archive")
        await _keep(alice, "talk", pair.older, namespace="team:x", conversation_id="c")
        at.clock.jump(DAY)
        offered = _offered(await _keep(bob, "bob", pair.newer, namespace="team:x"))
        assert {"secret", "mine", "elsewhere", "talk"}.isdisjoint(offered)
        assert _offered(await _keep(alice, "turn", pair.newer, namespace="team:x", conversation_id="c")) == []


async def test_the_same_note_again_replaces_nothing(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        for number, text in enumerate(OTHERS):
            await _keep(ann, f"other-{number}", text)
        first = await _keep(ann, "first", PAIRS["chat"].newer)
        again = await _keep(ann, "again", PAIRS["chat"].newer)
        assert [each.memory_id for each in again.similar] == [first.memory_id]
        assert again.conflicts_with == []
