"""Every JSON type in every place of a request is taken, or refused by name.

The places are found in the requests' structs (`support.wrong_types`), so a new request is among them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import CODE, greenroom
from support.api import posted
from support.keyed import bearer, create_key, premises
from support.passports import begun, forged, member, signers, text_of
from support.wrong_types import VALUES, Place, places

from greenroom.actors import (
    API_REQUESTS,
    REQUESTS,
    Agent,
    ExportSession,
    FileUse,
    RecordContext,
    RestoreSession,
)
from greenroom.actors.memories.preferences.requests import KnownPreferences
from greenroom.actors.memories.writing.store_requests import Known
from greenroom.actors.sessions.passports import envelope, packing
from greenroom.runtime import Refusal
from greenroom.transports import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.passports import Opens

    from greenroom.testing import McpClient

pytestmark = [pytest.mark.slow, pytest.mark.promise("mcp.arguments")]

OF_THE_CONSOLE = sorted(API_REQUESTS.keys() - REQUESTS.keys())
FEW_VALUES = ("true", "1.5", '"\\ud800"', "[1.5]", '{"a": 1.5}')
NAMES = ("nobody", "", "a.b", "a` - at `$.limit", "`", "$", "[0]", "\0", "\ud800", "x" * 500, "a\nb")


def check_answer(answer: dict[str, Any], place: Place, value: str) -> None:
    """Check that an answer fits a value in a place."""
    code, field = answer.get("code"), str(answer.get("details", {}).get("field", ""))
    assert code != "INTERNAL_ERROR", (place, value, answer)
    if value == "null" or (value.startswith('"') and code != "SERIALIZATION_ERROR"):
        return  # it may count as what it says, or as not given; `test_coercion` has when
    if code == "SERIALIZATION_ERROR" or not place.takes(value):
        assert code in {"VALIDATION_ERROR", "SERIALIZATION_ERROR", "VALUE_TOO_LARGE"}, (place, value, answer)
        assert field, (place, value, answer)
        assert place.path.startswith(field) or field.startswith(place.path), (place, value, answer)
        assert field in str(answer.get("error", answer.get("detail"))), (place, value, answer)


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


async def called(client: McpClient, tool: str, arguments: str, more: str = "") -> dict[str, Any]:
    """Return what a tool answers to arguments as they are written."""
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}\n'
    await client.send_bytes((line % (tool, arguments, more)).encode())
    answer = await client.receive()
    assert "result" in answer, (tool, arguments, answer)
    reply: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
    return reply


def places_of(tool: str) -> Iterator[Place]:
    """Return the places of a tool's arguments, in today's form and the older one."""
    said = TOOLS[tool]
    yield from places(said.request if said.alias is None else said.alias.request)
    if (older := said.older) is not None:
        yield from places(older.request, () if older.told_by is None else (older.told_by,))


@pytest.mark.parametrize("tool", TOOLS)
async def test_every_argument_of_a_tool_is_taken_or_refused_by_its_name(
    tool: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with greenroom(tmp_path, "alice") as client:
        await client.initialize()
        for place in places_of(tool):
            for value in VALUES:
                check_answer(await called(client, tool, place.filled(value)), place, value)
    check_log(caplog)


@pytest.mark.parametrize("request_name", OF_THE_CONSOLE)
async def test_every_argument_of_a_console_request_is_taken_or_refused_by_its_name(
    request_name: str, open_at: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_at() as at, premises(at, rate_limit=1_000_000, rate_burst=1_000_000, reach=CODE) as here:
        shown = bearer(await create_key(at, "*", "admin"))
        guest = await here.guest()
        for place in places(API_REQUESTS[request_name]):
            for value in VALUES:
                answer = await posted(guest, request_name, place.filled(value).encode(), shown)
                assert answer.status < 500, (place, value, answer)
                check_answer(answer.json(), place, value)
    check_log(caplog)


KEPT: dict[str, tuple[str, type[msgspec.Struct], dict[str, Any]]] = {
    "store_memory": ("metadata", Known, {"content": "x"}),
    "update_memory": ("metadata", Known, {"key": "k", "content": "x"}),
    "set_preferences": ("preferences", KnownPreferences, {}),
}
"""Kept JSON, of which some members have a meaning."""
BIG = f',"a number beside it":{"9" * 30}}}'


@pytest.mark.parametrize("tool", KEPT)
@pytest.mark.parametrize("form", ["object", "text"])
async def test_every_known_member_of_kept_json_is_taken_or_refused_by_its_name(
    tool: str, form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    argument, struct, others = KEPT[tool]
    async with greenroom(tmp_path, "alice") as client:
        await client.initialize()
        await client.call("store_memory", key="k", content="x")
        for place in places(struct):
            whole = place._replace(path=f"{argument}.{place.path}")
            for value in VALUES:
                kept = place.filled(value)
                for given in (kept, kept[:-1] + BIG):
                    written = json.dumps(given) if form == "text" else given
                    arguments = json.dumps(others)[:-1] + (", " if others else "")
                    answer = await called(client, tool, f'{arguments}"{argument}": {written}}}')
                    if (argument, value) != ("preferences", "null"):  # which takes one away
                        check_answer(answer, whole, value)
    check_log(caplog)


@pytest.mark.parametrize("inside", ["", "filters"])
async def test_every_unknown_name_is_refused_by_it(
    inside: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with greenroom(tmp_path, "alice") as client:
        await client.initialize()
        for name in NAMES:
            given: dict[str, Any] = {name: 1, "limit": 5}
            arguments = json.dumps({inside: given, "limit": 5} if inside else given)
            answer = await called(client, "list_memories", arguments)
            assert answer["code"] in {"VALIDATION_ERROR", "SERIALIZATION_ERROR"}, answer
            if answer["code"] == "VALIDATION_ERROR":
                path = f"{inside}.{name}" if inside and name else name or "(an empty name)"
                assert answer["details"]["field"] == path[:100]
    check_log(caplog)


PROTOCOL = {
    "prompts/get": {"name": "write-tests", "arguments": {"path": "a.py", "max_tokens": "100"}},
    "prompts/list": {"cursor": "x"},
    "resources/list": {"cursor": "x"},
    "resources/templates/list": {"cursor": "x"},
    "tools/list": {"cursor": "x"},
    "resources/read": {"uri": "session://s"},
    "resources/subscribe": {"uri": "session://s"},
    "resources/unsubscribe": {"uri": "session://s"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "write-tests"},
        "argument": {"name": "path", "value": "a"},
        "context": {"arguments": {"path": "a"}},
    },
    "tools/call": {"name": "get_memory", "arguments": {"key": "k"}},
}
"""Requests of the protocol, in whose members wrong values are put."""
META = ("greenroom/deadline_ms", "progressToken", "io.modelcontextprotocol/clientInfo", "traceparent")
GIVEN = ("true", "1.5", "7", "[]", '["a"]', "{}", '{"a":1}', '"\\ud800"', '"\\u0000"', '""', "null", "1e400")


def members_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to every member, and to the first element of every array."""
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for name, part in parts:
        yield (*path, name)
        yield from members_of(part, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """Return a value with another one at the end of a way."""
    if not path:
        return by
    if isinstance(value, list):
        return [replaced(value[0], path[1:], by), *value[1:]]
    return {**value, path[0]: replaced(value.get(path[0], {}), path[1:], by)}


@pytest.mark.parametrize("method", PROTOCOL)
async def test_every_member_of_the_protocol_is_taken_or_refused(
    method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    params = PROTOCOL[method]
    paths = [*members_of(params), *(("_meta", name) for name in META), ("_meta",)]
    async with greenroom(tmp_path, "alice") as client:
        await client.initialize()
        for path in paths:
            for value in GIVEN:
                if path[-1] == "greenroom/deadline_ms" and value in {"1.5", "7"}:
                    continue  # so little time may be over before the answer
                given = json.dumps(replaced(params, path, "\x01")).replace('"\\u0001"', value)
                await client.send_bytes(
                    f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{given}}}\n'.encode()
                )
                answer = await client.receive()
                while "id" not in answer:  # a notification of what it subscribed to
                    answer = await client.receive()
                error = answer.get("error", {"code": -32602})
                assert error["code"] in {-32602, -32002}, (path, value, answer)
    check_log(caplog)


