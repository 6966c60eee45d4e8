"""MCP over HTTP in one process: both eras, JSON and streams of events, sessions and their streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from harness import MODERN_META
from support.agents import begin, say
from support.desk import Desk
from support.https import PATIENT, Event, Guest, Place, place
from support.scripts import TOOLS as SCRIPTED
from support.scripts import Stage
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import Agent, CreateSession
from greenroom.transports._admission import Caller
from greenroom.transports.protocol._limits import Limits
from greenroom.transports.protocol._tools import TOOLS

META = {"progressToken": "p"}
UPDATED = "notifications/resources/updated"


def told(answer: Any) -> Any:
    """Return what a tool's answer says."""
    return msgspec.json.decode(answer["result"]["content"][0]["text"])


async def script(guest: Guest, words: str, *, modern: bool = False, **headers: str | None) -> int:
    """Call the tool that does what these words say."""
    params = {"name": "script", "arguments": {"text": words}, "_meta": META}
    if modern:
        return await guest.modern("tools/call", params, **headers)
    return await guest.request("tools/call", params, **headers)


@asynccontextmanager
async def stage(**options: Any) -> AsyncIterator[tuple[Stage, Place]]:
    """Serve the tool that plays scripts."""
    acts = Stage()
    async with place(Desk(), tools=SCRIPTED, extend=acts.extend, **options) as here:
        yield acts, here
        acts.released.set()


# -- both eras -----------------------------------------------------------------------------------


@pytest.mark.promise("http.eras", "http.json-or-stream")
async def test_a_request_of_the_later_era_is_a_post_of_its_own() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        for text in ("one", "two"):
            number = await guest.modern_call("echo", text)
            answer = await guest.answer()
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert "mcp-session-id" not in answer.headers
            assert (answer.json()["id"], told(answer.json())) == (number, {"text": text})
        assert [name for _, name in here.callers] == ["tester", "tester"]
        await guest.modern("server/discover")
        assert (await guest.answer()).json()["result"]["supportedVersions"] == ["2026-07-28"]
        assert not here.app.sessions


@pytest.mark.promise("http.eras")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_of_the_handshake_era_has_a_session(version: str) -> None:
    async with place(Desk()) as here:
        guest = await here.client(version)
        for text in ("one", "two"):
            number = await guest.call("echo", text)
            answer = await guest.answer()
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert (answer.json()["id"], told(answer.json())) == (number, {"text": text})
        assert [name for _, name in here.callers] == ["tester"]
        another = await here.guest(session=guest)
        await another.request("ping")
        assert (await another.answer()).json()["result"] == {}
        assert len(here.app.sessions) == 1


@pytest.mark.parametrize(
    ("headers", "params", "status", "code"),
    [
        ({"mcp_method": "tools/list"}, {}, 400, -32020),
        ({"mcp_name": "ech"}, {}, 400, -32020),
        ({"mcp_protocol_version": "2027-01-01"}, {}, 400, -32020),
        (
            {"mcp_protocol_version": "2027-01-01"},
            {"_meta": {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}},
            400,
            -32022,
        ),
        ({"accept": "application/json"}, {}, 406, -32600),
        ({"content_type": "text/plain"}, {}, 400, None),
        ({"mcp_name": "nothing"}, {"name": "nothing"}, 400, -32602),
    ],
)
@pytest.mark.promise("http.modern-headers")
async def test_what_is_wrong_about_a_modern_request_has_a_code_and_a_status(
    headers: dict[str, str], params: dict[str, Any], status: int, code: int | None
) -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        await guest.modern("tools/call", {"name": "echo", "arguments": {}, **params}, **headers)
        answer = await guest.answer()
        assert answer.status == status
        assert code is None or answer.json()["error"]["code"] == code
        await guest.modern_call("echo", "still there")
        assert (await guest.answer()).status == 200


