"""What is no HTTP, or in doubt, or spoilt: it is answered or ended, and nothing is left of it."""

from __future__ import annotations

import json

import pytest
import trio
from harness import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from support.desk import Desk
from support.https import Guest, place
from support.scripts import script, stage
from trio.testing import wait_all_tasks_blocked

from greenroom.testing import MODERN_META

HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n"
KEY = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


async def said(guest: Guest, data: bytes) -> bytes:
    """Send bytes; return what the server says up to its hanging up."""
    await guest.stream.send_all(data)
    return await guest.hung_up()


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


@pytest.mark.slow
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
