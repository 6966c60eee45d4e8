"""LangGraph's store with memories as items: it behaves as LangGraph's own, and its items are memories."""

from __future__ import annotations

import asyncio
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from langgraph.store.memory import InMemoryStore
from support.adapters import CHECKS, Case, Check
from support.agents import FAST

from greenroom.actors import (
    Agent,
    Database,
    EraseUser,
    MemorySearch,
    MemoryService,
    Principal,
    ServiceError,
    StoreMemory,
    open_greenroom,
)
from greenroom.adapters.langgraph import GreenroomStore
from greenroom.adapters.langgraph.filters import fits
from greenroom.adapters.langgraph.places import Places
from greenroom.runtime import InlineCommitter
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

ALICE = Principal(agent_id="app", user="alice")
BOB = Principal(agent_id="app", user="bob")
USERS = count()
HOUR = 3_600_000_000


class Kitchen(NamedTuple):
    """A database that several tests share, each with a user of its own, and its clock."""

    database: Database
    clock: VirtualClock

    def store(self, **options: Any) -> GreenroomStore:
        return GreenroomStore(self.database, Principal(agent_id="app", user=f"user {next(USERS)}"), **options)


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    clock = VirtualClock()
    options: dict[str, Any] = {"clock": clock, "committer": InlineCommitter(), "options": FAST}
    with Database(tmp_path_factory.mktemp("data"), embedder="none", **options) as database:
        yield Kitchen(database, clock)


# -- what every adapter must stand ----------------------------------------------


async def write(opened: Database, text: str) -> None:
    await GreenroomStore(opened, ALICE).aput(("texts",), text, {"text": text})


async def read(opened: Database) -> list[str]:
    return [item.value["text"] for item in await GreenroomStore(opened, ALICE).asearch((), limit=1_000)]


@pytest.mark.promise("adapters.langgraph-store-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


@pytest.mark.promise("adapters.langgraph-store-batch")
def test_batches_of_two_writers_do_not_mix(tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(20)]

    async def main() -> None:
        async with Database(tmp_path, embedder="none") as one, Database(tmp_path, embedder="none") as other:
            stores = {"one": GreenroomStore(one, ALICE), "other": GreenroomStore(other, ALICE)}
            for _ in range(4):
                await asyncio.gather(
                    *(
                        store.abatch([PutOp(("n",), key, {"by": name}) for key in keys])
                        for name, store in stores.items()
                    )
                )
                assert len({item.value["by"] for item in await stores["one"].asearch(("n",), limit=50)}) == 1

    asyncio.run(main())


# -- beside LangGraph's own store -------------------------------------------------

SPACES: list[tuple[str, ...]] = [
    *[("a",) * depth for depth in (1, 4, 5, 6, 9)],
    *[("a",) * 4 + deep for deep in [("b",), ("a", "b"), ("b", "c"), ("a-b",), ("x" * 101, "b")]],
    ("a", "b"),
    ("a:b",),
    ("~2d", "~-"),
    ("x" * 101,),
    ("x" * 102, "a"),
    ("🙂" * 40, "ü"),
    (" ", "\n", "%", "*"),
]
KEYS = [
    "k",
    "l",
    "",
    "%",
    "%%",
    "%2f",
    "a/b",
    "..",
    "\0",
    "K" * 256,
    "K" * 257,
    "🙂",
    '\\:*?"<>|',
    "memory_0",
]
spaces = st.sampled_from(SPACES)
prefixes = st.sampled_from(sorted({space[:depth] for space in SPACES for depth in range(len(space) + 1)}))
keys = st.sampled_from(KEYS)
values = st.fixed_dictionaries({"n": st.integers(0, 3)}, optional={"of": st.sampled_from(["x", {"y": [1]}])})
numbers = st.integers(-1, 4) | st.sampled_from([0.5, 2.5])
filters = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(0, 3)
        | st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), numbers, max_size=2),
        "of": st.sampled_from([None, "x", {"y": [1]}, {"y": [2]}, {"y": 1}, {"$ne": "x"}, ["x"]]),
    },
)
paths = st.lists(st.sampled_from(["a", "b", "*", "x" * 101]), max_size=5).map(tuple)
conditions = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths), max_size=2)
bounds = st.integers(0, 5)
operations = st.one_of(
    st.tuples(spaces, keys, values).map(lambda given: PutOp(*given)),
    st.tuples(spaces, keys, values).map(lambda given: PutOp(*given)),
    st.tuples(spaces, keys).map(lambda given: PutOp(*given, None)),
    st.tuples(spaces, keys).map(lambda given: GetOp(*given)),
    st.tuples(prefixes, filters, bounds, bounds).map(lambda given: SearchOp(*given)),
    st.tuples(prefixes, filters).map(lambda given: SearchOp(*given, 1_000)),
    st.builds(
        ListNamespacesOp,
        conditions.map(tuple),
        st.none() | st.integers(0, 9),
        bounds | st.just(1_000),
        bounds,
    ),
)