async def test_an_unknown_method_is_not_found_and_another_fault_is_no_status_of_http() -> None:
    desk = Desk()
    async with place(desk, request_timeout=1.0) as here:
        guest = await here.guest()
        for method, status in (("no/such", 404), ("initialize", 404)):
            await guest.modern(method)
            answer = await guest.answer()
            assert (answer.status, answer.json()["error"]["code"]) == (status, -32601)
        client = await here.client()
        await client.request("no/such")
        answer = await client.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (200, -32601)


async def test_a_modern_notification_is_taken_note_of_and_a_response_is_not() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        version = {"mcp_protocol_version": "2026-07-28"}
        await guest.post({"method": "notifications/cancelled", "params": {"requestId": 1}}, **version)
        assert (await guest.answer())[0] == 202
        await guest.post({"method": "notifications/cancelled"}, mcp_protocol_version="2027-01-01")
        assert (await guest.answer()).json()["error"]["code"] == -32022
        wrong: list[dict[str, Any]] = [{"id": 1, "result": {}}, {"result": {}}, {"method": "x", "params": []}]
        for message in wrong:
            await guest.post(message, **version)
            answer = await guest.answer()
            assert (answer.status, answer.json()["error"]["code"]) == (400, -32600)


BODIES = [
    (b"", -32700),
    (b"{", -32700),
    (b"\xff", -32700),
    (b"[" * 100_000, -32600),
    (b"[]", -32600),
    (b"7", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
]


@pytest.mark.parametrize(("body", "code"), BODIES)
async def test_a_body_that_is_no_message_is_answered_with_an_error(body: bytes, code: int) -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        for headers in (guest.session, {"MCP-Protocol-Version": "2026-07-28"}):
            await guest.send("POST", "/mcp", headers, body)
            answer = await guest.answer()
            assert (answer.status, answer.json()["error"]["code"]) == (400, code)
        assert len(here.app.sessions) == 1


async def test_older_ways_of_http_are_understood() -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        head = f"host: localhost\r\nmcp-session-id: {guest.session['mcp-session-id']}\r\naccept: */*\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        await guest.stream.send_all(f"POST /mcp HTTP/1.1\r\nexpect: 100-continue\r\n{head}\r\n".encode())
        assert (await guest.answer_to_raw()).startswith(b"HTTP/1.1 100 ")
        await guest.stream.send_all(body)
        assert (await guest.answer_to_raw()).startswith(b"HTTP/1.1 200 ")
        old = await here.guest()
        await old.stream.send_all(f"POST /mcp HTTP/1.0\r\n{head}\r\n".encode() + body)
        assert (await old.hung_up()).endswith(b'"result":{}}')


async def test_line_ends_in_a_body_are_blanks() -> None:
    desk = Desk()
    async with place(desk) as here:
        guest = await here.client()
        pretty = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": "a"}},
            },
            indent=2,
        )
        await guest.send("POST", "/mcp", guest.session, pretty.replace("\n", "\r\n").encode() + b"\r\n")
        assert told((await guest.answer()).json()) == {"text": "a"}


async def test_an_answer_leaves_in_one_piece() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        await guest.modern_call("echo", "whole")
        piece = bytes(await guest.stream.receive_some())
        assert piece.startswith(b"HTTP/1.1 200 ")
        assert piece.endswith(b"}}}")


# -- JSON or a stream ----------------------------------------------------------------------------


@pytest.mark.promise("http.json-or-stream")
async def test_an_answer_with_notifications_before_it_is_a_stream() -> None:
    async with stage() as (_, here):
        guest = await here.guest()
        number = await script(guest, "say-3", modern=True)
        status, headers = await guest.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        events = await guest.events()
        assert [event.json().get("method") for event in events] == ["notifications/progress"] * 3 + [None]
        assert events[-1].json()["id"] == number
        assert all(event.id is None for event in events)
        await guest.modern_call("echo")  # the connection is there for the next one
        assert (await guest.answer()).status in {200, 400}


