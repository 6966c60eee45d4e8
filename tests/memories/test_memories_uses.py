"""Uses: counted however a memory is read, written beside the reads, and of no harm to these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import keep, value_of

from greenroom.actors import ImportMemories, MemorySearch, RetrieveMemory
from greenroom.actors.memories.requests import requests
from greenroom.runtime import InlineCommitter, StorageFullError

if TYPE_CHECKING:
    from support.agents import Enter


@pytest.mark.promise("memory.ratings")
async def test_reads_by_key_are_uses_and_outlast_the_process(enter: Enter) -> None:
    commits = 0

    def watch(store: Any, works: Any) -> None:
        nonlocal commits
        commits += 1
        store.commit(works)

    async with enter(embedder="none", committer=InlineCommitter(watch)) as at:
        alice = at.agent("a", user="alice")
        await keep(alice, "k", '"x"')
        await keep(alice, "s", '"y"')
        await alice.ask(requests.StoreMemory(content="z" * 5_000, key="t", namespace="agent:a"))
        await trio.sleep(120)
        at.tick(120)
        before = commits
        for _ in range(100):
            await value_of(alice, "k")
            await value_of(alice, "t")
        await value_of(alice, "k", version=1)
        assert commits == before + 1, "once, whatever the number of reads"
        await trio.sleep(120)
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        page = await alice.ask(requests.ListMemories(namespace="agent:a"))
        assert {memory.key: memory.uses for memory in page.memories} == {"k": 101, "s": 0, "t": 100}
        assert {memory.key: memory.last_used is None for memory in page.memories}["k"] is False


@pytest.mark.promise("memory.ratings")
async def test_reads_are_answered_when_their_uses_cannot_be_written(enter: Enter) -> None:
    full = False

    def watch(store: Any, works: Any) -> None:
        if full:
            for work in works:
                work.error = StorageFullError("injected")
        store.commit(works)

    async with enter(embedder="none", committer=InlineCommitter(watch)) as at:
        alice = at.agent("a", user="alice")
        await keep(alice, "k", '"words"')
        await alice.ask(MemorySearch(query="words"))
        await trio.sleep(120)
        at.tick(120)
        full = True
        for _ in range(2):
            assert msgspec.json.decode(await value_of(alice, "k")) == "words"
            found = await alice.ask(RetrieveMemory(query="words", namespace="agent:a"))
            assert ([memory.key for memory in found.memories], found.failed) == (["k"], [])
        with pytest.raises(StorageFullError):
            await keep(alice, "l")
        full = False
        await trio.sleep(120)
        at.tick(120)
        await value_of(alice, "k")
        await trio.sleep(120)
        page = await alice.ask(requests.ListMemories(namespace="agent:a"))
        assert page.memories[0].uses > 0, "the room is there again"


@pytest.mark.promise("memory.views")
async def test_what_is_kept_for_each_reader_is_part_of_the_actor_s_size(enter: Enter) -> None:
    memories = 2_000
    lines = "\n".join(f'{{"key": "k{one}", "content": "words {one}"}}' for one in range(memories))
    async with enter(embedder="none") as at:
        everyone = frozenset({"p"})
        alice, bob = (at.agent(name, user=name, projects=everyone) for name in ("alice", "bob"))
        await alice.ask(ImportMemories(source=lines, namespace="project:p"))
        private = msgspec.Raw(b'{"scope": "private"}')
        await alice.ask(requests.StoreMemory(content="hers", namespace="project:p", metadata=private))
        sizes = []
        for reader in (alice, alice, bob):
            await reader.ask(MemorySearch(query="words", namespace="project:p"))
            sizes.append(at.runtime.statistics().actors.resident_bytes)
        assert sizes[1] - sizes[0] < memories, "the same view serves again"
        assert sizes[2] - sizes[1] > 16 * memories


@pytest.mark.promise("memory.ratings")
@pytest.mark.slow
async def test_the_uses_that_wait_to_be_written_have_a_limit(enter: Enter) -> None:
    lines = "\n".join(f'{{"key": "k{one}", "content": "x"}}' for one in range(8_200))
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        await alice.ask(ImportMemories(source=lines, namespace="agent:a"))
        for one in range(8_200):
            await value_of(alice, f"k{one}")
        await trio.sleep(120)
        page = await alice.ask(requests.ListMemories(namespace="agent:a"))
        uses = {memory.key: memory.uses for memory in page.memories}
        assert (uses["k8191"], uses["k8192"]) == (1, 0)
