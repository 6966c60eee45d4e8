"""Searches over many namespaces: all are asked, up to a number, and what is left out is said."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import House, wire
from support.agents import house as housed

from greenroom.actors import (
    Agent,
    ForgetMemory,
    MemorySearch,
    Principal,
    RecallContext,
    StoreMemory,
    UpdateMemory,
)
from greenroom.actors.core.auth.namespaces import memory_address, tag_of_root
from greenroom.actors.memories.recall.scatter_gather import BATCH, MOST
from greenroom.actors.memories.storage import directory
from greenroom.runtime import (
    Actor,
    Context,
    Index,
    IndexReader,
    Message,
    Procedure,
    handles,
    open_runtime,
)
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter

MANY = BATCH + 40
"""Namespaces, so that their hits are merged more than once."""
OWN = 2
"""Namespaces of the caller, which are asked in any case."""
ATLAS = frozenset({"atlas"})


@asynccontextmanager
async def house(enter: Enter, **options: Any) -> AsyncIterator[House]:
    async with enter(embedder="none", **options) as at:
        yield at


def agent(at: House, agent_id: str = "planner", user: str | None = "alice", **more: Any) -> Agent:
    return Agent(at.runtime, Principal(agent_id=agent_id, user=user, **more))


async def keep(alice: Agent, content: str, namespace: str, **arguments: Any) -> str:
    metadata = arguments.pop("metadata", {})
    request = StoreMemory(
        content=content,
        namespace=namespace,
        metadata=msgspec.Raw(msgspec.json.encode(metadata)),
        **arguments,
    )
    return (await alice.ask(request)).memory_id


async def crowd(at: House, count: int = MANY, text: str = "a note about the database, number {}") -> None:
    """Have somebody make many namespaces that everybody sees."""
    maker = agent(at, "maker", "mallory")
    for n in range(count):
        await keep(maker, text.format(n), f"team:t{n:04}")


async def search(alice: Agent, query: str | None, **arguments: Any) -> Any:
    return await alice.ask(MemorySearch(query=query, include_debug=True, **arguments))


def contents(answer: Any) -> list[str]:
    return [hit.content for hit in answer.memories]


def asked(answer: Any) -> int:
    count: int = wire(answer.debug)["namespaces"]
    return count


# -- what is found -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("recall.many")
async def test_what_is_looked_for_is_found_first_in_whichever_namespace_it_is(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        words = ["ferry", "harbour", "kestrel", "lantern", "meadow"]
        for n, word in enumerate(words):
            await keep(alice, f"a note about the database and the {word}", f"team:{'az'[n % 2]}{n}")
        await crowd(at)
        for word in words:
            answer = await search(alice, f"note about {word}")
            assert contents(answer)[0] == f"a note about the database and the {word}"
            assert len(answer.memories) == 10
            assert asked(answer) == OWN + len(words) + MANY
            assert answer.total == len(words) + MANY
            assert answer.partial is msgspec.UNSET
            assert answer.total_is_minimum is msgspec.UNSET


@pytest.mark.promise("recall.many")
@pytest.mark.slow
async def test_of_too_many_the_answer_says_that_others_may_have_more(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at, MOST + 40)
        alice = agent(at)
        await keep(alice, "the harbour", "user:alice")
        await keep(alice, "the harbour of all", "team:t0000")
        await keep(alice, "the harbour that comes last", f"team:t{MOST + 39:04}")
        answer = await search(alice, "harbour", limit=100)
        assert sorted(contents(answer)) == ["the harbour", "the harbour of all"]
        assert asked(answer) == MOST
        assert answer.total_is_minimum
        assert answer.partial
        assert f"{OWN + 40} others may have more: name a namespace" in answer.partial_reason
        recalled = await alice.ask(RecallContext(task="harbour"))
        assert recalled.partial
        named = await search(alice, "harbour", namespace=f"team:t{MOST + 39:04}")
        assert contents(named) == ["the harbour that comes last"]
        assert named.partial is msgspec.UNSET


@pytest.mark.slow
@pytest.mark.promise("recall.many")
async def test_what_is_written_removed_and_shared_is_seen_by_the_very_next_search(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at)
        alice, bob = agent(at, projects=ATLAS), agent(at, "builder", "bob", projects=frozenset({"other"}))
        assert contents(await search(alice, "kestrel")) == []
        await keep(alice, "kestrel one", "team:t7")
        assert contents(await search(alice, "kestrel")) == ["kestrel one"]
        second = await keep(alice, "kestrel two", "team:fresh", metadata={"scope": "private"})
        assert sorted(contents(await search(alice, "kestrel"))) == ["kestrel one", "kestrel two"]
        assert contents(await search(bob, "kestrel")) == []
        await keep(bob, "kestrel three", "team:fresh", metadata={"scope": "public"})
        assert contents(await search(bob, "kestrel")) == ["kestrel three"]
        await alice.ask(ForgetMemory(memory_id=second, purge=True))
        assert sorted(contents(await search(alice, "kestrel"))) == ["kestrel one", "kestrel three"]
        third = await keep(alice, "kestrel four", "team:short")
        await alice.ask(ForgetMemory(memory_id=third, purge=True))  # the last one of that namespace
        await keep(alice, "kestrel five", "team:short")
        assert "kestrel five" in contents(await search(alice, "kestrel"))


# -- who may see what --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("recall.many", "recall.hidden")
async def test_what_is_hidden_in_visible_namespaces_is_not_found(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at)
        alice, bob = agent(at), agent(at, "builder", "bob")
        await keep(bob, "the kestrel nests", "team:t3", metadata={"scope": "private"})
        answer = await search(alice, "kestrel")
        assert (answer.memories, answer.total, asked(answer)) == ([], 0, OWN + MANY)
        assert contents(await search(bob, "kestrel")) == ["the kestrel nests"]


@pytest.mark.promise("recall.many", "recall.hidden")
@pytest.mark.slow
async def test_namespaces_that_somebody_else_has_change_no_answer(tmp_path: Path) -> None:
    """Where the caller sees no more than are asked, it is as if the others were not there."""
    answers = []
    for others in (0, MANY):
        async with open_house(tmp_path / str(others)) as at:
            alice = agent(at, projects=ATLAS)
            for n in range(30):
                await keep(alice, f"the harbour {n} and the ferry {n % 7}", f"team:own{n}", key=f"k{n}")
            await crowd_of_others(at, others)
            found = [
                await search(alice, query, limit=limit, mode=mode)
                for query in ("harbour 3", "fery", "ferry 4 harbour", "zzz", None)
                for mode, limit in (("semantic", 10), ("hybrid", 100), ("exact", 5))
                if query is not None or mode == "hybrid"
            ]
            answers.append([said(each) for each in found])
    assert answers[0] == answers[1]


def said(answer: Any) -> Any:
    hits = [(hit.key, hit.namespace, hit.score) for hit in answer.memories]
    return hits, answer.total, answer.failed, answer.partial, asked(answer)


async def crowd_of_others(at: House, count: int) -> None:
    for n in range(count):
        other = agent(at, f"a{n}", f"u{n}", projects=frozenset())
        await keep(other, f"the harbour of somebody else, ferry {n}", f"user:u{n}")


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[House]:
    async with housed(folder, VirtualClock(), embedder="none") as at:
        yield at


# -- what an older program left ----------------------------------------------------------------------


class WriteSummary(Message[None], frozen=True, kw_only=True):
    """Write what an older program wrote of the words of a root with so many memories."""

    count: int


class OldMemory(Actor):
    """Writes as the program before did."""

    kind = "memory"

    @handles(WriteSummary)
    def write(self, request: WriteSummary, context: Context) -> None:
        tag = tag_of_root("team:birds")
        context.put(b"w", ("rules", 1, 1, 1, None, 1))
        context.put_row(directory.SUMMARIES, b"m" + tag, ("rules", 1, 1))
        for kind in (b"b", b"p"):
            context.put_row(directory.SUMMARIES, kind + tag + bytes(4), ("kestrel",))
        for update in range(2, request.count + 1):
            for kind in (b"r", b"v"):
                context.put_row(directory.SUMMARIES, kind + tag + update.to_bytes(8), ("heron",))


class CountSummaries(Procedure[int], frozen=True, kw_only=True):
    """Count the rows that older programs wrote."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> int:
        return sum(1 for _ in reader.rows(directory.SUMMARIES, msgspec.Raw))


