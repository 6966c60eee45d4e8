"""The profile for older clients of shared sessions: what their calls may say, what their answers have."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from harness import greenroom

from greenroom.testing import MODERN_META, START, McpClient

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("mcp.profiles")

OLDER = ("shared-context",)
PATHS = {"ours": {}, "sdk": {"task": None}}
"""A member that no request has makes it one for the SDK, which passes it over."""


async def begun(client: McpClient, era: str) -> None:
    if era == "modern":
        client.meta = MODERN_META
    else:
        await client.initialize()


async def called(client: McpClient, path: str, tool: str, **arguments: Any) -> tuple[dict[str, Any], Any]:
    """Return what a tool answers, and the result around it."""
    params = {"name": tool, "arguments": arguments, **PATHS[path]}
    result = (await client.request("tools/call", params))["result"]
    return json.loads(result["content"][0]["text"]), result


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_every_answer_says_when_it_was_made(tmp_path: Path, era: str, path: str) -> None:
    now = [START]

    def clock() -> int:
        now[0] += 1
        return now[0] * 1_000

    for profiles in (("core",), OLDER):
        async with greenroom(tmp_path, profiles=profiles, now=clock) as client:
            await begun(client, era)
            answers = [
                await called(client, path, "create_session", purpose="p"),
                await called(client, path, "list_memories"),
                await called(client, path, "set_memory", key="k", value=1),
                await called(client, path, "get_memory", key="unknown"),
                await called(client, path, "get_memory", key=7),
            ]
            for uri in ("agent://tester/memory", "session://" + answers[0][0]["session_id"]):
                read = (await client.request("resources/read", {"uri": uri, **PATHS[path]}))["result"]
                answers.append((json.loads(read["contents"][0]["text"]), read))
            listed = (await client.request("resources/list", {**PATHS[path]}))["result"]
        times = [result["_meta"]["greenroom/at"] for _, result in answers]
        assert times == sorted(set(times)), "each is made at a moment of its own"
        assert listed["_meta"]["greenroom/at"] > times[-1]
        for body, result in answers:
            at = result["_meta"]["greenroom/at"]
            assert body.get("timestamp") == (at if profiles == OLDER else None)


async def test_a_time_that_means_something_else_stays(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=OLDER) as client:
        await client.initialize()
        await client.call("create_session", purpose="p", session_id="s")
        added = await client.call("add_message", session_id="s", content="c", idempotency_key="once")
        read = await client.call("get_messages", session_id="s")
        assert read["messages"][0]["timestamp"] == added["timestamp"]
        again, around = await called(
            client, "ours", "add_message", session_id="s", content="c", idempotency_key="once"
        )
    assert again == added
    assert around["_meta"]["greenroom/at"] > added["timestamp"], "an answer that is repeated is made now"


@pytest.mark.parametrize("path", PATHS)
async def test_parameters_of_the_older_form_are_listed_and_taken(tmp_path: Path, path: str) -> None:
    async with greenroom(tmp_path, profiles=OLDER) as client:
        await client.initialize()
        tools = (await client.request("tools/list", PATHS[path]))["result"]["tools"]
        listed = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
        assert [name for name, parameters in listed.items() if "auth_token" not in parameters] == [
            "list_sessions", "update_session", "delete_memory",
        ]  # fmt: skip
        assert listed["get_messages"]["auth_token"]["type"] == "string"
        assert None not in listed["get_messages"]["visibility_filter"]["enum"]
        assert listed["set_memory"]["expires_in"]["type"] == "integer"

        async def call(tool: str, **arguments: Any) -> Any:
            return (await called(client, path, tool, auth_token=None, **arguments))[0]

        await call("create_session", purpose="p", session_id="s", metadata=None)
        await call("add_message", session_id="s", content="c", metadata=None, parent_message_id=None)
        page = await call("get_messages", session_id="s", visibility_filter=None, offset=0)
        assert (page["count"], page["total_count"], page["has_more"]) == (1, 1, False)
        found = await call("search_context", session_id="s", query="c")
        assert (found["cache_hit"], found["search_time_ms"] >= 0) == (False, True)
        for given, lasts in (("3600", 3600), (3600, 3600), ("0", None), (0, None), (None, None)):
            stored = await call("set_memory", key="k", value={"a": 1}, expires_in=given)
            since = datetime.fromisoformat(stored["stored_at"]).astimezone(UTC).timestamp()
            ends = None if lasts is None else pytest.approx(since + lasts)
            assert stored["expires_at"] == ends
            assert (await call("get_memory", key="k"))["expires_at"] == ends
            assert (await call("list_memory"))["entries"][0]["expires_at"] == ends


@pytest.mark.parametrize("path", PATHS)
async def test_the_nullable_form_lists_null_for_parameters_of_the_older_form(
    tmp_path: Path, path: str
) -> None:
    async with greenroom(tmp_path, profiles=OLDER, schemas="nullable") as client:
        await client.initialize()
        tools = (await client.request("tools/list", PATHS[path]))["result"]["tools"]
        listed = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
        assert listed["get_messages"]["auth_token"]["type"] == ["string", "null"]
        assert None in listed["get_messages"]["visibility_filter"]["enum"]
        assert listed["set_memory"]["expires_in"]["type"] == ["integer", "string", "null"]


@pytest.mark.promise("mcp.limits")
async def test_what_the_older_form_does_not_take_is_refused_in_words(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=OLDER) as client:
        await client.initialize()
        for token in ("8061724", 8061724, [8061724], {"8061724": "8061724"}, 8061724.5):
            refused = await client.call("get_memory", key="k", auth_token=token)
            assert (refused["code"], refused["details"]) == ("VALIDATION_ERROR", {"field": "auth_token"})
            assert "your connection" in refused["error"]
            assert "8061724" not in json.dumps(refused)
        for given in ("an hour", "-1", "31536001", "9" * 5_000, "1.5", ""):
            refused = await client.call("set_memory", key="k", value=1, expires_in=given)
            assert refused["error"].startswith("expires_in: it takes seconds from 0, for ever, to 31,536,000")
        refused = await client.call("set_memory", key="k", value=1, expires_in=-1)
        assert refused["error"] == "expires_in: it takes a whole number from 0 to 31,536,000 and got -1"


async def test_without_the_profile_nothing_of_it_is_taken(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("all",)) as client:
        await client.initialize()
        for tool, arguments in (
            ("list_memory", {"auth_token": None}),
            ("get_messages", {"session_id": "s", "visibility_filter": None}),
            ("set_memory", {"key": "k", "value": 1, "expires_in": 0}),
        ):
            assert (await client.call(tool, **arguments))["code"] == "VALIDATION_ERROR"
        stored = await client.call("set_memory", key="k", value=1, expires_in=5)
        assert datetime.fromisoformat(stored["expires_at"])


async def test_a_session_says_whether_it_is_active(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=OLDER) as client:
        await client.initialize()
        await client.call("create_session", purpose="p", session_id="s")
        for status, wanted in (("active", True), ("paused", True), ("terminated", False)):
            await client.call("update_session", session_id="s", status=status)
            read = (await client.request("resources/read", {"uri": "session://s"}))["result"]
            told = json.loads(read["contents"][0]["text"])
            assert told["session"]["is_active"] is wanted
            assert told["resource_info"]["requesting_agent"] == "tester"
            assert (await client.call("get_session", session_id="s"))["session"]["is_active"] is wanted


@pytest.mark.promise("mcp.limits")
async def test_a_message_of_a_wrong_length_is_told_the_limit_that_is_in_force(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        await client.call("create_session", purpose="p", session_id="s")
        for content, limit in (("", 1), ("c" * 10_001, 10_000), ("c" * 1_048_577, 10_000)):
            refused = await client.call("add_message", session_id="s", content=content)
            details = {"field": "content", "limit": limit, "size": len(content), "unit": "characters"}
            assert refused["details"] == details
            assert f"{limit:,}" in refused["error"]
            assert "1,048,576" not in refused["error"]


@pytest.mark.parametrize("path", PATHS)
async def test_resources_have_names_and_descriptions(tmp_path: Path, path: str) -> None:
    said: dict[tuple[str, ...], Any] = {}
    for profiles in (("core",), OLDER):
        async with greenroom(tmp_path, profiles=profiles) as client:
            await client.initialize()
            if not said:
                await client.call("create_session", purpose="the plan", session_id="s")
                await client.call("add_message", session_id="s", content="c")
            page = (await client.request("resources/list", {**PATHS[path]}))["result"]["resources"]
            bodies = []
            for each in page:
                read = (await client.request("resources/read", {"uri": each["uri"]}))["result"]
                bodies.append(json.loads(read["contents"][0]["text"]))
            said[profiles] = ([(each["name"], each["description"]) for each in page], bodies)
    memory = "Keys with values and metadata, by scope; no one else can read it"
    session = "Session of tester with 1 messages for you"
    listed, bodies = said[("core",)]
    preferences = "What is preferred in every tool; no one else can read it"
    savings = "Tokens of your user's answers by operation and day, beside those of a baseline"
    assert listed == [
        ("memory", memory),
        ("s", session),
        ("preferences", preferences),
        ("savings", savings),
    ]
    assert not any({"name", "description"} & body.keys() for body in bodies)
    listed, bodies = said[OLDER]
    assert listed == [
        ("Memory of tester", memory),
        ("Session: the plan", session),
        ("Preferences of user", preferences),
        ("What was saved", savings),
    ]
    assert [(body["name"], body["description"]) for body in bodies[:2]] == [
        ("Agent Memory: tester", "Private memory store with 0 entries"),
        ("Session: the plan", "Shared context session with 1 visible messages"),
    ]
