"""Older names of tools: their parameters, their hints, and that nobody sees them who does not ask."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # mcp brings it without types
import pytest
from harness import greenroom, principal, server_process

from greenroom.actors import Agent, MemorySearch, RetrieveMemory, open_greenroom
from greenroom.actors.app.requests import TOOL_SCOPES
from greenroom.actors.core.auth import scopes
from greenroom.runtime import Refusal
from greenroom.testing import MODERN_META, McpClient, mcp_client
from greenroom.transports import TOOLS
from greenroom.transports.mcp.tools.aliases import ALIASES, META_KEY

pytestmark = pytest.mark.promise("recall.aliases")

OLD_NAMES = {
    "recall_memory",
    "recall_by_timeframe",
    "retrieve_with_quality_boost",
    "exact_match_retrieve",
    "debug_retrieve",
}
PREFIXED = {f"omn_{name}" for name in TOOLS if f"omn_{name}" in TOOLS}


def parsed(tool: str, **arguments: Any) -> Any:
    return TOOLS[tool].parse(json.dumps(arguments).encode())


@pytest.mark.parametrize(
    ("tool", "arguments", "meant"),
    [
        ("retrieve_memory", {"query": "q", "n_results": 3}, MemorySearch(query="q", limit=3)),
        ("retrieve_memory", {"query": "q", "limit": 3}, RetrieveMemory(query="q", limit=3)),
        ("retrieve_memory", {"key": "n_results"}, RetrieveMemory(key="n_results")),
        ("recall_memory", {"query": "q"}, MemorySearch(query="q", limit=5)),
        (
            "recall_memory",
            {"query": "q", "time_expr": "last week", "n_results": 9},
            MemorySearch(query="q", time_expr="last week", limit=9),
        ),
        (
            "recall_by_timeframe",
            {"start_date": "2026-01-01", "end_date": "2026-01-31"},
            MemorySearch(after="2026-01-01", before="2026-02-01", limit=5),
        ),
        (
            "recall_by_timeframe",
            {"start_date": "2026-01-01", "end_date": "2026-01-31T12:00:00Z", "n_results": 1},
            MemorySearch(after="2026-01-01", before="2026-01-31T12:00:00Z", limit=1),
        ),
        (
            "recall_by_timeframe",
            {"start_date": "9999-12-31", "end_date": "9999-12-31"},
            MemorySearch(after="9999-12-31", before="9999-12-31", limit=5),
        ),
        (
            "retrieve_with_quality_boost",
            {"query": "q"},
            MemorySearch(query="q", mode="hybrid", quality_boost=0.3, limit=10),
        ),
        (
            "retrieve_with_quality_boost",
            {"query": "q", "quality_weight": 0, "n_results": 2},
            MemorySearch(query="q", mode="hybrid", quality_boost=0.0, limit=2),
        ),
        ("exact_match_retrieve", {"content": "q"}, MemorySearch(query="q", mode="exact", limit=10)),
        ("debug_retrieve", {"query": "q"}, MemorySearch(query="q", include_debug=True, limit=5)),
        ("omn_retrieve_memory", {"query": "q"}, RetrieveMemory(query="q")),
    ],
    ids=str,
)
def test_older_parameters_mean_what_they_meant(tool: str, arguments: dict[str, Any], meant: Any) -> None:
    assert parsed(tool, **arguments) == meant


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("recall_memory", {"query": "q", "limit": 3}, ("limit", "query, time_expr, n_results")),
        ("recall_memory", {"query": "q", "n_results": 0}, ("n_results", "1", "100", "0")),
        ("recall_memory", {"query": "q", "n_results": "five"}, ("n_results", '"five"')),
        ("recall_by_timeframe", {"end_date": "2026-01-01"}, ("start_date", "required")),
        ("recall_by_timeframe", {"start_date": None}, ("start_date", "null")),
        (
            "retrieve_with_quality_boost",
            {"query": "q", "quality_weight": 1.5},
            ("quality_weight", "1", "1.5"),
        ),
        ("exact_match_retrieve", {"query": "q"}, ("query", "content")),
        ("exact_match_retrieve", {}, ("content", "required")),
        ("debug_retrieve", {"query": ""}, ("query", "1", "0")),
        ("retrieve_memory", {"query": "q", "n_results": 5, "limit": 3}, ("limit", "n_results")),
        ("retrieve_memory", {"query": "q", "n_results": []}, ("n_results", "[]")),
        ("omn_retrieve_memory", {"query": "q", "n_results": 5}, ("n_results", "query, query_embedding")),
    ],
    ids=str,
)
def test_what_breaks_an_older_parameter_is_named_as_it_was_given(
    tool: str, arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(Refusal) as caught:
        parsed(tool, **arguments)
    assert caught.value.code == "VALIDATION_ERROR"
    assert caught.value.details["field"] == words[0]
    assert all(word in caught.value.sentence for word in words), caught.value.sentence


def test_the_table_names_tools_that_are_there_and_each_name_once() -> None:
    names = [alias.name for alias in ALIASES]
    assert len(names) == len(set(names))
    assert set(names) >= OLD_NAMES | {"retrieve_memory"}
    for alias in ALIASES:
        successor = TOOLS[alias.successor]
        assert successor.alias is None
        known = set(successor.request.__struct_fields__)
        assert set((alias.takes or {}).values()) | set(alias.fixed) <= known
        assert set(alias.defaults) | set(alias.converts) | set(alias.required) <= set(alias.takes or {})
        listing = TOOLS[alias.name].listing()
        jsonschema.Draft202012Validator.check_schema(listing["inputSchema"])
        assert listing["annotations"] == successor.listing()["annotations"]


# -- over connections --------------------------------------------------------------------------------


@asynccontextmanager
async def serving(folder: Path, era: str = "handshake", **options: Any) -> AsyncIterator[McpClient]:
    async with (
        open_greenroom(folder, embedder="none") as runtime,
        mcp_client(lambda name: Agent(runtime, principal(name)), **options) as client,
    ):
        if era == "modern":
            client.meta = MODERN_META
        else:
            await client.initialize()
        yield client


async def listed(client: McpClient) -> set[str]:
    return {tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]}


async def test_older_names_are_listed_only_where_that_is_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        plain = await listed(client)
    profiles = ("all", "memory-search", "universal-memory")
    async with serving(tmp_path, profiles=profiles[:1]) as client:
        today = await listed(client)
    async with serving(tmp_path, profiles=profiles) as client:
        full = await listed(client)
    assert full - today == {alias.name for alias in ALIASES if alias.told_by is None}
    assert not (plain | today) & (OLD_NAMES | PREFIXED)
    by_name = {name for name, needed in TOOL_SCOPES.items() if needed in {scopes.ADMIN, scopes.AUDIT}}
    assert full == set(TOOLS) - by_name


CALLS: dict[str, dict[str, Any]] = {
    "retrieve_memory": {"query": "harbour", "n_results": 5},
    "recall_memory": {"query": "harbour", "time_expr": "the last hour"},
    "recall_by_timeframe": {"start_date": "2020-01-01", "end_date": "2999-12-31"},
    "retrieve_with_quality_boost": {"query": "harbour"},
    "exact_match_retrieve": {"content": "opens at"},
    "debug_retrieve": {"query": "harbour"},
    "omn_retrieve_memory": {"query": "harbour"},
}


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("path", ["ours", "sdk"])
async def test_each_answer_names_the_successor(tmp_path: Path, era: str, path: str) -> None:
    """A member that no tool call has makes a request one for the SDK, which passes it over."""
    more = {"task": None} if path == "sdk" else {}
    async with serving(tmp_path, era) as client:

        async def result(tool: str, **arguments: Any) -> dict[str, Any]:
            params = {"name": tool, "arguments": arguments, **more}
            answer: dict[str, Any] = (await client.request("tools/call", params))["result"]
            return answer

        stored = await result("omn_store_memory", content="the harbour opens at six", key="harbour")
        assert stored["_meta"][META_KEY]["successor"] == "store_memory"
        for tool, arguments in CALLS.items():
            answer = await result(tool, **arguments)
            hint = answer["_meta"][META_KEY]
            assert hint["name"] == tool
            assert hint["successor"] in hint["hint"]
            assert not answer["isError"]
            assert [memory["key"] for memory in answer["structuredContent"]["memories"]] == ["harbour"]
            if era == "modern":
                assert "io.modelcontextprotocol/serverInfo" in answer["_meta"]
        plain = await result("retrieve_memory", query="harbour")
        assert META_KEY not in plain.get("_meta", {})


@pytest.mark.parametrize("profile", ["memory-search", "universal-memory"])
async def test_one_answer_has_the_fields_of_both_forms(tmp_path: Path, profile: str) -> None:
    async with serving(tmp_path, profiles=(profile,)) as client:
        await client.call("store_memory", content="the harbour opens at six", key="harbour")
        for number in ("n_results", "limit"):
            arguments: dict[str, Any] = {number: 5}
            found = await client.call("retrieve_memory", query="harbour", **arguments)
            assert {"memories", "total", "query", "mode", "total_found", "query_time_ms"} <= set(found)
            (memory,) = found["memories"]
            assert {"id", "key", "namespace", "content", "score", "relevance_score"} <= set(memory)


@pytest.mark.parametrize("path", ["ours", "sdk"])
async def test_a_failure_names_the_older_parameter_and_the_successor(tmp_path: Path, path: str) -> None:
    more = {"task": None} if path == "sdk" else {}
    async with serving(tmp_path) as client:
        for tool, arguments, field in (
            ("recall_by_timeframe", {"start_date": "soon"}, "start_date"),
            ("recall_by_timeframe", {"start_date": "2026-01-01", "end_date": "never"}, "end_date"),
            ("recall_memory", {"query": "q", "time_expr": "purple"}, "time_expr"),
            ("recall_memory", {}, "query"),
            ("exact_match_retrieve", {"content": " "}, "content"),
            ("recall_memory", {"query": 5}, "query"),
        ):
            params = {"name": tool, "arguments": arguments, **more}
            result = (await client.request("tools/call", params))["result"]
            failure = json.loads(result["content"][0]["text"])
            assert result["isError"]
            assert (failure["code"], failure["details"]["field"]) == ("VALIDATION_ERROR", field)
            assert failure["error"].startswith(field)
            assert result["_meta"][META_KEY]["name"] == tool


async def test_a_name_that_is_nearly_an_older_one_is_not_led_to_it(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        answer = await client.request("tools/call", {"name": "recall_memry", "arguments": {}})
    assert "recall_memory" not in answer["error"]["message"]


async def test_the_flag_lists_them(tmp_path: Path) -> None:
    for flags, wanted in (((), False), (("--tools", "memory-search"), True)):
        async with server_process(tmp_path, *flags) as server:
            await server.client.initialize()
            assert (await listed(server.client) >= OLD_NAMES) is wanted
            await server.client.end_input()
            await server.process.wait()
