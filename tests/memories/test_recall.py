"""Searches over namespaces: whom they ask, what they merge, and what becomes of an owner that fails."""

from __future__ import annotations

import datetime as dt
import functools
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import House, json, moment, refused, wire

from greenroom.actors import (
    Agent,
    ForgetMemory,
    MemoryHit,
    MemorySearch,
    MemoryStats,
    MemoryView,
    Principal,
    RateMemory,
    RecallContext,
    RetrieveFilters,
    RetrieveMemory,
    SetMemory,
    StoreMemory,
)
from greenroom.actors.memories.recall import scatter_gather
from greenroom.actors.memories.recall.scatter_gather import Root
from greenroom.actors.memories.requests.replies import CompressedForm, FoundMemory, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories
from greenroom.actors.memories.storage import directory
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    GreenroomError,
    InvalidAddressError,
    PlainCodec,
    Procedure,
    ProcedureContext,
    Refusal,
    RuntimeClosedError,
    Slices,
    StoreDamagedError,
    StoreFailedError,
    handles,
)
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from support.agents import Enter

DAY = 86_400


def who(agent_id: str = "planner", user: str | None = "alice", **more: Any) -> Principal:
    return Principal(agent_id=agent_id, user=user, **more)


@asynccontextmanager
async def house(enter: Enter, **options: Any) -> AsyncIterator[House]:
    async with enter(embedder="none", **options) as at:
        yield at


def agent(at: House, agent_id: str = "planner", user: str | None = "alice", **more: Any) -> Agent:
    return Agent(at.runtime, who(agent_id, user, **more), timezone="Europe/Berlin")


async def keep(alice: Agent, content: str, **arguments: Any) -> str:
    metadata = arguments.pop("metadata", {})
    request = StoreMemory(content=content, metadata=msgspec.Raw(msgspec.json.encode(metadata)), **arguments)
    return (await alice.ask(request)).memory_id


async def found(alice: Agent, query: str | None = "harbour", **arguments: Any) -> list[Any]:
    return [hit.content for hit in (await alice.ask(MemorySearch(query=query, **arguments))).memories]


# -- what is searched --------------------------------------------------------------------------------


@pytest.mark.promise("recall.across")
async def test_a_search_finds_in_every_namespace_that_its_caller_may_see(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at, projects=frozenset({"atlas"}))
        await keep(alice, "harbour one")
        await keep(alice, "harbour two", namespace="user:alice:trips:north")
        await keep(alice, "harbour three", namespace="project:atlas")
        await keep(alice, "harbour four", namespace="team:crew")
        await keep(alice, "harbour five", namespace="agent:planner")
        await alice.ask(SetMemory(key="own", value=json('"harbour six"')))
        await alice.ask(SetMemory(key="other", value=json('{"where": "harbour seven"}')))
        everything = await alice.ask(MemorySearch(query="harbour"))
        assert everything.total == len(everything.memories) == 7
        assert {hit.namespace for hit in everything.memories} == {
            "user:alice",
            "user:alice:trips:north",
            "project:atlas",
            "team:crew",
            "agent:planner",
        }
        scores = [hit.score for hit in everything.memories]
        assert scores == sorted(scores, reverse=True)
        assert everything.failed == []


@pytest.mark.promise("recall.across")
@pytest.mark.parametrize(
    ("namespace", "wanted"),
    [
        ("user", {"harbour one", "harbour two"}),
        ("user:alice", {"harbour one", "harbour two"}),
        ("user:alice:trips", {"harbour two"}),
        ("user:alice:trip", set()),
        ("user:ali", set()),
        ("project", {"harbour three"}),
        ("nothing", set()),
        ("nothing:there:at:all", set()),
        ("agent", set()),
    ],
)
async def test_a_namespace_narrows_by_whole_segments(enter: Enter, namespace: str, wanted: set[str]) -> None:
    async with house(enter) as at:
        alice = agent(at)
        await keep(alice, "harbour one")
        await keep(alice, "harbour two", namespace="user:alice:trips")
        await keep(alice, "harbour three", namespace="project:atlas")
        for mode in ("semantic", "exact", "hybrid"):
            assert set(await found(alice, namespace=namespace, mode=mode)) == wanted