class Model:
    """LangGraph's store in memory, which lists nothing empty, and whose searches go by the newest update."""

    def __init__(self) -> None:
        self._store = InMemoryStore()
        self._order: dict[tuple[tuple[str, ...], str], None] = {}

    def batch(self, ops: list[Op]) -> list[Any]:
        results = [self._read(op) for op in ops]
        self._store.batch([op for op in ops if isinstance(op, PutOp)])
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for name, op in last.items():
            self._order.pop(name, None)
            if op.value is not None:
                self._order[name] = None
        return results

    def _read(self, op: Op) -> Any:
        if isinstance(op, SearchOp):
            found: Any = self._store.batch([op._replace(limit=10_000, offset=0)])[0]
            order = list(self._order)
            found.sort(key=lambda item: order.index((item.namespace, item.key)), reverse=True)
            return [plain(item) for item in found[op.offset : op.offset + op.limit]]
        if isinstance(op, ListNamespacesOp):
            filled = InMemoryStore()
            filled.batch([PutOp(namespace, key, {}) for namespace, key in self._order])
            return filled.batch([op])[0]
        return plain(self._store.batch([op])[0]) if isinstance(op, GetOp) else None


def plain(result: Any) -> Any:
    """Return a result without its times."""
    if isinstance(result, Item):
        assert result.created_at <= result.updated_at
        return result.namespace, result.key, result.value
    is_found = isinstance(result, list) and result and isinstance(result[0], SearchItem)
    return [plain(each) for each in result] if is_found else result


@pytest.mark.promise("adapters.langgraph-store", "adapters.langgraph-store-batch")
@given(st.lists(st.lists(operations, min_size=1, max_size=8), min_size=1, max_size=8))
def test_it_answers_as_the_store_in_memory_does(kitchen: Kitchen, batches: list[list[Op]]) -> None:
    store, model = kitchen.store(), Model()
    for ops in batches:
        assert [plain(each) for each in store.batch(ops)] == model.batch(ops)
    everything: list[Op] = [SearchOp((), None, 1_000), ListNamespacesOp(None, None, 1_000)]
    assert [plain(each) for each in store.batch(everything)] == model.batch(everything)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=130)
namespaces = st.lists(texts.filter(bool), max_size=10).map(tuple)
SEGMENT = "[A-Za-z0-9_.@+~-]{1,100}"


@pytest.mark.promise("adapters.langgraph-store-names")
@given(namespaces, texts | st.text("%/~", max_size=300), st.integers(2, 7))
def test_names_of_any_text_are_kept_apart_and_can_be_read(
    namespace: tuple[str, ...], key: str, segments: int
) -> None:
    places = Places(":".join("root"[:1] * segments))
    place = places.of(namespace, key)
    assert re.fullmatch(f"{SEGMENT}(:{SEGMENT}){{1,7}}", place.namespace)
    assert re.fullmatch(r'[^/\\:*?"<>|\x00-\x1f\x7f-\x9f]{1,255}', place.key)
    assert places.item(place.namespace, place.key, place.rest) == (namespace, key)
    for depth in range(len(namespace) + 1):
        above = places.above(namespace[:depth])
        assert f"{place.namespace}:".startswith(f"{above}:")


