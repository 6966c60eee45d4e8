"""Clients that mean harm: each costs only itself, over every transport.

What a transport itself must bear, such as a handshake that comes a byte a second, is shown with it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.abuse import TRANSPORTS, arena
from support.desk import Desk
from trio.testing import wait_all_tasks_blocked

from greenroom.transports import Limits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("autojump_clock")]

MANY = 1_000
DEEP = b"[" * 1_000_000

over_each = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.mark.promise("mcp.abuse", "runtime.deadlines")
@over_each
async def test_a_thousand_requests_that_are_all_taken_back_leave_nothing(transport: str) -> None:
    desk = Desk()
    async with arena(transport, desk) as come:
        villain, neighbour = await come(), await come()
        for round_ in range(2):  # their ids are free again
            desk.accepted.clear()
            desk.cancelled.clear()
            for number in range(MANY):
                await villain.call("hold", number, str(number))
            await wait_all_tasks_blocked()
            assert sorted(desk.accepted, key=int) == [str(number) for number in range(MANY)]
            await neighbour.is_served(round_)
            for number in range(MANY):
                await villain.cancel(number)
            await wait_all_tasks_blocked()
            assert len(desk.cancelled) == MANY
            if transport != "http":  # there each request that was taken back is answered so
                await villain.is_served()
        await neighbour.is_served()


@pytest.mark.quick
@pytest.mark.promise("mcp.abuse", "runtime.bounded")
@over_each
async def test_requests_in_flight_are_limited_for_each_client_alone(transport: str) -> None:
    desk = Desk()
    async with arena(transport, desk, Limits(in_flight=10)) as come:
        villain, neighbour = await come(), await come()
        for number in range(100):
            await villain.call("hold", number, str(number))
        await wait_all_tasks_blocked()
        assert len(desk.accepted) == 10
        for number in range(100):
            await neighbour.is_served(number)
        desk.released.set()
        answers = [await villain.receive() for _ in range(100)]
        assert sorted(answer["id"] for answer in answers) == list(range(100))


@pytest.mark.promise("mcp.abuse")
@over_each
async def test_one_id_for_a_thousand_requests_is_one_request(transport: str) -> None:
    desk = Desk()
    async with arena(transport, desk) as come:
        villain, neighbour = await come(), await come()
        await villain.call("hold", "same", "first")
        await wait_all_tasks_blocked()
        for _ in range(MANY):
            await villain.call("hold", "same", "other")
        refusals = [await villain.receive() for _ in range(MANY)]
        assert {(each["id"], each["error"]["code"]) for each in refusals} == {(None, -32600)}
        await neighbour.call("hold", "same", "of another client")  # ids are a client's own
        await wait_all_tasks_blocked()
        assert [text for text in desk.accepted if text != "yes"] == ["first", "of another client"]
        desk.released.set()
        assert text_of(await villain.receive()) == "first"
        assert text_of(await neighbour.receive()) == "of another client"


@pytest.mark.promise("mcp.abuse")
@over_each
async def test_responses_to_nothing_are_heard_by_nobody(transport: str) -> None:
    desk = Desk()
    async with arena(transport, desk) as come:
        villain, neighbour = await come(), await come()
        await villain.call("hold", 1, "open")
        outcomes: list[dict[str, Any]] = [
            {"result": {}},
            {"error": {"code": 1, "message": "x"}},
            {"result": 7},
        ]
        for number in range(MANY):
            await villain.send({"id": number % 3, **outcomes[number % 3]})
            await villain.send({"id": None, **outcomes[1]})
        await neighbour.is_served()
        desk.released.set()
        assert text_of(await villain.receive()) == "open"
        await villain.is_served()


@pytest.mark.promise("mcp.abuse", "mcp.hostile-frames")
@over_each
async def test_a_megabyte_of_brackets_is_refused_each_time(transport: str) -> None:
    desk = Desk()
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":'
    async with arena(transport, desk) as come:
        villain, neighbour = await come(), await come()
        for number, begin in enumerate([b"", b'{"a":', b'{"jsonrpc":"2.0","id":1,"params":', call % 3]):
            for end in (b"", b"]" * len(DEEP)):
                await villain.send_bytes(begin + DEEP + end)
                await neighbour.is_served(number)
                refusal = await villain.receive()
                assert refusal["error"]["code"] in {-32700, -32600, -32602}
                assert refusal["id"] in {None, 1, 3}
        assert desk.accepted == ["yes"] * 8
        await villain.is_served()


def text_of(answer: dict[str, Any]) -> str:
    told: str = json.loads(answer["result"]["content"][0]["text"])["text"]
    return told