@pytest.mark.promise("recall.hidden")
async def test_a_namespace_that_may_not_be_seen_answers_like_one_that_is_not_there(enter: Enter) -> None:
    async with house(enter) as at:
        bob = agent(at, "builder", "bob", projects=frozenset({"secret"}))
        await keep(bob, "harbour of bob")
        await keep(bob, "harbour of the project", namespace="project:secret")
        await keep(bob, "harbour of the team", namespace="team:crew", metadata={"scope": "private"})
        await bob.ask(SetMemory(key="own", value=json('"harbour of the agent"')))
        alice = agent(at, projects=frozenset({"atlas"}))
        for hidden, unknown in (
            ("user:bob", "user:nobody"),
            ("project:secret", "project:unheard"),
            ("agent:builder", "agent:nobody"),
            ("team:crew", "team:nobody"),
            ("user", "nothing"),
        ):
            for words in (
                {"query": "harbour"},
                {"query": "harbour", "mode": "exact"},
                {"tags": ["x"]},
                {"query": "harbour", "include_debug": True},
            ):
                one = await alice.ask(MemorySearch(namespace=hidden, **words))
                other = await alice.ask(MemorySearch(namespace=unknown, **words))
                assert wire(one) == wire(other) or hidden == "user"
                assert (one.memories, one.total) == ([], 0)
            assert wire(await alice.ask(RetrieveMemory(key="own", namespace=hidden)))["memories"] == []
            recalled = await alice.ask(RecallContext(task="harbour", namespace=hidden))
            assert (recalled.count, recalled.left_out) == (0, 0)
        assert await found(alice) == []


@pytest.mark.promise("recall.hidden")
async def test_what_is_hidden_in_a_shared_namespace_moves_nothing(enter: Enter) -> None:
    """Counts, order and scores are over what the caller sees, whatever lies beside it."""
    async with house(enter) as at:
        alice, bob = agent(at), agent(at, "builder", "bob")
        for n in range(5):
            await keep(alice, f"harbour {'lamp ' * n}number {n}", namespace="team:crew", key=f"k{n}")
        request = MemorySearch(query="harbour lamp", include_debug=True)
        before = wire(await alice.ask(request))
        for n in range(40):
            await keep(bob, f"harbour lamp secret {n}", namespace="team:crew", metadata={"scope": "private"})
        after = wire(await alice.ask(request))
        assert before == after


