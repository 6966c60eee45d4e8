"""HTTP clients that are slow, greedy, silent or wrong: each costs only itself, for a limited time."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import trio
from harness import MODERN_META, PATIENCE
from hypothesis import given, settings
from hypothesis import strategies as st
from support.desk import Desk
from support.https import PATIENT, Guest, place
from support.scripts import TOOLS as SCRIPTED
from support.scripts import Stage
from test_http import script, stage
from trio.testing import MockClock, lockstep_stream_pair, wait_all_tasks_blocked

from greenroom.runtime import StoreFailedError
from greenroom.transports.http._exchange import Exchange, PlainConnection
from greenroom.transports.http._head import Head
from greenroom.transports.http._hypercorn import HEAD_LIMIT
from greenroom.transports.http._replies import CLOSE, Reply
from greenroom.transports.http._wire import Pace
from greenroom.transports.protocol._limits import Limits

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
        assert 75 <= autojump_clock.current_time() <= 75 + 5
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
    async with stage(request_timeout=1e6, pace=Pace(rest=1e6)) as (acts, here):
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
    async with place(Desk(), pace=PATIENT) as here:
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
            nursery.start_soon(here.app.wind_up)
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
    async with place(Desk(), limits=Limits(frame=4096), tcp=True) as here:
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
    async with place(Desk(), limits=Limits(frame=4096)) as here:
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
        await Exchange(Head(scope), PlainConnection(), receive.receive, send).reply(Reply(413, [], b""))
        receive.close()
    assert (sent[0]["status"], CLOSE in sent[0]["headers"]) == (413, True)


# -- wrong ---------------------------------------------------------------------------------------


@pytest.mark.promise("http.smuggling")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"content-length: 5\r\ntransfer-encoding: chunked\r\n", 400),
        (b"transfer-encoding: chunked\r\ncontent-length: 5\r\n", 400),
        (b"content-length: 5\r\ncontent-length: 6\r\n", 400),
        (b"content-length: 5, 6\r\n", 400),
        (b"content-length: +5\r\n", 400),
        (b"content-length: 0x5\r\n", 400),
        (b"content-length : 5\r\n", 400),
        (b"transfer-encoding: xchunked\r\n", 501),
        (b"transfer-encoding: identity\r\n", 501),
        (b"transfer-encoding: chunked, chunked\r\n", 501),
        (b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", 501),
        (b"x: a\rb\r\n", 400),
        (b"x: a\0b\r\n", 400),
        (b"host: localhost\r\n", 400),
    ],
)
async def test_a_body_whose_end_is_in_doubt_ends_the_connection(lines: bytes, status: int) -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        answer = await said(guest, HEAD + lines + b"\r\n" + smuggled)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.promise("http.smuggling")
@pytest.mark.parametrize("chunk", [b"g\r\n", b"-1\r\n", b"1\r\nab", b"1" * 30 + b"\r\n", b"\r\n"])
async def test_a_chunk_that_is_none_ends_the_connection(chunk: bytes) -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        answer = await said(guest, HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk + b"\r\n0\r\n\r\n")
        assert answer.count(b"HTTP/1.1") <= 1
        assert not answer.startswith(b"HTTP/1.1 2")
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0


async def test_what_is_no_http_is_refused() -> None:
    async with place(Desk()) as here:
        for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n"):
            assert (await said(await here.guest(), data)).startswith(b"HTTP/1.1 400 ")


async def test_requests_may_follow_each_other_without_waiting() -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        for number in range(5):
            body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number
            session = str(guest.session["mcp-session-id"]).encode()
            head = HEAD + b"mcp-session-id: %b\r\ncontent-length: %d\r\n\r\n" % (session, len(body))
            await guest.stream.send_all(head + body)
        received = b""
        with trio.fail_after(PATIENCE):
            while received.count(b"HTTP/1.1 200") < 5 or not received.endswith(b"}"):
                received += bytes(await guest.stream.receive_some())
        assert [
            json.loads(part.split(b"\r\n\r\n")[1])["id"] for part in received.split(b"HTTP/1.1 200")[1:]
        ] == [*range(5)]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n", 200),
        (b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" + KEY, 403),
    ],
)
async def test_another_protocol_is_not_changed_to(headers: bytes, status: int) -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        await guest.stream.send_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + headers + b"\r\n")
        assert (await guest.answer_to_raw()).startswith(b"HTTP/1.1 %d " % status)


async def test_http_2_is_not_spoken() -> None:
    async with place(Desk()) as here:
        answer = await said(await here.guest(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        assert answer.startswith(b"HTTP/1.1 ")
        assert not answer.startswith(b"HTTP/1.1 2")


async def test_requests_without_an_end_of_the_session_cost_only_themselves() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        greedy = [await here.guest(session=guest) for _ in range(200)]
        for each in greedy:
            await script(each, "wait")
        await wait_all_tasks_blocked()
        for each in greedy:
            await each.stream.aclose()
        assert (await (await here.guest(session=guest)).end_session()).status == 200
        await wait_all_tasks_blocked()
        assert acts.cancelled == 200
        assert here.server.statistics().connections <= 2
        other = await here.client()
        await other.request("ping")
        assert (await other.answer()).status == 200


BODY = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "a"}, "_meta": MODERN_META},
    }
).encode()
ROUTED = b"mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n"
GOOD = HEAD + ROUTED + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = HEAD + ROUTED + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
PIECES = [
    b"\r\n",
    b"\n",
    b"\0",
    b" ",
    b"\xff",
    b": ",
    b"HTTP/1.1",
    b"GET",
    b"mcp-session-id: x\r\n",
    b"0",
    b"a" * 9_999,
]


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Return requests with something cut out of them, put into them, or both."""
    data = b"".join(draw(st.lists(st.sampled_from([GOOD, CHUNKED]), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        data = data[:start] + draw(st.sampled_from([b"", *PIECES])) + data[end:]
    return data


@pytest.mark.promise("http.slow", "http.smuggling")
@settings(deadline=None)
@given(st.lists(spoilt(), min_size=1, max_size=20))
def test_whatever_comes_is_answered_or_ended_and_nothing_is_left(requests: list[bytes]) -> None:
    trio.run(_send_all, requests)


async def _send_all(requests: list[bytes]) -> None:
    async with place(Desk()) as here:
        for data in requests:
            guest = await here.guest()
            await guest.stream.send_all(data)
            await wait_all_tasks_blocked()
            assert isinstance(guest.stream, trio.StapledStream)
            await guest.stream.send_stream.aclose()
            assert b"HTTP/1.1 5" not in (await guest.hung_up()).replace(b"HTTP/1.1 501", b"")
            await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert here.server.statistics().connections == 0
