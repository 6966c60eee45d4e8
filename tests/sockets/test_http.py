"""MCP over HTTP in one process: both eras, what becomes JSON or a stream, what is taken back, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from support.desk import Desk
from support.https import Event, place, told
from support.scripts import script, stage
from trio.testing import wait_all_tasks_blocked

from greenroom.testing import MODERN_META
from greenroom.transports import Caller, Limits

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
        assert here.callers == [(Caller(agent="ann", projects=("x",), is_single_request=True), "tester")]
        await guest.send("POST", "/mcp?agent=a/b", routed, body.encode())
        assert (await guest.answer()).status == 400


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


async def test_an_answer_that_took_long_may_be_as_long_as_one_that_did_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    desk, text = Desk(), "x" * 50_000
    async with place(desk, limits=Limits(unsent_bytes=10_000)) as here:
        client = await here.client()
        await client.call("hold", text)
        await client.head()  # it became a stream
        desk.released.set()
        assert text in (await client.events())[-1].json()["result"]["content"][0]["text"]


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
