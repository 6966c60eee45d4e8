"""A client of shared-context-server 1.1.10, from outside: every tool with every parameter that it lists."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.sdk_clients import MODES, Mode, read, served

from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, SchemaForm

pytestmark = pytest.mark.promise("mcp.profiles")

ORIGINAL: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parent.parent / "data" / "shared-context-server-1.1.10.json").read_text()
)
"""The parameters of the ten tools that it has as well, with their types and defaults, as it lists them."""
OURS = ("list_sessions", "update_session", "delete_memory")


class Agent:
    """A program that was written for the original: it sends each parameter, as its default or otherwise.

    Attributes:
        client: The SDK's client.
        called: The tools that it called.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.called: set[str] = set()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers, be it a success or a failure."""
        self.called.add(tool)
        listed = ORIGINAL.get(tool, {})
        assert arguments.keys() <= listed.keys() or tool in OURS
        defaults = {name: kind["default"] for name, kind in listed.items() if "default" in kind}
        result = await self.client.call_tool(tool, defaults | arguments)
        (block,) = result.content
        answer: dict[str, Any] = json.loads(block.text)  # type: ignore[union-attr]  # it is a text
        assert answer["success"] is not result.is_error
        assert datetime.fromisoformat(answer["timestamp"])
        assert result.meta is not None
        assert datetime.fromisoformat(result.meta["greenroom/at"])
        return answer


@asynccontextmanager
async def agent(home: Path, mode: Mode = "legacy", *flags: str) -> AsyncIterator[Agent]:
    async with (
        served(home, "stdio", "--tools", "shared-context", *flags) as connect,
        connect(mode, "scout") as client,
    ):
        yield Agent(client)


def kinds(schema: dict[str, Any]) -> set[str]:
    """Return the types of JSON that a schema admits."""
    if "anyOf" in schema:
        return set().union(*(kinds(choice) for choice in schema["anyOf"]))
    types = schema["type"]
    return {types} if isinstance(types, str) else set(types)


@pytest.mark.parametrize("form", SCHEMA_FORMS)
async def test_every_parameter_of_the_original_is_listed_with_its_types(
    tmp_path: Path, form: SchemaForm
) -> None:
    async with agent(tmp_path, "legacy", "--schemas", form) as scout:
        tools = {tool.name: tool.input_schema for tool in (await scout.client.list_tools()).tools}
    assert tools.keys() == {*ORIGINAL, *OURS}
    for name, parameters in ORIGINAL.items():
        schema = tools[name]
        required = {parameter for parameter, kind in parameters.items() if "default" not in kind}
        assert required - {"session_id", "key"} <= set(schema.get("required", ())) <= required, name
        for parameter, kind in parameters.items():
            admitted = kinds(schema["properties"][parameter])
            if form == "plain":
                assert admitted <= set(kind["types"]) or parameter == "value", (name, parameter)
                assert len(admitted) == 1
            else:
                assert set(kind["types"]) <= admitted, (name, parameter)


@pytest.mark.parametrize("mode", MODES)
async def test_each_tool_answers_what_its_clients_read(tmp_path: Path, mode: Mode) -> None:
    async with agent(tmp_path, mode) as scout:
        made = await scout.call("create_session", purpose="the plan", metadata={"team": 1})
        session = made["session_id"]
        assert made["created_by"] == "scout"
        first = await scout.call("add_message", session_id=session, content="first", visibility="public")
        await scout.call(
            "add_message",
            session_id=session,
            content="second",
            metadata={"tag": "needle"},
            parent_message_id=first["message_id"],
            visibility="private",
        )
        await messages_are_read_and_found(scout, session, first["message_id"])
        await memory_is_kept_and_read(scout, session)
        await resources_are_read(scout, session)
        assert [each["id"] for each in (await scout.call("list_sessions"))["sessions"]] == [session]
        ended = await scout.call("update_session", session_id=session, status="terminated")
        assert ended["session"]["is_active"] is False
        assert scout.called == {*ORIGINAL, *OURS}


async def messages_are_read_and_found(scout: Agent, session: str, first: int) -> None:
    got = await scout.call("get_session", session_id=session)
    assert (got["session"]["id"], got["session"]["purpose"]) == (session, "the plan")
    assert (got["session"]["is_active"], got["message_count"], len(got["messages"])) == (True, 2, 2)

    page = await scout.call("get_messages", session_id=session, limit=1)
    assert (page["count"], page["total_count"], page["has_more"]) == (1, 2, True)
    assert (page["messages"][0]["id"], page["messages"][0]["content"]) == (first, "first")
    rest = await scout.call("get_messages", session_id=session, offset=1, visibility_filter="private")
    assert (rest["count"], rest["total_count"], rest["has_more"]) == (0, 1, False)
    rest = await scout.call("get_messages", session_id=session, offset=1)
    assert (rest["messages"][0]["parent_message_id"], rest["has_more"]) == (first, False)

    found = await scout.call("search_context", session_id=session, query="needle", search_scope="private")
    assert [hit["message"]["content"] for hit in found["results"]] == ["second"]
    assert {"score", "match_preview", "relevance"} <= found["results"][0].keys()
    assert (found["query"], found["threshold"], found["message_count"]) == ("needle", 60, 1)
    assert (found["cache_hit"], type(found["search_time_ms"])) == (False, float)
    without = await scout.call("search_context", session_id=session, query="needle", search_metadata=False)
    assert without["results"] == []

    sent = await scout.call("search_by_sender", session_id=session, sender="scout", limit=1)
    assert (sent["sender"], sent["count"], sent["messages"][0]["content"]) == ("scout", 1, "second")
    for start, end, count in (("2020-01-01", "2999-12-31", 2), ("2020-01-01T00:00:00", "2020-12-31", 0)):
        within = await scout.call("search_by_timerange", session_id=session, start_time=start, end_time=end)
        assert (within["count"], within["timerange"].keys()) == (count, {"start", "end"})


async def memory_is_kept_and_read(scout: Agent, session: str) -> None:
    value = {"n": [1, None, "123"]}
    stored = await scout.call("set_memory", key="k", value=value, expires_in="3600", metadata={"m": 1})
    assert (stored["scope"], stored["session_scoped"]) == ("global", False)
    kept = datetime.fromisoformat(stored["stored_at"]).timestamp() + 3600
    assert stored["expires_at"] == pytest.approx(kept)
    bound = await scout.call("set_memory", key="k", value={}, session_id=session, expires_in=0)
    assert (bound["scope"], bound["session_scoped"], bound["expires_at"]) == ("session", True, None)
    again = await scout.call("set_memory", key="k", value={}, overwrite=False)
    assert (again["success"], again["code"]) == (False, "KEY_EXISTS")

    got = await scout.call("get_memory", key="k")
    assert (got["value"], got["metadata"], got["expires_at"]) == (value, {"m": 1}, stored["expires_at"])
    assert (await scout.call("get_memory", key="k", session_id=session))["value"] == {}
    listed = await scout.call("list_memory", session_id="all", prefix="k", limit=1)
    assert (listed["count"], listed["scope_filter"]) == (1, "all")
    assert (await scout.call("list_memory", prefix="other"))["entries"] == []
    await scout.call("set_memory", key="gone", value={})
    assert (await scout.call("delete_memory", key="gone"))["existed"] is True


async def resources_are_read(scout: Agent, session: str) -> None:
    held = await read(scout.client, f"session://{session}")
    assert (held["session"]["id"], held["session"]["is_active"]) == (session, True)
    assert held["statistics"].keys() >= {"message_count", "visible_message_count", "unique_agents"}
    assert held["resource_info"]["requesting_agent"] == "scout"
    own = await read(scout.client, "agent://scout/memory")
    assert own["memory"]["global"]["k"]["value"] == {"n": [1, None, "123"]}
    assert own["memory"]["global"]["k"]["metadata"] == {"m": 1}
    assert type(own["memory"]["global"]["k"]["expires_at"]) is float
    assert own["memory"]["sessions"][session]["k"]["value"] == {}
    assert own["statistics"] == {"global_keys": 1, "session_scopes": 1, "total_entries": 2}
    names = {each.uri: each.name for each in (await scout.client.list_resources()).resources}
    assert names[f"session://{session}"] == "Session: the plan"


async def test_a_token_in_an_argument_is_refused_and_says_where_identity_comes_from(tmp_path: Path) -> None:
    async with agent(tmp_path) as scout:
        token = {"auth_token": "sct_1"}
        told = await scout.call("get_session", session_id="s", **token)
        assert (told["code"], told["details"]) == ("VALIDATION_ERROR", {"field": "auth_token"})
        assert "comes from your connection" in told["error"]
