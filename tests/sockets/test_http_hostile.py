"""HTTP clients that are slow, greedy, silent or wrong: each costs only itself, for a limited time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio
from support.desk import Desk
from support.https import PATIENT, Guest, place
from support.scripts import TOOLS as SCRIPTED
from support.scripts import Stage, script, stage
from trio.testing import MockClock, lockstep_stream_pair, wait_all_tasks_blocked

from greenroom.runtime import StoreFailedError
from greenroom.transports import Limits, Timeouts
from greenroom.transports.sockets.http.asgi_exchange import Exchange, ForeignConnection
from greenroom.transports.sockets.http.hypercorn import HEAD_LIMIT
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.sockets.http.responses import CLOSE, Response

pytestmark = pytest.mark.slow

HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n"
KEY = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


async def said(guest: Guest, data: bytes) -> bytes:
    """Send bytes; return what the server says up to its hanging up."""
    await guest.stream.send_all(data)
    return await guest.hung_up()


# -- slow ----------------------------------------------------------------------------------------


@pytest.mark.promise("http.slow")
async def test_who_says_nothing_is_hung_up_on(autojump_clock: MockClock) -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        assert await guest.hung_up() == b""
        assert 10 <= autojump_clock.current_time() <= 10 + 3
        used = await here.client()
        began = autojump_clock.current_time()
        assert await used.hung_up() == b""
        assert 75 <= autojump_clock.current_time() - began <= 75 + 5
        assert here.server.statistics().overdue == 2


@pytest.mark.promise("http.slow")
async def test_a_head_that_comes_a_byte_a_second_is_not_waited_for(autojump_clock: MockClock) -> None:
    async with place(Desk()) as here:
        guest = await here.client()  # also where requests came in time before
        began = autojump_clock.current_time()
        with suppress(trio.BrokenResourceError):
            for byte in HEAD:
                await guest.stream.send_all(bytes([byte]))
                await trio.sleep(1)
        assert 10 <= autojump_clock.current_time() - began <= 10 + 3


@pytest.mark.promise("http.slow")
async def test_a_body_that_comes_a_byte_a_second_is_answered_and_ended(autojump_clock: MockClock) -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        await guest.stream.send_all(HEAD + b"content-length: 1000\r\n\r\n")

        async def trickle() -> None:
            for _ in range(1_000):
                await guest.stream.send_all(b" ")
                await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle)
            answer = await guest.hung_up()
            nursery.cancel_scope.cancel()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer
        assert autojump_clock.current_time() <= 35
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0


@pytest.mark.promise("http.slow", "http.bounded")
async def test_who_does_not_read_a_stream_is_hung_up_on(autojump_clock: MockClock) -> None:
    async with stage(limits=Limits(unsent_bytes=1 << 20), request_timeout=1e6) as (acts, here):
        deaf = await here.guest(lockstep_stream_pair)
        await script(deaf, "much-9 wait", modern=True)
        await acts.waiting.wait()
        others = await here.client()
        await others.request("ping")
        assert (await others.answer()).status == 200
        began = autojump_clock.current_time()
        await acts.called_off.wait()
        assert autojump_clock.current_time() - began <= 20 + 5
        flooded = await here.guest(lockstep_stream_pair)
        began = autojump_clock.current_time()
        await script(flooded, "much-17 wait", modern=True)  # more than may wait
        while acts.cancelled < 2:
            await wait_all_tasks_blocked()
        assert autojump_clock.current_time() == began


@pytest.mark.promise("http.slow", "http.resumable")
async def test_who_did_not_read_a_stream_in_a_session_may_come_back(autojump_clock: MockClock) -> None:
    async with stage(request_timeout=1e6, timeouts=Timeouts(rest=1e6)) as (acts, here):
        guest = await here.client()
        deaf = await here.guest(lockstep_stream_pair, guest)
        number = await script(deaf, "say-9 wait say")
        await acts.waiting.wait()
        await trio.sleep(60)
        assert here.server.statistics().connections == 1
        acts.released.set()
        back = await (await here.guest(session=guest)).listen(last_event_id="1-0")
        events = await back.events()
        assert [event.json().get("id") for event in events] == [None] * 10 + [number]
        assert autojump_clock.current_time() == 60


@pytest.mark.promise("http.slow")
async def test_an_answer_that_nobody_reads_is_not_kept(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with place(desk) as here:
        for _ in range(3):
            deaf = await here.guest(lockstep_stream_pair)
            await deaf.modern_call("echo")
        await trio.sleep(30)
        assert here.server.statistics().connections == 0
        assert autojump_clock.current_time() == 30


async def test_who_leaves_is_forgotten_at_once() -> None:
    async with place(Desk(), timeouts=PATIENT) as here:
        guests = [await here.client() for _ in range(10)]
        assert here.server.statistics().connections == 10
        for guest in guests:
            await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0


async def test_who_hangs_up_within_a_body_is_forgotten_at_once() -> None:
    desk = Desk()
    async with place(desk) as here:
        guest = await here.guest()
        await guest.stream.send_all(HEAD + b"content-length: 1000\r\n\r\n" + PING)
        await wait_all_tasks_blocked()
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0
        assert not here.app.sessions


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.promise("http.drain")
async def test_a_client_that_does_not_read_keeps_nobody_from_ending(autojump_clock: MockClock) -> None:
    async with stage() as (acts, here):
        for modern in (True, False):
            deaf = await here.guest(lockstep_stream_pair, None if modern else await here.client())
            await script(deaf, "much-9 wait", modern=modern)
        await acts.waiting.wait()
        began = autojump_clock.current_time()
        here.stop.set()
        await here.ended.wait()
        assert autojump_clock.current_time() - began <= 0.6


@pytest.mark.promise("http.drain")
async def test_what_was_begun_is_answered_before_the_end(autojump_clock: MockClock) -> None:
    async with stage() as (acts, here):
        guest, modern, endless = await here.client(), await here.guest(), await here.guest()
        await script(guest, "pause-0.2")
        await script(modern, "say pause-0.3", modern=True)
        await script(endless, "wait", modern=True)
        await acts.waiting.wait()
        late = await here.guest()
        began = autojump_clock.current_time()
        here.stop.set()
        assert (await guest.answer()).json()["result"]["content"][0]["text"] == "played"
        await modern.head()
        assert "result" in (await modern.events())[-1].json()
        assert await late.hung_up() == b""
        assert (await endless.answer()).json()["error"]["message"] == "Connection closed"
        await here.ended.wait()
        assert autojump_clock.current_time() - began <= 0.6
        assert acts.cancelled == 1


@pytest.mark.promise("http.drain", "http.health")
async def test_who_asks_while_the_server_stops_is_told() -> None:
    async with stage() as (acts, here):
        busy = await here.guest()
        await script(busy, "wait", modern=True)
        await acts.waiting.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.app.drain)
            await wait_all_tasks_blocked()
            guest = await here.guest()
            answer = await guest.ask("GET", "/healthz")
            assert (answer.status, answer.json()) == (503, {"status": "stopping"})
            await guest.modern_call("echo")
            answer = await guest.answer()
            assert (answer.status, answer.headers["connection"]) == (503, "close")
            acts.released.set()
        assert (await busy.answer()).status == 200


async def test_nothing_is_answered_once_the_store_has_failed() -> None:
    desk = Desk()
    desk.error = StoreFailedError("the disk is gone")
    deaf, silent = [], []
    with pytest.RaisesGroup(StoreFailedError, flatten_subgroups=True):
        async with place(desk) as here:
            for modern in (True, False):
                guest = await here.guest(lockstep_stream_pair)
                deaf.append(guest)
                await guest.modern("server/discover")
                guest = await here.guest(session=None if modern else await here.client())
                silent.append(guest)
                await (guest.modern_call if modern else guest.call)("hold")
            await wait_all_tasks_blocked()
            await (await here.guest()).modern_call("fail")
            await trio.sleep_forever()
    for guest in silent:
        assert await guest.hung_up() == b""


@pytest.mark.promise("http.drain")
async def test_cancelling_ends_everything_at_once(autojump_clock: MockClock) -> None:
    async with stage() as (acts, here):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_serve_another, acts, here)
            await acts.waiting.wait()
            nursery.cancel_scope.cancel()
        assert autojump_clock.current_time() == 0


async def _serve_another(acts: Stage, _here: Any) -> None:
    async with place(Desk(), tools=SCRIPTED, extend=acts.extend) as other:
        deaf = await other.guest(lockstep_stream_pair)
        await script(deaf, "much-9 wait", modern=True)
        await trio.sleep_forever()


# -- greedy --------------------------------------------------------------------------------------


@pytest.mark.promise("http.bounded")
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [5_000, 5_000_000])
async def test_a_body_that_is_too_long_is_answered(size: int, chunked: bool) -> None:  # noqa: FBT001
    async with place(Desk(), limits=Limits(max_message_bytes=4096), tcp=True) as here:
        guest = await here.tcp_guest()
        body = b" " * size
        lengths = {"transfer-encoding": "chunked", "content-length": None} if chunked else {}
        async with guest.stream, trio.open_nursery() as nursery:
            nursery.start_soon(guest.send, "POST", "/mcp", lengths, body)
            assert (await guest.answer()).status == 413
            await guest.request("ping")  # what was read to its end leaves the connection as it was
            assert (await guest.answer()).status == 400


@pytest.mark.promise("http.bounded")
async def test_a_body_without_an_end_is_answered_and_ended(autojump_clock: MockClock) -> None:
    async with place(Desk(), limits=Limits(max_message_bytes=4096)) as here:
        guest = await here.guest()
        await guest.stream.send_all(HEAD + b"transfer-encoding: chunked\r\n\r\n")

        async def flood() -> None:
            with trio.CancelScope():
                while True:
                    await guest.stream.send_all(b"1000\r\n" + b" " * 4096 + b"\r\n")
                    await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_broken, flood)
            answer = await guest.hung_up()
            nursery.cancel_scope.cancel()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0
        assert autojump_clock.current_time() < 10


async def _until_broken(work: Any) -> None:
    with suppress(trio.BrokenResourceError):
        await work()


@pytest.mark.promise("http.bounded")
async def test_there_is_a_limit_on_connections() -> None:
    async with place(Desk(), connections=2) as here:
        first = await here.client()
        await here.client()
        third = await here.guest()
        assert (await third.hung_up()).startswith(b"HTTP/1.1 503 ")
        await (await here.guest()).stream.aclose()  # before it is told
        await first.stream.aclose()
        await wait_all_tasks_blocked()
        await here.client()
        found = here.server.statistics()
        assert (found.connections, found.refused) == (2, 2)


async def test_a_head_that_is_too_long_is_refused() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        answer = await said(guest, HEAD + b"x: " + b"x" * 2 * HEAD_LIMIT)
        assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_body_that_a_route_does_not_read_keeps_nobody(autojump_clock: MockClock) -> None:
    async def nothing(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with place(Desk(), routes={"/none": nothing}) as here:
        guest = await here.guest()
        chunks = b"1\r\nx\r\n" * 100
        head = b"POST /none HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        await guest.stream.send_all(head + chunks + b"0\r\n\r\n")
        assert (await guest.answer_to_raw()).startswith(b"HTTP/1.1 204 ")
        endless = await here.guest()
        assert (await said(endless, head + chunks)).startswith(b"HTTP/1.1 413 ")
        assert autojump_clock.current_time() < 10


async def test_a_server_that_waits_for_its_application_to_read_is_not_kept_waiting() -> None:
    """As hypercorn, whose last write waits until there is room to say that the client has gone."""
    parts, receive = trio.open_memory_channel[Any](1)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            for _ in range(10):  # for more of the body to come
                await trio.lowlevel.checkpoint()
            await parts.send({"type": "http.disconnect"})

    async def flood() -> None:
        with suppress(trio.BrokenResourceError):
            while True:
                await parts.send({"type": "http.request", "body": b"x" * 1_000_000, "more_body": True})

    scope = {"method": "POST", "path": "/mcp", "query_string": b"", "headers": []}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        await Exchange(RequestHead(scope), ForeignConnection(), receive.receive, send).reply(
            Response(413, [], b"")
        )
        receive.close()
    assert (sent[0]["status"], CLOSE in sent[0]["headers"]) == (413, True)
