"""Forgetting: what is forgotten stays within reach, and several are ended with care."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import AuditTrail, refused

from greenroom.actors import (
    Agent,
    ImportMemories,
    MemoryFilters,
    MemoryForgotten,
    MemorySearch,
    MemoryService,
)
from greenroom.actors.memories.requests import requests
from greenroom.actors.memories.writing import forget as memory_forget
from greenroom.runtime import InlineCommitter, RuntimeOptions, StorageFullError

if TYPE_CHECKING:
    from support.agents import Enter

EVERYTHING = MemoryFilters()


async def store(agent: Agent, content: str, **more: Any) -> str:
    return (await agent.ask(requests.StoreMemory(content=content, **more))).memory_id


async def forget(agent: Agent, **more: Any) -> MemoryForgotten:
    return await agent.ask(requests.ForgetMemory(**more))


@pytest.mark.promise("memory.forget")
@pytest.mark.parametrize("namespace", ["team:x", "project:p"])
async def test_the_last_memory_is_found_by_its_id_after_it_was_forgotten(
    enter: Enter, namespace: str
) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice", projects=frozenset({"p"}))
        only = await store(alice, "only", key="k", namespace=namespace)
        assert (await forget(alice, memory_id=only)).forgotten == 1
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice", projects=frozenset({"p"}))
        eve = at.agent("e", user="eve", projects=frozenset())
        history = await alice.ask(requests.ListVersions(memory_id=only))
        assert [version.deleted_at is not None for version in history.versions] == [True]
        assert (await alice.ask(MemorySearch(query="only"))).memories == []
        if namespace == "project:p":
            with refused("MEMORY_NOT_FOUND"):
                await eve.ask(requests.ListVersions(memory_id=only))
        purged = await forget(alice, memory_id=only, purge=True)
        assert (purged.forgotten, purged.purged) == (1, True)
        for request in (
            requests.ListVersions(memory_id=only),
            requests.ForgetMemory(memory_id=only, purge=True),
        ):
            with refused("MEMORY_NOT_FOUND"):
                await alice.ask(request)


@pytest.mark.promise("memory.forget")
async def test_a_key_with_a_history_is_listed_before_it_is_purged(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        ids = []
        for text in ("first", "second", "third"):
            ids.append(await store(alice, text, key="k"))
            await forget(alice, key="k")
        ids.append(await store(alice, "there", key="k"))
        asked = await forget(alice, key="k", purge=True)
        assert (asked.forgotten, asked.purged, asked.confirm_needed) == (0, False, True)
        assert (asked.matched, asked.remaining) == (4, 4)
        assert asked.memories[0].memory_id == ids[3]
        assert {memory.memory_id for memory in asked.memories} == set(ids)
        history = await alice.ask(requests.ListVersions(key="k"))
        assert len(history.versions) == 4, "nothing was done"
        done = await forget(alice, key="k", purge=True, confirm=True)
        assert (done.forgotten, done.purged, done.matched, done.remaining) == (4, True, 4, 0)
        with refused("MEMORY_NOT_FOUND"):
            await alice.ask(requests.ListVersions(key="k"))
        await store(alice, "alone", key="k")
        assert (await forget(alice, key="k", purge=True)).forgotten == 1, "one needs no confirmation"


@pytest.mark.promise("memory.forget")
@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.slow
async def test_many_are_forgotten_a_thousand_a_commit(enter: Enter, *, purge: bool) -> None:
    lines = b"\n".join(
        msgspec.json.encode({"key": f"k{number}", "content": f"note {number}"}) for number in range(2_100)
    )
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        await alice.ask(ImportMemories(source=lines.decode()))
        asked = await forget(alice, filters=EVERYTHING, purge=purge)
        assert (asked.forgotten, asked.matched, asked.remaining) == (0, 2_100, 2_100)
        assert asked.confirm_needed
        done = await forget(alice, filters=EVERYTHING, confirm=True, purge=purge)
        assert (done.forgotten, done.matched, done.remaining, done.purged) == (1_000, 2_100, 1_100, purge)
        assert await _ended(at) == 1_000
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        assert (await alice.ask(requests.MemoryStats())).memories == 1_100
        counts = []
        while (done := await forget(alice, filters=EVERYTHING, confirm=True, purge=purge)).matched:
            counts.append((done.forgotten, done.remaining))
        assert counts == [(1_000, 100), (100, 0)]
        assert await _ended(at) == 2_100
        assert (await alice.ask(MemorySearch(query="note"))).total == 0


@pytest.mark.promise("memory.forget")
async def test_a_long_history_of_a_key_is_purged_in_bounded_commits(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_forget, "AT_ONCE", 3)
    purged: list[int] = []

    def watch(store: Any, works: Any) -> None:
        for work in works:
            gone = [key for _, key, payload in work.ops if b"user:alice\0ue" in key and payload is None]
            purged.extend([len(gone)] if len(gone) > 1 else [])
        store.commit(works)

    async with enter(embedder="none", committer=InlineCommitter(watch)) as at:
        service = MemoryService(at.runtime)
        for number in range(8):
            await service.add_memory("user:alice", "k", {"n": number}, "semantic", "a", "t")
            await service.delete_memory("user:alice", "k", "a", "t")
        purged.clear()
        assert await service.purge_memory("user:alice", "k", "a", "t")
        assert purged == [3, 3, 2]
        assert await service.list_versions("user:alice", "k") == []
        assert not await service.purge_memory("user:alice", "k", "a", "t")


async def _ended(at: Any) -> int:
    trail = await at.runtime.query(AuditTrail())
    return sum(row.action == "forget_memory" for row in trail)


@pytest.mark.promise("memory.forget", "store.space-reserve")
@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.slow
async def test_a_full_store_is_emptied_by_forgetting_many_at_a_time(enter: Enter, *, purge: bool) -> None:
    options = RuntimeOptions(durability="process", max_size=1 << 20, min_free=0)
    async with enter(embedder="none", options=options) as at:
        alice = at.agent("a", user="alice")
        count = refusals = 0
        while refusals < 30:
            try:
                await store(alice, f"note {count} on the harbour, its ferries and who is on board " * 8)
                count += 1
            except StorageFullError:
                refusals += 1
        assert count > 100
        left, refusals = count, 0
        while left:
            try:
                done = await forget(alice, filters=EVERYTHING, confirm=True, purge=purge)
            except StorageFullError:  # the index is being loaded, and keeps free pages from being used
                refusals += 1
                assert refusals < 30
                await trio.sleep(1)
                continue
            assert (done.matched, done.remaining) == (left, left - done.forgotten)
            assert len(done.memories) == min(done.forgotten, 100)
            assert done.forgotten > 0
            left = done.remaining
        at.tick(3_600)
        if purge:
            await trio.sleep(120)
            await store(alice, "there is room again")
        assert (await alice.ask(MemorySearch(query="harbour"))).total == 0
