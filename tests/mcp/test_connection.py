"""One connection's promises: order, limits, deadlines, cancellation, ends. The door is the test's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trio
from support.desk import NOTES, Desk, Noted
from trio.testing import MockClock, memory_stream_one_way_pair, memory_stream_pair, wait_all_tasks_blocked

from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    DeadlineExceededError,
    IdempotencyConflictError,
    OverloadedError,
    Refusal,
    RuntimeClosedError,
    StorageFullError,
    StoreFailedError,
)
from greenroom.testing import MODERN_META, McpClient, mcp_client, mcp_server
from greenroom.transports import Limits
from greenroom.transports.auth.caller import fit_agent_id


@pytest.fixture
def desk() -> Desk:
    return Desk()


@asynccontextmanager
async def connected(desk: Desk, **options: Any) -> AsyncIterator[McpClient]:
    async with mcp_client(desk.open, NOTES, **options) as client:
        await client.initialize()
        yield client


def text(answer: dict[str, Any]) -> Any:
    return json.loads(answer["result"]["content"][0]["text"])


@pytest.mark.promise("mcp.pipelining")
async def test_a_thousand_pipelined_calls_arrive_in_order(desk: Desk) -> None:
    async with connected(desk) as client:
        for number in range(1_000):
            await client.send_call("echo", {"text": str(number)})
        answers = [await client.receive() for _ in range(1_000)]
    assert desk.accepted == [str(number) for number in range(1_000)]
    assert all(text(answer)["text"] == str(answer["id"] - 2) for answer in answers)


async def test_actors_have_their_turns_before_anybody_is_woken_for_them(desk: Desk) -> None:
    order: list[str] = []

    @contextmanager
    def held() -> Iterator[None]:
        order.append("held")
        yield
        order.append("woken")

    async with connected(desk, hold_dispatch=held, run_ready=lambda: order.append("turns")) as client:
        order.clear()
        await client.call("echo", text="hello")
    assert order[:3] == ["held", "turns", "woken"]


@pytest.mark.promise("mcp.pipelining")
async def test_a_call_that_never_reaches_the_door_holds_nobody_up(desk: Desk) -> None:
    async with connected(desk) as client:
        await client.send_call("unheard-of", {})
        await client.send_call("echo", {"text": 7})
        await client.send_call("echo", {}, **{"greenroom/deadline_ms": "soon"})
        await client.send({"id": 99, "method": "tools/call", "params": {"arguments": {}}})
        await client.send_call("echo", {"text": "through"})
        answers = {answer["id"]: answer for answer in [await client.receive() for _ in range(5)]}
    assert [answers[number]["error"]["code"] for number in (2, 4, 99)] == [-32602] * 3
    assert answers[3]["result"]["isError"]
    assert text(answers[5])["text"] == "through"


@pytest.mark.promise("runtime.bounded")
async def test_beyond_the_limit_in_flight_nothing_is_read(desk: Desk) -> None:
    async with connected(desk, limits=Limits(in_flight=10)) as client:
        for number in range(25):
            await client.send_call("hold", {"text": str(number)})
        await wait_all_tasks_blocked()
        assert len(desk.accepted) == 10
        desk.released.set()
        assert len([await client.receive() for _ in range(25)]) == 25


async def test_requests_in_flight_are_bounded_in_bytes(desk: Desk) -> None:
    async with connected(desk, limits=Limits(in_flight_bytes=10_000)) as client:
        for _ in range(25):
            await client.send_call("hold", {"text": "x" * 3_000})
        await wait_all_tasks_blocked()
        assert len(desk.accepted) == 4
        desk.released.set()
        assert len([await client.receive() for _ in range(25)]) == 25


@pytest.mark.promise("mcp.slow-reader")
async def test_a_client_that_does_not_read_is_not_read_from_and_costs_little(desk: Desk) -> None:
    reading = trio.Event()
    written = bytearray()
    to_server, source = memory_stream_one_way_pair()
    sink, from_server = memory_stream_one_way_pair()
    deliver = sink.send_all_hook
    assert deliver is not None

    async def deliver_when_read() -> None:
        await reading.wait()
        await deliver()

    sink.send_all_hook = deliver_when_read
    limits = Limits(unsent_bytes=75_000, large_answers=3)
    async with mcp_server(desk.open, NOTES, limits=limits) as server:
        streams = trio.StapledStream(to_server, from_server), trio.StapledStream(sink, source)
        client = server.connect(streams)
        await client.send({"id": 0, "method": "server/discover", "params": {"_meta": MODERN_META}})
        client.meta = MODERN_META
        for number in range(60):
            await client.send_call("big", {"text": str(number)})
        await wait_all_tasks_blocked()
        assert len(desk.accepted) < 8  # one answer is 100 kB
        reading.set()
        await client.receive()
        for _ in range(60):
            written += (await client.receive_line())[:1]
        await client.end_input()
    assert len(written) == 60


async def test_a_client_that_vanishes_ends_the_server_without_an_error(desk: Desk) -> None:
    ours, theirs = memory_stream_pair()
    async with mcp_server(desk.open, NOTES) as server:
        client = server.connect((ours, theirs))
        await client.initialize()
        await client.send_call("hold", {"text": "work"})
        await wait_all_tasks_blocked()
        await ours.receive_stream.aclose()
        await client.send_request("ping")
        await wait_all_tasks_blocked()
        assert desk.cancelled == ["work"]


@pytest.mark.promise("mcp.end-of-input")
async def test_at_the_end_of_input_open_requests_are_still_answered(desk: Desk) -> None:
    async with connected(desk) as client:
        await client.send_call("hold", {"text": "last"})
        await client.send_bytes(b'{"jsonrpc":"2.0","id":"no line end","method":"ping"}')
        await client.end_input()
        assert (await client.receive())["id"] == "no line end"
        await wait_all_tasks_blocked()
        desk.released.set()
        assert [text(answer)["text"] for answer in await client.rest()] == ["last"]


async def test_a_frame_cut_off_by_the_end_of_input_is_not_carried_out(desk: Desk) -> None:
    async with connected(desk) as client:
        await client.send_bytes(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"')
        await client.end_input()
        (answer,) = await client.rest()
    assert answer["error"]["code"] == -32700
    assert desk.accepted == []


async def test_the_end_of_input_does_not_wait_for_ever(desk: Desk, autojump_clock: MockClock) -> None:
    async with connected(desk, limits=Limits(drain=5)) as client:
        await client.send_call("hold", {"text": "slow"})
        await client.end_input()
        (answer,) = await client.rest()
    assert answer["error"]["message"] == "Connection closed"
    assert autojump_clock.current_time() == pytest.approx(5, abs=0.1)


@pytest.mark.promise("mcp.signals")
async def test_stopping_reads_no_further_but_answers(desk: Desk, autojump_clock: MockClock) -> None:
    stop = trio.Event()
    async with connected(desk, stop=stop) as client:
        await client.send_call("hold", {"text": "open"})
        await wait_all_tasks_blocked()
        stop.set()
        await wait_all_tasks_blocked()
        await client.send_call("echo", {"text": "too late"})
        desk.released.set()
        assert [text(answer)["text"] for answer in await client.rest()] == ["open"]
    assert desk.accepted == ["open"]
    assert autojump_clock.current_time() < 1


@pytest.mark.promise("mcp.signals")
async def test_stopping_takes_less_than_a_second(desk: Desk, autojump_clock: MockClock) -> None:
    stop = trio.Event()
    async with connected(desk, stop=stop) as client:
        await client.send_call("hold", {"text": "open"})
        await client.end_input()
        await wait_all_tasks_blocked()
        begun = autojump_clock.current_time()
        stop.set()
        assert [answer["error"]["message"] for answer in await client.rest()] == ["Connection closed"]
        assert autojump_clock.current_time() - begun < 0.9


async def test_cancelling_ends_it_at_once(desk: Desk) -> None:
    async with connected(desk) as client:
        await client.send_call("hold", {"text": "work"})
        await wait_all_tasks_blocked()
    assert desk.cancelled == ["work"]


@pytest.mark.promise("runtime.deadlines")
async def test_a_cancelled_request_is_withdrawn_and_its_id_is_free(desk: Desk) -> None:
    async with connected(desk) as client:
        await client.send({"id": "7", "method": "tools/call", "params": {"name": "hold", "arguments": {}}})
        await client.send(
            {"id": 7, "method": "tools/call", "params": {"name": "hold", "arguments": {"text": "t"}}}
        )
        await wait_all_tasks_blocked()
        for other in (7.0, True, "8", 7):
            await client.send({"method": "notifications/cancelled", "params": {"requestId": other}})
        await wait_all_tasks_blocked()
        assert desk.cancelled == ["t"]
        await client.send({"id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {}}})
        assert (await client.receive())["id"] == 7
        desk.released.set()
        assert (await client.receive())["id"] == "7"


@pytest.mark.promise("runtime.deadlines")
async def test_a_request_cancelled_in_the_queue_is_not_begun(desk: Desk) -> None:
    async with connected(desk, limits=Limits(large_answers=1)) as client:
        desk.big_text = "x"
        big = NOTES["big"]
        assert big.weight
        held = asynccontextmanager(lambda: desk_holding(desk))
        async with held():
            first = await client.send_call("big", {"text": "first"})
            second = await client.send_call("big", {"text": "second"})
            await wait_all_tasks_blocked()
            await client.send({"method": "notifications/cancelled", "params": {"requestId": second}})
            await wait_all_tasks_blocked()
        assert (await client.receive())["id"] == first
        assert text(await client.request("tools/call", {"name": "echo"})) == {"text": ""}
    assert desk.accepted == ["first", ""]


async def desk_holding(desk: Desk) -> AsyncIterator[None]:
    """Let no answer out until the block ends."""
    ask, gate = desk.ask, trio.Event()

    async def held(
        request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Noted:
        answer = await ask(request, checked=checked, on_accepted=on_accepted)
        await gate.wait()
        return answer

    desk.ask = held  # type: ignore[method-assign]  # the door is this test's own
    yield
    gate.set()
    desk.ask = ask  # type: ignore[method-assign]  # as above


async def test_an_id_in_flight_is_refused_under_no_id(desk: Desk) -> None:
    async with connected(desk) as client:
        for _ in range(2):
            await client.send(
                {"id": "same", "method": "tools/call", "params": {"name": "hold", "arguments": {}}}
            )
        refusal = await client.receive()
        assert (refusal["id"], refusal["error"]["code"]) == (None, -32600)
        assert "same" in refusal["error"]["message"]
        desk.released.set()
        assert (await client.receive())["id"] == "same"


@pytest.mark.promise("mcp.hostile-frames")
@pytest.mark.promise("mcp.hostile-frames", "mcp.frame-limit")
async def test_bad_lines_cost_only_themselves(desk: Desk) -> None:
    async with connected(desk, limits=Limits(max_message_bytes=1_000)) as client:
        await client.send_bytes(b"\r\n\n  \nnonsense\r\n" + b"x" * 2_000_000 + b"\n[1]\n\xff\n")
        codes = [(await client.receive())["error"] for _ in range(4)]
        assert [error["code"] for error in codes] == [-32700, -32600, -32600, -32700]
        assert "2000000 bytes" in codes[1]["message"]
        assert "1000" in codes[1]["message"]
        await client.send_bytes(b'{"jsonrpc":"2.0","id":5,"method":"ping"}\r\n')
        assert (await client.receive())["id"] == 5


@pytest.mark.promise("mcp.deadline")
async def test_a_deadline_is_the_servers_or_a_shorter_one(desk: Desk, autojump_clock: MockClock) -> None:
    async with connected(desk, request_timeout=30.0) as client:
        await client.send_call("hold", {"text": "server"})
        answer = await client.receive()
        assert autojump_clock.current_time() == pytest.approx(30, abs=0.1)
        assert text(answer)["code"] == "DEADLINE_EXCEEDED"
        assert answer["result"]["isError"]
        assert "structuredContent" not in answer["result"]
        await client.send_call("hold", {"text": "client"}, **{"greenroom/deadline_ms": 500})
        assert text(await client.receive())["details"] == {"deadline_ms": 500, "outcome": "unknown"}
        assert autojump_clock.current_time() == pytest.approx(30.5, abs=0.1)
        for longer in (90_000, 10**400):
            await client.send_call("hold", {"text": "longer"}, **{"greenroom/deadline_ms": longer})
            assert text(await client.receive())["details"] == {"deadline_ms": 30_000, "outcome": "unknown"}
    assert desk.cancelled == ["server", "client", "longer", "longer"]


@pytest.mark.parametrize("wanted", [0, -1, "5", True, [], {}])
async def test_a_deadline_that_is_none_is_refused(desk: Desk, wanted: Any) -> None:
    async with connected(desk) as client:
        await client.send_call("echo", {}, **{"greenroom/deadline_ms": wanted})
        error = (await client.receive())["error"]
        assert error["code"] == -32602
        assert "greenroom/deadline_ms" in error["message"]


@pytest.mark.promise("mcp.errors")
@pytest.mark.parametrize(
    ("error", "code", "details"),
    [
        (
            Refusal("SESSION_NOT_FOUND", "no such session", session_id="s"),
            "SESSION_NOT_FOUND",
            {"session_id": "s"},
        ),
        (OverloadedError("session/s", 120), "OVERLOADED", {"retry_after_ms": 120, "outcome": "not_done"}),
        (
            OverloadedError.of("silent", 120, "unknown"),
            "OVERLOADED",
            {"retry_after_ms": 120, "outcome": "unknown"},
        ),
        (StorageFullError("/home/secret cannot be written"), "STORAGE_FULL", {}),
        (
            StorageFullError("the disk has 5 bytes left", {"disk_free": 5}),
            "STORAGE_FULL",
            {"disk_free": 5},
        ),
        (IdempotencyConflictError("used"), "IDEMPOTENCY_CONFLICT", {}),
        (DeadlineExceededError("late"), "DEADLINE_EXCEEDED", {"outcome": "not_done"}),
        (RuntimeClosedError("closed"), "SHUTTING_DOWN", {}),
        (ActorQuarantinedError("aside"), "SET_ASIDE", {}),
        (ActorFailedError("KeyError: 'secret'"), "INTERNAL_ERROR", {}),
        (ZeroDivisionError("secret"), "INTERNAL_ERROR", {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
@pytest.mark.promise("mcp.errors")
async def test_a_failure_is_a_tool_error_with_a_code(
    desk: Desk, error: Exception, code: str, details: dict[str, Any]
) -> None:
    desk.error = error
    async with connected(desk) as client:
        answer = await client.request("tools/call", {"name": "fail", "arguments": {}})
        await client.request("ping")
    assert answer["result"]["isError"] is True
    assert "structuredContent" not in answer["result"]
    failure = text(answer)
    assert (failure["success"], failure["code"], failure["details"]) == (False, code, details)
    assert "secret" not in failure["error"]


async def test_a_door_that_does_not_open_is_a_tool_error_each_time() -> None:
    def closed(agent: str) -> Desk:
        raise ValueError(agent)

    async with mcp_client(closed, NOTES) as client:
        await client.initialize()
        assert [(await client.call("echo"))["code"] for _ in range(2)] == ["INTERNAL_ERROR"] * 2


@pytest.mark.promise("runtime.fatal-commit")
async def test_after_a_failed_store_nothing_is_answered(desk: Desk) -> None:
    desk.error = StoreFailedError("disk")
    with pytest.RaisesGroup(StoreFailedError):
        async with connected(desk) as client:
            await client.send_call("hold", {})
            await client.send_call("fail", {})
            await client.send_request("ping")
            assert await client.rest() == []
    assert desk.cancelled == [""]


async def test_an_unknown_tool_is_named_with_its_neighbours(desk: Desk) -> None:
    async with connected(desk) as client:
        answer = await client.request("tools/call", {"name": "ecko", "arguments": {}})
    assert answer["error"]["code"] == -32602
    assert "ecko" in answer["error"]["message"]
    assert "echo" in answer["error"]["message"]


@pytest.mark.promise("mcp.eras")
async def test_both_eras_are_served(desk: Desk) -> None:
    async with mcp_client(desk.open, NOTES, now=lambda: 0) as client:
        result = await client.initialize()
        assert result["protocolVersion"] == "2025-11-25"
        assert result["serverInfo"]["name"] == "greenroom"
        assert (await client.request("tools/call", {"name": "echo"}))["result"] == {
            "content": [{"type": "text", "text": '{"text":""}'}],
            "structuredContent": {"text": ""},
            "isError": False,
            "_meta": {"greenroom/at": "1970-01-01T00:00:00.000000Z"},
        }
    async with mcp_client(desk.open, NOTES) as client:
        client.meta = MODERN_META
        discovered = await client.request("server/discover")
        assert "2026-07-28" in discovered["result"]["supportedVersions"]
        result = (await client.request("tools/call", {"name": "echo"}))["result"]
        assert result["structuredContent"] == {"text": ""}
        assert result["resultType"] == "complete"


async def test_a_handshake_that_would_be_a_burden_is_refused(desk: Desk) -> None:
    async with mcp_client(desk.open, NOTES) as client:
        heavy = {"experimental": {"much": {"text": "x" * 70_000}}}
        info = {"name": "tester", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": heavy, "clientInfo": info}
        refused = await client.request("initialize", params)
        assert refused["error"]["code"] == -32600
        assert "65,536 bytes" in refused["error"]["message"]
        assert (await client.initialize())["protocolVersion"] == "2025-11-25"
        await client.end_input()


async def test_an_old_client_gets_no_structured_content_it_does_not_know(desk: Desk) -> None:
    async with mcp_client(desk.open, NOTES) as client:
        await client.initialize(version="2024-11-05")
        result = (await client.request("tools/call", {"name": "echo"}))["result"]
    assert result["content"] == [{"type": "text", "text": '{"text":""}'}]


@pytest.mark.promise("identity.agent-id")
@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("claude-code", "claude-code"),
        ("Claude Désktop (beta)", "Claude-Desktop-beta"),
        ("../../etc", "..-..-etc"),
        ("助手", "agent"),
        ("", "agent"),
        (None, "agent"),
        ("x" * 300, "x" * 100),
    ],
)
@pytest.mark.promise("identity.agent-id")
def test_a_clients_name_is_made_to_fit(name: str | None, agent: str) -> None:
    assert fit_agent_id(name) == agent


@pytest.mark.promise("identity.agent-id", "identity.principal")
async def test_the_agent_is_fixed_by_the_first_request_that_names_it(desk: Desk) -> None:
    async with mcp_client(desk.open, NOTES) as client:
        await client.request("ping")
        await client.initialize(name="first")
        await client.call("echo")
        await client.call("echo")
    async with mcp_client(desk.open, NOTES) as client:
        for name in ("second", "third"):
            info = {"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
            client.meta = {**MODERN_META, **info}
            await client.call("echo")
    async with mcp_client(desk.open, NOTES) as client:
        client.meta = {key: value for key, value in MODERN_META.items() if not key.endswith("clientInfo")}
        await client.call("echo")
        client.meta = MODERN_META
        await client.call("echo")
    assert desk.agents == ["first", "second", "agent"]
