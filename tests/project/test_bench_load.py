"""The load generator: how it lays messages on bytes, how it counts time, and that it believes no answer."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from harness import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Ping, Pong, RejectConnection, Request, TextMessage

from bench.channels import Channel, Ends, exchanging, to_http
from bench.client import Client
from bench.closed_loop import verify
from bench.harness import WrongAnswerError
from bench.jobs import Echoes
from bench.load import worker
from bench.load.outcome import Outcome, Times, merged
from bench.load.plan import LoadPlan, Share, Task, read_mix, tasks_and_steps
from bench.load.templates import Template
from bench.load.worker import Second, Speaker, Worker, prepare
from bench.pacing import pace
from bench.servers import ASGI, BARE, ECHO, listening
from bench.wires import HttpWire, Kind, Lines, WebSocketWire

ROOT = Path(__file__).parents[2]
ECHO_TASK = Task(name="echo", arguments='{"text":"{n}"}', expected='{"text":"{n}"}')
DYING = """
import json, sys
for number, line in enumerate(sys.stdin):
    message = json.loads(line)
    if number > 5:
        sys.exit(1)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"serverInfo": {}}}), flush=True)
"""


# -- templates and plans ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{}", "{}"),
        ('{"a":{"b":{n}}}', '{"a":{"b":107}}'),
        ('{"key":"k{n%10}-{n}"}', '{"key":"k7-107"}'),
        ('{"text":"100% of %d {client}"}', '{"text":"100% of %d 3% \\"quoted\\""}'),
    ],
)
def test_a_template_has_gaps_only_where_a_name_is(text: str, filled: str) -> None:
    assert Template(text, {"client": '3% "quoted"'}).fill(107).decode() == filled


@pytest.mark.parametrize("text", ["{m}", "{client%2}", "{session_id}"])
def test_a_template_knows_its_names(text: str) -> None:
    with pytest.raises(ValueError, match=r"is none of \{n\}, \{n%2\}, \{client\}"):
        Template(text, {"client": "1"})


@pytest.mark.parametrize("text", ["", "a,", "a=0", "a=-1", "a=x", "a=1,a=2", "=1"])
def test_a_mix_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=WEIGHT"):
        read_mix(text)


def test_what_is_said_of_a_tool_goes_before_what_is_known_of_greenrooms() -> None:
    mix = read_mix("get_memory=8,add_message,search_context=2,mine")
    tasks, steps = tasks_and_steps(mix, {"get_memory": '{"key":"x"}'}, {"mine": '{"a":1}'}, [])
    assert [(task.name, task.weight) for task in tasks] == list(mix.items())
    assert tasks[0].arguments == '{"key":"x"}'
    assert tasks[0].expected == "{}"
    assert tasks[3].expected == '{"a":1}'
    assert [step.tool for step in steps] == ["create_session", *["add_message"] * 5]


# -- times -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3_600_000_000), min_size=1), st.sampled_from([50, 90, 99, 99.9, 100]))
def test_a_percentile_is_within_a_thousandth(values: list[int], percent: float) -> None:
    times = Times()
    times.add(values)
    rank = max(1, int(percent / 100 * len(values) + 0.5))
    exact = sorted(values)[rank - 1] / 1e3
    assert exact <= times.percentile(percent) <= exact * 1.001 + 1e-3


def test_times_beyond_an_hour_and_below_a_microsecond_are_kept_at_the_ends() -> None:
    times = Times()
    times.add([-5, 0, 10**12])
    assert times.summary()["count"] == 3
    assert times.percentile(1) == 1e-3
    assert times.percentile(100) == pytest.approx(3_600_000, rel=1e-3)


def test_seconds_of_workers_add_up() -> None:
    parts = [
        Second(2, 1, 1, {"a": 1}, [[10], []], [1, 2], over=True),
        Second(3, 2, 0, {"a": 2}, [[], [20, 30]], []),
    ]
    both = merged(parts)
    assert both == Second(5, 3, 1, {"a": 3}, [[10], [20, 30]], [1, 2])
    outcome = Outcome(LoadPlan(tasks=[Task(name="a"), Task(name="b")]))
    outcome.add(both)
    document = outcome.document()
    assert document["latency_ms"]["all"]["count"] == 3
    assert document["latency_ms"]["b"]["max"] == 0.03
    assert (document["sent"], document["right"], document["errors"]) == (5, 3, {"a": 3})


class Dues:
    """Notes when messages are due."""

    def __init__(self) -> None:
        self.dues: list[float] = []

    def send(self, exchange: object, number: int, due: float) -> None:  # noqa: ARG002  nothing is sent
        assert number == len(self.dues)
        self.dues.append(due)

    def take(self, who: int, messages: list[bytes], now: float) -> None:
        raise AssertionError((who, messages, now))

    def goes_on(self, now: float, *, all_sent: bool) -> bool:  # noqa: ARG002  the clock plays no part
        return not all_sent


def test_a_load_that_is_behind_catches_up_and_keeps_its_dues() -> None:
    dues = Dues()
    begin = time.monotonic() - 1_000
    with exchanging([]) as exchange:
        pace(exchange, dues, begin=begin, rate=50, count=10)
    assert dues.dues == [begin + number / 50 for number in range(10)]


# -- what a peer may answer ------------------------------------------------------------------------


class Duel:
    """A worker with two clients, and the test at the other end of their connections."""

    def __init__(self, *, clients: int = 2) -> None:
        pairs = [socket.socketpair() for _ in range(clients)]
        self.theirs = [theirs for _, theirs in pairs]
        plan = LoadPlan(tasks=[ECHO_TASK], clients=clients, seconds=1, rate=2)
        self.channels = [Channel(Lines(), ends_of(ours)) for ours, _ in pairs]
        speakers = [Speaker(Client(channel), number, plan) for number, channel in enumerate(self.channels)]
        prepare(speakers, [])
        self.told: list[Second] = []
        self.worker = Worker(Share(plan, 0, 1), speakers, time.monotonic(), self.told.append)

    def asked(self) -> tuple[int, dict[str, Any]]:
        """Send a call that was due ten seconds ago; return who sent it, and the request."""
        with exchanging(self.channels) as exchange:
            self.worker.send(exchange, 0, time.monotonic() - 10)
            exchange.flush()
        for number, theirs in enumerate(self.theirs):
            theirs.setblocking(False)
            try:
                request: dict[str, Any] = msgspec.json.decode(theirs.recv(65536))
            except BlockingIOError:
                continue
            return number, request
        raise AssertionError("nothing was sent")

    def take(self, who: int, *messages: object) -> None:
        lines = [each if isinstance(each, bytes) else msgspec.json.encode(each) for each in messages]
        self.worker.take(who, lines, time.monotonic())

    def over(self) -> Second:
        """Return what the worker says when nothing is answered any more."""
        self.worker.goes_on(time.monotonic() + 1, all_sent=True)
        return self.told[-1]

    def close(self) -> None:
        for theirs, channel in zip(self.theirs, self.channels, strict=True):
            theirs.close()
            channel.close()


def ends_of(ours: socket.socket) -> Callable[[], Ends]:
    ours.setblocking(False)
    return lambda: Ends(ours.fileno(), ours.fileno(), ours.close)


@pytest.fixture
def duel() -> Iterator[Duel]:
    found = Duel()
    yield found
    found.close()


def result(identity: object, text: object = "0", **more: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": identity, "result": {"structuredContent": {"text": text}, **more}}


@pytest.mark.promise("bench.open-loop")
def test_a_time_runs_from_the_moment_a_call_was_due(duel: Duel) -> None:
    who, request = duel.asked()
    duel.take(who, result(request["id"]))
    second = duel.over()
    assert (second.sent, second.right, second.open, second.errors) == (1, 1, 0, {})
    assert second.latencies[0][0] >= 10_000_000
    assert second.late[0] >= 10_000_000


@pytest.mark.quick
@pytest.mark.promise("bench.checked")
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda number: result(number, isError=True), "echo: the tool failed: {'text': '0'}"),
        (lambda number: result(number, "1"), "echo: text is not as expected"),
        (lambda number: {"id": number, "result": {"content": []}}, "echo: text is not as expected"),
        (lambda number: {"id": number, "error": {"code": -5, "message": "no"}}, "echo: error -5: no"),
        (lambda number: {"id": number}, "echo: neither a result nor an error"),
        (lambda _number: {"id": None, "error": {"code": 503, "message": "x"}}, "echo: error 503: x"),
    ],
)
def test_a_wrong_answer_is_an_error_and_no_time(
    duel: Duel, answer: Callable[[int], object], sentence: str
) -> None:
    who, request = duel.asked()
    duel.take(who, answer(request["id"]))
    second = duel.over()
    assert second.errors == {sentence: 1}
    assert (second.right, second.open, second.latencies) == (0, 0, [[]])


@pytest.mark.promise("bench.checked")
@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (result(99), "an answer to nothing that was asked"),
        (result("1"), "an answer to nothing that was asked"),
        (result(None), "an answer to nothing that was asked"),
        (b"oops", "no JSON-RPC: b'oops'"),
        (b"", "no JSON-RPC: b''"),
        (b"[]", "no JSON-RPC: b'[]'"),
        (
            result(1.5),
            'no JSON-RPC: b\'{"jsonrpc":"2.0","id":1.5,"result":{"structuredContent":{"text":"0"}}}\'',
        ),
    ],
)
def test_what_answers_nothing_is_an_error_and_the_call_stays_open(
    duel: Duel, message: object, sentence: str
) -> None:
    duel.asked()
    duel.take(0, message)
    duel.take(1, message)
    second = duel.over()
    assert second.errors == {sentence: 2}
    assert second.open == 1


def test_an_answer_counts_once_and_a_notification_not_at_all(duel: Duel) -> None:
    who, request = duel.asked()
    duel.take(who, {"method": "notifications/x", "params": {}}, result(request["id"]), result(request["id"]))
    second = duel.over()
    assert (second.right, second.errors) == (1, {"an answer to nothing that was asked": 1})


def test_a_text_that_is_json_is_looked_into(duel: Duel) -> None:
    who, request = duel.asked()
    content = [{"type": "text", "text": '{"text":'}, {"type": "text", "text": '"0"}'}]
    duel.take(who, {"id": request["id"], "result": {"content": content}})
    assert duel.over().right == 1


def test_a_lost_connection_fails_what_is_open_and_what_comes_after() -> None:
    duel = Duel(clients=1)
    duel.asked()
    for theirs in duel.theirs:
        theirs.close()
    with exchanging(duel.channels) as exchange:
        for who, messages in exchange.turn():
            duel.worker.take(who, messages, time.monotonic())
        duel.worker.send(exchange, 1, time.monotonic())
    second = duel.over()
    assert second.errors == {"echo: the connection was lost": 1, "echo: the connection was lost before": 1}
    assert second.open == 0
    duel.close()


@pytest.mark.quick
@pytest.mark.promise("bench.open-loop")
def test_a_call_that_is_never_answered_is_an_error_and_counts_with_the_time_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "LAST_SECONDS", -1_000.0)
    silent = Duel()
    silent.asked()
    silent.worker.run()  # two calls of its own, and no patience
    last = silent.told[-1]
    assert last.over
    assert sum(second.errors.get("echo: not answered", 0) for second in silent.told) == 3
    assert max(last.latencies[0]) >= 10_000_000
    assert last.right == 0
    silent.close()


@pytest.mark.promise("bench.checked")
@pytest.mark.parametrize(
    "answers",
    [
        [result(1, "1 x"), result(2, "2 x")],
        [result(1), result(1)],
        [result(1)],
        [result(1), result(3)],
        [result(1), result(2, isError=True)],
        [result(1), {"id": 2, "error": {"code": 1, "message": "no"}}],
    ],
)
def test_a_closed_loop_believes_no_answer_either(answers: list[object]) -> None:
    with pytest.raises(WrongAnswerError):
        verify(Echoes(), [1, 2], list(map(msgspec.json.encode, answers)))


# -- wires -----------------------------------------------------------------------------------------


@given(st.integers(1, 40))
def test_websocket_messages_come_whole_however_they_are_cut(size: int) -> None:
    server = WSConnection(ConnectionType.SERVER)
    wire = WebSocketWire("127.0.0.1", "/mcp?x=1")
    server.receive_data(wire.opening())
    request = next(iter(server.events()))
    assert isinstance(request, Request)
    assert (request.target, request.subprotocols) == ("/mcp?x=1", ["mcp"])
    said = server.send(AcceptConnection(subprotocol="mcp"))
    said += server.send(TextMessage("hé", message_finished=False)) + server.send(Ping(b"p"))
    said += server.send(TextMessage("llo")) + server.send(BytesMessage(b"x" * 300))
    assert not wire.ready
    heard = [each for at in range(0, len(said), size) for each in wire.decode(said[at : at + size])]
    assert heard == ["héllo".encode(), b"x" * 300]
    assert wire.ready
    server.receive_data(wire.owed() + wire.encode(Kind(""), b"{}"))
    assert [type(event) for event in server.events()] == [Pong, TextMessage]
    assert wire.owed() == b""


def test_a_refused_websocket_says_why() -> None:
    server = WSConnection(ConnectionType.SERVER)
    wire = WebSocketWire("127.0.0.1", "/")
    server.receive_data(wire.opening())
    next(iter(server.events()))
    with pytest.raises(WrongAnswerError, match="HTTP 403"):
        wire.decode(server.send(RejectConnection(status_code=403)))


ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\nmcp-session-id: s1\r\n\r\n"
PARTS = (b'id: 1\r\ndata: \r\n\r\ndata: {"a"', b':1}\r\n\r\n:p\r\n\r\nevent: message\ndata:{"b":2}', b"\n\n")
EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*PARTS, b""))
)
REFUSED = b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy"


@given(st.integers(1, 60))
def test_http_answers_come_whole_however_they_are_cut(size: int) -> None:
    wire = HttpWire("127.0.0.1:1", "/mcp", modern=False, version="2025-11-25")
    heard: list[list[bytes]] = []
    for said in (JSON + b'{"id":1}', ACCEPTED, EVENTS, REFUSED):
        assert wire.ready
        asked = wire.encode(Kind("tools/call", "echo"), b"{}")
        assert (b"mcp-session-id: s1" in asked) == bool(heard)
        assert not wire.ready
        heard.append([each for at in range(0, len(said), size) for each in wire.decode(said[at : at + size])])
    assert heard[:3] == [[b'{"id":1}'], [], [b'{"a":1}', b'{"b":2}']]
    assert msgspec.json.decode(heard[3][0])["error"]["code"] == 503
    assert not wire.ready
    assert wire.renew()
    assert b"mcp-session-id: s1" in wire.encode(Kind("ping"), b"{}")
    wire.decode(JSON[:20])
    assert not wire.renew()


def test_a_server_that_speaks_gibberish_is_not_heard_any_more() -> None:
    ours, theirs = socket.socketpair()
    for wire in (HttpWire("h", "/", modern=False, version="1"), WebSocketWire("h", "/")):
        channel = Channel(wire, ends_of(ours))
        channel.post(Kind("ping"), b"{}")
        theirs.sendall(b"gibberish\r\n\r\n")
        assert channel.receive() == []
        assert channel.ended
    theirs.close()
    ours.close()


def test_an_http_connection_that_ended_while_idle_is_made_anew_before_the_next_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        channel = to_http(f"http://127.0.0.1:{port}/mcp", modern=False, version="2025-11-25")
        listener.accept()[0].close()
        with exchanging([channel]) as exchange:
            exchange.turn(60)
            exchange.post(0, Kind("ping"), b"{}")
            exchange.flush()
            theirs, _ = listener.accept()
            assert theirs.recv(65536).startswith(b"POST /mcp HTTP/1.1\r\n")
            theirs.sendall(JSON + b'{"id":1}')
            assert exchange.turn(60) == [(0, [b'{"id":1}'])]
            exchange.post(0, Kind("ping"), b"{}")
            exchange.flush()
            theirs.close()  # now that a request is lost, that was the end
            while not channel.ended:
                exchange.turn(60)
        channel.close()


def test_an_http_request_says_what_its_era_wants_said() -> None:
    modern = HttpWire("h", "/", modern=True, version="2026-07-28").encode(Kind("tools/call", "echo"), b"{}")
    assert b"mcp-method: tools/call\r\nmcp-name: echo\r\n" in modern
    assert b"mcp-protocol-version: 2026-07-28" in modern
    begin = HttpWire("h", "/", modern=False, version="2025-11-25").encode(Kind("initialize"), b"{}")
    assert b"mcp-method" not in begin
    assert b"mcp-protocol-version" not in begin


# -- the command -----------------------------------------------------------------------------------


def load(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "load", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)


BRIEF = ("--rate", "100", "--seconds", "0.5", "--mix", "echo=3,tools/list", "--tool", 'echo={"text":"{n}!"}')
STDIO = ("--stdio", " ".join(ECHO))


def test_a_load_on_pipes_by_two_processes() -> None:
    prepared = ("--before", 'set_memory={"key":"k","value":{client}}', "--tool", 'get_memory={"key":"k"}')
    mix = ("--mix", "get_memory=3,tools/list", "--expect", 'get_memory={"value":{client}}')
    clients = ("--clients", "3", "--processes", "2", "--rate", "100", "--seconds", "0.5")
    done = load("--stdio", " ".join(BARE), *prepared, *mix, *clients)
    assert done.returncode == 0, done.stderr
    told = msgspec.json.decode(done.stdout)
    assert (told["sent"], told["right"], told["errors"]) == (50, 50, {})
    assert told["latency_ms"]["get_memory"]["count"] + told["latency_ms"]["tools/list"]["count"] == 50
    assert told["mix"] == {"get_memory": 3, "tools/list": 1}
    assert "/s  open " in done.stderr


@pytest.fixture(scope="module")
def sdk() -> Iterator[str]:
    with listening((*ASGI, "sse")) as server:
        yield server.url


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_load_on_http(sdk: str, era: str) -> None:
    done = load("--http", sdk, *BRIEF, "--era", era, "--expect", 'echo={"text":"{n}!"}', "--clients", "3")
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["right"] == 50


def test_a_load_with_wrong_answers_fails() -> None:
    done = load(*STDIO, *BRIEF, "--expect", 'echo={"text":"{n}?"}')
    assert done.returncode == 1
    told = msgspec.json.decode(done.stdout)
    assert told["errors"] == {"echo: text is not as expected": told["sent"] - told["right"]}
    assert "WRONG" in done.stderr


def test_a_load_on_a_server_that_dies_fails(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    done = load("--stdio", f"{sys.executable} {tmp_path / 'dying.py'}", *BRIEF)
    assert done.returncode == 1
    told = msgspec.json.decode(done.stdout)
    lost = sum(count for sentence, count in told["errors"].items() if "the connection was lost" in sentence)
    assert told["sent"] == 50
    assert lost >= 45


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "one of the arguments --stdio --ws --http is required"),
        ([*STDIO, "--mix", "a=0"], "'a=0' is not NAME=WEIGHT"),
        ([*STDIO, "--tool", "echo"], "'echo' is not NAME=JSON with an object"),
        (["--ws", "http://127.0.0.1:1/"], "is no ws:// URL"),
        (["--http", "https://127.0.0.1:1/"], "is no http:// URL"),
        ([*STDIO, "--rate", "0"], "must be above 0"),
        ([*STDIO, "--pid", "999999999"], "there is no such process"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(arguments: list[str], sentence: str) -> None:
    done = load(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ws", "ws://127.0.0.1:1/"], "refused"),
        ([*STDIO, "--mix", "echo", "--tool", 'echo={"text":"{session_id}"}'], "{session_id} is none of"),
        ([*STDIO, "--mix", "echo", "--tool", 'echo={"text":}'], "is no JSON object"),
        ([*STDIO, "--mix", "echo", "--before", "echo={}"], "echo was answered with"),
    ],
)
def test_a_load_that_cannot_begin_says_why(arguments: list[str], sentence: str) -> None:
    done = load(*arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
