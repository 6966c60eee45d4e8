"""Searches over more namespaces than one of them asks: whom they ask, and that they find what is there."""

from __future__ import annotations

import datetime as dt
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import House, wire
from support.agents import house as housed

from greenroom.actors import Agent, ForgetMemory, MemorySearch, Principal, RecallContext, StoreMemory
from greenroom.actors.core.auth.namespaces import memory_address, tag_of_root
from greenroom.actors.memories.requests.keyvalue_requests import SummarizeRoot
from greenroom.actors.memories.requests.requests import VerifyIndex
from greenroom.actors.memories.storage import root_summary
from greenroom.runtime import IndexReader, InlineCommitter, Procedure, RuntimeOptions, StorageFullError
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter

MOST = 100  # namespaces that one search asks
MANY = MOST + 40
"""Namespaces, so that not all are asked."""
ASKED = 2 + 10 + 4
"""Owners that are asked where one has what is looked for: the caller's own, and two turns of others."""
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
        await keep(maker, text.format(n), f"team:t{n}")


async def search(alice: Agent, query: str | None, **arguments: Any) -> Any:
    return await alice.ask(MemorySearch(query=query, include_debug=True, **arguments))


def contents(answer: Any) -> list[str]:
    return [hit.content for hit in answer.memories]


def asked(answer: Any) -> int:
    count: int = wire(answer.debug)["namespaces"]
    return count


def activations_of(at: House) -> int:
    return at.runtime.statistics().actors.activations


class HeaderOf(Procedure[root_summary.SummaryHeader | None], frozen=True, kw_only=True):
    """Read what tells of one root how far what there is is put together."""

    runs = "snapshot"

    root: str

    def run(self, reader: IndexReader) -> root_summary.SummaryHeader | None:
        at = root_summary.META + tag_of_root(self.root)
        return reader.get(root_summary.INDEX, at, memory_address(self.root), root_summary.SummaryHeader)


class RowsOf(Procedure[dict[bytes, int]], frozen=True, kw_only=True):
    """Count what tells of one root what there is, by kind."""

    runs = "snapshot"

    root: str

    def run(self, reader: IndexReader) -> dict[bytes, int]:
        tag = tag_of_root(self.root)
        kinds = (root_summary.META, root_summary.PARTS, root_summary.ROWS)
        return {
            kind: sum(1 for _ in reader.rows(root_summary.INDEX, msgspec.Raw, prefix=kind + tag))
            for kind in kinds
        }


# -- what is found -----------------------------------------------------------------------------------