@pytest.mark.promise("adapters.langgraph-store-names")
@given(namespaces.filter(bool), texts, st.dictionaries(st.sampled_from(["namespace", "key"]), st.just(["a"])))
def test_metadata_of_others_cannot_move_an_item(
    namespace: tuple[str, ...], key: str, forged: dict[str, Any]
) -> None:
    places = Places("user:alice")
    place = places.of(namespace, key)
    assert places.item(place.namespace, place.key, forged) in {None, (namespace, key)}


def test_a_filter_takes_numbers_as_numbers_and_nothing_else() -> None:
    assert fits({"n": "5"}, {"n": {"$gt": 4, "$lte": 5.0}})
    assert not fits({"n": "five"}, {"n": {"$gt": 4}})
    assert not fits({}, {"n": {"$lt": 4}})
    assert fits({}, {"n": None})
    with pytest.raises(ValueError, match=r"'\$in' is none of"):
        fits({"n": 1}, {"n": {"$in": [1]}})


# -- what cannot be kept ------------------------------------------------------------


@pytest.mark.parametrize("namespace", [(), ("the", "thing.about"), ("fun", ""), ("langgraph", "x"), ("\0",)])
def test_namespaces_that_langgraph_refuses_are_refused(kitchen: Kitchen, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        kitchen.store().put(namespace, "k", {})


@pytest.mark.promise("adapters.langgraph-store-batch")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (PutOp(("n",), "bad", {"t": "x" * 1_048_577}), "the limit is 1,048,576 bytes"),
        (PutOp(("n",), "bad", {"t": (1, 2)}), "a sequence must be a list"),
        (PutOp(("n",), "bad", {"t": object()}), "no value for JSON"),
        (PutOp(("n",), "bad\ud800", {}), "lone surrogate"),
        (PutOp(("n", "\ud800"), "bad", {}), "lone surrogate"),
        (PutOp(("n.m",), "bad", {}), "cannot contain periods"),
        (PutOp(("n",), "bad", {}, None, -1.0), "ttl: "),
        (SearchOp(("n",), {"t": {"$near": 1}}), r"operator '\$near'"),
        (ListNamespacesOp((MatchCondition("infix", ("n",)),)), "none of prefix and suffix"),  # type: ignore[arg-type]
        ("no operation", "Unknown operation"),
    ],
)
def test_nothing_is_written_of_a_batch_that_is_refused(kitchen: Kitchen, bad: Any, why: str) -> None:
    store = kitchen.store()
    store.put(("n",), "k", {"t": "before"})
    with pytest.raises(ValueError, match=why):
        store.batch([PutOp(("n",), "k", {"t": "after"}), bad, PutOp(("n",), "new", {})])
    assert [plain(item) for item in store.search(())] == [(("n",), "k", {"t": "before"})]


@pytest.mark.parametrize("root", ["alone", "a:b:c:d:e:f:g:h", "user:böse", "", "user:alice:"])
def test_a_root_that_holds_nothing_is_refused(kitchen: Kitchen, root: str) -> None:
    with pytest.raises(ServiceError, match=r"^root: "):
        GreenroomStore(kitchen.database, ALICE, root=root)


def test_methods_that_block_are_refused_where_an_event_loop_runs(kitchen: Kitchen) -> None:
    store = kitchen.store()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="await its async twin"):
            store.get(("n",), "k")
        await store.aput(("n",), "k", {})
        assert await asyncio.to_thread(store.get, ("n",), "k") == await store.aget(("n",), "k") is not None

    asyncio.run(main())


# -- time ------------------------------------------------------------------------------


