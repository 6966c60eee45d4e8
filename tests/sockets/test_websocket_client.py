"""The SDK's own client over our WebSocket transport: both eras, broken connections, refusals."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from harness import PATIENCE
from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import (
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    ResourceUpdatedNotification,
)
from support.desk import Desk
from support.listed import CORE
from support.proxies import Proxy, proxy_to
from support.websocket_programs import answer, connected, server, until
from support.websockets import venue_on_tcp
from trio.testing import wait_all_tasks_blocked
from trio_websocket import WebSocketRequest, serve_websocket

from greenroom.transports import WebSocketRefusedError, websocket_client
from greenroom.transports.sockets.websocket.resume_state import delay_before

Mode = Literal["legacy", "auto", "2026-07-28"]
MODES: list[Mode] = ["legacy", "auto", "2026-07-28"]
ERAS: list[Mode] = ["legacy", "2026-07-28"]
MEMORY = "agent://ann/memory"
EACH = 25
"""How many messages each writer writes while its connections break."""


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.promise("websocket.eras", "websocket.client")
@pytest.mark.parametrize("mode", MODES)
async def test_the_main_job_in_both_eras(tmp_path: Path, mode: Mode) -> None:
    async with server(tmp_path) as (_, port):
        url = f"ws://127.0.0.1:{port}/"
        async with (
            connected(url, mode, agent="alice", agent_type="planner") as alice,
            connected(url, mode) as nameless,
        ):
            assert {tool.name for tool in (await alice.list_tools()).tools} == set(CORE)
            session = (await answer(alice, "create_session", purpose="both"))["session_id"]
            await answer(alice, "add_message", session_id=session, content="the émigré's\nplan")
            await answer(alice, "add_message", session_id=session, content="mine", visibility="private")
            await answer(nameless, "add_message", session_id=session, content="and mine")
            seen = (await answer(nameless, "get_messages", session_id=session))["messages"]
            assert [(each["sender"], each["content"]) for each in seen] == [
                ("alice", "the émigré's\nplan"),
                ("sdk-client", "and mine"),
            ]
            big = "x" * 1_000_000
            await answer(alice, "set_memory", key="big", value=big)
            assert (await answer(alice, "get_memory", key="big"))["value"] == big


@pytest.mark.promise("websocket.client")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_hundred_calls_at_once(tmp_path: Path, mode: Mode) -> None:
    async with server(tmp_path) as (_, port), connected(f"ws://127.0.0.1:{port}/", mode) as client:
        session = (await answer(client, "create_session", purpose="many"))["session_id"]

        async def add(number: int) -> None:
            await answer(client, "add_message", session_id=session, content=str(number))

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(add, number)
        messages = (await answer(client, "get_messages", session_id=session, limit=1000))["messages"]
        assert sorted(int(each["content"]) for each in messages) == list(range(100))


@pytest.mark.quick
@pytest.mark.promise("websocket.client")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_cancelled_call_is_cancelled_at_the_server(desk: Desk, mode: Mode) -> None:
    async with venue_on_tcp(desk) as port, connected(f"ws://127.0.0.1:{port}/", mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "hold", {"text": "dropped"})
            await until(lambda: desk.accepted == ["dropped"])
            nursery.cancel_scope.cancel()
        await until(lambda: desk.cancelled == ["dropped"])
        assert not (await client.call_tool("echo", {"text": "x"})).is_error


@pytest.mark.promise("websocket.reconnect")
@pytest.mark.parametrize("mode", ERAS)
async def test_after_a_break_the_client_goes_on_where_it_was(desk: Desk, mode: Mode) -> None:
    outcomes: dict[str, Any] = {}

    async def hold(client: Client, **arguments: str) -> None:
        try:
            outcomes[arguments["text"]] = (await client.call_tool("hold", arguments)).structured_content
        except MCPError as error:
            outcomes[arguments["text"]] = error.error

    async with (
        venue_on_tcp(desk) as port,
        proxy_to(port) as proxy,
        connected(proxy.url, mode) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(lambda: hold(client, text="once"))
        nursery.start_soon(lambda: hold(client, text="again", idempotency_key="k"))
        await until(lambda: len(desk.accepted) == 2)
        proxy.cut()
        await until(lambda: "once" in outcomes and desk.accepted.count("again") == 2)
        assert outcomes["once"].data == {"code": "CONNECTION_LOST"}
        assert "idempotency_key" in outcomes["once"].message
        desk.released.set()
        await until(lambda: "again" in outcomes)
        assert outcomes["again"] == {"text": "again"}
        assert (await client.call_tool("echo", {"text": "on"})).structured_content == {"text": "on"}
    assert desk.accepted.count("once") == 1


@pytest.mark.promise("websocket.reconnect")
async def test_an_answer_that_a_break_interrupts_on_its_way_to_the_client_still_arrives(desk: Desk) -> None:
    def call(number: int) -> SessionMessage:
        arguments = {"text": str(number), "idempotency_key": str(number)}
        params = {"name": "echo", "arguments": arguments}
        return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params=params))

    unread = 40
    with trio.fail_after(PATIENCE):
        async with (
            venue_on_tcp(desk) as port,
            proxy_to(port) as proxy,
            websocket_client(proxy.url) as (incoming, outgoing),
        ):
            about = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "a", "version": "1"},
            }
            await outgoing.send(
                SessionMessage(JSONRPCRequest(jsonrpc="2.0", id="hello", method="initialize", params=about))
            )
            await incoming.receive()
            await outgoing.send(
                SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
            )
            for number in range(unread):
                await outgoing.send(call(number))
            # What the client leaves unread fills the stream to it, and holds an answer up halfway.
            await until(lambda: len(desk.accepted) == unread)
            await wait_all_tasks_blocked()
            proxy.cut()
            for number in range(unread, unread + 2):  # by the second at the latest the break is noticed
                await wait_all_tasks_blocked()
                await outgoing.send(call(number))
            await wait_all_tasks_blocked()
            answered: list[RequestId | None] = []
            while len(set(answered)) < unread + 2:
                message = await incoming.receive()
                assert isinstance(message, SessionMessage)
                assert isinstance(message.message, JSONRPCResponse)
                answered.append(message.message.id)
    assert sorted(map(str, answered)) == sorted(map(str, range(unread + 2)))


@pytest.mark.promise("websocket.reconnect")
async def test_a_call_made_while_there_is_no_server_waits_for_one(desk: Desk) -> None:
    async with venue_on_tcp(desk) as port, proxy_to(port) as proxy, connected(proxy.url) as client:
        proxy.target = None
        proxy.cut()
        await proxy.another()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "echo", {"text": "patient"})
            await proxy.another()
            proxy.target = port
    assert desk.accepted == ["patient"]


@pytest.mark.quick
@pytest.mark.promise("websocket.reconnect")
async def test_without_reconnecting_the_first_break_is_the_end(desk: Desk) -> None:
    async with (
        venue_on_tcp(desk) as port,
        proxy_to(port) as proxy,
        connected(proxy.url, reconnect=False) as client,
    ):
        arrivals = proxy.arrivals
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                with pytest.raises(MCPError):
                    await client.call_tool("hold", {"text": "x", "idempotency_key": "k"})

            nursery.start_soon(hold)
            await until(lambda: bool(desk.accepted))
            proxy.cut()
        with pytest.raises(MCPError):
            await client.call_tool("echo", {"text": "x"})
        assert proxy.arrivals == arrivals


@pytest.mark.promise("websocket.reconnect")
@pytest.mark.parametrize("mode", ERAS)
async def test_subscriptions_outlive_a_break(tmp_path: Path, mode: Mode) -> None:
    heard: list[str] = []

    async def note(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async with (
        server(tmp_path) as (_, port),
        proxy_to(port) as proxy,
        connected(proxy.url, mode, message_handler=note if mode == "legacy" else None) as client,
        connected(f"ws://127.0.0.1:{port}/", agent="writer") as writer,
        trio.open_nursery() as nursery,
    ):
        session = (await answer(writer, "create_session", purpose="watched"))["session_id"]
        uri = f"session://{session}"

        async def follow(task_status: trio.TaskStatus[None]) -> None:
            async with client.listen(resource_subscriptions=[uri]) as stream:
                task_status.started()
                async for event in stream:
                    assert isinstance(event, ResourceUpdated)
                    heard.append(event.uri)

        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource(uri)
        else:
            await nursery.start(follow)
        await answer(writer, "add_message", session_id=session, content="first")
        await until(lambda: bool(heard))
        for _ in range(2):
            heard.clear()
            proxy.cut()
            await until(lambda: bool(heard))  # changes may have been missed
            heard.clear()
            await answer(writer, "add_message", session_id=session, content="after")
            await until(lambda: heard == [uri])
        nursery.cancel_scope.cancel()


@pytest.mark.promise("websocket.reconnect")
@pytest.mark.parametrize("mode", ERAS)
async def test_subscriptions_outlive_a_restart(tmp_path: Path, mode: Mode) -> None:
    heard: list[str] = []

    async def note(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async def follow(client: Client, task_status: trio.TaskStatus[None]) -> None:
        async with client.listen(resource_subscriptions=[MEMORY]) as stream:
            task_status.started()
            async for event in stream:
                assert isinstance(event, ResourceUpdated)
                heard.append(event.uri)

    async with server(tmp_path) as (program, port), trio.open_nursery() as nursery:
        handler = note if mode == "legacy" else None
        async with connected(f"ws://127.0.0.1:{port}/", mode, agent="ann", message_handler=handler) as client:
            if mode == "legacy":
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource(MEMORY)
            else:
                await nursery.start(follow, client)
            program.process.terminate()  # which ends listen streams with their final result
            assert await program.end() == 0
            async with server(tmp_path, port=port):
                await until(lambda: bool(heard))
                heard.clear()
                await answer(client, "set_memory", key="k", value=1)
                await until(lambda: heard == [MEMORY])
                nursery.cancel_scope.cancel()


@pytest.mark.quick
@pytest.mark.promise("websocket.refused")
@pytest.mark.parametrize(
    ("options", "status", "says"),
    [({"agent": "a/b"}, 400, "a/b"), ({"headers": {"Origin": "https://example.org"}}, 403, "allow-origin")],
)
async def test_a_refusal_is_an_error_that_says_why(
    desk: Desk, options: dict[str, Any], status: int, says: str
) -> None:
    async with venue_on_tcp(desk) as port:
        with pytest.raises(WebSocketRefusedError, match=says) as caught:
            async with websocket_client(f"ws://127.0.0.1:{port}/", **options):
                raise AssertionError
        assert caught.value.status == status


@pytest.mark.promise("websocket.refused")
async def test_a_refusal_after_a_break_ends_the_trying(desk: Desk) -> None:
    outcomes: list[str] = []

    async def hold(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("hold", {"text": "x", "idempotency_key": "k"})
        outcomes.append(str(caught.value))

    async with venue_on_tcp(desk) as port, refusing() as elsewhere, proxy_to(port) as proxy:
        async with connected(proxy.url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(hold, client)
            await until(lambda: bool(desk.accepted))
            proxy.target = elsewhere
            arrivals = proxy.arrivals
            proxy.cut()
            await until(lambda: bool(outcomes))
            assert "you are not wanted" in outcomes[0]
            with pytest.raises(MCPError):
                await client.call_tool("echo", {"text": "x"})
        assert proxy.arrivals == arrivals + 1


async def test_a_server_that_is_not_there_is_an_os_error() -> None:
    async with proxy_to(None) as proxy:
        url = proxy.url
    with pytest.raises(OSError, match=r"connect|refused"):
        async with websocket_client(url):
            raise AssertionError
    with pytest.raises(ValueError, match="ws://"):
        async with websocket_client("http://127.0.0.1/"):
            raise AssertionError
    with pytest.raises(ValueError, match="fingerprint needs wss://"):
        async with websocket_client(url, headers={"Authorization": "Bearer k"}, fingerprint="AA:BB"):
            raise AssertionError


@pytest.mark.promise("websocket.reconnect")
def test_delays_grow_to_a_limit_and_differ() -> None:
    chance = random.Random(1)  # noqa: S311  (a seed, not a secret)
    delays = [[delay_before(attempt, chance) for _ in range(50)] for attempt in (0, 1, 5, 50, 5_000)]
    for each, longest in zip(delays, (0.1, 0.2, 3.2, 10.0, 10.0), strict=True):
        assert longest / 2 <= min(each) < max(each) <= longest
        assert len(set(each)) == 50


@pytest.mark.quick
@pytest.mark.promise("websocket.chaos")
@pytest.mark.parametrize("mode", ERAS)
async def test_nothing_answered_is_lost_and_nothing_is_done_twice(tmp_path: Path, mode: Mode) -> None:
    chance = random.Random(3)  # noqa: S311  (a seed, not a secret)
    answered: dict[str, int] = {}
    writers = 2
    progress = trio.Event()

    async def write(url: str, agent: str, session: str) -> None:
        nonlocal writers, progress
        async with connected(url, mode, agent=agent) as client:
            for number in range(EACH):
                content = f"{agent} {number}"
                added = await answer(
                    client, "add_message", session_id=session, content=content, idempotency_key=content
                )
                answered[content] = added["message_id"]
                progress.set()
                progress = trio.Event()
        writers -= 1

    async def cut(proxy: Proxy) -> None:
        while writers:
            wanted = min(len(answered) + chance.randrange(1, 6), 2 * EACH)
            while len(answered) < wanted:
                await progress.wait()
            for _ in range(chance.randrange(50)):
                await trio.lowlevel.checkpoint()
            proxy.cut()

    async with proxy_to(None) as proxy, server(tmp_path) as (program, port):
        proxy.target = port
        async with connected(proxy.url, agent="maker") as maker:
            session = (await answer(maker, "create_session", purpose="chaos"))["session_id"]
        async with trio.open_nursery() as nursery:
            for agent in ("ann", "bob"):
                nursery.start_soon(write, proxy.url, agent, session)
            nursery.start_soon(cut, proxy)
            await until(lambda: len(answered) > 20)
            program.process.kill()
            await program.end()
            proxy.target = None
            async with server(tmp_path) as (_, new_port):
                proxy.target = new_port
                await until(lambda: writers == 0)
                async with connected(f"ws://127.0.0.1:{new_port}/", agent="reader") as reader:
                    page = await answer(reader, "get_messages", session_id=session, limit=1000)
    found = {each["content"]: each["message_id"] for each in page["messages"]}
    assert found == answered
    assert len(page["messages"]) == len(answered) == 2 * EACH
    assert proxy.arrivals > 6


@asynccontextmanager
async def refusing() -> AsyncIterator[int]:
    """Run a server that wants nobody; give its port."""
    body = b"you are not wanted"

    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        await stream.send_all(head + body)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, refuse, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.mark.promise("websocket.reconnect")
async def test_a_server_that_does_not_answer_the_repeated_handshake_is_left(desk: Desk) -> None:
    async def stay_silent(request: WebSocketRequest) -> None:
        await request.accept(subprotocol="mcp")
        await trio.sleep_forever()

    async with (
        venue_on_tcp(desk) as port,
        trio.open_nursery() as nursery,
        proxy_to(port) as proxy,
        connected(proxy.url, "legacy") as client,
    ):
        silent = await nursery.start(serve_websocket, stay_silent, "127.0.0.1", 0, None)
        arrivals, proxy.target = proxy.arrivals, silent.port
        proxy.cut()
        await until(lambda: proxy.arrivals > arrivals)
        proxy.target = port
        assert (await client.call_tool("echo", {"text": "on"})).structured_content == {"text": "on"}
        nursery.cancel_scope.cancel()


@pytest.mark.promise("websocket.reconnect")
async def test_a_call_that_five_connections_were_lost_with_is_not_sent_again(desk: Desk) -> None:
    async with venue_on_tcp(desk) as port, proxy_to(port) as proxy, connected(proxy.url) as client:
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("hold", {"text": "x", "idempotency_key": "k"})
                assert caught.value.error.data == {"code": "CONNECTION_LOST"}

            nursery.start_soon(hold)
            for sent in range(1, 6):
                await until(lambda sent=sent: len(desk.accepted) == sent)  # type: ignore[misc]
                proxy.cut()
        await client.call_tool("echo", {"text": "on"})
    assert desk.accepted == [*"xxxxx", "on"]


@pytest.mark.promise("websocket.reconnect")
async def test_a_subscription_that_is_refused_after_a_break_is_over(desk: Desk, tmp_path: Path) -> None:
    heard: list[str] = []

    async def note(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async def move(proxy: Proxy, port: int) -> None:
        arrivals, proxy.target = proxy.arrivals, port
        proxy.cut()
        await until(lambda: proxy.arrivals > arrivals)

    async with (
        server(tmp_path) as (_, port),
        venue_on_tcp(desk) as elsewhere,
        proxy_to(port) as proxy,
        connected(proxy.url, "legacy", agent="ann", message_handler=note) as client,
    ):
        session = (await answer(client, "create_session", purpose="watched"))["session_id"]
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(f"session://{session}")
        await move(proxy, elsewhere)
        await client.call_tool("echo", {"text": "where nobody can subscribe"})
        await move(proxy, port)
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(MEMORY)
        await answer(client, "add_message", session_id=session, content="unheard")
        await answer(client, "set_memory", key="k", value=1)
        await until(lambda: MEMORY in heard)
        assert set(heard) == {MEMORY}
