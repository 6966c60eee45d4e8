"""Who lacks a scope is denied, whatever was sent, at every door, on record."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import AuditTrail, House, refused
from support.api import browser, posted
from support.console import Shown
from support.keyed import bearer, create_key, premises

from greenroom.actors import (
    API_REQUESTS,
    AddMessage,
    Agent,
    GetPrompt,
    MergeMemories,
    Principal,
    SearchContext,
    SetMemory,
    StartSession,
)
from greenroom.actors.core.auth.scopes import ADMIN, AUDIT, SCOPES, needed_for_request
from greenroom.testing import MODERN_META, mcp_client
from greenroom.transports import TOOLS

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.testing import McpClient

pytestmark = [pytest.mark.slow, pytest.mark.promise("identity.scope-first")]

DEEP = "[" * 150 + "]" * 150
OBJECTS = (
    *("{}", '{"nobody":1}', '{"session_id":"s"}', '{"session_id":"a b"}', '{"key":[],"query":{}}'),
    *('{"a":1,"a":2}', '{"a":"\\ud800"}', '{"a":1e400}', f'{{"a":{DEEP}}}'),
)
ARGUMENTS = (*OBJECTS, "null", "[]", "true", "5", '"{}"')
"""Arguments, from some that a tool may take to what is none at all."""
AROUND = (
    "",
    ',"_meta":{"greenroom/deadline_ms":"soon"}',
    ',"_meta":{"progressToken":[]}',
    ',"_meta":7',
    ',"task":{"ttl":"x"}',
)
"""What may stand beside them; all but the first leads to the SDK."""
OFTEN: dict[str, Any] = {"rate_limit": 1_000_000, "rate_burst": 1_000_000}
BODIES = (*(each.encode() for each in ARGUMENTS), b"", b"{", b"\xff", b'{"a":NaN}', b"{'a':1}")


def without(scope: str) -> frozenset[str]:
    return frozenset(SCOPES) - {scope}


def holder(at: House, *scopes: str) -> Agent:
    return at.agent("alice", scopes=frozenset(scopes))


def lacking(at: House, scope: str) -> Agent:
    return Agent(at.runtime, Principal(agent_id="alice", user="ann", scopes=without(scope)))


def call_of(tool: str, arguments: str, around: str = "", number: int = 1) -> bytes:
    """Return the line of a call as it is written."""
    return request_of("tools/call", f'{{"name":"{tool}","arguments":{arguments}{around}}}', number)


def request_of(method: str, params: str, number: int = 1) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}\n'.encode()


async def denied(client: McpClient, tool: str, arguments: str, around: str, scope: str) -> None:
    """Check that a call is denied, as a failure of the tool."""
    await client.send_bytes(call_of(tool, arguments, around))
    answer = await client.receive()
    denial = json.loads(answer["result"]["content"][0]["text"]) if "result" in answer else answer
    assert denial.get("code") == "PERMISSION_DENIED", (tool, arguments, around, answer)
    assert denial["details"] == {"scope": scope}
    assert answer["result"]["isError"] is True


async def denials(at: House) -> Counter[tuple[str, str | None]]:
    """Return the actions that were denied, each with its session."""
    rows = await at.runtime.query(AuditTrail())
    return Counter((row.action, row.session) for row in rows if row.outcome == "denied")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_tool_is_denied_whatever_it_is_given(scope: str, enter: Enter) -> None:
    tools = [name for name, tool in TOOLS.items() if tool.scope == scope]
    async with enter() as at, mcp_client(lambda _: lacking(at, scope)) as client:
        await client.initialize()
        for tool in tools:
            for arguments in ARGUMENTS:
                for around in AROUND:
                    await denied(client, tool, arguments, around, scope)
        found = await denials(at)
        for tool in tools:
            alias = TOOLS[tool].alias
            action = tool if alias is None else alias.successor
            assert found[action, "s"] * (len(ARGUMENTS) - 1) == found[action, None], tool
        assert found.total() == len(tools) * len(ARGUMENTS) * len(AROUND)


async def test_a_tool_is_denied_in_the_later_era_and_while_the_sdk_shakes_hands(enter: Enter) -> None:
    around = f',"_meta":{json.dumps(MODERN_META)}'
    late = around[:-1] + ',"greenroom/deadline_ms":-1}'
    async with enter() as at, mcp_client(lambda _: lacking(at, "memory:read")) as client:
        for arguments in ARGUMENTS:
            for beside in (around, late, around + ',"cursor":5'):
                await denied(client, "get_memory", arguments, beside, "memory:read")
    async with enter() as at, mcp_client(lambda _: lacking(at, "memory:read")) as client:
        info = {"name": "t", "version": "1", "odd": 1}
        said = {"protocolVersion": "2025-11-25", "capabilities": {"odd": {}}, "clientInfo": info, "odd": [1]}
        await client.send({"id": 1, "method": "initialize", "params": said})
        await client.send_bytes(call_of("get_memory", '{"key":5}', number=2))
        answers = [await client.receive(), await client.receive()]
        assert [answer["id"] for answer in answers] == [1, 2]
        assert json.loads(answers[1]["result"]["content"][0]["text"])["code"] == "PERMISSION_DENIED"


async def test_who_has_the_scope_hears_what_is_wrong_with_arguments_and_with_what_is_around_them(
    enter: Enter,
) -> None:
    async with enter() as at, mcp_client(lambda _: at.agent("alice")) as client:
        await client.initialize()
        for arguments in ("[]", "true", "5", '"{}"'):
            await client.send_bytes(call_of("get_memory", arguments))
            error = (await client.receive())["error"]
            assert (error["code"], error["message"].split(",")[0]) == (-32602, "arguments must be an object")
        answer = await client.request("tools/call", {"name": "no_such_tool", "arguments": []})
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["prompts/list", "prompts/get"])
async def test_prompts_are_denied_whatever_they_are_given(method: str, enter: Enter) -> None:
    async with enter() as at, mcp_client(lambda _: holder(at, "server:read")) as client:
        await client.initialize()
        params = [f'{{"name":"write-tests","arguments":{given}}}' for given in ARGUMENTS]
        for given in (*params, "{}", '{"name":5}', '{"cursor":5}', '{"_meta":7}'):
            await client.send_bytes(request_of(method, given))
            answer = await client.receive()
            assert answer["error"]["data"]["code"] == "PERMISSION_DENIED", (given, answer)


async def test_the_api_denies_a_request_whatever_its_body_is(enter: Enter) -> None:
    async with enter() as at, premises(at, **OFTEN) as here:
        keys = {scope: bearer(await create_key(at, *without(scope))) for scope in SCOPES}
        guest = await here.guest()
        for name in API_REQUESTS:
            scope = needed_for_request(name)
            for body in BODIES:
                answer = await posted(guest, name, body, keys[scope])
                assert (answer.status, answer.json()["code"]) == (403, "PERMISSION_DENIED"), (name, body)
                assert answer.json()["details"] == {"scope": scope}
            said = {**keys[scope], "content-type": "text/plain"}
            answer = await posted(guest, name, BODIES[0], said)
            assert (answer.status, answer.json()["code"]) == (403, "PERMISSION_DENIED"), name
        found = await denials(at)
        assert found.total() == len(API_REQUESTS) * (len(BODIES) + 1)


async def test_sockets_deny_a_tool_whatever_it_is_given(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, *without("memory:read"))
        await here.settled()
        websocket, session = await here.websocket(key), await here.session(key)
        given: tuple[Any, ...] = ({}, {"key": 5}, {"nobody": "\0"}, [], 5, "x", True)
        for arguments in given:
            params = {"name": "get_memory", "arguments": arguments}
            await websocket.request("tools/call", params)
            answers = [await websocket.receive()]
            await session.request("tools/call", params)
            answers.append((await session.answer()).json())
            for answer in answers:
                denial = json.loads(answer["result"]["content"][0]["text"])
                assert denial["code"] == "PERMISSION_DENIED", (arguments, answer)


async def test_who_looks_on_is_denied_what_would_change_something_whatever_is_sent(enter: Enter) -> None:
    async with enter() as at, premises(at, **OFTEN) as here:
        shown = bearer(await create_key(at, ADMIN)) | {"greenroom-as": "alice"}
        guest = await here.guest()
        for body in BODIES:
            for name in ("add_message", "merge_memories", "export_session"):
                answer = await posted(guest, name, body, shown)
                assert (answer.status, answer.json()["code"]) == (403, "PERMISSION_DENIED"), (name, body)


@pytest.mark.parametrize(
    ("scope", "page"),
    [
        (AUDIT, "audit?after=yesterday&outcome=x"),
        (AUDIT, "audit/export?after=yesterday"),
        ("memory:read", "map?age=x&kind=y&page=z"),
        ("knowledge:read", "knowledge/all:x?kind=%00&cursor=y"),
        ("knowledge:read", "knowledge/%00"),
    ],
)
async def test_a_page_is_denied_whatever_its_address_says(scope: str, page: str, enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        visitor = await browser(here, await create_key(at, *without(scope)))
        await visitor.guest.send("GET", f"/{page}", visitor.headers)
        shown = Shown(await visitor.guest.answer())
        assert shown.status == 403, shown.text
        assert scope in shown.text


def unchecked(request_type: type[Any], **fields: Any) -> Any:
    """Return a request with values that building it would refuse, as `msgspec.structs.replace` makes one."""
    a_memory = "00000000-0000-8000-8000-000000000000"
    fitting: dict[Any, dict[str, Any]] = {
        AddMessage: {"session_id": "s", "content": "x"},
        SearchContext: {"session_id": "s", "query": "x"},
        SetMemory: {"key": "k", "value": msgspec.Raw(b"1")},
        StartSession: {},
        GetPrompt: {"name": "x"},
        MergeMemories: {"memory_id": a_memory, "others": [a_memory]},
    }
    return msgspec.structs.replace(request_type(**fitting[request_type]), **fields)


@pytest.mark.quick
async def test_programs_are_denied_a_request_whatever_is_in_it(enter: Enter) -> None:
    wrong: Any = 5
    async with enter() as at:
        for request, scope in (
            (unchecked(AddMessage, session_id="a b", content=""), "sessions:write"),
            (unchecked(SearchContext, session_id=wrong, query=""), "sessions:read"),
            (unchecked(SetMemory, key="/", value=wrong), "memory:write"),
            (unchecked(StartSession, restore_from=wrong), "sessions:write"),
            (
                unchecked(MergeMemories, memory_id="", others=[], expected_versions={"x": wrong}),
                "memory:write",
            ),
        ):
            with refused("PERMISSION_DENIED", scope=scope):
                await lacking(at, scope).ask(request)
        with refused("PERMISSION_DENIED"):
            await holder(at).ask(unchecked(GetPrompt, name="x" * 500, arguments=wrong))
