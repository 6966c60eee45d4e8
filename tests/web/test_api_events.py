"""Changes by server-sent events: who hears of what, what is kept for whom, and how a stream ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import begin, say
from support.api import ROOT, browser
from support.keyed import bearer, create_key, premises, revoke_key
from trio.testing import lockstep_stream_pair, memory_stream_pair

from greenroom.actors import (
    CreateSession,
    ForgetMemory,
    MergeMemories,
    MoveMemory,
    RateMemory,
    RestoreMemory,
    SettleMemoryPair,
    StoreMemory,
    UpdateMemory,
    WithdrawRating,
)
from greenroom.transports.web.rest import browser_sessions, dispatch

if TYPE_CHECKING:
    from support.agents import Enter
    from support.https import Event, Guest, Pair
    from support.keyed import Premises

URI = "session://s"


async def listening(
    here: Premises, headers: dict[str, Any], *uris: str, pair: Pair = memory_stream_pair
) -> Guest:
    """Return a client that hears of resources, after the stream's opening."""
    guest = await here.guest(pair)
    query = "&".join(f"topic={uri}" for uri in uris or (URI,))
    await guest.send("GET", f"{ROOT}/events?{query}", {"content-length": None, **headers})
    status, head = await guest.head()
    assert (status, head["content-type"]) == (200, "text/event-stream"), head
    assert head["x-content-type-options"] == "nosniff"
    opening = await guest.event()
    assert opening is not None
    assert (opening.id, opening.retry) == ("0", 2000)
    return guest


async def told(guest: Guest) -> Any:
    """Return what the next event says, which may come after some signs of life."""
    event: Event | None = await guest.event()
    for _ in range(10):
        if event is not None and event.comment is not None:
            event = await guest.event()
    return None if event is None else (event.id, event.json())