@pytest.mark.promise("recall.many")
@pytest.mark.parametrize("change", ["forget", "purge", "update", "store"])
async def test_no_words_of_what_goes_stay_in_an_older_program_s_summary(
    folder: Path, clock: VirtualClock, change: str
) -> None:
    async with housed(folder, clock, embedder="none") as at:
        kept = [await keep(agent(at), f"bird {n}", "team:birds") for n in range(3)]
    index = Index(directory.SUMMARIES, names=directory.names_in_summary)
    async with open_runtime(folder, actors=[OldMemory], indexes=[index], clock=clock) as runtime:
        await runtime.ask(memory_address("team:birds"), WriteSummary(count=3))
    async with housed(folder, clock, embedder="none", queries=[CountSummaries]) as at:
        alice = agent(at)
        assert len((await search(alice, "bird")).memories) == 3
        assert await at.runtime.query(CountSummaries()) == 7
        if change == "update":
            await alice.ask(UpdateMemory(memory_id=kept[1], content="another bird"))
        elif change == "store":
            await keep(alice, "a fourth bird", "team:birds")
        else:
            await alice.ask(ForgetMemory(memory_id=kept[1], purge=change == "purge"))
        assert await at.runtime.query(CountSummaries()) == 0


@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons")
async def test_that_none_of_many_has_it_is_not_taken_for_an_empty_store(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await crowd(at)
        for asked, code in (
            (MemorySearch(query="zebra"), "no_embedder"),
            (MemorySearch(query="database", tags=["zebra"]), "filter_matches_nothing"),
            (MemorySearch(query="database", namespace="team:zebra"), "filter_matches_nothing"),
        ):
            found = await alice.ask(asked)
            assert (found.memories, wire(found)["empty_because"]["code"]) == ([], code)