@pytest.mark.promise("recall.many")
async def test_what_is_looked_for_is_found_first_in_whichever_namespace_it_is(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        words = ["ferry", "harbour", "kestrel", "lantern", "meadow"]
        for n, word in enumerate(words):
            await keep(alice, f"a note about the database and the {word}", f"team:old{n}")
        await crowd(at)
        for word in words:
            answer = await search(alice, f"note about {word}")
            assert contents(answer)[0] == f"a note about the database and the {word}"
            assert asked(answer) <= ASKED


@pytest.mark.promise("recall.many")
@pytest.mark.promise("recall.stop-words")
async def test_a_query_of_stop_words_asks_the_newest_namespaces_and_says_that_there_are_more(
    enter: Enter,
) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await crowd(at)
        await keep(alice, "we saw The Who", "team:band")
        answer = await search(alice, "The Who")
        assert contents(answer) == ["we saw The Who"]
        assert answer.total_is_minimum is True


@pytest.mark.promise("recall.many")
async def test_a_search_asks_those_that_can_match_and_wakes_nobody_else(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await keep(alice, "the harbour", "team:harbour")
        await crowd(at)
    async with house(enter) as at:
        alice = agent(at)
        answer = await search(alice, "harbour")
        assert (contents(answer), answer.total, asked(answer)) == (["the harbour"], 1, 3)
        assert answer.partial is msgspec.UNSET
        assert answer.total_is_minimum is msgspec.UNSET
        activations = activations_of(at)
        assert (await search(alice, "zzz")).memories == []
        assert (await search(alice, "zzz", limit=1)).memories == []
        assert activations_of(at) == activations


@pytest.mark.promise("recall.many")
@pytest.mark.slow
async def test_where_too_many_match_the_answer_says_that_there_may_be_more(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at)
        answer = await search(agent(at), "database", limit=100)
        assert len(answer.memories) == 100
        assert asked(answer) <= MOST + 2
        assert answer.total_is_minimum
        assert answer.partial
        assert f"{MANY - MOST} others may have more" in answer.partial_reason
        recalled = await agent(at).ask(RecallContext(task="database"))
        assert recalled.partial
        few = await search(agent(at), "database", limit=2)
        assert asked(few) <= ASKED
        assert few.partial is msgspec.UNSET  # a turn brought nothing better, so nobody is missed
        assert few.total_is_minimum


@pytest.mark.promise("recall.many")
async def test_what_the_caller_s_own_namespaces_have_is_not_said_to_be_missing(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at)
        alice = agent(at)
        await keep(alice, "the harbour", "user:alice")
        await keep(alice, "the harbour again", "agent:planner")
        await keep(alice, "the harbour of all", "team:harbour")
        answer = await search(alice, "harbour")
        assert (len(answer.memories), answer.total, asked(answer)) == (3, 3, 3)
        assert answer.partial is msgspec.UNSET
        assert answer.total_is_minimum is msgspec.UNSET


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


@pytest.mark.promise("recall.many")
async def test_mistyped_words_dates_tags_and_times_choose_as_well(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await keep(alice, "the harbourmaster's list", "team:old")
        at.tick(3 * 86_400)
        await keep(alice, "what was agreed", "team:old2", metadata={"tags": ["blue moon"]})
        day = dt.datetime.fromtimestamp(at.clock.now() / 1_000_000, dt.UTC)
        at.tick(40 * 86_400)
        await crowd(at)
        assert contents(await search(alice, "habourmaster"))[0] == "the harbourmaster's list"
        assert contents(await search(alice, f"the decision of {day:%d %B %Y}"))[0] == "what was agreed"
        tagged = await search(alice, None, tags=["blue moon"])
        assert (contents(tagged), asked(tagged)) == (["what was agreed"], 3)
        assert contents(await search(alice, "zzz", tags=["blue moon"])) == []
        before = await search(alice, None, before=(day + dt.timedelta(days=2)).isoformat())
        assert contents(before) == ["what was agreed", "the harbourmaster's list"]
        assert asked(before) == 4
        at.tick()
        await keep(alice, "the newest", "team:t5")
        assert contents(await search(alice, None, after="2000-01-01", limit=3))[0] == "the newest"
        exact = await search(alice, "the harbourmaster's list", mode="exact")
        assert (contents(exact), asked(exact)) == (["the harbourmaster's list"], 3)


@pytest.mark.promise("recall.many")
@pytest.mark.slow
async def test_fresh_namespaces_do_not_take_the_place_of_what_fits(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await keep(alice, "when the lantern is lit the ferry leaves", "team:old")
        await crowd(at, text="the ferry {}")
        assert contents(await search(alice, "lantern ferry"))[0] == "when the lantern is lit the ferry leaves"


# -- who may see what --------------------------------------------------------------------------------


@pytest.mark.promise("recall.many", "recall.hidden")
async def test_what_is_hidden_in_visible_namespaces_chooses_nothing(enter: Enter) -> None:
    async with house(enter) as at:
        await crowd(at)
        alice, bob = agent(at), agent(at, "builder", "bob")
        await keep(bob, "the kestrel nests", "team:t3", metadata={"scope": "private"})
        answer = await search(alice, "kestrel")
        assert (answer.memories, answer.total, asked(answer)) == ([], 0, 2)
        assert contents(await search(bob, "kestrel")) == ["the kestrel nests"]


@pytest.mark.promise("recall.many", "recall.hidden")
async def test_a_namespace_where_the_caller_has_nothing_left_is_not_said_to_have_more(enter: Enter) -> None:
    private = {"metadata": {"scope": "private"}}
    async with enter() as at:
        alice = agent(at)
        await keep(agent(at, "builder", "bob"), "hidden", "team:mixed", **private)
        removed = await keep(alice, "removed", "team:mixed", **private)
        await alice.ask(ForgetMemory(memory_id=removed, purge=True))
        await crowd(at)
    async with enter() as at:
        answer = await search(agent(at), "database", limit=100)
        assert f"; {MANY - MOST} others may have more" in answer.partial_reason


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


# -- searches that overlap ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("recall.many")
async def test_searches_that_overlap_find_what_each_began_after(enter: Enter) -> None:
    """Each row that is read ends a slice, so that searches see older and newer moments in turn."""
    async with house(enter, options=RuntimeOptions(slice_seconds=0)) as at:
        await crowd(at)
        alice = agent(at)

        async def come_and_go(number: int) -> None:
            for turn in range(3):
                word, place = f"kestrel{number}x{turn}", f"team:t{(number * 7 + turn) % MANY}"
                kept = await keep(alice, f"the {word}", place if turn else f"team:new{number}")
                assert contents(await search(alice, word, mode="exact")) == [f"the {word}"]
                if turn == 1:
                    await alice.ask(ForgetMemory(memory_id=kept, purge=True))
                    assert contents(await search(alice, word, mode="exact")) == []

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(come_and_go, number)


# -- keeping it --------------------------------------------------------------------------------------


@pytest.mark.promise("recall.many")
@pytest.mark.slow
async def test_many_memories_are_put_together_and_all_of_them_are_found(enter: Enter) -> None:
    count = 1_100
    async with house(enter, queries=[RowsOf]) as at:
        await crowd(at)
        alice = agent(at)
        for n in range(count):
            metadata = {"scope": "private"} if n % 3 == 0 else {}
            await keep(alice, f"entry word{n}", "team:large", key=f"k{n}", metadata=metadata)
        for _ in range(40):  # steps of the upkeep, each by a timer
            at.tick()
            await trio.sleep(1)
        for n in (0, 1, 700, count - 1):
            assert contents(await search(alice, f"word{n}"))[:1] == [f"entry word{n}"]
        rows = await at.runtime.query(RowsOf(root="team:large"))
        assert rows[root_summary.META] == 1
        assert rows[root_summary.PARTS] >= 2
        assert rows[root_summary.ROWS] < root_summary.LOOSE
    async with house(enter) as at:
        alice, bob = agent(at), agent(at, "builder", "bob")
        for n in (0, 1, 700, count - 1):
            assert contents(await search(alice, f"word{n}"))[:1] == [f"entry word{n}"]
        assert contents(await search(bob, "word3")) == []
        assert contents(await search(bob, "word4"))[:1] == ["entry word4"]


@pytest.mark.promise("recall.many")
async def test_a_store_of_other_rules_or_of_an_older_program_is_put_right_by_a_search(enter: Enter) -> None:
    async with house(enter, languages=("german",)) as at:
        alice = agent(at)
        await keep(alice, "the kestrels nested", "team:old")
        await keep(alice, "happiness", "team:old2")
        await crowd(at)
        assert contents(await search(alice, "kestrels")) == ["the kestrels nested"]
        assert contents(await search(alice, "happy")) == []
    async with house(enter, languages=("german",)) as at:
        await keep(agent(at), "more", "team:old")
    async with house(enter) as at:
        alice = agent(at)
        await keep(alice, "a twig", "team:old")  # before anybody has searched
        assert contents(await search(alice, "happy")) == [
            "happiness"
        ]  # the two have one stem in English alone
        await keep(alice, "a lantern beside the nest", "team:old")
        assert contents(await search(alice, "kestrel nesting"))[0] == "the kestrels nested"
        answer = await search(alice, "kestrel")
        assert (contents(answer), asked(answer)) == (["the kestrels nested"], 3)
        assert contents(await search(alice, "lantern")) == ["a lantern beside the nest"]


@pytest.mark.promise("recall.many")
async def test_what_is_put_together_anew_is_read_anew(enter: Enter) -> None:
    async with house(enter, queries=[RowsOf]) as at:
        await crowd(at)
        alice = agent(at)
        rebuild = VerifyIndex(rebuild=True)
        await keep(alice, "the heron", "team:birds")
        removed = await keep(alice, "the kestrel", "team:birds")
        await at.runtime.ask(memory_address("team:birds"), rebuild)
        assert (await at.runtime.query(RowsOf(root="team:birds")))[root_summary.PARTS] == 1
        assert contents(await search(alice, "kestrel")) == ["the kestrel"]
        await alice.ask(ForgetMemory(memory_id=removed, purge=True))
        assert asked(await search(alice, "kestrel")) == 3  # one is asked that has it no more
        await at.runtime.ask(memory_address("team:birds"), rebuild)
        assert asked(await search(alice, "kestrel")) == 2
        assert contents(await search(alice, "heron")) == ["the heron"]


@pytest.mark.promise("recall.many")
@pytest.mark.slow
async def test_a_search_goes_on_where_there_is_no_room_to_write_what_there_is(enter: Enter) -> None:
    full = False

    def commit(store: Any, works: Any) -> None:
        if full:
            for work in works:
                work.error = StorageFullError("injected")
        store.commit(works)

    async with house(enter, languages=("german",)) as at:
        await keep(agent(at), "the kestrels", "team:old")
        await crowd(at)
    async with house(enter, committer=InlineCommitter(commit)) as at:
        alice = agent(at)
        await keep(alice, "the kestrels of alice", "user:alice")
        full = True
        answer = await search(alice, "kestrel")
        assert contents(answer) == ["the kestrels of alice"]
        assert "others may have more" in answer.partial_reason
        full = False
        answer = await search(alice, "kestrel")
        assert contents(answer) == ["the kestrels of alice", "the kestrels"]
        assert answer.partial is msgspec.UNSET


@pytest.mark.promise("recall.many")
async def test_what_several_searches_ask_for_is_put_together_once(enter: Enter) -> None:
    birds = memory_address("team:birds")
    made: list[int] = []

    async def make(at: House) -> None:
        await at.runtime.ask(birds, SummarizeRoot())
        header = await at.runtime.query(HeaderOf(root="team:birds"))
        assert header is not None
        made.append(header.generation)

    async with house(enter, queries=[HeaderOf]) as at:
        await keep(agent(at), "the heron", "team:birds")
        await make(at)
        await make(at)
        await keep(agent(at), "the kestrel", "team:birds")
        await make(at)
    async with house(enter, queries=[HeaderOf]) as at:
        await make(at)  # whoever asks one that has just woken may have found a row lost
        await make(at)
    assert made == [1, 1, 2, 3, 3]


@pytest.mark.promise("emptiness.reasons")
async def test_that_no_namespace_is_asked_is_not_taken_for_an_empty_store(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await crowd(at)
        for asked, code in (
            (MemorySearch(query="zebra"), "nothing_relevant"),
            (MemorySearch(query="database", tags=["zebra"]), "filter_matches_nothing"),
            (MemorySearch(query="database", namespace="team:zebra"), "filter_matches_nothing"),
        ):
            found = await alice.ask(asked)
            assert (found.memories, wire(found)["empty_because"]["code"]) == ([], code)
