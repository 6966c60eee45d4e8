"""The tools that are listed by default: few, cheap to list, described, and told apart by their words."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import greenroom

from bench import tool_choice
from bench.harness import Plan
from greenroom.testing import McpClient

if TYPE_CHECKING:
    from agents.tool import FunctionTool

MOST_TOOLS = 16
MOST_TOKENS = 4_500
CORE = set(tool_choice.tasks().tasks)


async def listed(client: McpClient) -> list[dict[str, Any]]:
    await client.initialize()
    tools: list[dict[str, Any]] = (await client.request("tools/list"))["result"]["tools"]
    return tools


@pytest.mark.promise("mcp.core")
async def test_at_most_sixteen_tools_are_listed_in_at_most_4500_tokens(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        tools = await listed(client)
    assert {tool["name"] for tool in tools} == CORE
    assert len(tools) <= MOST_TOOLS
    assert len(msgspec.json.encode(tools)) / 4 <= MOST_TOKENS


@pytest.mark.promise("mcp.core")
async def test_every_parameter_is_described(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        tools = await listed(client)
    undescribed = [
        f"{tool['name']}.{name}"
        for tool in tools
        for name, schema in tool["inputSchema"]["properties"].items()
        if not schema.get("description")
    ]
    assert not undescribed


@pytest.mark.promise("mcp.strict")
@pytest.mark.slow
def test_openais_agents_take_every_schema_in_strict_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    converted = asyncio.run(_converted(tmp_path))
    assert {tool.name for tool in converted} == CORE
    assert [tool.name for tool in converted if not tool.strict_json_schema] == []


async def _converted(folder: Path) -> list[FunctionTool]:
    from agents.mcp import MCPServerStdio, MCPUtil  # noqa: PLC0415 - it takes two seconds

    command = [
        "-m",
        "greenroom.transports.cli",
        "serve",
        "--data",
        str(folder / "data"),
        "--agent",
        "planner",
        "--schemas",
        "nullable",
    ]
    served = MCPServerStdio(
        params={"command": sys.executable, "args": command, "env": dict(os.environ)},
        client_session_timeout_seconds=60,
    )
    async with served:
        tools = await served.list_tools()
        return [MCPUtil.to_function_tool(tool, served, convert_schemas_to_strict=True) for tool in tools]


@pytest.mark.promise("mcp.strict")
async def test_an_object_may_come_as_the_text_of_its_json(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        session_id = (await client.call("create_session", purpose="plan"))["session_id"]
        await client.call("add_message", session_id=session_id, content="done", metadata='{"pr": [12, null]}')
        page = await client.call("get_messages", session_id=session_id)
        assert page["messages"][0]["metadata"] == {"pr": [12, None]}

        stored = {"content": "We deploy on Thursdays.", "key": "deploys", "metadata": ' {"tags": ["ops"]}'}
        await client.call("store_memory", **stored)
        assert (await client.call("list_memories"))["memories"][0]["tags"] == ["ops"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("urgent", "takes an object"), ('{"a": 1', "cannot be kept"), ('{"a": 1, "a": 2}', "cannot be kept")],
)
async def test_a_text_that_is_no_object_is_refused(tmp_path: Path, text: str, said: str) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        session_id = (await client.call("create_session", purpose="plan"))["session_id"]
        refused = await client.call("add_message", session_id=session_id, content="done", metadata=text)
    assert refused["code"] == "VALIDATION_ERROR"
    assert refused["error"].startswith("metadata: ")
    assert said in refused["error"]


@pytest.mark.quick
@pytest.mark.promise("mcp.words")
@pytest.mark.slow
def test_what_tools_say_of_themselves_leads_to_the_right_one(tmp_path: Path) -> None:
    figures = {figure.what: figure for figure in tool_choice.run(_plan(tmp_path)).figures}
    assert figures["right tool first, %"].value >= 90
    assert figures["right tool among three, %"].value >= 95
    assert figures["right tool for documents first, %"].value >= 85
    assert figures["right tool for documents among three, %"].value >= 95
    assert figures["right tool first for fresh tasks, %"].value >= 85
    assert figures["right tool for documents first for fresh tasks, %"].value >= 85


def test_there_are_eighty_tasks_of_which_each_tool_has_three_and_twenty_fresh_ones() -> None:
    tasks = tool_choice.tasks()
    assert sum(map(len, tasks.tasks.values())) == 80
    assert sum(map(len, tasks.held_out.values())) == 20
    assert sum(map(len, tasks.fresh.values())) == 20
    assert min(map(len, tasks.tasks.values())) >= 3
    assert tasks.held_out.keys() == tasks.fresh.keys() == tasks.tasks.keys()
    seen = [task for each in (tasks.tasks, tasks.fresh) for said in each.values() for task in said]
    assert len(set(seen)) == 100


async def test_each_tool_for_documents_has_two_tasks(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("knowledge",)) as client:
        names = {tool["name"] for tool in await listed(client)}
    tasks = tool_choice.tasks()
    assert tasks.knowledge.keys() == tasks.knowledge_held_out.keys() == tasks.knowledge_fresh.keys() == names
    assert sum(map(len, tasks.knowledge_fresh.values())) == 20
    assert min(map(len, tasks.knowledge.values())) >= 2


def _plan(folder: Path) -> Plan:
    return Plan(smoke=False, data=None, work=folder)
