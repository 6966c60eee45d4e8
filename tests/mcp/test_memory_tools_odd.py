"""Memory tools given anything at all: each call is answered or refused, and no actor fails at it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.agents import house
from support.differential_requests import keys, limits, members, mostly, odd, texts
from trio.testing import MockClock

from greenroom.actors import Agent, Principal
from greenroom.runtime import GreenroomError, IdempotencyConflictError, Refusal
from greenroom.testing import VirtualClock
from greenroom.transports import TOOLS

MEMORY = "@memory"
CURSOR = "@cursor"

namespaces = mostly(
    st.sampled_from(["user:alice", "user:alice:x", "team:crew", "project:atlas", "agent:planner"]),
    st.sampled_from(["user:bob", "agent:other", "user", "", "a:b:c:d:e:f:g:h", ":", "user:alice "]) | texts,
)
memories = mostly(st.just(MEMORY), texts, odds=8)
numbers = st.sampled_from([0, 1, -1, 0.5, 1.0, 2, 1e308, -0.0])
tags = st.lists(st.sampled_from(["a", "b", "é", "x" * 200, ""]) | texts, max_size=3)
contents = st.sampled_from(["hello harbour", "HELLO", "\0", "😀", "a‍b", "שלום", "x" * 5_000]) | texts
times = st.sampled_from(
    ["yesterday", "last week", "2026-01-01", "2026-01-01T00:00:00Z", "0001-01-01", "9999-12-31", "soon"]
)
metadata = members(
    {},
    {
        "tags": tags,
        "importance": numbers,
        "scope": st.sampled_from(["private", "shared", "public", "x"]),
        "expiry": times,
        "mood": odd,
    },
)
filters = members(
    {},
    {
        "tags": tags,
        "tag_match": st.sampled_from(["any", "all"]),
        "kind": st.sampled_from(["semantic", "x"]),
        "min_importance": numbers,
        "max_age_days": numbers,
        "key_prefix": texts,
        "after": times,
        "namespace": namespaces,
        "superseded": st.booleans(),
        "key": keys,
    },
)
which = {"memory_id": memories, "key": keys, "namespace": namespaces}
CALLS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "store_memory": members(
        {"content": contents},
        {
            "key": keys,
            "namespace": namespaces,
            "metadata": metadata,
            "expected_version": limits,
            "supersedes": memories,
            "conversation_id": texts,
            "position": limits,
            "author": texts,
            "idempotency_key": st.just("once"),
            "kind": st.sampled_from(["semantic", "episodic", "x"]),
        },
    ),
    "update_memory": members({}, {**which, "content": contents, "value": odd, "metadata": metadata}),
    "forget_memory": members(
        {}, {**which, "filters": filters, "confirm": st.booleans(), "purge": st.booleans()}
    ),
    "rate_memory": members({"rating": numbers}, {**which, "note": texts}),
    "list_memories": members(
        {},
        {
            "namespace": namespaces,
            "filters": filters,
            "limit": limits,
            "cursor": st.just(CURSOR),
            "max_tokens": limits,
        },
    ),
    "list_memory_versions": members({}, {**which, "limit": limits}),
    "memory_stats": members({}, {"namespace": namespaces}),
    "memory_search": members(
        {},
        {
            "query": contents,
            "mode": st.sampled_from(["semantic", "exact", "hybrid"]),
            "time_expr": times,
            "after": times,
            "before": times,
            "timezone": st.sampled_from(["UTC", "Asia/Tokyo", "x", ""]),
            "tags": tags,
            "namespace": namespaces,
            "quality_boost": numbers,
            "limit": limits,
            "max_tokens": limits,
            "include_debug": st.booleans(),
            "author": texts,
            "conversation_id": texts,
        },
    ),
    "retrieve_memory": members(
        {}, {"query": contents, "key": keys, "namespace": namespaces, "limit": limits, "n_results": limits}
    ),
    "recall_context": members({"task": contents}, {"max_tokens": limits, "namespace": namespaces}),
    "recall_by_timeframe": members({"start_date": times}, {"end_date": times, "n_results": limits}),
    "exact_match_retrieve": members({"content": contents}),
    "omn_store_memory": members({"content": contents}, {"metadata": metadata}),
}
calls = st.sampled_from(sorted(CALLS)).flatmap(lambda name: st.tuples(st.just(name), CALLS[name]))


@pytest.mark.promise("recall.tools")
@given(st.lists(calls, min_size=1, max_size=15))
def test_each_call_is_answered_or_refused(made: list[tuple[str, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trio.run(_hold, Path(folder), made, clock=MockClock(autojump_threshold=0))


async def _hold(folder: Path, made: list[tuple[str, dict[str, Any]]]) -> None:
    last = {MEMORY: "00000000-0000-8000-8000-000000000000", CURSOR: "x"}
    async with house(folder, VirtualClock(), embedder="none") as at:
        planner = Principal(agent_id="planner", user="alice", projects=frozenset({"atlas"}))
        alice = Agent(at.runtime, planner, timezone="UTC")
        for name, arguments in made:
            raw = msgspec.json.encode(arguments)
            for placeholder, value in last.items():
                raw = raw.replace(placeholder.encode(), value.encode())
            tool = TOOLS[name]
            try:
                reply = await alice.ask(tool.parse(raw), checked=True)
            except (Refusal, IdempotencyConflictError) as error:
                if (meant := tool.alias_for(raw)) is not None:
                    meant.reword(error)
                continue
            except GreenroomError as error:
                raise AssertionError(f"{name} failed at {raw!r}") from error
            told = msgspec.json.decode(msgspec.json.encode(reply))
            last[MEMORY] = told.get("memory_id") or last[MEMORY]
            last[CURSOR] = told.get("next_cursor") or last[CURSOR]
            assert told["success"]