@pytest.mark.promise("adapters.langgraph-store-ttl")
def test_an_item_with_a_ttl_lasts_as_long_again_after_each_read(kitchen: Kitchen) -> None:
    store = kitchen.store()
    store.put(("n",), "k", {}, ttl=60)
    store.put(("n",), "stays", {})
    before = store.get(("n",), "k")
    reads: list[Callable[[], object]] = [
        lambda: store.get(("n",), "k"),
        lambda: store.search(("n",), limit=2),
        lambda: store.search(("n",), query="k"),
    ]
    for is_read in reads:
        kitchen.clock.jump(HOUR * 3 // 4)
        assert is_read()
    kitchen.clock.jump(HOUR * 3 // 4)
    assert store.get(("n",), "k", refresh_ttl=False) == before  # reading is no update
    versions = store.batch([GetOp(("n",), "k", refresh_ttl=False)])
    kitchen.clock.jump(HOUR // 2)
    assert versions == [before]
    assert store.get(("n",), "k") is None
    assert [item.key for item in store.search(())] == ["stays"]


@pytest.mark.promise("adapters.langgraph-store-ttl")
def test_what_has_expired_is_in_no_listing_and_a_put_ends_a_ttl(kitchen: Kitchen) -> None:
    config: TTLConfig = {"default_ttl": 30, "refresh_on_read": False}
    store = kitchen.store(ttl=config)
    store.put(("gone",), "k", {})
    store.put(("kept",), "k", {})
    store.put(("kept",), "k", {"again": True}, ttl=None)
    assert len(store.search(())) == 2
    kitchen.clock.jump(HOUR * 3 // 4)
    assert store.list_namespaces() == [("kept",)]
    store.put(("gone",), "k", {})
    item = store.get(("gone",), "k")
    assert item is not None
    assert item.created_at == item.updated_at


def test_a_put_keeps_when_an_item_was_made_until_it_is_deleted(kitchen: Kitchen) -> None:
    store = kitchen.store()
    store.put(("n",), "k", {})
    made = store.get(("n",), "k")
    kitchen.clock.jump(HOUR)
    store.put(("n",), "k", {})
    again = store.get(("n",), "k")
    assert made is not None
    assert again is not None
    assert again.created_at == made.created_at < again.updated_at
    store.batch([PutOp(("n",), "k", None), PutOp(("n",), "other", None)])
    kitchen.clock.jump(HOUR)
    store.put(("n",), "k", {})
    anew = store.get(("n",), "k")
    assert anew is not None
    assert anew.created_at > again.updated_at


# -- items are memories --------------------------------------------------------------------


@pytest.mark.promise("adapters.langgraph-store-memories")
async def test_items_are_memories_of_their_user_alone(tmp_path: Path) -> None:
    async with (
        open_greenroom(tmp_path, embedder="none") as server,
        Database(tmp_path, embedder="none") as opened,
    ):
        store, bobs = GreenroomStore(opened, ALICE), GreenroomStore(opened, BOB)
        client = Agent(server, Principal(agent_id="editor", user="alice"))
        await store.aput(("facts",), "diet", {"text": "Alice eats no meat"})
        hit = (await client.ask(MemorySearch(query="meat"))).memories[0]
        assert (hit.namespace, hit.key, hit.author) == ("user:alice:langgraph:facts", "diet", "app")

        await client.ask(StoreMemory(namespace="user:alice:langgraph:facts", key="tea", content="likes tea"))
        await client.ask(StoreMemory(namespace="user:alice:langgraph:a~~b", key="no item", content="x"))
        item = await store.aget(("facts",), "tea")
        assert item is not None
        assert item.value == {"content": "likes tea"}
        assert [each.key for each in await store.asearch((), query="tea")] == ["tea"]
        assert [each.key for each in await store.asearch(())] == ["tea", "diet"]
        assert await store.alist_namespaces() == [("facts",)]

        assert await bobs.asearch(()) == await bobs.alist_namespaces() == []
        spying = GreenroomStore(opened, BOB, root="user:alice:langgraph")
        assert await spying.asearch((), query="meat") == await spying.asearch(()) == []
        assert await spying.aget(("facts",), "diet") is None
        with pytest.raises(ServiceError, match="you may not write into"):
            await spying.aput(("facts",), "diet", {})
        with pytest.raises(ServiceError, match="you may not write into"):
            await spying.adelete(("facts",), "diet")

        await bobs.aput(("facts",), "diet", {"text": "all"})
        await Agent(server, Principal(agent_id="root")).ask(EraseUser(user="alice", confirm=True))
        assert await store.asearch(()) == []
        assert len(await bobs.asearch(())) == 1


@pytest.mark.promise("adapters.langgraph-store-memories")
def test_a_put_is_a_version_and_a_deleted_item_leaves_none(kitchen: Kitchen) -> None:
    store = GreenroomStore(kitchen.database, ALICE)
    for number in range(3):
        store.put(("n",), "k", {"n": number})
    memory, call = MemoryService(kitchen.database, ALICE), kitchen.database.call
    assert [each.version for each in call(memory.list_versions, "user:alice:langgraph:n", "k")] == [1, 2, 3]
    store.delete(("n",), "k")
    assert call(memory.list_versions, "user:alice:langgraph:n", "k") == []
    assert store.list_namespaces() == []


@pytest.mark.promise("adapters.langgraph-store-search")
def test_a_search_with_a_query_ranks_what_fits(kitchen: Kitchen) -> None:
    store = kitchen.store()
    store.put(("a", "b"), "fish", {"text": "salmon with dill", "kind": "food"})
    store.put(("a", "b"), "hidden", {"text": "salmon with salmon", "kind": "food"}, index=False)
    store.put(("a", "bc"), "river", {"text": "a salmon swims home", "kind": "animal"}, index=["kind"])
    store.put(("z",), "stone", {"text": "granite", "kind": "rock"})
    found = store.search(("a",), query="salmon dill")
    assert [item.key for item in found] == ["fish", "river"]
    scores = [item.score for item in found]
    assert 1 >= scores[0] > scores[1] > 0  # type: ignore[operator]
    assert [item.key for item in store.search(("a", "b"), query="salmon")] == ["fish"]
    assert [item.key for item in store.search((), query="salmon", filter={"kind": "animal"})] == ["river"]
    assert [item.key for item in store.search((), query="salmon dill", limit=1, offset=1)] == ["river"]
    assert store.search((), query="salmon", limit=0) == []
    assert len(store.search((), query=" ")) == 4
    assert all(item.score is None for item in store.search((), query=""))
    assert store.get(("a", "b"), "hidden") is not None


@pytest.mark.promise("adapters.langgraph-store-search")
def test_a_filter_looks_behind_what_ranks_first(kitchen: Kitchen) -> None:
    store = kitchen.store()
    ops: list[Op] = [PutOp(("n",), f"k{number}", {"t": "salmon", "n": number}) for number in range(150)]
    store.batch(ops)
    found = store.search(("n",), query="salmon", filter={"n": {"$lt": 100}}, limit=20)
    assert len(found) == 20
    assert len(store.search(("n",), query="salmon", limit=150)) == 100
    assert len(store.search(("n",), limit=200)) == 150
    assert [item.value["n"] for item in store.search(("n",), filter={"n": {"$lt": 3}})] == [2, 1, 0]


# -- in a graph ---------------------------------------------------------------------------------


def test_a_graph_remembers_blocking_and_awaited(kitchen: Kitchen) -> None:
    store = kitchen.store()
    model = FakeListChatModel(responses=["noted", "nothing with meat"])

    def remember(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        runtime.store.put(("facts",), "diet", {"text": state["messages"][-1].content})
        return {"messages": [model.invoke(state["messages"])]}

    async def recall(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        found = await runtime.store.asearch(("facts",), query=str(state["messages"][-1].content))
        return {"messages": [("ai", found[0].value["text"]), await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(remember).add_edge(START, "remember").compile(store=store)
    graph.invoke({"messages": [HumanMessage("I eat no meat")]})
    asking = StateGraph(MessagesState).add_node(recall).add_edge(START, "recall").compile(store=store)
    end = asyncio.run(asking.ainvoke({"messages": [HumanMessage("meat?")]}))
    assert [message.content for message in end["messages"]] == ["meat?", "I eat no meat", "nothing with meat"]
