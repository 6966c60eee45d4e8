"""Resources over MCP in both eras: listed, read, completed, and subscribed to as far as one may see."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from harness import principal
from support.agents import begin, keep, say
from trio.testing import lockstep_stream_pair

from greenroom.actors import Agent, CreateSession
from greenroom.runtime import RuntimeClient
from greenroom.testing import MODERN_META, McpClient, mcp_client, mcp_server
from greenroom.transports import Limits

if TYPE_CHECKING:
    from support.agents import Enter

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
STREAM = "io.modelcontextprotocol/subscriptionId"


@asynccontextmanager
async def visitor(
    runtime: RuntimeClient, name: str, *, modern: bool = False, **options: Any
) -> AsyncIterator[McpClient]:
    """Serve one agent over streams in memory."""
    async with mcp_client(lambda _: Agent(runtime, principal(name)), **options) as client:
        if modern:
            client.meta = MODERN_META
        else:
            await client.initialize(name)
        yield client


async def silence(client: McpClient, seconds: float = 5) -> None:
    """See to it that a client hears of nothing."""
    with trio.move_on_after(seconds):
        raise AssertionError(await client.receive())


async def listen(client: McpClient, *uris: str, **wanted: Any) -> int:
    """Open a listen stream and return its id, once it is acknowledged."""
    notifications = {"resourceSubscriptions": list(uris)} if uris else {}
    number = await client.send_request("subscriptions/listen", {"notifications": {**notifications, **wanted}})
    acknowledgement = await client.receive()
    assert acknowledgement["method"] == ACKNOWLEDGED
    assert acknowledgement["params"] == {"_meta": {STREAM: number}, "notifications": notifications}
    return number


async def subscribe(client: McpClient, *uris: str) -> None:
    for uri in uris:
        assert (await client.request("resources/subscribe", {"uri": uri}))["result"] == {}


def updated(uri: str, stream: int | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"uri": uri}
    if stream is not None:
        params["_meta"] = {STREAM: stream}
    return {"jsonrpc": "2.0", "method": UPDATED, "params": params}


@pytest.mark.promise("resources.protocol")
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("uri", ["session://nobody", "agent://bob/memory", "nonsense"])
async def test_an_unknown_resource_is_the_eras_own_error(enter: Enter, uri: str, *, modern: bool) -> None:
    async with enter() as at, visitor(at.runtime, "ann", modern=modern) as client:
        error = (await client.request("resources/read", {"uri": uri}))["error"]
        assert error["code"] == (-32602 if modern else -32002)
        assert error["data"] == {"code": "RESOURCE_NOT_FOUND", "uri": uri}
        error = (await client.request("resources/list", {"cursor": "mangled"}))["error"]
        assert error["code"] == -32602


@pytest.mark.promise("resources.protocol")
async def test_each_era_has_its_own_way_to_subscribe(enter: Enter) -> None:
    async with enter() as at:
        async with visitor(at.runtime, "ann") as client:
            wanted: dict[str, Any] = {"notifications": {}}
            assert (await client.request("subscriptions/listen", wanted))["error"]["code"] == -32601
        async with visitor(at.runtime, "ann", modern=True) as client:
            assert (await client.request("resources/subscribe", {"uri": "x"}))["error"]["code"] == -32601
            said = (await client.request("server/discover"))["result"]["capabilities"]
            assert said["resources"] == {"subscribe": True, "listChanged": False}
            assert said["tools"] == {"listChanged": False}


@pytest.mark.promise("resources.protocol")
@pytest.mark.parametrize("sdk", [False, True])
@pytest.mark.parametrize("modern", [False, True])
async def test_a_scheme_that_is_not_served_is_refused_and_what_is_unknown_acknowledged(
    enter: Enter, *, modern: bool, sdk: bool
) -> None:
    odd = {"more": 1} if sdk else {}  # whoever sends this is answered by the SDK's server
    async with enter() as at:
        alice = await begin(at)
        async with visitor(at.runtime, "bob", modern=modern) as client:
            for uri in ("foo://bar", "http://example.org/s", "s"):
                if modern:
                    wanted = {"notifications": {"resourceSubscriptions": ["session://s", uri]}}
                    error = (await client.request("subscriptions/listen", wanted | odd))["error"]
                else:
                    error = (await client.request("resources/subscribe", {"uri": uri} | odd))["error"]
                assert error["code"] == -32602
                assert (error["data"]["code"], error["data"]["field"]) == ("VALIDATION_ERROR", "uri")
                assert error["data"]["schemes"] == ["session", "agent", "greenroom", "omnimemory"]
                assert uri in error["message"]
            await say(alice, "s", "x")
            await silence(client)
            unknown = ["session://nobody", "session://", "agent://alice/memory", "agent://", "greenroom://x"]
            if modern:
                await listen(client, *unknown)
            else:
                await subscribe(client, *unknown)


@pytest.mark.promise("bus.debounce", "resources.protocol")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_burst_is_one_notification_at_once_and_one_at_the_end(enter: Enter, *, modern: bool) -> None:
    async with enter() as at:
        alice = await begin(at)
        async with visitor(at.runtime, "bob", modern=modern) as client:
            stream = None
            if modern:
                stream = await listen(client, "session://s", toolsListChanged=True, resourcesListChanged=True)
            else:
                await subscribe(client, "session://s")
            start = trio.current_time()
            await say(alice, "s", "1")
            assert await client.receive() == updated("session://s", stream)
            assert trio.current_time() == start
            await say(alice, "s", "2", "3", "4")
            assert await client.receive() == updated("session://s", stream)
            assert trio.current_time() - start == pytest.approx(0.1)
            await silence(client)


@pytest.mark.promise("resources.protocol")
async def test_streams_of_one_client_are_told_apart_and_end_one_by_one(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        async with visitor(at.runtime, "bob", modern=True) as client:
            first = await listen(client, "session://s")
            second = await listen(client, "session://s", "agent://bob/memory")
            await say(alice, "s", "x")
            both = [await client.receive(), await client.receive()]
            assert sorted(each["params"]["_meta"][STREAM] for each in both) == [first, second]
            await client.send({"method": "notifications/cancelled", "params": {"requestId": first}})
            await trio.sleep(1)
            await say(alice, "s", "y")
            assert await client.receive() == updated("session://s", second)
            await silence(client)
            assert at.runtime.statistics().bus.subscribers == 1


@pytest.mark.promise("resources.protocol")
async def test_who_unsubscribes_hears_no_more(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        async with visitor(at.runtime, "bob") as client:
            assert (await client.request("resources/unsubscribe", {"uri": "session://s"}))["result"] == {}
            await subscribe(client, "session://s", "agent://bob/memory")
            await say(alice, "s", "x")
            assert await client.receive() == updated("session://s")
            await say(alice, "s", "y")
            assert (await client.request("resources/unsubscribe", {"uri": "session://s"}))["result"] == {}
            await say(alice, "s", "z")
            await silence(client)
            await keep(at.agent("bob"), "k")
            assert await client.receive() == updated("agent://bob/memory")


@pytest.mark.promise("resources.heard", "identity.alike")
@pytest.mark.parametrize("modern", [False, True])
async def test_an_acknowledgement_tells_nothing(enter: Enter, *, modern: bool) -> None:
    async with enter() as at:
        alice = await begin(at)
        await alice.ask(CreateSession(purpose="p", session_id="closed", project_id="p"))
        async with visitor(at.runtime, "bob", modern=modern) as client:
            uris = [
                "session://s",
                "session://nobody",
                "session://closed",
                "agent://alice/memory",
                "agent://\n",
            ]
            if modern:
                await listen(client, *uris)
            else:
                await subscribe(client, *uris)
            await keep(alice, "k")
            await say(alice, "s", "for me", visibility="private")
            await silence(client)


@pytest.mark.promise("resources.protocol")
@pytest.mark.parametrize("how", ["end of input", "stop"])
async def test_streams_end_with_their_result(enter: Enter, how: str) -> None:
    stop = trio.Event()
    async with enter() as at, visitor(at.runtime, "bob", modern=True, stop=stop) as client:
        await client.send({
            "id": 123456789012345678901234567890, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": ["session://s"]}, "_meta": MODERN_META},
        })  # fmt: skip
        number = (await client.receive())["params"]["_meta"][STREAM]
        other = await listen(client)
        if how == "stop":
            stop.set()
        else:
            await client.end_input()
        ends = {each["id"]: each["result"] for each in await client.rest()}
        assert set(ends) == {number, other} == {123456789012345678901234567890, other}
        assert all(result["_meta"][STREAM] == stream for stream, result in ends.items())
        assert at.runtime.statistics().bus.subscribers == 0


@asynccontextmanager
async def unread(runtime: RuntimeClient, name: str) -> AsyncIterator[McpClient]:
    """Serve one agent over streams that hold nothing: what the client does not read is not sent."""
    limits = Limits(unsent_notices=0)
    async with mcp_server(lambda _: Agent(runtime, principal(name)), limits=limits) as server:
        yield server.connect(lockstep_stream_pair())


@pytest.mark.promise("bus.bounded")
@pytest.mark.parametrize("modern", [False, True])
async def test_who_does_not_read_delays_nobody_and_is_told_once(enter: Enter, *, modern: bool) -> None:
    uris = ["session://s", "session://t"]
    async with enter() as at, unread(at.runtime, "bob") as client, visitor(at.runtime, "carl") as reader:
        alice = await begin(at)
        await alice.ask(CreateSession(purpose="p", session_id="t"))
        await subscribe(reader, "session://s")
        if modern:
            client.meta = MODERN_META
            await listen(client, *uris)
        else:
            await client.initialize("bob")
            await subscribe(client, *uris)
        for _ in range(50):
            start = trio.current_time()
            await say(alice, "s", "x")
            await say(alice, "t", "x")
            assert await reader.receive() == updated("session://s")
            assert trio.current_time() == start
            await trio.sleep(1)
        assert at.runtime.statistics().bus.told == 50 + 1
        heard = []
        with trio.move_on_after(10):
            while True:
                heard.append((await client.receive())["params"]["uri"])
        assert sorted(heard) == ["session://s", "session://s", "session://t"]


async def write(agent: Agent, *, hidden: bool) -> None:
    """Say now and then what all see, and between what others do not, perhaps."""
    for number in range(60):
        if number % 9 == 4:
            await say(agent, "s", "seen")
        elif hidden:
            await say(agent, "s", "hidden", visibility="private")
            await keep(agent, "k")
        await trio.sleep(0.013)


@pytest.mark.promise("bus.hidden", "resources.heard")
@pytest.mark.parametrize("modern", [False, True])
async def test_the_hidden_changes_neither_times_nor_numbers_of_notifications(
    enter: Enter, folder: Path, *, modern: bool
) -> None:
    worlds = []
    for whole in (False, True):
        shutil.rmtree(folder, ignore_errors=True)
        heard: list[tuple[float, Any]] = []
        async with enter() as at, visitor(at.runtime, "bob", modern=modern) as client:
            alice = await begin(at)
            uris = ("session://s", "agent://alice/memory", "agent://bob/memory")
            await (listen if modern else subscribe)(client, *uris)
            start = trio.current_time()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(write, alice, hidden=whole))
                with trio.move_on_after(5):
                    while True:
                        line = await client.receive()
                        heard.append((round(trio.current_time() - start, 6), line))
        worlds.append(heard)
    assert worlds[0] == worlds[1] != []


@pytest.mark.promise("bus.bounded")
async def test_streams_and_what_they_hear_of_have_limits(enter: Enter) -> None:
    limits = Limits(streams=3, subscriptions=5)
    async with enter() as at:
        async with visitor(at.runtime, "bob", modern=True, limits=limits) as client:
            await listen(client, "session://1", "session://2", "session://3")
            wanted = {"notifications": {"resourceSubscriptions": ["session://4"] * 3}}
            assert "5 resources" in (await client.request("subscriptions/listen", wanted))["error"]["message"]
            await listen(client, "session://4")
            await listen(client)
            wanted = {"notifications": {}}
            assert "3 streams" in (await client.request("subscriptions/listen", wanted))["error"]["message"]
            assert at.runtime.statistics().bus.subscribers == 3
        async with visitor(at.runtime, "bob", limits=limits) as client:
            await subscribe(client, *(f"session://{number}" for number in range(5)))
            refused = await client.request("resources/subscribe", {"uri": "session://6"})
            assert "5 resources" in refused["error"]["message"]


@pytest.mark.promise("bus.bounded")
async def test_open_streams_are_not_in_flight(enter: Enter) -> None:
    limits = Limits(in_flight=4)
    async with enter() as at, visitor(at.runtime, "bob", modern=True, limits=limits) as client:
        for _ in range(10):
            await listen(client, "session://s")
        assert (await client.call("list_sessions"))["success"]


@pytest.mark.slow
@pytest.mark.promise("bus.bounded")
async def test_clients_that_come_and_go_leave_nothing(enter: Enter) -> None:
    async with enter(embedder="none") as at:  # an embedder begins with a task that ends
        alice = await begin(at)
        tasks = trio.lowlevel.current_statistics().tasks_living
        for number in range(60):
            async with visitor(at.runtime, "bob", modern=bool(number % 2)) as client:
                await (listen if number % 2 else subscribe)(client, "session://s", "session://t")
                await say(alice, "s", "x")
                if number % 3:
                    await client.receive()
        bus = at.runtime.statistics().bus
        assert (bus.subscribers, bus.subscriptions, bus.topics, bus.waiting) == (0, 0, 0, 0)
        assert trio.lowlevel.current_statistics().tasks_living == tasks
