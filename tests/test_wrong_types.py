"""Arguments of every request with every JSON type in every place: each is taken, or refused by its name.

The places are found in the requests' structs (`support.wrong_types`), so a new request is among them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import CODE, greenroom
from support.api import posted
from support.keyed import bearer, create_key, premises
from support.wrong_types import VALUES, Place, places

from greenroom.actors import API_REQUESTS, REQUESTS
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
    """Check that an answer is what somebody is told who gives a value in a place."""
    code, field = answer.get("code"), str(answer.get("details", {}).get("field", ""))
    assert code != "INTERNAL_ERROR", (place, value, answer)
    if code == "SERIALIZATION_ERROR" or not place.takes(value):
        assert code in {"VALIDATION_ERROR", "SERIALIZATION_ERROR", "VALUE_TOO_LARGE"}, (place, value, answer)
        assert field, (place, value, answer)
        assert place.path.startswith(field) or field.startswith(place.path), (place, value, answer)
        assert field in answer.get("error", answer.get("detail")), (place, value, answer)


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


async def called(client: McpClient, tool: str, arguments: str, more: str = "") -> dict[str, Any]:
    """Return what a tool answers to arguments as they are written."""
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}\n'
    await client.send_bytes((line % (tool, arguments, more)).encode())
    answer = await client.receive()
    assert "result" in answer, (tool, arguments, answer)
    told: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
    return told


def places_of(tool: str) -> Iterator[Place]:
    """Return the places of the arguments of a tool, of today's form and of the older one."""
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
