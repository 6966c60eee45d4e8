"""While the SDK is imported, or cannot be, a client is served with all that needs no judgment of the SDK."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

import pytest
import trio
from harness import PATIENCE
from support.desk import NOTES, Desk
from support.https import place
from trio.testing import wait_all_tasks_blocked

from greenroom.testing import McpClient, mcp_client, mcp_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import ModuleType

CHECKS = "greenroom.transports.mcp.frames.checks"
ODD = {"odd": 1}

pytestmark = pytest.mark.promise("mcp.sdk-on-demand")


class Gate(MetaPathFinder):
    """Holds the import of what the SDK says until the test opens it; fails it as often as the test says."""

    def __init__(self) -> None:
        self.failures = 0
        self.reached = threading.Event()
        self._opened = threading.Event()

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == CHECKS:
            self.reached.set()
            self._opened.wait(PATIENCE)
            if self.failures:
                self.failures -= 1
                raise ImportError(f"{fullname} is broken")
        return None

    def open(self) -> None:
        self._opened.set()

    async def held(self) -> None:
        """Wait until the import is under way."""
        await trio.to_thread.run_sync(self.reached.wait, PATIENCE)
        assert self.reached.is_set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.delitem(sys.modules, CHECKS, raising=False)
    monkeypatch.setattr(sys, "meta_path", [gate, *sys.meta_path])
    yield gate
    gate.open()


@asynccontextmanager
async def connected(gate: Gate, desk: Desk) -> AsyncIterator[McpClient]:
    with trio.fail_after(PATIENCE):
        try:
            async with mcp_client(desk.open, NOTES) as client:
                await client.initialize()
                yield client
        finally:
            gate.open()


async def send_call(client: McpClient, text: str, *, tool: str = "echo", odd: bool = False) -> int:
    params = {"name": tool, "arguments": {"text": text}}
    return await client.send_request("tools/call", params | (ODD if odd else {}))


async def answers(client: McpClient, count: int) -> dict[Any, dict[str, Any]]:
    received = [await client.receive() for _ in range(count)]
    return {each["id"]: each for each in received}


async def test_what_has_no_order_is_answered_during_the_import(gate: Gate) -> None:
    desk = Desk()
    async with connected(gate, desk) as client:
        odd = await send_call(client, "odd", odd=True)
        await gate.held()
        assert (await client.request("ping"))["result"] == {}
        assert (await client.request("tools/list"))["result"]["tools"]
        behind = await send_call(client, "behind")
        assert "result" in await client.request("ping")
        assert desk.accepted == []
        gate.open()
        assert (await answers(client, 2)).keys() == {odd, behind}
        assert desk.accepted == ["odd", "behind"]


async def test_what_nothing_orders_holds_nobody_up(gate: Gate) -> None:
    desk = Desk()
    async with connected(gate, desk) as client:
        odd = await client.send_request("prompts/list", ODD)
        await gate.held()
        behind = await send_call(client, "behind")
        assert (await client.receive())["id"] == behind
        gate.open()
        assert (await client.receive())["id"] == odd


async def test_calls_that_wait_for_the_import_can_be_cancelled(gate: Gate) -> None:
    desk = Desk()
    async with connected(gate, desk) as client:
        taken_back = [await send_call(client, str(number), odd=number != 1) for number in range(3)]
        await gate.held()
        last = await send_call(client, "last", odd=True)
        for each in reversed(taken_back):
            await client.send({"method": "notifications/cancelled", "params": {"requestId": each}})
        again = await client.send_request("ping")
        assert (await client.receive())["id"] == again
        gate.open()
        assert (await client.receive())["id"] == last
        assert desk.accepted == ["last"]


@pytest.mark.parametrize("large", [False, True])
async def test_arrivals_keep_their_order(gate: Gate, *, large: bool) -> None:
    desk = Desk()
    desk.big_text = "big"
    async with connected(gate, desk) as client:
        tool = "big" if large else "echo"
        ids = [await send_call(client, str(number), tool=tool, odd=number % 3 == 1) for number in range(9)]
        await gate.held()
        gate.open()
        assert (await answers(client, 9)).keys() == set(ids)
        assert desk.accepted == [str(number) for number in range(9)]


async def test_the_end_of_input_during_the_import_loses_nothing(gate: Gate) -> None:
    desk = Desk()
    async with connected(gate, desk) as client:
        ids = {await send_call(client, "odd", odd=True), await client.send_request("no/such/method")}
        await gate.held()
        ids.add(await send_call(client, "plain"))
        await client.end_input()
        gate.open()
        assert {each["id"] for each in await client.rest()} == ids
        assert desk.accepted == ["odd", "plain"]


async def test_a_stop_during_the_import_answers_what_had_come(gate: Gate) -> None:
    stop = trio.Event()
    desk = Desk()
    with trio.fail_after(PATIENCE):
        async with mcp_server(desk.open, NOTES, stop=stop) as server:
            client = server.connect()
            await client.initialize()
            ids = {await send_call(client, "odd", odd=True)}
            await gate.held()
            ids.add(await send_call(client, "plain"))
            await wait_all_tasks_blocked()
            stop.set()
            await wait_all_tasks_blocked()
            gate.open()
            assert {each["id"] for each in await client.rest()} == ids
            assert desk.accepted == ["odd", "plain"]


async def test_what_follows_an_introduction_waits_for_its_judgment(gate: Gate) -> None:
    desk = Desk()
    with trio.fail_after(PATIENCE):
        async with mcp_client(desk.open, NOTES) as client:
            info = {"name": "tester", "version": "1"}
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
            first = await client.send_request("initialize", hello | ODD)
            await client.send({"method": "notifications/initialized"})
            call, listing = await send_call(client, "early"), await client.send_request("tools/list")
            await gate.held()
            assert "result" in await client.request("ping")
            gate.open()
            answered = await answers(client, 3)
            assert answered.keys() == {first, call, listing}
            assert answered[first]["result"]["protocolVersion"] == "2025-06-18"
            assert all("result" in each for each in answered.values())


async def test_an_import_that_fails_is_an_error_and_is_tried_again(gate: Gate) -> None:
    desk = Desk()
    gate.failures = 1
    gate.open()
    async with connected(gate, desk) as client:
        refused = await client.request("tools/call", {"name": "echo", "arguments": {}} | ODD)
        assert refused["error"]["code"] == -32603
        assert "result" in await client.request("tools/call", {"name": "echo", "arguments": {}})
        assert "result" in await client.request("tools/call", {"name": "echo", "arguments": {}} | ODD)
        assert (await client.request("no/such/method"))["error"]["code"] == -32601


async def test_a_session_can_be_ended_during_the_import(gate: Gate) -> None:
    with trio.fail_after(PATIENCE):
        async with place(Desk()) as here:
            try:
                first = await here.client()
                guest, other, last = [await here.guest(session=first) for _ in range(3)]
                await first.request("tools/call", {"name": "echo", "arguments": {}} | ODD)
                await gate.held()
                await guest.call("echo", "behind")
                await wait_all_tasks_blocked()
                assert (await last.end_session()).status == 200
                for each in (first, guest):
                    assert (await each.answer()).json()["error"]["code"] in {-32000, -32800}
                await other.request("ping")
                assert (await other.answer()).status == 404
            finally:
                gate.open()


async def test_over_http_an_import_that_fails_holds_no_session_up(gate: Gate) -> None:
    gate.failures = 1
    gate.open()
    with trio.fail_after(PATIENCE):
        async with place(Desk()) as here:
            guest = await here.client()
            await guest.request("prompts/list", ODD)
            assert (await guest.answer()).json()["error"]["code"] == -32603
            await guest.request("ping")
            assert (await guest.answer()).json()["result"] == {}
