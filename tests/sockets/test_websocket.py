"""WebSocket clients, well-behaved and hostile, before the server: on streams in memory, in virtual time."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import pytest
import trio
from support.desk import Desk
from support.websockets import BINARY, CLOSE, PING, TEXT, Peer, frame, told, venue, venue_on_tcp
from trio.testing import lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked
from wsproto.events import CloseConnection, Ping, Pong

from greenroom.transports import Caller, Limits


@pytest.fixture
def virtual_desk() -> Desk:
    """What the tools are served by; a test that uses it runs in virtual time."""
    return Desk()


@pytest.mark.promise("websocket.eras")
async def test_a_message_is_a_frame_also_with_line_ends_in_it(virtual_desk: Desk) -> None:
    async with venue(virtual_desk) as place:
        client = await place.client()
        await client.call("echo", "one\ntwo", indent=2)
        assert told(await client.receive()) == {"text": "one\ntwo"}


async def test_a_message_in_pieces_is_one_message(virtual_desk: Desk) -> None:
    async with venue(virtual_desk) as place:
        client = await place.client()
        call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
        whole = json.dumps(
            {**call, "params": {"name": "echo", "arguments": {"text": "é"}}}, ensure_ascii=False
        )
        data = whole.encode()
        cut = data.index("é".encode()) + 1  # within the character
        await client.stream.send_all(frame(TEXT & 0x0F, data[:cut]) + frame(PING, b"now?"))
        assert isinstance(await client.event(), Pong)
        for byte in frame(0x80, data[cut:]):
            await client.stream.send_all(bytes([byte]))
        assert told(await client.receive()) == {"text": "é"}


@pytest.mark.promise("websocket.identity")
@pytest.mark.parametrize(
    ("target", "headers", "caller"),
    [
        ("/", {}, Caller()),
        ("/mcp?agent=ann", {}, Caller(agent="ann")),
        (
            "/?agent=ann&agent_type=critic&project=p&project=q&project=p",
            {},
            Caller(agent="ann", agent_type="critic", projects=("p", "q")),
        ),
        (
            "/",
            {"Greenroom-Agent": "ann", "greenroom-agent-type": "critic", "Greenroom-Project": "p, q"},
            Caller(agent="ann", agent_type="critic", projects=("p", "q")),
        ),
        ("/?agent=ann", {"Greenroom-Project": "p"}, Caller(agent="ann", projects=("p",))),
    ],
)
async def test_a_connection_says_who_it_is(
    virtual_desk: Desk, target: str, headers: dict[str, str], caller: Caller
) -> None:
    async with venue(virtual_desk) as place:
        client = await place.client(target, **headers)
        await client.call("echo", "x")
        await client.receive()
        assert place.callers == [(caller, "tester")]


@pytest.mark.promise("websocket.admission")
@pytest.mark.parametrize(
    ("target", "headers", "status", "says"),
    [
        ("/", {"Sec-WebSocket-Protocol": "graphql-ws, soap"}, 400, "offered was graphql-ws, soap"),
        ("/", {"Sec-WebSocket-Protocol": None}, 400, "offered was none"),
        ("/elsewhere", {}, 404, "/elsewhere"),
        ("/?agent=", {}, 400, "agent is ''"),
        ("/?agent=a%20b", {}, 400, "'a b'"),
        ("/?agent=" + "a" * 101, {}, 400, "1 to 100"),
        ("/?agent=a&agent=b", {}, 400, "2 times"),
        ("/?agnet=a", {}, 400, "'agnet'"),
        ("/?agent", {}, 400, "cannot be read"),
        ("/?agent=%ff", {}, 400, "cannot be read"),
        ("/?agent=a", {"Greenroom-Agent": "a"}, 400, "give it once"),
        ("/", {"Greenroom-Agent-Type": "a/b"}, 400, "agent_type"),
        ("/?project=a/b", {}, 400, "project"),
        ("/", {"Origin": "https://example.org"}, 403, "--allow-origin"),
        ("/", {"Origin": "null"}, 403, "null"),
        ("/", {"Origin": "http://localhost.example.org"}, 403, "origin"),
        ("/", {"Origin": "http://127.0.0.1@example.org"}, 403, "origin"),
        ("/", {"Host": "example.org:8765"}, 403, "Host"),
        ("/", {"Host": "localhost.example.org"}, 403, "Host"),
        ("/", {"Host": "0.0.0.0:8765"}, 403, "Host"),
        ("/", {"Host": "[::1"}, 403, "Host"),
        ("/", {"Host": "localhost:99999"}, 403, "Host"),
        ("/", {"Host": "a..localhost"}, 403, "Host"),
        ("/", {"Origin": "ftp://localhost"}, 403, "origin"),
        ("/", {"Origin": "http://localhost#x"}, 403, "origin"),
        ("/", {"Host": "xn--\u00e9"}, 400, "header"),
        ("/", {"Upgrade": None, "Connection": None}, 400, "WebSocket"),
        ("/", {"Sec-WebSocket-Version": "8"}, 426, "Version"),
    ],
)
async def test_a_refused_handshake_says_why(
    virtual_desk: Desk, target: str, headers: dict[str, str | None], status: int, says: str
) -> None:
    async with venue(virtual_desk) as place:
        answer = (await (await place.peer()).ask(target, headers)).decode()
        assert answer.startswith(f"HTTP/1.1 {status} "), answer
        assert says in answer.partition("\r\n\r\n")[2]
        await place.client()  # others come in as before
        assert place.server.statistics().refused == 1


@pytest.mark.promise("websocket.admission")
@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"x" * 70_000])
async def test_what_is_no_handshake_is_refused(virtual_desk: Desk, garbage: bytes) -> None:
    async with venue(virtual_desk) as place:
        peer = await place.peer()
        await peer.stream.send_all(garbage)
        assert (await peer.head())[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 408"}
        await place.client()


@pytest.mark.promise("websocket.admission")
@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8", "https://app.example.org"]
)
async def test_an_origin_of_this_machine_or_an_allowed_one_passes(virtual_desk: Desk, origin: str) -> None:
    async with venue(virtual_desk, origins=frozenset({"https://app.example.org"})) as place:
        await place.client(Origin=origin)


@pytest.mark.promise("websocket.slow")
async def test_a_slow_handshake_is_given_up(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, handshake_time=5.0) as place:
        peer = await place.peer()
        began = trio.current_time()

        async def drip(nursery: trio.Nursery) -> None:
            for byte in b"GET / HTTP/1.1\r\nHost: local":
                await peer.stream.send_all(bytes([byte]))
                await trio.sleep(1)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip, nursery)
            assert (await peer.head()).startswith(b"HTTP/1.1 408 ")
            nursery.cancel_scope.cancel()
        assert trio.current_time() - began == pytest.approx(5.0)


@pytest.mark.promise("websocket.limits")
async def test_beyond_the_limit_of_connections_is_503_until_one_leaves(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, connections=2) as place:
        first, _second = await place.client(), await place.client()
        answer = await (await place.peer()).ask()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 5" in answer
        await first.stream.send_all(frame(CLOSE, b""))
        assert await first.event() == CloseConnection(1005, "")
        await first.stream.aclose()
        await wait_all_tasks_blocked()
        await place.client()
        assert place.server.statistics().accepted == 3


@pytest.mark.promise("websocket.close-codes")
@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (frame(BINARY, b"{}"), 1003, "text"),
        (frame(TEXT, b'"\xff"'), 1007, ""),
        (frame(TEXT, b"x" * 5_000), 1009, "4096"),
        (frame(TEXT, b"x" * 5_000, 1 << 40), 1009, "4096"),
        (frame(TEXT & 0x0F, b"x" * 4_000) + frame(0x80, b"x" * 97), 1009, "4096"),
        (frame(0x83, b"reserved"), 1002, ""),
        (frame(0xC1, b"compressed"), 1002, ""),
        (b"\x81\x02{}", 1002, ""),
        (frame(PING, b"x" * 126), 1002, ""),
        (frame(CLOSE, b"\x03"), 1002, ""),
        (frame(CLOSE, (1000).to_bytes(2) + b"bye"), 1000, ""),
        (frame(CLOSE, (4123).to_bytes(2)), 4123, ""),
    ],
)
async def test_a_connection_that_ends_says_why(virtual_desk: Desk, data: bytes, code: int, says: str) -> None:
    async with venue(virtual_desk, limits=Limits(max_message_bytes=4096)) as place:
        other, client = await place.client(), await place.client()
        await client.call("hold", "open")
        await client.stream.send_all(data)
        told_code, sentence = await client.closed()
        assert told_code == code
        assert says in sentence
        await other.call("echo", "unharmed")
        assert told(await other.receive()) == {"text": "unharmed"}


@pytest.mark.promise("websocket.keep-alive")
async def test_a_client_that_answers_pings_stays_and_one_that_does_not_goes(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, ping_interval=20.0) as place:
        lively, dead = await place.client(), await place.client()

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lively.receive)  # which answers pings
            assert isinstance(await dead.event(), Ping)
            code, sentence = await dead.closed()
            assert 40 <= trio.current_time() - began <= 50
            assert (code, "20 s" in sentence) == (1011, True)
            await trio.sleep(300)
            await lively.call("echo", "still here")
        assert place.server.statistics().connections == 1


@pytest.mark.promise("websocket.slow")
async def test_a_byte_a_second_costs_only_its_sender(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, ping_interval=2.0) as place:
        slow, quick = await place.client(), await place.client()
        data = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": "s"}},
            }
        )
        began = trio.current_time()
        for byte in frame(TEXT, data.encode()):
            await slow.stream.send_all(bytes([byte]))
            await quick.call("echo", "q")
            assert told(await quick.receive()) == {"text": "q"}
            await trio.sleep(1)
        assert told(await slow.receive()) == {"text": "s"}
        assert trio.current_time() - began > 60  # silence would have ended it after 4


@pytest.mark.promise("websocket.slow")
async def test_a_client_that_stops_reading_is_ended_and_costs_little(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, limits=Limits(unsent_bytes=100_000), ping_interval=5.0) as place:
        stuck = await place.peer(lockstep_stream_pair)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stuck.open)

        async def ask_on() -> None:
            await stuck.request("initialize", INITIALIZE)
            for number in range(1_000):
                await stuck.call("big", str(number))

        quick = await place.client()
        with pytest.RaisesGroup(trio.BrokenResourceError):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask_on)
                await trio.sleep(1)
                assert len(virtual_desk.accepted) < 20
                await quick.call("echo", "q")
                assert told(await quick.receive()) == {"text": "q"}
        assert len(virtual_desk.accepted) < 20


@pytest.mark.promise("websocket.limits")
async def test_a_client_at_its_in_flight_limit_is_not_read_from_and_not_ended(virtual_desk: Desk) -> None:
    async with venue(virtual_desk, limits=Limits(in_flight=3), ping_interval=1.0) as place:
        client = await place.client()
        for number in range(10):
            await client.call("hold", str(number))
        await trio.sleep(10)  # many intervals: its answers to pings could not be heard
        assert len(virtual_desk.accepted) == 3
        virtual_desk.released.set()
        assert sorted([told(await client.receive())["text"] for _ in range(10)]) == sorted(
            virtual_desk.accepted
        )


@pytest.mark.promise("websocket.slow")
async def test_a_client_that_vanishes_in_a_frame_leaves_nothing_behind(virtual_desk: Desk) -> None:
    async with venue(virtual_desk) as place:
        client = await place.client()
        await client.call("hold", "given up")
        await wait_all_tasks_blocked()
        await client.stream.send_all(frame(TEXT, b"{", 1_000))
        await client.stream.aclose()
        await wait_all_tasks_blocked()
        assert place.server.statistics().connections == 0
        assert virtual_desk.cancelled == ["given up"]


@pytest.mark.promise("websocket.slow")
@pytest.mark.slow
async def test_a_flood_of_pings_delays_nobody_else_and_is_answered_by_one_pong_at_a_time(
    virtual_desk: Desk,
) -> None:
    async with venue(virtual_desk) as place:
        rude, quick = await place.client(), await place.client()
        await rude.stream.send_all(frame(PING, b"a") * 50_000 + frame(PING, b"z"))
        await quick.call("echo", "q")
        assert told(await quick.receive()) == {"text": "q"}
        pongs = 0
        while (event := await rude.event()) != Pong(b"z"):
            assert isinstance(event, Pong)
            pongs += 1
        assert pongs < 5_000


@pytest.mark.promise("websocket.drain")
async def test_a_server_that_stops_answers_what_was_begun_and_says_so(virtual_desk: Desk) -> None:
    async with venue(virtual_desk) as place:
        idle, silent, busy = await place.client(), await (await place.peer()).open(), await place.client()
        shaking = await place.peer()
        await shaking.stream.send_all(b"GET / HTTP/1.1\r\n")
        await busy.call("hold", "begun")
        await wait_all_tasks_blocked()
        began = trio.current_time()
        place.stop.set()
        assert (await idle.closed())[0] == (await silent.closed())[0] == 1001
        assert (await shaking.head()).startswith(b"HTTP/1.1 503 ")
        virtual_desk.released.set()
        assert told(await busy.receive()) == {"text": "begun"}
        assert await busy.closed() == (1001, "the server is stopping")
    assert trio.current_time() - began < 1


async def test_a_fault_of_the_server_ends_one_connection(
    virtual_desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    async with venue(virtual_desk) as place:
        other = await place.client()
        failing = await (await place.peer(faulty_pair)).open()
        await failing.call("echo", "x")
        assert (await failing.closed())[0] == 1011
        assert "a WebSocket connection failed" in caplog.text
        await other.call("echo", "x")
        assert told(await other.receive()) == {"text": "x"}


def faulty_pair() -> tuple[trio.abc.Stream, trio.abc.Stream]:
    """Return the ends of a connection, of which the server's has a fault after the handshake."""
    ours, theirs = memory_stream_pair()
    return ours, trio.StapledStream(theirs, FaultyStream(theirs))


class FaultyStream(trio.abc.ReceiveStream):
    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._count = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self._count += 1
        if self._count > 1:
            raise ZeroDivisionError
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tester", "version": "1"},
}


@pytest.mark.promise("websocket.slow")
@pytest.mark.slow
async def test_an_answer_is_not_written_into_the_middle_of_another() -> None:
    desk = Desk()
    desk.big_text = "x" * 12_000_000  # more than the buffers of a connection take
    async with venue_on_tcp(desk) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        client = await (await Peer(stream).open()).initialize()
        for _ in range(4):  # trio shuffles who of the ready tasks goes first
            await client.call("big", "b")
            await wait_all_tasks_blocked(0.01)  # with a part of the answer on its way
            await client.call("hold", "h")
            await wait_all_tasks_blocked(0.01)
            with suppress(BlockingIOError):
                while True:
                    client.take(os.read(stream.socket.fileno(), 1_000_000))
            desk.released.set()
            assert [len(told(await client.receive())["text"]) for _ in range(2)] == [12_000_000, 1]
            desk.released = trio.Event()
        await stream.aclose()
