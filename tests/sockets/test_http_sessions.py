"""Sessions of the handshake era over HTTP: who has one, its streams, and what who comes back gets."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from support.agents import begin, say
from support.desk import Desk
from support.https import PATIENT, UPDATED, Guest, place
from support.scripts import script, stage
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import Agent, CreateSession
from greenroom.transports import TOOLS, Caller

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
    async with stage(session_idle=100.0, request_timeout=1e6, timeouts=PATIENT) as (acts, here):
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


@pytest.mark.slow
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
