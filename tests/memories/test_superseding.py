"""Superseding: a memory hides another one from those who see it, and as long as it is there."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import keep, refused
from support.exchanges import export, imported, line

from greenroom.actors import (
    Agent,
    CreateSession,
    MemoryFilters,
    MemorySaved,
    MemorySearch,
    MemoryView,
    RetrieveMemory,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests import requests
from greenroom.actors.memories.requests.requests import VerifyIndex

if TYPE_CHECKING:
    from support.agents import Enter, House

PROJECT = "project:p"
SECOND = 1_000_000
TEXT = "quarterly revenue projections exceeded conservative expectations throughout northern districts"


def people(at: House) -> tuple[Agent, Agent]:
    both = frozenset({"p"})
    return at.agent("a", user="alice", projects=both), at.agent("b", user="bob", projects=both)


async def store(agent: Agent, key: str, content: str, namespace: str = PROJECT, **more: Any) -> MemorySaved:
    """Store a memory; ``scope`` and ``expiry`` go into its metadata."""
    metadata = {name: more.pop(name) for name in ("scope", "expiry") if name in more}
    raw = msgspec.Raw(msgspec.json.encode(metadata))
    request = requests.StoreMemory(key=key, content=content, namespace=namespace, metadata=raw, **more)
    return await agent.ask(request)


def later(at: House, seconds: float) -> str:
    time = dt.datetime.fromtimestamp(at.clock.now() / SECOND, dt.UTC) + dt.timedelta(seconds=seconds)
    return time.isoformat()


async def listed(agent: Agent, namespace: str = PROJECT, **filters: Any) -> dict[str, MemoryView]:
    wanted = MemoryFilters(**filters) if filters else None
    page = await agent.ask(requests.ListMemories(namespace=namespace, filters=wanted, limit=100))
    return {memory.key: memory for memory in page.memories}


async def explained(agent: Agent, query: str) -> Any:
    """Return what a search counts and scores."""
    reply = await agent.ask(MemorySearch(query=query, namespace=PROJECT, include_debug=True))
    read = msgspec.json.decode(msgspec.json.encode(reply))
    return read["debug"]["counts"], [(memory["key"], memory["score"]) for memory in read["memories"]]


async def everywhere(at: House, agent: Agent, query: str, namespace: str = PROJECT) -> set[str]:
    """Return the keys that an agent finds, in all the ways to look, which must agree."""
    found = []
    for search in (
        MemorySearch(query=query, namespace=namespace, limit=100),
        MemorySearch(query=query, namespace=namespace, limit=100, mode="exact"),
        MemorySearch(query=query, namespace=namespace, limit=100, mode="hybrid"),
        MemorySearch(after="1970-01-01", namespace=namespace, limit=100),
    ):
        reply = await agent.ask(search)
        assert reply.total == len(reply.memories)
        found.append({memory.key for memory in reply.memories})
    found.append(set(await listed(agent, namespace)))
    every = await listed(agent, namespace, superseded=True)
    found.append({key for key, memory in every.items() if memory.superseded_by is None})
    counted = await agent.ask(requests.MemoryStats(namespace=namespace))
    assert (counted.memories, counted.memories - counted.superseded) == (len(every), len(found[0]))
    checked = await at.runtime.ask(memory_address(namespace), VerifyIndex(), principal=agent.principal)
    assert checked.problems == []
    assert all(keys == found[0] for keys in found), found
    return found[0]


@pytest.mark.promise("memory.namespaces")
async def test_a_hidden_successor_hides_nothing_and_is_not_named(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        fact = await store(alice, "k", "deploy on friday with zebra")
        before = await explained(alice, "zebra")
        mine = await store(bob, "x", "mine with zebra", scope="private", supersedes=fact.memory_id)
        assert await explained(alice, "zebra") == before
        assert await everywhere(at, alice, "zebra") == {"k"}
        assert await everywhere(at, bob, "zebra") == {"x"}
        assert (await listed(alice, superseded=True))["k"].superseded_by is None
        assert (await listed(bob, superseded=True))["k"].superseded_by == mine.memory_id
        # An open one beside it hides it from both, whichever came first, until that is private as well.
        shared = await store(bob, "y", "ours with zebra", supersedes=fact.memory_id)
        await store(bob, "z", "again mine with zebra", scope="private", supersedes=fact.memory_id)
        assert await everywhere(at, alice, "zebra") == {"y"}
        assert (await listed(alice, superseded=True))["k"].superseded_by == shared.memory_id
        private = msgspec.Raw(b'{"scope": "private"}')
        await bob.ask(requests.UpdateMemory(memory_id=shared.memory_id, metadata=private))
        assert await everywhere(at, alice, "zebra") == {"k"}
        assert await everywhere(at, bob, "zebra") == {"x", "y", "z"}


@pytest.mark.promise("memory.namespaces")
async def test_what_a_reader_may_not_see_is_not_named_as_superseded(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        secret = await store(alice, "salary-of-carol", "old secret", scope="private")
        await store(alice, "n", "new and open", supersedes=secret.memory_id)
        [theirs] = await export(at.runtime, bob.principal, PROJECT)
        assert (theirs["key"], "supersedes" in theirs) == ("n", False)
        assert (await listed(bob))["n"].supersedes is None
        assert (await listed(alice))["n"].supersedes == secret.memory_id
        links = {
            each["key"]: each.get("supersedes") for each in await export(at.runtime, alice.principal, PROJECT)
        }
        assert links == {"salary-of-carol": None, "n": "salary-of-carol"}
        # A line names by the key alone: what lies in another namespace, or is gone, is not named.
        other = await store(alice, "o", "elsewhere", namespace="project:p:deep")
        await store(alice, "n", "new and open", supersedes=other.memory_id)
        assert all("supersedes" not in each for each in await export(at.runtime, alice.principal, PROJECT))


@pytest.mark.promise("memory.life")
@pytest.mark.parametrize("end", ["expires", "is swept", "is forgotten", "is purged", "is given up"])
async def test_when_its_successor_ends_a_memory_is_there_again(enter: Enter, end: str) -> None:
    async with enter(embedder="none") as at:
        alice, _ = people(at)
        fact = await store(alice, "k", "the zebra office is in Berlin", namespace="user:alice")
        expiry = {"expiry": later(at, 60)} if end in {"expires", "is swept"} else {}
        notice = await store(
            alice, "t", "the zebra office is closed", "user:alice", supersedes=fact.memory_id, **expiry
        )
        assert await everywhere(at, alice, "zebra", "user:alice") == {"t"}
        if expiry:
            at.tick(60)
            if end == "is swept":
                await trio.sleep(120)
                at.tick(60)
        elif end == "is given up":
            other = await store(alice, "l", "about lions", "user:alice")
            await alice.ask(requests.UpdateMemory(memory_id=notice.memory_id, supersedes=other.memory_id))
        else:
            purge = end == "is purged"
            await alice.ask(requests.ForgetMemory(memory_id=notice.memory_id, purge=purge))
        left = {"k", "t"} if end == "is given up" else {"k"}
        found = await alice.ask(MemorySearch(query="zebra", namespace="user:alice"))
        assert {memory.key for memory in found.memories} == left
        assert await everywhere(at, alice, "zebra", "user:alice") == left
    async with enter(embedder="none") as at:
        alice, _ = people(at)
        assert await everywhere(at, alice, "zebra", "user:alice") == left


@pytest.mark.promise("memory.life")
async def test_one_of_several_successors_is_enough(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        fact = await store(alice, "k", "zebra 1")
        first = await store(alice, "f", "zebra 2", supersedes=fact.memory_id)
        second = await store(bob, "s", "zebra 3", supersedes=fact.memory_id)
        assert await everywhere(at, alice, "zebra") == {"f", "s"}
        await bob.ask(requests.ForgetMemory(memory_id=second.memory_id))
        assert await everywhere(at, alice, "zebra") == {"f"}
        await alice.ask(requests.ForgetMemory(memory_id=first.memory_id))
        assert await everywhere(at, alice, "zebra") == {"k"}
        # Purged with what is left of its links, it stays gone, and its number is nobody else's.
        await store(alice, "f", "zebra 4", supersedes=fact.memory_id)
        await alice.ask(requests.ForgetMemory(memory_id=fact.memory_id, purge=True))
        await trio.sleep(1)
        assert await everywhere(at, alice, "zebra") == {"f"}
        assert (await listed(alice))["f"].supersedes is None


@pytest.mark.promise("memory.life")
async def test_of_a_ring_the_newest_word_counts(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        low = await store(alice, "low", "zebra 1")
        with refused("VALIDATION_ERROR", field="supersedes"):
            await store(alice, "low", "zebra 1", supersedes=low.memory_id)
        middle = await store(bob, "middle", "zebra 2", scope="private", supersedes=low.memory_id)
        top = await store(bob, "top", "zebra 3", supersedes=middle.memory_id)
        assert await everywhere(at, alice, "zebra") == {"low", "top"}
        assert await everywhere(at, bob, "zebra") == {"top"}
        # A refusal would tell alice of the one between.
        await store(alice, "low", "zebra 4", supersedes=top.memory_id)
        assert await everywhere(at, alice, "zebra") == {"low"}
        assert await everywhere(at, bob, "zebra") == {"low"}
        await bob.ask(requests.UpdateMemory(memory_id=top.memory_id, supersedes=low.memory_id))
        assert await everywhere(at, bob, "zebra") == {"middle", "top"}


@pytest.mark.promise("memory.found")
async def test_a_memory_named_by_its_key_is_answered_also_if_superseded(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, _ = people(at)
        fact = await store(alice, "k", "old", namespace="user:alice")
        made_up = await alice.ask(requests.StoreMemory(content="no key", namespace="user:alice:deep"))
        newer = await store(alice, "t", "new", namespace="user:alice", supersedes=fact.memory_id)
        await store(alice, "k", "below", namespace="user:alice:deep:er")

        async def named(key: str, **more: Any) -> list[tuple[str, Any]]:
            reply = await alice.ask(RetrieveMemory(key=key, **more))
            read = msgspec.json.decode(msgspec.json.encode(reply))["memories"]
            return sorted((one["content"], one.get("superseded_by")) for one in read)

        assert await named("k") == [("below", None), ("old", newer.memory_id)]
        assert await named("k", namespace="user:alice:deep") == [("below", None)]
        assert await named(made_up.key) == [("no key", None)]
        assert await named("nothing") == []
        found = await alice.ask(RetrieveMemory(query="old"))
        assert fact.memory_id not in {one.memory_id for one in found.memories}
        await keep(alice, "k", '"everywhere"')
        for session in ("s", "s-2", "t"):
            await alice.ask(CreateSession(purpose="p", session_id=session))
            await keep(alice, "k", f'"in {session}"', session_id=session)
        kept = await alice.ask(RetrieveMemory(key="k", namespace="agent:a"))
        values = {one["value"] for one in msgspec.json.decode(msgspec.json.encode(kept))["memories"]}
        assert values == {"everywhere", "in s", "in s-2", "in t"}


@pytest.mark.promise("memory.similar")
async def test_what_is_similar_does_not_depend_on_hidden_memories(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        first = await store(alice, "first", TEXT)
        for number in range(15):
            await store(bob, f"b{number}", f"{TEXT} again", scope="private")
        again = await store(alice, "second", f"{TEXT} again")
        assert [one.key for one in again.similar] == ["first"]
        # Neither on what is superseded: it takes no place among those that are compared.
        before = first
        for number in range(15):
            before = await store(alice, f"a{number}", f"{TEXT} again", supersedes=before.memory_id)
        latest = await store(alice, "third", f"{TEXT} again")
        assert {one.key for one in latest.similar} == {"a14", "second"}


@pytest.mark.promise("memory.namespaces")
async def test_counts_of_a_search_tell_nothing_of_hidden_links(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        await store(alice, "k", "zebra one")

        before = await explained(alice, "zebra")
        hidden = await store(bob, "h1", "hidden", scope="private")
        await store(bob, "h2", "hidden too", scope="private", supersedes=hidden.memory_id)
        assert await explained(alice, "zebra") == before


@pytest.mark.promise("memory.life")
async def test_the_author_is_who_wrote_the_first_version(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = people(at)
        await store(alice, "k", "v1")
        await store(bob, "k", "v2")
        await store(bob, "k", "v3", author="Carol")
        memory = (await listed(alice))["k"]
        assert (memory.author, memory.updated_by, memory.version) == ("a", "Carol", 3)
        history = await alice.ask(requests.ListVersions(key="k", namespace=PROJECT))
        assert [version.author for version in history.versions] == ["a", "b", "Carol"]
        assert set(await listed(bob, author="a")) == {"k"}
        # An import keeps given authors; a line without one leaves the author as it is.
        await store(alice, "mine", "v1", namespace="user:alice", author="Dan")
        for author, line_author in [("Dan", {}), ("Eve", {"created_by": "Eve"})]:
            lines = line("mine", f"of {author}", namespace="user:alice", **line_author)
            await imported(at.runtime, alice.principal, lines, on_conflict="version")
            assert (await listed(alice, "user:alice"))["mine"].author == author