@pytest.mark.promise("recall.across")
async def test_without_a_query_the_newest_come_first_over_all_namespaces(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        for n in range(6):
            namespace = ("user:alice", "team:crew", "project:atlas")[n % 3]
            await keep(alice, f"note {n}", namespace=namespace, metadata={"tags": ["t"]})
            at.tick()
        assert await found(alice, None, tags=["t"], limit=4) == ["note 5", "note 4", "note 3", "note 2"]
        assert await found(alice, None, tags=["u"]) == []
        assert await found(alice, None, mode="hybrid", limit=1) != []
        for empty in ({}, {"query": ""}, {"kind": "semantic"}, {"mode": "exact"}):
            if "query" in empty:
                with refused("VALIDATION_ERROR", field="query"):
                    await alice.ask(MemorySearch(**empty))  # type: ignore[arg-type]
            else:
                with refused("VALIDATION_ERROR", field="query"):
                    await alice.ask(MemorySearch(query=" ", **empty))  # type: ignore[arg-type]


@pytest.mark.promise("recall.times")
async def test_times_are_those_of_the_caller(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)  # in Berlin, where the virtual clock begins at 23:13 of 14 November
        start = moment(at.clock.now())
        assert start == dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
        await keep(alice, "harbour early")
        at.tick(3_600)
        await keep(alice, "harbour late")
        assert await found(alice, time_expr="yesterday") == ["harbour early"]
        assert await found(alice, time_expr="today") == ["harbour late"]
        assert len(await found(alice, time_expr="today", timezone="UTC")) == 2
        assert await found(alice, time_expr="yesterday", timezone="America/New_York") == []
        zone = {"timezone": "Europe/Berlin"}
        assert await found(alice, None, after="2023-11-15", **zone) == ["harbour late"]
        assert await found(alice, None, before="2023-11-15", **zone) == ["harbour early"]
        assert await found(alice, None, after="2023-11-15", before="2023-11-15", **zone) == []
        assert len(await found(alice, None, before="2023-11-15")) == 2
        debug = (await alice.ask(MemorySearch(time_expr="yesterday", include_debug=True))).debug
        assert wire(debug)["time_window"] == {
            "after": "2023-11-13T23:00:00Z",
            "before": "2023-11-14T23:00:00Z",
            "time_expr": "yesterday",
            "timezone": "Europe/Berlin",
        }
        with refused("VALIDATION_ERROR", field="time_expr") as caught:
            await alice.ask(MemorySearch(query="harbour", time_expr="when the moon was full"))
        assert "yesterday" in caught.value.sentence
        with refused("VALIDATION_ERROR", field="timezone"):
            await alice.ask(MemorySearch(query="harbour", timezone="Mars/Olympus"))


@pytest.mark.promise("recall.tools")
async def test_a_boost_makes_a_search_hybrid_and_debug_tells_all(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        poor = await keep(alice, "the harbour opens at six", metadata={"importance": 0.0})
        good = await keep(alice, "the harbour opens at five", metadata={"importance": 1.0})
        await alice.ask(RateMemory(memory_id=good, rating=1))
        await alice.ask(RateMemory(memory_id=poor, rating=-1))
        plain = await alice.ask(MemorySearch(query="harbour six"))
        assert (plain.mode, plain.memories[0].memory_id) == ("semantic", poor)
        assert plain.debug is msgspec.UNSET
        best = await alice.ask(MemorySearch(query="harbour six", quality_boost=1.0, include_debug=True))
        assert (best.mode, best.memories[0].memory_id) == ("semantic", good)
        none = await alice.ask(MemorySearch(query="harbour six", mode="hybrid", quality_boost=0.0))
        assert [hit.memory_id for hit in none.memories] == [hit.memory_id for hit in plain.memories]
        debug = wire(best.debug)
        assert (debug["mode"], debug["quality_boost"]) == ("hybrid", 1.0)
        assert set(debug["scores"]) == {poor, good}
        assert any(name.startswith("quality") for name in debug["scores"][good])
        assert (debug["model"], debug["without_vectors"]) == ("words", "the embedder is none")
        assert debug["weights"]
        assert debug["counts"]["visible"] == 2
        assert {"namespaces", "owners", "merge"} <= set(debug["timings"])
        default = await alice.ask(MemorySearch(query="harbour", mode="hybrid", include_debug=True))
        assert wire(default.debug)["quality_boost"] == 0.3
        with refused("VALIDATION_ERROR", field="quality_boost"):
            await alice.ask(MemorySearch(query="harbour", mode="exact", quality_boost=0.5))


@pytest.mark.promise("recall.budget")
async def test_a_budget_cuts_at_the_borders_of_memories(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        for n in range(8):
            await keep(alice, f"harbour number {n} " + "x" * 400)
        whole = await alice.ask(MemorySearch(query="harbour"))
        assert whole.left_out is msgspec.UNSET
        for budget in (1, 100, 500, 1_000, 100_000):
            cut = await alice.ask(MemorySearch(query="harbour", max_tokens=budget))
            assert cut.memories == whole.memories[: len(cut.memories)]
            assert cut.left_out == len(whole.memories) - len(cut.memories)
            assert cut.total == 8
            assert isinstance(cut.tokens, int)
            assert cut.tokens <= budget
            sizes = [len(msgspec.json.encode(hit)) for hit in cut.memories]
            assert sum(sizes) / 4 <= cut.tokens <= sum(sizes) / 4 + len(sizes)
        assert cut.left_out == 0
        await keep(alice, "harbour giant " + "harbour y " * 3_000)
        recalled = await alice.ask(RecallContext(task="harbour", max_tokens=700))
        assert recalled.count >= 3
        assert recalled.tokens <= 700
        assert recalled.left_out == 9 - recalled.count


@pytest.mark.promise("recall.tools")
async def test_retrieving_is_of_ones_user_by_words_or_by_key(enter: Enter) -> None:
    async with house(enter) as at:
        alice, nobody = agent(at), agent(at, "nameless", None)
        await keep(alice, "harbour one", key="one", metadata={"tags": ["a"], "importance": 0.9})
        at.tick()
        await keep(alice, "harbour two", key="two", metadata={"tags": ["b"], "importance": 0.1})
        await keep(alice, "harbour elsewhere", key="one", namespace="project:atlas")
        await keep(nobody, "harbour of an agent")

        async def keys(who: Agent = alice, **words: Any) -> list[str]:
            return [hit.key for hit in (await who.ask(RetrieveMemory(**words))).memories]

        assert sorted(await keys(query="harbour")) == ["one", "two"]
        assert await keys(key="one") == ["one", "one"]
        assert await keys(key="one", namespace="user:alice") == ["one"]
        assert await keys(key="none") == []
        assert await keys(query="harbour", key="two") == ["two"]
        assert await keys(query="harbour", filters=RetrieveFilters(tags=["a"])) == ["one"]
        assert await keys(query="harbour", filters=RetrieveFilters(min_importance=0.5)) == ["one"]
        assert await keys(query="harbour", filters=RetrieveFilters(scope="public")) == []
        assert await keys(query="harbour", namespace="project:atlas") == ["one"]
        assert len(await keys(nobody, query="harbour", namespace="agent:nameless")) == 1
        assert len(await keys(nobody, query="harbour")) == 1
        at.tick(3 * DAY)
        assert await keys(query="harbour", filters=RetrieveFilters(max_age_days=2)) == []
        assert len(await keys(query="harbour", filters=RetrieveFilters(max_age_days=4))) == 2
        at.tick()
        await keep(alice, "the newest", key="three", metadata={"tags": ["b"]})
        assert await keys() == ["three", "two", "one"]
        assert await keys(limit=2) == ["three", "two"]
        assert await keys(filters=RetrieveFilters(tags=["b"])) == ["three", "two"]


@pytest.mark.promise("memory.scopes-of-sight", "recall.across")
async def test_retrieving_by_a_scope_is_of_all_that_is_shared_with_the_caller(enter: Enter) -> None:
    async with house(enter) as at:
        atlas, other = frozenset({"atlas"}), frozenset({"other"})
        alice, bob = agent(at, projects=atlas), agent(at, "coder", "bob", projects=atlas)
        carol = agent(at, "writer", "carol", projects=other)
        for scope in ("private", "shared", "public"):
            for owner, name in ((alice, "alice"), (bob, "bob")):
                await keep(owner, f"harbour {scope}", key=f"{name}-{scope}", metadata={"scope": scope})

        async def keys(who: Agent, **words: Any) -> set[str]:
            return {hit.key for hit in (await who.ask(RetrieveMemory(**words))).memories}

        for words in ({"query": "harbour"}, {}):
            for scope, seen in (
                ("private", {"bob-private"}),
                ("shared", {"alice-shared", "bob-shared"}),
                ("public", {"alice-public", "bob-public"}),
            ):
                filters = RetrieveFilters(scope=scope)  # type: ignore[arg-type]  # of a list of them
                assert await keys(bob, filters=filters, **words) == seen
                theirs = seen if scope == "public" else set()
                assert await keys(carol, filters=filters, **words) == theirs
                own = {f"bob-{scope}"}
                assert await keys(bob, filters=filters, namespace="user:bob", **words) == own
        with refused("VALIDATION_ERROR", field="filters.scope"):
            await bob.ask(RetrieveMemory(filters=RetrieveFilters(scope="team")))  # type: ignore[arg-type]  # on purpose


def inflated(hit: MemoryHit) -> tuple[str, str]:
    """Return which member a memory's compressed form stands for, and what it holds."""
    form = hit.compressed
    assert isinstance(form, CompressedForm)
    assert form.format == "zlib"
    return form.member, zlib.decompress(form.data).decode()


@pytest.mark.promise("recall.tools")
async def test_what_is_compressed_comes_whole_or_as_it_is_stored(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        long = "the harbour opens at six. " * 400
        await keep(alice, long, key="long")
        await keep(alice, "the harbour", key="short")
        for hit in (await alice.ask(RetrieveMemory(query="harbour"))).memories:
            assert hit.content == {"long": long, "short": "the harbour"}[hit.key]
        for hit in (await alice.ask(RetrieveMemory(query="harbour", decompress=False))).memories:
            assert hit.withheld is msgspec.UNSET
            if hit.key == "short":
                assert (hit.content, hit.compressed) == ("the harbour", msgspec.UNSET)
            else:
                assert (hit.content, inflated(hit)) == (msgspec.UNSET, ("content", long))
        huge = "harbour " * 120_000
        await keep(alice, huge, key="huge")
        (hit,) = (await alice.ask(RetrieveMemory(key="huge"))).memories
        assert hit.content == huge
        (hit,) = (await alice.ask(RetrieveMemory(key="huge", decompress=False))).memories
        assert inflated(hit) == ("content", huge)
        value = msgspec.json.encode({"at": "six " * 2_000})
        await alice.ask(StoreMemory(value=msgspec.Raw(value), key="value"))
        (hit,) = (await alice.ask(RetrieveMemory(key="value", decompress=False))).memories
        assert (hit.value, inflated(hit)) == (msgspec.UNSET, ("value", value.decode()))


@pytest.mark.promise("recall.tools")
async def test_what_is_forgotten_is_not_found_and_what_is_stored_is(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        memory_id = await keep(alice, "harbour one")
        await keep(alice, "harbour two", namespace="team:new")
        assert len(await found(alice)) == 2
        await alice.ask(ForgetMemory(memory_id=memory_id))
        assert await found(alice) == ["harbour two"]


@pytest.mark.promise("recall.tools")
async def test_a_memory_counts_as_used_when_it_is_taken_not_when_it_is_found(
    enter: Enter,
) -> None:
    async with house(enter) as at:
        alice = agent(at)
        short = await keep(alice, "harbour")
        long = await keep(alice, "harbour " * 200)
        await keep(alice, "harbour of the team", namespace="team:crew")
        for request in (
            MemorySearch(query="harbour", max_tokens=260),
            RetrieveMemory(query="harbour", max_tokens=260),
            RecallContext(task="harbour", max_tokens=260),
        ):
            await alice.ask(request)
        await trio.sleep(60)
        used = (await alice.ask(MemoryStats())).top_used
        assert {each.memory_id: each.uses for each in used} == {short: 2}
        assert long not in {each.memory_id for each in used}
        (ours,) = (await alice.ask(MemoryStats(namespace="team:crew"))).top_used
        assert ours.uses == 1


# -- owners that fail --------------------------------------------------------------------------------


class RottenCodec(PlainCodec):
    """Finds records damaged that hold a word, once it is told to."""

    def __init__(self) -> None:
        self.word: bytes | None = None

    def open(self, key: bytes, record: bytes) -> bytes:
        if self.word is not None and self.word in record:
            raise StoreDamagedError(f"the record {key!r} is damaged")
        return super().open(key, record)


@pytest.mark.promise("recall.across")
async def test_a_damaged_namespace_is_named_and_the_others_answer(enter: Enter) -> None:
    codec = RottenCodec()
    async with house(enter, codec=codec) as at:
        alice = agent(at)
        await keep(alice, "harbour one")
        await keep(alice, "harbour two", namespace="team:rotting")
    async with house(enter, codec=codec) as at:
        alice = agent(at)
        codec.word = b"harbour two"
        answer = await alice.ask(MemorySearch(query="harbour"))
        assert [hit.content for hit in answer.memories] == ["harbour one"]
        (failed,) = answer.failed
        assert failed.namespace == "team:rotting"
        assert "damaged" in failed.error
        assert "harbour" not in failed.error
        recalled = await alice.ask(RecallContext(task="harbour"))
        assert [each.namespace for each in recalled.failed] == ["team:rotting"]
        with pytest.raises(StoreDamagedError):
            await alice.ask(MemorySearch(query="harbour", namespace="team:rotting"))
        stranger = agent(at, "stranger", "eve")  # it may see the team's memories, and so is told
        assert len((await stranger.ask(MemorySearch(query="harbour"))).failed) == 1


@pytest.mark.promise("recall.hidden")
async def test_a_damaged_namespace_that_may_not_be_seen_is_not_named(enter: Enter) -> None:
    codec = RottenCodec()
    async with house(enter, codec=codec) as at:
        bob = agent(at, "builder", "bob")
        await keep(bob, "harbour of bob")
    async with house(enter, codec=codec) as at:
        codec.word = b"harbour of bob"
        alice = agent(at)
        for namespace in (None, "user", "user:bob", "user:nobody"):
            answer = await alice.ask(MemorySearch(query="harbour", namespace=namespace))
            assert (answer.memories, answer.failed) == ([], [])


@pytest.mark.promise("recall.hidden", "recall.across")
@pytest.mark.parametrize("scope", ["private", "shared", "public"])
@pytest.mark.slow
async def test_a_namespace_of_a_crowd_is_there_for_those_who_see_something_in_it(
    enter: Enter, scope: str
) -> None:
    """It has more owners than its row in the directory lists."""
    codec = RottenCodec()
    crowd = 3 * directory.MAX_PARTITIONS
    async with house(enter, codec=codec) as at:
        writers = [agent(at, f"a{n}", f"u{n}" if n % 2 else None) for n in range(crowd)]
        for n, writer in enumerate(writers):
            within = writer if scope == "private" else agent(at, f"a{n}", f"u{n}", projects=frozenset({"p"}))
            await keep(within, f"harbour {n}", namespace="team:crowd", metadata={"scope": scope})
        seen = 1 if scope == "private" else crowd
        for writer in writers:
            answer = await writer.ask(MemorySearch(query="harbour", limit=1))
            assert answer.total == seen
    async with house(enter, codec=codec) as at:
        codec.word = b"harbour "
        for agent_id, user in (("stranger", "eve"), ("u7", "a7"), ("nobody", None)):
            stranger = agent(at, agent_id, user, projects=frozenset({"q"}))
            answer = await stranger.ask(MemorySearch(query="harbour", include_debug=True))
            assert [each.namespace for each in answer.failed] == (["team:crowd"] if scope == "public" else [])
            if scope != "public":
                own = 1 if user is None else 2
                assert wire(answer.debug)["namespaces"] == own
        insider = agent(at, "a9", "u9", projects=frozenset({"p"}))
        answer = await insider.ask(MemorySearch(query="harbour"))
        assert [each.namespace for each in answer.failed] == ["team:crowd"]


class Odd(Actor):
    """Answers a search as its key says."""

    kind = "odd"

    @handles(FindMemories)
    def find(self, _: FindMemories, context: Context) -> Slices[RootSearchResult]:
        key = context.address.key
        if key == "refuses":
            raise Refusal("VALIDATION_ERROR", "it does not want to")
        if key == "fails":
            raise ZeroDivisionError
        if key == "hangs":
            context.put(b"k", True)  # its reply waits for the disk
        if key == "fails late":
            yield
            raise ZeroDivisionError
        memory = MemoryView(
            memory_id=key, id=1, key=key, namespace=f"odd:{key}", version=1,
            created_at=moment(context.now), updated_at=moment(context.now), content=key,
        )  # fmt: skip
        hit = FoundMemory(memory=memory, score=len(key) / 10, quality=0.5)
        return RootSearchResult(hits=[hit], total=1, counts={"visible": 1}, model="odd")


class AskOdd(Procedure[list[list[str]]], frozen=True, kw_only=True):
    """Ask odd ones; return who was found and who failed."""

    keys: list[str]

    async def run(self, context: ProcedureContext) -> list[list[str]]:
        roots = [Root(f"odd:{key}", Address("odd", key)) for key in self.keys]
        answers = await scatter_gather.ask_each(context, roots, FindMemories(text="x"))
        hits = [hit.memory.key for hit in scatter_gather.merge_hits(answers.found)]
        return [hits, [f"{each.namespace} {each.error}" for each in answers.failed]]


class FirstFailure(AskOdd, frozen=True, kw_only=True):
    """Ask odd ones; return what the first that failed ended with."""

    async def run(self, context: ProcedureContext) -> list[list[str]]:
        roots = [Root(key, Address("odd", key)) for key in self.keys]
        answers = await scatter_gather.ask_each(context, roots, FindMemories(text="x"))
        return [[str(answers.error)]]


@pytest.fixture
def odd(enter: Enter) -> Any:
    return functools.partial(house, enter, actors=[Odd], queries=[AskOdd, FirstFailure])


@pytest.mark.promise("recall.across")
async def test_whatever_one_of_them_does_the_others_are_heard(odd: Any) -> None:
    async with odd() as at:
        keys = ["a", "refuses", "fails", "ccc", "fails late", "bb"]
        found, failed = await at.runtime.query(AskOdd(keys=keys), principal=who())
        assert found == ["ccc", "bb", "a"]
        assert [each.partition(" ")[0] for each in failed] == ["odd:refuses", "odd:fails", "odd:fails"]
        assert failed[0] == "odd:refuses it does not want to"
        assert "ask again" in failed[1]


@pytest.mark.promise("recall.across")
@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["a", "fails late", "refuses"], "odd/fails late failed while handling"),  # though it is told later
        (["refuses", "fails"], "it does not want to"),
        (["a"], "None"),
    ],
)
async def test_what_is_raised_is_what_the_first_that_was_asked_ended_with(
    odd: Any, keys: list[str], wanted: str
) -> None:
    async with odd() as at:
        ((error,),) = await at.runtime.query(FirstFailure(keys=keys), principal=who())
        assert error.startswith(wanted)


@pytest.mark.promise("recall.across")
async def test_nobody_waits_for_the_others_where_the_question_itself_is_wrong(odd: Any) -> None:
    gate = GatedCommitter()
    async with odd(committer=gate) as at:
        began = trio.current_time()
        with pytest.raises(InvalidAddressError):
            await at.runtime.query(AskOdd(keys=["hangs", ""]), principal=who())
        assert trio.current_time() - began < 1
        gate.let_all_through()


@pytest.mark.promise("recall.across")
async def test_one_that_hangs_holds_nobody_up_for_ever(odd: Any) -> None:
    gate = GatedCommitter()
    async with odd(committer=gate) as at:
        began = trio.current_time()
        found, failed = await at.runtime.query(AskOdd(keys=["hangs", "a"]), principal=who())
        assert trio.current_time() - began == pytest.approx(scatter_gather.OWNER_SECONDS)
        assert found == ["a"]
        assert failed == [f"odd:hangs it did not answer within {scatter_gather.OWNER_SECONDS:g} s"]
        with trio.fail_after(5):  # a caller with less time hears of it in time
            found, failed = await at.runtime.query(AskOdd(keys=["hangs", "a"]), principal=who())
        assert (found, failed) == (["a"], ["odd:hangs it did not answer within 4 s"])
        gate.open = True
        gate.let_through()


@pytest.mark.promise("recall.across")
@pytest.mark.parametrize("keys", [["hangs"], ["hangs", "a"], ["hangs", "hangs"], ["hangs"] * 200])
async def test_what_ends_all_of_them_is_raised_as_it_is(odd: Any, keys: list[str]) -> None:
    raised: list[BaseException] = []

    async def ask(at: House) -> None:
        try:
            await at.runtime.query(AskOdd(keys=keys), principal=who())
        except GreenroomError as error:
            raised.append(error)

    async with trio.open_nursery() as outside:
        gate = GatedCommitter()
        with trio.CancelScope() as scope:
            async with odd(committer=gate) as at:
                outside.start_soon(ask, at)
                await gate.arrived()
                scope.cancel()
                await trio.sleep_forever()
        gate = GatedCommitter()
        with pytest.raises(StoreFailedError):  # noqa: PT012  a whole life
            async with odd(committer=gate) as at:
                outside.start_soon(ask, at)
                await gate.arrived()
                gate.break_for_good()
                await trio.sleep_forever()
    assert [type(each) for each in raised] == [RuntimeClosedError, StoreFailedError]


@pytest.mark.promise("recall.across")
async def test_a_search_that_is_given_up_asks_nobody_any_more(odd: Any) -> None:
    gate = GatedCommitter()
    async with odd(committer=gate) as at:
        keys = ["hangs"] * scatter_gather.AT_ONCE + ["a"] * 1_000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(functools.partial(at.runtime.query, AskOdd(keys=keys), principal=who()))
            await gate.arrived()
            nursery.cancel_scope.cancel()
        gate.open = True
        gate.let_through()
        found, failed = await at.runtime.query(AskOdd(keys=["a"]), principal=who())
        assert (found, failed) == (["a"], [])


@pytest.mark.promise("recall.across")
@pytest.mark.slow
async def test_a_thousand_namespaces_are_one_search(enter: Enter) -> None:
    async with house(enter) as at:
        alice = agent(at)
        for n in range(990):
            await keep(alice, f"harbour {n}", namespace=f"project:p{n}")
        answer = await alice.ask(MemorySearch(query="harbour 777", limit=100, include_debug=True))
        assert answer.total == 990
        assert answer.memories[0].content == "harbour 777"
        assert len(answer.memories) == 100
        assert wire(answer.debug)["namespaces"] == 992
        other = agent(at, "other", "bob", projects=frozenset({"p1", "p2"}))
        assert sorted(str(each) for each in await found(other)) == ["harbour 1", "harbour 2"]


async def test_nothing_is_found_where_nothing_is(enter: Enter) -> None:
    async with house(enter) as at:
        answer = await agent(at).ask(MemorySearch(query="harbour", include_debug=True, max_tokens=5))
        assert (answer.memories, answer.total, answer.left_out) == ([], 0, 0)