@pytest.mark.promise("http.json-or-stream", "http.resumable")
async def test_in_a_session_a_stream_begins_with_an_id_to_come_back_with() -> None:
    async with stage() as (_, here):
        guest = await here.client()
        number = await script(guest, "say-2")
        assert (await guest.head())[1]["content-type"] == "text/event-stream"
        first, *events = await guest.events()
        assert (first.data, first.id, first.retry) == ("", "1-0", 1000)
        assert [event.json().get("method") for event in events] == ["notifications/progress"] * 2 + [None]
        assert events[-1].json()["id"] == number
        assert len({event.id for event in events}) == 3


async def test_a_client_that_knows_no_empty_events_gets_none() -> None:
    async with stage() as (_, here):
        guest = await here.client("2025-06-18")
        await script(guest, "say close say")
        await guest.head()
        events = await guest.events()
        assert [event.json().get("method") for event in events] == ["notifications/progress"] * 2 + [None]
        assert all(event.id for event in events)


async def test_a_request_that_takes_long_becomes_a_stream_that_shows_life(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with stage(request_timeout=1e6) as (acts, here):
        modern = await here.guest()
        number = await script(modern, "wait", modern=True)
        began = autojump_clock.current_time()
        await modern.head()
        assert [await modern.event() for _ in range(3)] == [Event(comment="ping")] * 3
        assert autojump_clock.current_time() - began == 45
        client = await here.client()
        began = autojump_clock.current_time()
        await script(client, "wait")
        await client.head()
        assert autojump_clock.current_time() - began == 1
        primed = await client.event()
        assert primed is not None
        assert (primed.id, primed.data) == ("1-0", "")
        acts.released.set()
        assert (await modern.events())[-1].json()["id"] == number
        assert (await client.events())[-1].json()["result"]["content"][0]["text"] == "played"


# -- taking back ---------------------------------------------------------------------------------


@pytest.mark.promise("http.cancel")
@pytest.mark.parametrize("streams", [False, True])
async def test_a_modern_client_that_hangs_up_takes_its_request_back(streams: bool) -> None:  # noqa: FBT001
    async with stage() as (acts, here):
        guest = await here.guest()
        await script(guest, "say wait" if streams else "wait", modern=True)
        await acts.waiting.wait()
        if streams:
            await guest.head()
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert (acts.cancelled, acts.played) == (1, 0)


@pytest.mark.promise("http.cancel")
async def test_a_modern_client_that_hangs_up_takes_its_call_of_the_domain_back() -> None:
    desk = Desk()
    async with place(desk) as here:
        guest = await here.guest()
        await guest.modern_call("hold", "mine")
        await wait_all_tasks_blocked()
        assert desk.accepted == ["mine"]
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert desk.cancelled == ["mine"]


@pytest.mark.promise("http.cancel")
async def test_in_a_session_a_request_outlives_its_connection() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        await script(guest, "wait")
        await acts.waiting.wait()
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        acts.released.set()
        await wait_all_tasks_blocked()
        assert (acts.cancelled, acts.played) == (0, 1)


async def test_a_request_that_was_taken_back_in_a_session_is_answered_so() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        number = await script(guest, "wait")
        await acts.waiting.wait()
        other = await here.guest(session=guest)
        await other.post({"method": "notifications/cancelled", "params": {"requestId": number}})
        assert (await other.answer()).status == 202
        answer = (await guest.answer()).json()
        assert (answer["id"], answer["error"]["code"]) == (number, -32800)
        assert acts.cancelled == 1


async def test_the_client_can_be_asked_while_it_waits() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        number = await script(guest, "ask")
        await guest.head()
        primed, question = await guest.event(), await guest.event()
        assert primed is not None
        assert question is not None
        assert question.json()["method"] == "elicitation/create"
        other = await here.guest(session=guest)
        await other.post({"id": question.json()["id"], "result": {"action": "accept", "content": {"a": "b"}}})
        assert (await other.answer()).status == 202
        (answer,) = await guest.events()
        assert answer.json()["id"] == number
        assert acts.answers == [{"a": "b"}]


# -- sessions ------------------------------------------------------------------------------------


@pytest.mark.promise("http.sessions")
async def test_ids_of_sessions_are_long_and_different() -> None:
    async with place(Desk()) as here:
        ids = {str((await here.client()).session["mcp-session-id"]) for _ in range(20)}
        assert len(ids) == 20
        assert all(len(each) >= 32 and each.isascii() for each in ids)


@pytest.mark.promise("http.sessions")
async def test_a_session_that_is_unknown_or_ended_is_not_found() -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        assert (await guest.ask("POST", mcp_session_id="nobody")).status == 404
        assert (await guest.ask("GET", mcp_session_id="nobody")).status == 404
        listener = await (await here.guest(session=guest)).listen()
        answer = await guest.end_session()
        assert (answer.status, answer.body) == (200, b"")
        await listener.events()
        for method in ("POST", "GET", "DELETE"):
            answer = await guest.ask(method, mcp_session_id=guest.session["mcp-session-id"])
            assert (answer.status, answer.json()["error"]["message"]) == (404, "Session not found")
        assert not here.app.sessions


@pytest.mark.promise("http.sessions")
async def test_delete_calls_off_what_is_open() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        await script(guest, "wait")
        await acts.waiting.wait()
        other = await here.guest(session=guest)
        assert (await other.end_session()).status == 200
        assert (await guest.answer()).json()["error"]["code"] == -32800
        assert acts.cancelled == 1


async def test_without_a_session_only_a_handshake_is_answered() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        await guest.request("tools/list")
        answer = await guest.answer()
        assert (answer.status, answer.json()["error"]["message"]) == (400, "Bad Request: Missing session ID")
        for method in ("GET", "DELETE"):
            assert (await guest.ask(method)).status == 400
        assert (await guest.ask("PUT")).headers["allow"] == "GET, POST, DELETE"
        assert (await guest.ask("GET", mcp_protocol_version="2026-07-28")).headers["allow"] == "POST"
        assert not here.app.sessions


async def test_a_handshake_that_fails_opens_no_session() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        await guest.request("initialize", {"protocolVersion": 7})
        answer = await guest.answer()
        assert "error" in answer.json()
        assert "mcp-session-id" not in answer.headers
        assert not here.app.sessions


@pytest.mark.promise("http.identity", "http.sessions")
async def test_a_session_belongs_to_whoever_opened_it() -> None:
    async with place(Desk()) as here:
        guest = await here.client(greenroom_agent="ann", greenroom_project="x, y")
        await guest.call("echo")
        assert (await guest.answer()).status == 200
        assert here.callers == [(Caller(agent="ann", projects=("x", "y")), "tester")]
        for thief in ({"greenroom_agent": "bob"}, {"greenroom_agent": None}, {"greenroom_project": "x"}):
            await guest.call("echo", **thief)
            assert (await guest.answer()).status == 404


@pytest.mark.promise("http.identity")
async def test_a_modern_request_speaks_as_whom_its_url_says() -> None:
    async with place(Desk()) as here:
        guest = await here.guest()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
        params = {"name": "echo", "arguments": {"text": ""}, "_meta": MODERN_META}
        routed = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
        body = json.dumps({**json.loads(body), "params": params})
        await guest.send("POST", "/mcp?agent=ann&project=x", routed, body.encode())
        assert (await guest.answer()).status == 200
        assert here.callers == [(Caller(agent="ann", projects=("x",)), "tester")]
        await guest.send("POST", "/mcp?agent=a/b", routed, body.encode())
        assert (await guest.answer()).status == 400


@pytest.mark.promise("http.sessions", "http.bounded")
async def test_there_is_a_limit_on_sessions() -> None:
    async with place(Desk(), sessions=2) as here:
        first = await here.client()
        await here.client()
        guest = await here.guest()
        info = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        await guest.request("initialize", info)
        answer = await guest.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert (await first.end_session()).status == 200
        await guest.initialize()


@pytest.mark.promise("http.sessions")
async def test_a_session_without_anything_open_ends_after_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with stage(session_idle=100.0, request_timeout=1e6, pace=PATIENT) as (acts, here):
        idle = await here.client()
        listening = await here.client()
        await (await here.guest(session=listening)).listen()
        busy = await here.client()
        await script(busy, "wait")
        await acts.waiting.wait()
        await busy.stream.aclose()  # the request goes on without its connection
        await trio.sleep(90)
        await idle.request("ping")
        assert (await idle.answer()).status == 200
        await trio.sleep(90)
        assert len(here.app.sessions) == 3
        await trio.sleep(50)
        assert len(here.app.sessions) == 2
        await (guest := await here.guest(session=idle)).request("ping")
        assert (await guest.answer()).status == 404
        acts.released.set()
        await trio.sleep(130)
        assert len(here.app.sessions) == 1
        assert autojump_clock.current_time() < 400


# -- streams of a session ------------------------------------------------------------------------


@pytest.mark.promise("http.priming")
@pytest.mark.parametrize(
    "words",
    ["close", "close say", "say close say-3", "say-9 close", "close pause-0.01", "say close pause-0.01 say"],
)
async def test_a_stream_that_is_closed_at_once_has_told_how_to_come_back(words: str) -> None:
    async with stage() as (_, here):
        guest = await here.client()
        for turn in range(20):
            number = await script(guest, words)
            await guest.head()
            first, *events = await guest.events()
            assert (first.data, first.retry, (first.id or "").partition("-")[0]) == ("", 1000, f"{turn + 1}")
            if not events or "result" not in events[-1].json():  # the answer may have been faster
                last = (events or [first])[-1].id
                back = await (await here.guest(session=guest)).listen(last_event_id=last)
                events += [event for event in await back.events() if event.comment is None]
                await back.stream.aclose()
            else:
                assert "pause" not in words
            assert events[-1].json()["id"] == number
            expected = sum(int(word[4:] or 1) for word in words.split() if word.startswith("say"))
            assert len(events) == expected + 1


@pytest.mark.promise("http.resumable")
async def test_a_stream_that_breaks_is_taken_up_where_it_broke() -> None:
    async with stage() as (acts, here):
        guest = await here.client()
        number = await script(guest, "say-2 wait say-2")
        await guest.head()
        seen = [await guest.event() for _ in range(2)]  # the priming event, and one of two
        await acts.waiting.wait()
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        acts.released.set()
        assert seen[-1] is not None
        back = await (await here.guest(session=guest)).listen(last_event_id=seen[-1].id)
        events = await back.events()
        assert [event.json().get("id") for event in events] == [None, None, None, number]
        again = await (await here.guest(session=guest)).listen(last_event_id=events[0].id)
        assert await again.events() == events[1:]
        spent = await here.guest(session=guest)
        await spent.get(last_event_id=events[-1].id)
        assert (await spent.answer()).status == 400


@pytest.mark.promise("http.resumable")
async def test_ids_of_other_sessions_and_of_none_are_refused() -> None:
    async with stage() as (_, here):
        guest, other = await here.client(), await here.client()
        await script(other, "say-9")
        await other.head()
        events = await other.events()
        for strange in (events[-2].id, "1-x", "9-9", "x" * 1_000):
            await guest.get(last_event_id=strange)
            assert (await guest.answer()).status == 400


async def test_a_session_has_one_stream_of_its_own() -> None:
    async with place(Desk()) as here:
        guest = await here.client()
        first = await (await here.guest(session=guest)).listen()
        primed = await first.event()
        assert primed is not None
        await guest.get()
        answer = await guest.answer()
        assert (answer.status, answer.json()["error"]["message"]) == (
            409,
            "Conflict: Only one SSE stream is allowed per session",
        )
        second = await (await here.guest(session=guest)).listen(last_event_id=primed.id)
        assert await first.events() == []
        await first.stream.aclose()
        await wait_all_tasks_blocked()
        await guest.get()
        assert (await guest.answer()).status == 409
        await second.stream.aclose()
        await wait_all_tasks_blocked()
        await guest.listen()
        await (bad := await here.guest(session=guest)).get(accept="application/json")
        assert (await bad.answer()).status == 406


# -- subscriptions -------------------------------------------------------------------------------


class Houses:
    """A door to the agents of a house."""

    def __init__(self, house: Any) -> None:
        self._house = house

    def open(self, name: str) -> Agent:
        agent: Agent = self._house.agent(name)
        return agent


async def subscribe(guest: Guest, *uris: str) -> None:
    for uri in uris:
        await guest.request("resources/subscribe", {"uri": uri})
        assert (await guest.answer()).json()["result"] == {}


def updates(*uris: str) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}} for uri in uris]