@pytest.mark.promise("api.events")
async def test_changes_are_told_to_programs_and_browsers_as_far_as_they_may_see_them(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        key = await create_key(at, "sessions:read", agent="bot", user="ann")
        stranger = await create_key(at, "sessions:read", agent="spy", user="bob", projects=["q"])
        await here.settled()
        program = await listening(here, bearer(key), URI, "session://other")
        ann = await browser(here)
        page = await listening(here, ann.headers)
        spy = await listening(here, bearer(stranger), "session://closed", URI)
        await say(alice, "s", "hello")
        for guest in (program, page, spy):
            assert await told(guest) == ("1", {"uri": URI})
        insider = at.agent("alice", projects=frozenset({"p"}))
        await insider.ask(CreateSession(purpose="p", session_id="closed", project_id="p"))
        await say(insider, "closed", "secret")
        at.tick()
        await say(alice, "s", "again")
        assert await told(spy) == ("2", {"uri": URI})


@pytest.mark.slow
@pytest.mark.promise("api.events")
async def test_of_memories_one_hears_who_may_see_them_whatever_is_done_to_them(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        ann = at.agent("bot", user="ann", projects=frozenset({"p"}))
        await ann.ask(StoreMemory(content="theirs", namespace="team:x", scope="shared"))
        key = await create_key(at, "memory:read", agent="bot", user="ann", projects=["p"])
        stranger = await create_key(at, "memory:read", agent="spy", user="bob", projects=["q"])
        await here.settled()
        uris = ["greenroom://memories/team:x:below", "greenroom://memories/user:ann"]
        hers, spies = [await listening(here, bearer(each), *uris) for each in (key, stranger)]
        heard: dict[str, int] = {}

        async def done(request: Any, uri: str) -> Any:
            answer = await ann.ask(request)
            heard[uri] = heard.get(uri, 0) + 1
            assert await told(hers) == (f"{sum(heard.values())}", {"uri": uri}), request
            await trio.sleep(1)  # longer than changes are merged for
            return answer

        team, own = uris
        private = (
            await done(StoreMemory(content="mine", namespace="team:x", scope="private"), team)
        ).memory_id
        other = (await done(StoreMemory(content="too", namespace="team:x", scope="private"), team)).memory_id
        for request in (
            UpdateMemory(memory_id=private, content="changed"),
            RateMemory(memory_id=private, rating=0.5),
            WithdrawRating(memory_id=private),
            SettleMemoryPair(memory_id=private, other_id=other),
            MergeMemories(memory_id=private, others=[other]),
            MoveMemory(memory_id=private, to="team:x:elsewhere"),
            ForgetMemory(memory_id=private),
            RestoreMemory(memory_id=private),
            ForgetMemory(memory_id=private),
            ForgetMemory(memory_id=private, purge=True),
        ):
            await done(request, team)
        await done(StoreMemory(content="hers"), own)
        await done(UpdateMemory(memory_id=other, scope="public"), team)
        assert await told(spies) == ("1", {"uri": team})  # and of nothing before
        await done(UpdateMemory(memory_id=other, scope="private"), team)
        assert await told(spies) == ("2", {"uri": team})  # it is not there any more
        await done(UpdateMemory(memory_id=other, content="secret"), team)
        at.tick()
        await done(UpdateMemory(memory_id=other, scope="public"), team)
        assert await told(spies) == ("3", {"uri": team})


@pytest.mark.promise("api.events")
async def test_who_comes_back_is_told_once_of_what_may_have_changed(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        guest = await listening(here, {**bearer(key), "last-event-id": "7"}, URI, "session://t", URI)
        assert [await told(guest) for _ in range(2)] == [("1", {"uri": URI}), ("2", {"uri": "session://t"})]


@pytest.mark.promise("api.events")
async def test_what_one_may_not_hear_of_is_refused_before_anything_is_told(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "memory:read", max_subscriptions=1)
        await here.settled()
        guest = await here.guest()
        for uri, status, code in (
            (URI, 403, "PERMISSION_DENIED"),
            ("https://example.org", 422, "VALIDATION_ERROR"),
            ("agent://a/memory&topic=agent://b/memory", 403, "QUOTA_EXCEEDED"),
        ):
            answer = await guest.ask("GET", f"{ROOT}/events?topic={uri}", **bearer(key))
            assert (answer.status, answer.json()["code"]) == (status, code)
        await listening(here, bearer(key), "agent://a/memory")


@pytest.mark.promise("api.events")
async def test_a_client_that_does_not_read_costs_one_event_for_each_resource(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        slow = await listening(here, bearer(key), pair=lockstep_stream_pair)
        for _ in range(20):
            await say(alice, "s", "hello")
            await trio.sleep(0.5)  # longer than changes are merged for
        assert [await told(slow) for _ in range(2)] == [("1", {"uri": URI}), ("2", {"uri": URI})]
        sign_of_life = await slow.event()
        assert sign_of_life is not None
        assert sign_of_life.comment is not None
        assert (await (await here.guest()).ask("GET", f"{ROOT}/session", **bearer(key))).status == 200


@pytest.mark.promise("api.ends")
async def test_a_stream_ends_with_a_word_when_its_key_or_its_session_does(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        ann, bob = await browser(here), await browser(here, key)
        by_key, anns, bobs = [await listening(here, each) for each in (bearer(key), ann.headers, bob.headers)]
        assert (await ann.post("logout")).status == 204
        assert await told(anns) == ("1", {"reason": "logged out"})
        assert await told(anns) is None
        await revoke_key(at, key)
        for guest in (by_key, bobs):
            (_, said) = await told(guest)
            assert "revoked" in said["reason"]
            assert await told(guest) is None


@pytest.mark.promise("api.ends")
async def test_a_session_that_ends_while_a_stream_is_asked_for_tells_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        ann = await browser(here)
        cookie = ann.headers["cookie"]
        slow = await here.guest()
        head = f"GET {ROOT}/events?topic={URI} HTTP/1.1\r\nHost: localhost:8080\r\nCookie: {cookie}\r\n"
        await slow.stream.send_all(f"{head}Content-Length: 1\r\n\r\n".encode())
        await here.settled()
        assert (await ann.post("logout")).status == 204
        await slow.stream.send_all(b"x")
        await here.settled()
        await say(alice, "s", "hello")
        received = b""
        with trio.fail_after(60):
            while b"event: " not in received:
                received += bytes(await slow.stream.receive_some())
        assert b"event: end" in received
        assert b"event: change" not in received


@pytest.mark.promise("api.ends")
async def test_a_stream_does_not_keep_a_session_open(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_sessions, "IDLE", 100.0)
    async with enter() as at, premises(at) as here:
        await begin(at)
        ann = await browser(here)
        page = await listening(here, ann.headers)
        assert await told(page) == ("1", {"reason": "the session's time is over"})
        assert await told(page) is None
        assert len(here.browsers) == 0


@pytest.mark.promise("api.events")
async def test_a_key_has_so_many_streams(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_STREAMS", 2)
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        first = await listening(here, bearer(key))
        await listening(here, bearer(key))
        answer = await (await here.guest()).ask("GET", f"{ROOT}/events?topic={URI}", **bearer(key))
        assert (answer.status, answer.headers["retry-after"]) == (429, "5")
        await first.stream.aclose()
        await here.settled()
        await listening(here, bearer(key))


@pytest.mark.promise("api.ends")
async def test_a_server_that_stops_ends_streams_with_a_word(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        guest = await listening(here, bearer(key))
        here.stop.set()
        assert await told(guest) == ("1", {"reason": "the server is stopping"})
        assert await told(guest) is None
