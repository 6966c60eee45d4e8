"""The SDK's own client, in both protocol eras, against a server process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from harness import PATIENCE, PROGRAM, clean_environment
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import Implementation

from greenroom.actors import REQUESTS

Mode = Literal["legacy", "auto", "2026-07-28"]
MODES: list[Mode] = ["legacy", "auto", "2026-07-28"]


@asynccontextmanager
async def connected(
    home: Path, mode: Mode, name: str = "sdk client", *flags: str, **options: Any
) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=[*PROGRAM[1:], "serve", "--data", str(home / "store"), *flags],
        env=clean_environment(home),
    )
    with trio.fail_after(PATIENCE):
        info = Implementation(name=name, version="1")
        async with Client(server, mode=mode, client_info=info, **options) as client:
            yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


@pytest.mark.promise("mcp.eras")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("mcp.eras")
async def test_the_main_job_in_both_eras(tmp_path: Path, mode: Mode) -> None:
    async with connected(tmp_path, mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        if mode != "2026-07-28":  # pinned to a version, the client asks the server nothing about itself
            assert client.server_info is not None
            assert client.server_info.name == "greenroom"
            assert client.server_info.version
            assert client.instructions
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == set(REQUESTS)

        session = (await answer(client, "create_session", purpose="both eras"))["session_id"]
        await answer(client, "add_message", session_id=session, content="the émigré's plan")
        found = await answer(client, "search_context", session_id=session, query="plan")
        assert [hit["message"]["content"] for hit in found["results"]] == ["the émigré's plan"]
        assert found["results"][0]["message"]["sender"] == "sdk-client"
        await answer(client, "set_memory", key="k", value={"n": [1, None, "123"]})
        assert (await answer(client, "get_memory", key="k"))["value"] == {"n": [1, None, "123"]}

    async with connected(tmp_path, mode) as client:
        assert (await answer(client, "get_memory", key="k"))["value"] == {"n": [1, None, "123"]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("mcp.errors")
async def test_a_refusal_is_a_tool_error_and_an_unknown_tool_is_not(tmp_path: Path, mode: Mode) -> None:
    async with connected(tmp_path, mode) as client:
        result = await client.call_tool("get_session", {"session_id": "nobody"})
        assert result.is_error
        assert "SESSION_NOT_FOUND" in str(result.content)
        with pytest.raises(MCPError, match="get_sesion"):
            await client.call_tool("get_sesion", {})


@pytest.mark.promise("memory.private")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("sessions.visibility", "memory.private")
async def test_agents_share_sessions_and_keep_their_memory(tmp_path: Path, mode: Mode) -> None:
    async with connected(tmp_path, mode, "alice") as alice:
        session = (await answer(alice, "create_session", purpose="shared"))["session_id"]
        await answer(alice, "add_message", session_id=session, content="for all")
        await answer(alice, "add_message", session_id=session, content="secret", visibility="private")
        await answer(alice, "set_memory", key="k", value=1)
    async with connected(tmp_path, mode, "ignored", "--agent", "bob") as bob:
        messages = (await answer(bob, "get_messages", session_id=session))["messages"]
        assert [(message["sender"], message["content"]) for message in messages] == [("alice", "for all")]
        assert (await bob.call_tool("get_memory", {"key": "k"})).is_error
        await answer(bob, "add_message", session_id=session, content="from bob")
    async with connected(tmp_path, mode, "alice") as alice:
        messages = (await answer(alice, "get_messages", session_id=session))["messages"]
        assert [message["sender"] for message in messages] == ["alice", "alice", "bob"]
