"""What the page on compatibility says is refused, unknown or different: each is tried."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import principal

from greenroom.actors import Agent, open_greenroom
from greenroom.testing import McpClient, mcp_client

PAGE = (Path(__file__).parent.parent.parent / "docs" / "compatibility.md").read_text()
UNKNOWN_TOOLS = [
    "authenticate_agent",
    "refresh_token",
    "get_usage_guidance",
    "get_performance_metrics",
]
UNKNOWN_RESOURCES = {
    "session://{id}/messages/{limit}": "session://s/messages/5",
    "server://info/…": "server://info/x",
    "docs://tools/…": "docs://tools/x",
    "omnimemory://…": "omnimemory://project/x",
    "greenroom://": "greenroom://user/ann/preferences",
}
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("shared-context", "get_session", {"session_id": "s", "auth_token": "t"}, "auth_token"),
    (
        "shared-context",
        "add_message",
        {"session_id": "s", "content": "c", "visibility": "admin_only"},
        "visibility",
    ),
    ("shared-context", "create_session", {"purpose": "p" * 501}, "purpose"),
    ("shared-context", "add_message", {"session_id": "s", "content": "c" * 10_001}, "content"),
    ("memory-search", "recall_memory", {"time_expr": "purple"}, "time_expr"),
    (
        "memory-search",
        "memory_search",
        {"query": "q", "mode": "exact", "quality_boost": 0.1},
        "quality_boost",
    ),
]


@asynccontextmanager
async def client_of(folder: Path, profile: str) -> AsyncIterator[McpClient]:
    async with (
        open_greenroom(folder, embedder="none") as runtime,
        mcp_client(lambda name: Agent(runtime, principal(name)), profiles=(profile,)) as client,
    ):
        await client.initialize()
        await client.call("create_session", session_id="s", purpose="plan")
        yield client


async def test_what_is_said_to_be_unknown_is(tmp_path: Path) -> None:
    async with client_of(tmp_path, "all") as client:
        for tool in UNKNOWN_TOOLS:
            assert f"`{tool}`" in PAGE
            answer = await client.request("tools/call", {"name": tool, "arguments": {}})
            assert answer["error"]["message"].startswith(f"Unknown tool: {tool}")
        for said, uri in UNKNOWN_RESOURCES.items():
            assert f"`{said}`" in PAGE
            answer = await client.request("resources/read", {"uri": uri})
            assert answer["error"]["data"]["code"] == "RESOURCE_NOT_FOUND"


@pytest.mark.parametrize(("profile", "tool", "arguments", "field"), REFUSED, ids=str)
async def test_what_is_said_to_be_refused_is(
    tmp_path: Path, profile: str, tool: str, arguments: dict[str, Any], field: str
) -> None:
    async with client_of(tmp_path, profile) as client:
        answer = await client.call(tool, **arguments)
    assert answer["code"] == "VALIDATION_ERROR"
    assert answer["details"]["field"] == field
    assert f"`{profile}`" in PAGE


async def test_texts_are_kept_and_metadata_is_bounded_by_size_alone(tmp_path: Path) -> None:
    text = " <b>\u0001</b> "
    metadata = {"k" * 200: [[[[[[[[[[[[1]]]]]]]]]]]], **{str(number): "v" * 1_000 for number in range(60)}}
    async with client_of(tmp_path, "shared-context") as client:
        await client.call("add_message", session_id="s", content=text, metadata=metadata)
        (message,) = (await client.call("get_messages", session_id="s"))["messages"]
        found = await client.call("search_context", session_id="s", query="b")
    assert (message["content"], message["metadata"]) == (text, metadata)
    assert found["cache_hit"] is False


async def test_how_the_memories_of_other_servers_would_differ(tmp_path: Path) -> None:
    async with client_of(tmp_path, "memory-search") as client:
        await client.call("store_memory", key="k", content="Ham and Eggs", tags=["menu"])
        assert (await client.call("exact_match_retrieve", content="eggs"))["total"] == 0
        assert (await client.call("exact_match_retrieve", content="Eggs"))["total"] == 1
        assert (await client.call("memory_search", time_expr="today", after="2999-01-01"))["total"] == 0
        boosted = await client.call("memory_search", query="ham", quality_boost=0.2, include_debug=True)
        assert (boosted["mode"], boosted["debug"]["mode"]) == ("semantic", "hybrid")
        await client.call("store_memory", key="k", content="Soup")
        (listed,) = (await client.call("list_memories"))["memories"]
        assert listed.get("tags", []) == []
        assert (await client.call("retrieve_memory", key="k"))["memories"][0]["content"] == "Soup"
