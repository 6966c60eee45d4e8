"""A client of the one unified memory search, from outside: every mode and older name."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # mcp brings it without types
import pytest
from harness import principal

from greenroom.actors import Agent, open_greenroom
from greenroom.testing import McpClient, mcp_client

pytestmark = pytest.mark.promise("recall.aliases")

MEMORIES: tuple[dict[str, Any], ...] = (
    {"key": "deploys", "content": "We deploy on Thursdays, never before a holiday.", "tags": ["release"]},
    {"key": "outage", "content": "ERR_4711 means that the deploy ran out of disk.", "importance": 0.9},
    {"key": "lunch", "content": "The canteen serves soup at noon."},
)
EVER = {"start_date": "2020-01-01", "end_date": "2999-12-31"}

# What is called, with which arguments, which keys it finds first, and how many memories there are at most.
CALLS: tuple[tuple[str, dict[str, Any], str, int], ...] = (
    ("memory_search", {"query": "deploy on Thursdays"}, "deploys", 10),
    ("memory_search", {"query": "deploy on Thursdays", "mode": "semantic"}, "deploys", 10),
    ("memory_search", {"query": "ERR_4711", "mode": "exact"}, "outage", 1),
    ("memory_search", {"query": "deploy", "mode": "hybrid", "quality_boost": 1.0}, "outage", 10),
    ("memory_search", {"tags": ["release"], "time_expr": "the last hour"}, "deploys", 1),
    ("retrieve_memory", {"query": "deploy on Thursdays"}, "deploys", 5),
    ("retrieve_memory", {"query": "deploy on Thursdays", "n_results": 1}, "deploys", 1),
    ("recall_memory", {"query": "canteen soup", "time_expr": "the last hour"}, "lunch", 5),
    ("recall_by_timeframe", {**EVER, "n_results": 2}, "lunch", 2),
    ("retrieve_with_quality_boost", {"query": "deploy", "quality_weight": 1.0}, "outage", 10),
    ("exact_match_retrieve", {"content": "at noon"}, "lunch", 1),
    ("debug_retrieve", {"query": "deploy on Thursdays"}, "deploys", 5),
)


@asynccontextmanager
async def client_of_memory_search(folder: Path) -> AsyncIterator[McpClient]:
    async with (
        open_greenroom(folder, embedder="none") as runtime,
        mcp_client(lambda name: Agent(runtime, principal(name)), profiles=("memory-search",)) as client,
    ):
        await client.initialize()
        for memory in MEMORIES:
            await client.call("store_memory", **memory)
        yield client


async def listing(client: McpClient) -> dict[str, dict[str, Any]]:
    tools = (await client.request("tools/list"))["result"]["tools"]
    return {tool["name"]: tool for tool in tools}


@pytest.mark.slow
async def test_every_mode_and_every_older_name_finds_and_answers_as_listed(tmp_path: Path) -> None:
    async with client_of_memory_search(tmp_path) as client:
        tools = await listing(client)
        for tool, arguments, first, most in CALLS:
            jsonschema.validate(arguments, tools[tool]["inputSchema"])
            result = (await client.request("tools/call", {"name": tool, "arguments": arguments}))["result"]
            said = result["structuredContent"]
            jsonschema.validate(said, tools[tool]["outputSchema"])
            assert said["memories"][0]["key"] == first, (tool, arguments)
            assert said["total"] == len(said["memories"]) <= most
            assert ("debug" in said) == (tool == "debug_retrieve")
    assert {call[0] for call in CALLS} == set(tools) - {"store_memory"}


async def test_debug_has_the_names_that_this_system_reads(tmp_path: Path) -> None:
    async with client_of_memory_search(tmp_path) as client:
        said = await client.call(
            "memory_search", query="deploy", time_expr="the last hour", tags=["release"], include_debug=True
        )
        nothing = await client.call("memory_search", query="deploy", namespace="nowhere", include_debug=True)
    debug = said["debug"]
    assert debug["time_filter"] == debug["time_window"]
    assert debug["time_filter"]["time_expr"] == "the last hour"
    assert debug["tag_filter"] == ["release"]
    assert (debug["pre_filter_count"], said["total"]) == (3, 1)
    assert debug["embedding_model"] == "words"
    assert debug["timings"]
    assert nothing["debug"]["pre_filter_count"] == 0


async def test_each_example_in_a_description_is_a_call(tmp_path: Path) -> None:
    """And those of `memory_search` name every mode."""
    modes = set()
    async with client_of_memory_search(tmp_path) as client:
        for name, tool in (await listing(client)).items():
            examples = [json.loads(text) for text in re.findall(r"\{.*?\}", tool["description"])]
            assert examples or name == "store_memory"
            for arguments in examples:
                answer = await client.request("tools/call", {"name": name, "arguments": arguments})
                assert not answer["result"]["isError"], answer
                modes.add(arguments.get("mode", "semantic") if name == "memory_search" else "semantic")
    assert modes == {"semantic", "exact", "hybrid"}
