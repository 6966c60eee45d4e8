"""Memories are found by what they mean: the real actors with real vectors, from store to search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from harness import PATIENCE, principal
from support.agents import refused, wire
from support.embedding import WAITS, Loaded, Settled
from support.endpoints import Answer, Endpoint, endpoint, failing, ok
from support.models import write_model

from greenroom.actors import (
    Agent,
    EmbedderChoice,
    ForgetMemory,
    GetEmbedding,
    GetMemory,
    MemoriesFound,
    MemorySearch,
    MemoryStats,
    RecallContext,
    RetrieveFilters,
    RetrieveMemory,
    SearchDebug,
    SetMemory,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.memories.recall.scatter_gather import BATCH
from greenroom.actors.search.embedding import rows
from greenroom.runtime import RuntimeOptions, SharedRuntime

FAST = RuntimeOptions(durability="process")
SPACE = "project:shop"
REFUNDS, ASKED = "Refunds are paid within 14 days.", "How do I get my money back?"
OTHERS = ["The office is closed on Mondays.", "Anna painted a sunrise.", "Three replicas are deployed."]


class Shop:
    """A store of memories and one who asks it."""

    def __init__(self, runtime: SharedRuntime, agent: str) -> None:
        self.runtime = runtime
        self.agent = Agent(runtime, principal(agent))

    async def store(self, *texts: str, **more: Any) -> None:
        for text in texts:
            await self.agent.ask(StoreMemory(**{"content": text, "namespace": SPACE, **more}))

    async def search(self, query: str = ASKED) -> MemoriesFound:
        return await self.agent.ask(MemorySearch(query=query, namespace=SPACE, include_debug=True))

    async def settle(self) -> None:
        await self.runtime.query(Settled())

    async def embedded(self) -> int:
        """Return how many texts the worker has embedded."""
        return (await self.runtime.query(GetEmbedding())).embedded


@asynccontextmanager
async def shop(
    folder: Path, embedder: str | EmbedderChoice = "static", agent: str = "anna"
) -> AsyncIterator[Shop]:
    async with open_greenroom(folder, embedder=embedder, queries=WAITS, options=FAST) as runtime:
        yield Shop(runtime, agent)


def contents(found: MemoriesFound) -> list[Any]:
    return [each.content for each in found.memories]


def has_vectors(found: MemoriesFound) -> bool:
    assert isinstance(found.debug, SearchDebug)
    return found.debug.model != "words"


@pytest.mark.promise("embedding.static", "embedding.lazy")
async def test_a_memory_is_found_by_its_meaning_as_soon_as_the_vectors_are_there(folder: Path) -> None:
    async with shop(folder) as here:
        await here.store(REFUNDS, *OTHERS)
        found = await here.search()
        if not has_vectors(found):  # they take a moment, and the search did not wait for them
            assert REFUNDS not in contents(found)
        await here.settle()
        found = await here.search()
        assert has_vectors(found)
        assert contents(found)[0] == REFUNDS
        await here.store("Money is returned by bank transfer.")
        assert "Money is returned by bank transfer." in contents(await here.search())[:2]


@pytest.mark.promise("embedding.resumes")
async def test_vectors_outlive_the_process(folder: Path) -> None:
    async with shop(folder) as here:
        await here.store(*OTHERS)
        await here.settle()
        await here.store(REFUNDS)
    async with shop(folder) as here:
        await here.settle()
        assert contents(await here.search())[0] == REFUNDS
        assert await here.embedded() == 0


async def test_a_new_version_is_found_by_its_new_meaning_only(folder: Path) -> None:
    async with shop(folder) as here:
        await here.settle()
        await here.store(REFUNDS, key="policy")
        await here.store(*OTHERS)
        assert contents(await here.search())[0] == REFUNDS
        await here.store("The parrot speaks Latin.", key="policy")
        assert REFUNDS not in contents(await here.search())
        assert contents(await here.search("a bird that talks"))[0] == "The parrot speaks Latin."
        await here.agent.ask(ForgetMemory(namespace=SPACE, key="policy"))
        assert "The parrot speaks Latin." not in contents(await here.search("a bird that talks"))


@pytest.mark.slow
@pytest.mark.promise("embedding.change")
async def test_another_embedder_takes_over_without_a_search_that_finds_nothing(
    folder: Path, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "model")
    async with shop(folder) as here:
        await here.store(REFUNDS, *OTHERS)
        await here.settle()
    async with shop(folder, f"onnx:{model}") as here:
        await here.settle()
        statistics = await here.runtime.query(GetEmbedding())
        assert (statistics.state, statistics.embedded) == ("ready", 4)
        assert statistics.space is not None
        assert statistics.space.startswith("onnx:")
        assert has_vectors(await here.search())
        await here.store("A fifth one.")
        waiting = (await here.agent.ask(MemoryStats(namespace=SPACE))).embedding_waiting
        assert waiting == 1 - (await here.embedded() - 4)
        await here.settle()
        assert await here.embedded() == 5
        assert (await here.agent.ask(MemoryStats(namespace=SPACE))).embedding_waiting == 0
    async with shop(folder, "none") as here:
        assert not has_vectors(await here.search())
        await here.store("A sixth one.")
    async with shop(folder) as here:
        await here.settle()
        assert await here.embedded() == 6
        assert contents(await here.search())[0] == REFUNDS


async def test_whoever_is_attached_searches_by_the_owners_vectors(folder: Path) -> None:
    async with shop(folder) as owner, shop(folder, "none", "bert") as other:
        assert other.runtime.role == "attached"
        await owner.store(REFUNDS, *OTHERS)
        await other.settle()
        assert contents(await other.search())[0] == REFUNDS
        assert (await other.runtime.query(GetEmbedding())).space == rows.STATIC


async def test_hostile_texts_have_vectors_too(folder: Path) -> None:
    hostile = ["\u202eevil\u202c", "e\u0301" * 1_000, "\U0001f600" * 500, "x" * 1_000_000, "\u200b", "a b\0c"]
    async with shop(folder) as here:
        await here.settle()
        await here.store(*hostile, REFUNDS)
        await here.settle()
        assert contents(await here.search())[0] == REFUNDS


@pytest.mark.promise("embedding.failure")
async def test_why_words_alone_rank_is_told_when_the_query_has_no_direction(folder: Path) -> None:
    async with endpoint() as served:

        def answer(endpoint: Endpoint, body: dict[str, Any]) -> Answer | None:
            if body["input"] != ["refunds nothing"]:
                return None
            return ok({"data": [{"embedding": [-0.0] * endpoint.dimensions}]})

        served.behaviour = answer
        async with shop(folder, EmbedderChoice(kind="http", place=served.url, model="m")) as here:
            await here.store(REFUNDS, *OTHERS)
            await here.settle()
            found = await here.search("refunds nothing")
            assert contents(found) == [REFUNDS]
            assert isinstance(found.debug, SearchDebug)
            assert found.debug.model == "words"
            assert "all zeros" in (found.debug.without_vectors or "")
            assert has_vectors(await here.search("refunds"))
    async with shop(folder / "words") as here:
        await here.store("!!! :-)", REFUNDS)
        await here.settle()
        found = await here.search("!!!")
        assert isinstance(found.debug, SearchDebug)
        assert (found.debug.model, found.debug.without_vectors) == (
            "words",
            "the embedder knows no word of the query",
        )


# -- when there are no vectors, or not yet --------------------------------------------


def at(served: Endpoint) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place=served.url, model="m")


async def ask_all(here: Shop) -> list[Any]:
    """Return what the searches answer that go by meaning."""
    requests = (
        MemorySearch(query=ASKED, namespace=SPACE),
        MemorySearch(query=ASKED, namespace=SPACE, mode="hybrid"),
        RetrieveMemory(query=ASKED, namespace=SPACE),
        RecallContext(task=ASKED, namespace=SPACE),
    )
    return [wire(await here.agent.ask(request)) for request in requests]


@pytest.mark.slow
@pytest.mark.promise("embedding.first-search")
async def test_a_search_without_vectors_says_that_it_is_partial_and_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(folder, "none") as here:
        await here.store(REFUNDS, *OTHERS)
        whole = await ask_all(here)
        assert not any({"partial", "partial_reason"} & answer.keys() for answer in whole), "none are wanted"
    patience = "greenroom.actors.search.embedding.embedding_service.QUERY_SECONDS"
    async with endpoint() as served:
        served.silent = True
        monkeypatch.setattr(patience, 0.05)
        async with shop(folder, at(served)) as here:
            for answer in await ask_all(here):
                assert answer["partial"] is True
                assert "by their words alone, for the embedder http:" in answer["partial_reason"]
        served.silent = False
        served.behaviour = failing(503)
        monkeypatch.setattr(patience, 3_600)  # a failure ends the wait
        async with shop(folder, at(served)) as here:
            for answer in await ask_all(here):
                assert answer["partial"] is True
                assert "answers 503" in answer["partial_reason"]
        served.behaviour = lambda _endpoint, _body: None
        served.silent_about = {REFUNDS}
        async with shop(folder, at(served)) as here:
            await here.runtime.query(Loaded())
            monkeypatch.setattr(patience, 1)
            for answer in await ask_all(here):
                assert answer["partial"] is True
                assert "are being embedded" in answer["partial_reason"]
        served.silent_about = set()
        async with shop(folder, at(served)) as here:
            await here.settle()
            for answer in await ask_all(here):
                assert not {"partial", "partial_reason"} & answer.keys()


@pytest.mark.promise("embedding.lazy")
async def test_a_look_up_does_not_wait_for_the_embedder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.search.embedding.embedding_service.QUERY_SECONDS", 3_600)
    async with endpoint() as served:
        served.silent = True
        async with shop(folder, at(served)) as here, trio.open_nursery() as nursery:
            await here.store(REFUNDS, key="refunds")
            await here.agent.ask(SetMemory(key="mine", value=msgspec.Raw(b"1")))
            searched, looked_up = trio.Event(), trio.Event()

            async def search() -> None:
                await here.search()
                searched.set()

            nursery.cancel_scope.deadline = trio.current_time() + PATIENCE  # for a look-up that waits
            nursery.start_soon(search)
            await served.was_asked.wait()
            for request in (
                RetrieveMemory(key="refunds", namespace=SPACE),
                MemorySearch(query="within 14 days", mode="exact", namespace=SPACE),
                MemorySearch(tags=["none"], namespace=SPACE),
            ):
                found = wire(await here.agent.ask(request))
                assert [each["key"] for each in found["memories"]] == (
                    [] if getattr(request, "tags", None) else ["refunds"]
                )
                assert "partial" not in found
            assert (await here.agent.ask(GetMemory(key="mine"))).version == 1
            assert not searched.is_set()
            looked_up.set()
            nursery.cancel_scope.cancel()
        assert looked_up.is_set()


@pytest.mark.promise("embedding.lazy")
async def test_a_look_up_wakes_no_embedder(folder: Path) -> None:
    async with shop(folder) as here:
        await here.store(REFUNDS, key="refunds")
        await here.settle()
    async with shop(folder) as here:
        found = await here.agent.ask(RetrieveMemory(key="refunds", namespace=SPACE))
        assert contents(found) == [REFUNDS]
        assert (await here.runtime.query(GetEmbedding())).state == "idle"


@pytest.mark.slow
@pytest.mark.promise("recall.many")
async def test_among_very_many_namespaces_what_means_the_same_is_found(folder: Path) -> None:
    async with shop(folder) as here:
        await here.store(REFUNDS)
        await here.settle()
        for number in range(BATCH + 20):
            text = f"{OTHERS[number % len(OTHERS)]} ({number})"
            await here.agent.ask(StoreMemory(content=text, namespace=f"team:t{number}"))
        await here.settle()
        found = await here.agent.ask(MemorySearch(query="money back", limit=3, include_debug=True))
        assert has_vectors(found)
        assert contents(found)[0] == REFUNDS


@asynccontextmanager
async def shop_of_endpoint(folder: Path) -> AsyncIterator[tuple[Shop, Endpoint]]:
    """A shop whose vectors are made by an endpoint that its clients can ask, too."""
    async with (
        endpoint() as served,
        shop(folder, EmbedderChoice(kind="http", place=served.url, model="m")) as here,
    ):
        await here.store(REFUNDS, *OTHERS)
        await here.settle()
        yield here, served


@pytest.mark.promise("recall.embedding")
async def test_a_client_looks_for_a_vector_of_its_own(folder: Path) -> None:
    async with shop_of_endpoint(folder) as (here, served):
        vector = [number * 7.5 for number in served.vector(REFUNDS)]  # of any length
        space = (await here.agent.ask(MemoryStats(namespace=SPACE))).embedding_space
        assert space == "http:m:8"
        asked = len(served.asked)
        narrowed: list[dict[str, Any]] = [{}, {"embedding_space": space}, {"namespace": "project"}]
        for more in narrowed:
            looked = RetrieveMemory(**{"query_embedding": vector, "namespace": SPACE} | more)
            found = await here.agent.ask(looked)
            assert contents(found)[0] == REFUNDS
            assert (found.total, found.query, found.partial) == (4, None, msgspec.UNSET)
        await here.store("Another one, with a tag.", tags=["t"])
        await here.settle()
        tagged = RetrieveMemory(query_embedding=vector, namespace=SPACE, filters=RetrieveFilters(tags=["t"]))
        assert contents(await here.agent.ask(tagged)) == ["Another one, with a tag."]
        assert len(served.asked) == asked + 1, "the vector itself needs no embedder"


@pytest.mark.promise("recall.embedding")
async def test_a_vector_that_cannot_be_compared_is_refused_with_what_can(folder: Path) -> None:
    right = [1.0] * 8
    async with shop_of_endpoint(folder) as (here, _):
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("query_embedding", {"query_embedding": [1.0] * 3}),
            ("query_embedding", {"query_embedding": [0.0] * 8}),
            ("query_embedding", {"query_embedding": [1e308] * 8}),
            ("query_embedding", {"query_embedding": right, "query": "refunds"}),
            ("embedding_space", {"query_embedding": right, "embedding_space": "http:other:8"}),
            ("embedding_space", {"embedding_space": "http:m:8"}),
        ]
        for field, given in wrong:
            with refused("VALIDATION_ERROR", field=field) as caught:
                await here.agent.ask(RetrieveMemory(**given))
            if "dimensions" in caught.value.details:
                assert caught.value.details["embedding_space"] == "http:m:8"
                assert caught.value.details["dimensions"] == 8
                assert "http:m:8" in caught.value.sentence
    async with shop(folder, embedder="none") as here:
        with refused("VALIDATION_ERROR", field="query_embedding") as caught:
            await here.agent.ask(RetrieveMemory(query_embedding=right))
        assert "the embedder is none" in caught.value.sentence


@pytest.mark.promise("recall.embedding")
async def test_what_has_no_vector_yet_is_not_called_missing(folder: Path) -> None:
    async with shop_of_endpoint(folder) as (here, served):
        served.behaviour = failing(500)
        await here.store("A new one.", namespace="project:new")
        looked = RetrieveMemory(query_embedding=served.vector(REFUNDS), namespace="project")
        found = await here.agent.ask(looked)
        assert contents(found)[0] == REFUNDS
        assert "A new one." not in contents(found)
        assert "being embedded" in str(found.partial_reason)


@pytest.mark.slow
@pytest.mark.promise("recall.embedding", "recall.many")
async def test_among_very_many_namespaces_what_is_like_a_vector_is_found(folder: Path) -> None:
    async with shop_of_endpoint(folder) as (here, served):
        await here.store(REFUNDS, namespace="team:first")
        for number in range(BATCH + 20):
            await here.store(OTHERS[number % len(OTHERS)], namespace=f"team:t{number}")
        await here.settle()
        looked = RetrieveMemory(query_embedding=served.vector(REFUNDS), namespace="team", limit=1)
        assert contents(await here.agent.ask(looked)) == [REFUNDS]