ANYTHING: tuple[Any, ...] = (None, True, -1, 1.5, 2**70, "", "text", "\0", [], [None], {}, {"a": {}})


async def test_every_member_of_a_passport_is_taken_or_refused(
    open_at: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_at() as at:
        agent = member(at.runtime, trusted=(signers().name,))
        session_id = await begun(agent, "hello")
        await agent.ask(RecordContext(session_id=session_id, files_accessed=[FileUse(path="a.py")]))
        text = await text_of(agent, await agent.ask(ExportSession(session_id=session_id)))
        document = json.loads(text)
        payload = json.loads(packing.unpack(envelope.read(text)[0]))
        outcomes = [await redeemed(agent, text)]
        for path in members_of(document):
            for value in ANYTHING:
                changed = replaced(document, path, value)
                unsigned = path[0] == "signature" or value == 2**70  # which has no canonical form
                given = json.dumps(changed) if unsigned else forged(text, signers(), **changed)
                outcomes.append(await redeemed(agent, given))
        for path in members_of(payload):
            for value in ANYTHING:
                content = json.dumps(replaced(payload, path, value)).encode()
                outcomes.append(await redeemed(agent, forged(text, signers(), **packed(document, content))))
        assert outcomes[0] == "taken"
        assert outcomes.count("PASSPORT_INVALID") > len(outcomes) / 4
    check_log(caplog)


def packed(document: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return the members of a passport that hold its content."""
    made = packing.pack(content, document["passport_id"])
    members = {"compressed_context": made.data, "compression_ratio": made.ratio}
    return members | {"content": msgspec.to_builtins(made.content)}


async def redeemed(agent: Agent, passport: str) -> str:
    """Return what came of a passport: a code, or that it was taken."""
    try:
        await agent.ask(RestoreSession(passport=passport))
    except Refusal as refusal:
        if refusal.details.get("field") not in {"passport", "passphrase"}:
            raise
        return refusal.code
    return "taken"


async def test_what_urls_headers_and_bodies_of_the_api_say_is_taken_or_refused(
    open_at: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    odd = ("", "%00", "%ff", "%ed%a0%80", "5", "null", "[]", "{}", "%22", "x" * 5_000, "%0a")
    async with open_at() as at, premises(at, rate_limit=1_000_000, rate_burst=1_000_000) as here:
        shown = bearer(await create_key(at, "*", "admin"))
        guest = await here.guest()
        targets = [
            f"{path}{name}={value}"
            for value in odd
            for path, name in (
                *(("/api/v1/resources?", name) for name in ("uri", "cursor", "as", "as_user", "nobody")),
                ("/api/v1/resources?uri=session://", "x"),
                ("/api/v1/resources?as=alice&", "as_project"),
                ("/api/v1/events?last=1&", "topic"),
            )
        ]
        for target in targets:
            await guest.send("GET", target, shown)
            answer = await guest.answer()
            assert answer.status < 500, (target, answer)
        for value in odd:
            for header in ("greenroom-as", "greenroom-as-user", "greenroom-as-project"):
                said = shown | {"greenroom-as": "alice", header: value}
                answer = await posted(guest, "list_sessions", {}, said)
                assert answer.status < 500, (header, value, answer)
        for value in VALUES:
            for body in (f'{{"key":{value}}}', f'{{"link":{value}}}', value, f'{{"key":"x","link":{value}}}'):
                answer = await posted(guest, "login", body.encode(), {})
                assert answer.status < 500, (body, answer)
    check_log(caplog)
