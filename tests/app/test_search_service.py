"""The one search over memories in Python, and its six older names."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors import (
    Agent,
    Database,
    MemoryMatches,
    Principal,
    SearchService,
    ServiceError,
    StoreMemory,
    open_greenroom,
)

pytestmark = pytest.mark.promise("recall.aliases")

ALICE = Principal(agent_id="editor", user="alice")


@asynccontextmanager
async def searching(folder: Path, principal: Principal = ALICE) -> AsyncIterator[SearchService]:
    """Open a store in which two memories of Alice and one of everybody were stored."""
    async with open_greenroom(folder, embedder="none") as runtime:
        agent = Agent(runtime, ALICE)
        await agent.ask(
            StoreMemory(key="deploys", content="We deploy on Thursdays.", tags=["release"], importance=0.1)
        )
        await agent.ask(
            StoreMemory(key="outage", content="ERR_4711: the deploy had no disk left.", importance=1.0)
        )
        await agent.ask(StoreMemory(key="crew", content="Deploy crew: the four.", namespace="team:crew"))
        yield SearchService(runtime, principal)


def keys(found: MemoryMatches) -> list[str]:
    return [memory.key for memory in found.memories]


async def test_one_search_takes_words_modes_times_and_tags(tmp_path: Path) -> None:
    async with searching(tmp_path) as search:
        found = await search.search_memories("deploy on Thursdays")
        assert keys(found)[0] == "deploys"
        assert (found.total, found.query, found.mode, found.debug) == (
            3,
            "deploy on Thursdays",
            "semantic",
            None,
        )
        first = found["memories"][0]
        assert (first["content"], first["value"], first["namespace"]) == (
            "We deploy on Thursdays.",
            None,
            "user:alice",
        )
        assert first.created_at.tzinfo is not None
        assert keys(await search.search_memories("ERR_4711", "exact")) == ["outage"]
        assert keys(await search.search_memories("deploy", "hybrid", quality_boost=1.0))[0] == "outage"
        assert keys(await search.search_memories(tags=["release"])) == ["deploys"]
        assert keys(await search.search_memories(time_expr="last year")) == []
        assert keys(await search.search_memories("deploy", after="2999-01-01")) == []
        assert keys(await search.search_memories("deploy", before="1999-01-01")) == []
        told = await search.search_memories("deploy", limit=1, include_debug=True)
    assert len(told.memories) == told.total == 1
    assert told.debug is not None
    assert set(told.debug["scores"]) == {told.memories[0].id}


async def test_it_finds_what_the_principal_may_see_and_no_more(tmp_path: Path) -> None:
    async with searching(tmp_path, Principal(agent_id="editor", user="bob")) as search:
        assert keys(await search.search_memories("deploy")) == ["crew"]


async def test_it_asks_a_database_of_another_thread_as_well(folder: Path) -> None:
    async with Database(folder, embedder="none") as database:
        await database.memory.add_memory("user:alice", "theme", {"is": "dark"}, "semantic", "editor", "t")
        (found,) = (await SearchService(database, ALICE).search_memories("dark", "exact")).memories
    assert (found.value, found.content) == ({"is": "dark"}, None)


Call = Callable[[SearchService], Awaitable[MemoryMatches]]
OLDER: list[tuple[Call, dict[str, Any], str]] = [
    (lambda it: it.retrieve_memory("deploy"), {"query": "deploy", "limit": 5}, "limit for n_results"),
    (
        lambda it: it.recall_memory("deploy", "last 2 days", 2),
        {"query": "deploy", "time_expr": "last 2 days", "limit": 2},
        "limit for n_results",
    ),
    (
        lambda it: it.recall_by_timeframe("2020-01-01", "2998-12-31"),
        {"after": "2020-01-01", "before": "2999-01-01", "limit": 5},
        "after for start_date, before for end_date",
    ),
    (
        lambda it: it.retrieve_with_quality_boost("deploy"),
        {"query": "deploy", "mode": "hybrid", "quality_boost": 0.3},
        'mode "hybrid", quality_boost for quality_weight',
    ),
    (
        lambda it: it.retrieve_with_quality_boost("deploy", 1.0, 1),
        {"query": "deploy", "mode": "hybrid", "quality_boost": 1.0, "limit": 1},
        'mode "hybrid"',
    ),
    (
        lambda it: it.exact_match_retrieve("ERR_4711"),
        {"query": "ERR_4711", "mode": "exact"},
        'mode "exact", query for content',
    ),
]


@pytest.mark.parametrize(("call", "meant", "advice"), OLDER, ids=range(len(OLDER)))
async def test_an_older_name_warns_and_does_what_the_search_does(
    tmp_path: Path, call: Call, meant: dict[str, Any], advice: str
) -> None:
    async with searching(tmp_path) as search:
        with pytest.warns(DeprecationWarning, match="call search_memories with") as caught:
            found = await call(search)
        assert advice in str(caught[0].message)
        assert caught[0].filename == __file__
        assert found.memories
        assert found == await search.search_memories(**meant)


async def test_the_older_debug_search_tells_how_it_ranked(tmp_path: Path) -> None:
    async with searching(tmp_path) as search:
        with pytest.warns(DeprecationWarning, match="search_memories with include_debug true"):
            found = await search.debug_retrieve("deploy")
    assert found.debug is not None
    assert set(found.debug["scores"]) == {memory.id for memory in found.memories}


async def test_a_refusal_is_in_the_words_of_the_name_that_was_called(tmp_path: Path) -> None:
    async with searching(tmp_path) as search:
        with pytest.raises(ServiceError, match=r"^limit: ") as caught:
            await search.search_memories("deploy", limit=0)
        assert caught.value.details["field"] == "limit"
        with pytest.raises(ServiceError, match=r"^query: "):
            await search.search_memories()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            with pytest.raises(ServiceError, match=r"^n_results: ") as caught:
                await search.retrieve_memory("deploy", 0)
        assert caught.value.details["field"] == "n_results"