async def hear(guest: Guest, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        event = await guest.event()
        assert event is not None
        found.append(event.json())
    return found


async def silence(guest: Guest, seconds: float = 10) -> None:
    with trio.move_on_after(seconds):
        event = await guest.event()
        raise AssertionError(event)


@pytest.mark.promise("http.subscriptions-kept")
async def test_what_changed_while_nobody_listened_is_told_once_for_each_resource(enter: Any) -> None:
    async with enter() as house, place(Houses(house), tools=TOOLS) as here:
        rooms = ["a", "b", "c"]
        for room in rooms:
            await house.agent("alice").ask(CreateSession(purpose="p", session_id=room))
        uris = [f"session://{room}" for room in rooms]
        guest = await here.client()
        await subscribe(guest, *uris)
        for _ in range(5):
            for room in rooms[:2]:
                await say(house.agent("bob"), room, "hello")
            await trio.sleep(1)
        own = await (await here.guest(session=guest)).listen()
        primed = await own.event()
        assert primed is not None
        heard = await hear(own, 2)
        assert sorted(heard, key=str) == sorted(updates(*uris[:2]), key=str)
        await silence(own)
        await say(house.agent("bob"), rooms[2], "hello")
        assert await hear(own, 1) == updates(uris[2])
        await own.stream.aclose()
        await wait_all_tasks_blocked()
        await say(house.agent("bob"), rooms[0], "hello")
        await trio.sleep(1)
        back = await (await here.guest(session=guest)).listen(last_event_id=primed.id)
        assert sorted(await hear(back, 3), key=str) == sorted(updates(*uris), key=str)
        await silence(back)


@pytest.mark.promise("http.subscriptions-kept")
async def test_who_was_cut_off_without_a_trace_hears_again_of_what_it_may_have_missed(enter: Any) -> None:
    async with enter() as house, place(Houses(house), tools=TOOLS) as here:
        room = "s"
        await begin(house)
        guest = await here.client()
        await subscribe(guest, f"session://{room}")
        own = await (await here.guest(session=guest)).listen()
        primed = await own.event()
        await say(house.agent("bob"), room, "hello")
        await trio.sleep(1)
        await own.stream.aclose()  # with an event on its way that nobody has read
        assert primed is not None
        back = await (await here.guest(session=guest)).listen(last_event_id=primed.id)
        assert await hear(back, 1) == updates(f"session://{room}")


@pytest.mark.promise("http.eras", "http.cancel")
async def test_a_listen_stream_tells_of_changes_until_its_client_hangs_up(enter: Any) -> None:
    async with enter() as house, place(Houses(house), tools=TOOLS) as here:
        room = "s"
        await begin(house)
        guest = await here.guest()
        wanted = {"notifications": {"resourceSubscriptions": [f"session://{room}"]}}
        number = await guest.modern("subscriptions/listen", wanted)
        assert (await guest.head())[1]["content-type"] == "text/event-stream"
        (acknowledged,) = await hear(guest, 1)
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        for _ in range(3):
            await say(house.agent("bob"), room, "hello")
            (update,) = await hear(guest, 1)
            assert update["params"]["uri"] == f"session://{room}"
            assert update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
        assert house.runtime.statistics().bus.subscribers == 1
        await guest.stream.aclose()
        await wait_all_tasks_blocked()
        assert house.runtime.statistics().bus.subscribers == 0


@pytest.mark.promise("http.drain")
async def test_a_listen_stream_ends_with_its_result_when_the_server_stops(enter: Any) -> None:
    async with enter() as house, place(Houses(house), tools=TOOLS) as here:
        room = "s"
        await begin(house)
        guest = await here.guest()
        wanted = {"notifications": {"resourceSubscriptions": [f"session://{room}"]}}
        number = await guest.modern("subscriptions/listen", wanted)
        await guest.head()
        client = await here.client()
        own = await (await here.guest(session=client)).listen()
        await own.event()
        await wait_all_tasks_blocked()
        here.stop.set()
        events = await guest.events()
        assert events[-1].json()["id"] == number
        assert "result" in events[-1].json()
        assert await own.events() == []
        await here.ended.wait()


# -- limits --------------------------------------------------------------------------------------


@pytest.mark.promise("http.bounded")
async def test_a_session_at_its_limit_of_requests_is_made_to_wait() -> None:
    desk = Desk()
    async with place(desk, limits=Limits(in_flight=2)) as here:
        guest = await here.client()
        guests = [await here.guest(session=guest) for _ in range(3)]
        for number, each in enumerate(guests):
            await each.call("hold", str(number))
            await wait_all_tasks_blocked()
        assert desk.accepted == ["0", "1"]
        desk.released.set()
        for each in guests:
            assert (await each.answer()).status == 200
        assert desk.accepted == ["0", "1", "2"]


async def test_statistics_tell_of_connections_and_sessions() -> None:
    async with place(Desk()) as here:
        await here.client()
        await here.guest()
        await wait_all_tasks_blocked()
        found = here.server.statistics()
        assert (found.connections, found.accepted, found.refused, found.sessions) == (2, 2, 0, 1)


@pytest.mark.promise("http.health")
async def test_health_is_told() -> None:
    sound = True
    async with place(Desk(), sound=lambda: sound) as here:
        guest = await here.guest()
        answer = await guest.ask("GET", "/healthz")
        assert (answer.status, answer.json()) == (200, {"status": "ok"})
        sound = False
        answer = await guest.ask("GET", "/healthz")
        assert (answer.status, answer.json()) == (503, {"status": "failed"})
        assert (await guest.ask("GET", "/nothing")).status == 404
        assert (await guest.ask("GET", "/healthz", host="example.org")).status == 421


async def test_further_paths_are_answered_by_their_applications() -> None:
    async def teapot(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] in {"http.request", "http.disconnect"}
        await send({"type": "http.response.start", "status": 418, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": scope["path"][:0].encode()})

    async with place(Desk(), routes={"/tea": teapot}) as here:
        guest = await here.guest()
        assert (await guest.ask("GET", "/tea", origin="https://evil.example")).status == 403


@pytest.mark.promise("http.admission")
async def test_a_page_that_may_ask_can_read_the_answers() -> None:
    async with place(Desk(), origins=frozenset({"https://example.org"})) as here:
        guest = await here.guest()
        asked = {"access_control_request_method": "POST"}
        answer = await guest.ask("OPTIONS", origin="https://example.org", **asked)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "https://example.org")
        await guest.initialize(origin="https://example.org")
        assert (await guest.ask("OPTIONS", origin="https://evil.example", **asked)).status == 403
        assert (await guest.ask("POST", origin="https://evil.example")).status == 403
        assert (await guest.ask("POST", host="evil.example")).status == 421
