"""Sweeping: in the order of expiry, in small commits, and never long at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import AuditTrail, moment

from greenroom.actors import ListMemory, SetMemory
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests import requests
from greenroom.runtime import InlineCommitter
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from support.agents import Enter

SECOND = 1_000_000
TICK = 0.001


@pytest.fixture
def clock() -> VirtualClock:
    """Five looks at this clock are a slice."""
    return VirtualClock(tick=TICK)


@pytest.mark.quick
@pytest.mark.promise("memory.sweep")
@pytest.mark.slow
async def test_what_expires_first_goes_first_in_small_commits_and_short_slices(enter: Enter) -> None:
    gone: list[int] = []
    effects: list[int] = []

    def watch(store: Any, works: Any) -> None:
        for work in works:
            removed = [
                int.from_bytes(key[len(b"memory\0user:alice\0ux") :][:8])
                for _, key, payload in work.ops
                if key.startswith(b"memory\0user:alice\0ux") and payload is None
            ]
            gone.extend(sorted(removed))
            effects.extend([len(work.ops)] if removed else [])
        store.commit(works)

    async with enter(embedder="none", committer=InlineCommitter(watch)) as at:
        alice = at.agent("a", user="alice")
        for number in range(300):
            ends = moment(at.clock.now() + (1_000 - number * 7 % 300) * SECOND)
            metadata = msgspec.json.encode({"expiry": ends.isoformat(), "tags": ["t"]})
            await alice.ask(
                requests.StoreMemory(
                    content=f"short lived {number}",
                    key=f"k{number}",
                    metadata=msgspec.Raw(metadata),
                    namespace="user:alice:deep" if number % 2 else None,
                )
            )
        stays = await alice.ask(requests.StoreMemory(content="stays", key="stays"))
        await alice.ask(requests.RateMemory(key="k0", rating=1))
        await trio.sleep(1_300)
        assert len(gone) == 300
        assert gone == sorted(gone)
        assert max(effects) < 250
        assert len(effects) > 10
        assert at.runtime.statistics().dispatcher.longest_slice_ms <= 10
        page = await alice.ask(requests.ListMemories())
        assert [memory.memory_id for memory in page.memories] == [stays.memory_id]
        found = await at.runtime.ask(
            memory_address("user:alice"), requests.FindMemories(text="lived"), principal=alice.principal
        )
        assert found.hits == []
        trail = await at.runtime.query(AuditTrail())
        assert sum(row.details["versions"] for row in trail if row.action == "expire_memory") == 300


@pytest.mark.promise("memory.sweep")
@pytest.mark.slow
async def test_reads_go_on_while_thousands_expire(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number in range(1_500):
            await alice.ask(SetMemory(key=f"k{number}", value=msgspec.Raw(b"1"), expires_in=10))
        await alice.ask(SetMemory(key="stays", value=msgspec.Raw(b"1")))
        at.tick(120)
        for _ in range(50):
            listed = await alice.ask(ListMemory(session_id="all"))
            assert [entry.key for entry in listed.entries] == ["stays"]
            await trio.sleep(1)
        trail = await at.runtime.query(AuditTrail())
        assert sum(row.details["versions"] for row in trail if row.action == "expire_memory") == 1_500
