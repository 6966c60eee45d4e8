"""Messages and sessions in pages: in order, with cursors that skip nothing and cannot be made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import begin, contents, json, refused, say

from greenroom.actors import (
    CreateSession,
    GetMessages,
    GetSession,
    ListSessions,
    SearchBySender,
    SearchContext,
    UpdateSession,
)

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import Agent


@pytest.mark.promise("sessions.order")
async def test_pages_skip_and_repeat_nothing_in_either_direction(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        for number in range(250):
            await say(alice, "s", str(number), visibility=("public", "private", "agent_only")[number % 3])
        everything = [str(number) for number in range(250)]
        forward: list[str] = []
        cursor = None
        while True:
            page = await alice.ask(GetMessages(session_id="s", limit=60, cursor=cursor))
            forward += [message.content for message in page.messages]
            assert page.total == 250
            if (cursor := page.next_cursor) is None:
                break
        assert forward == everything
        read = await alice.ask(GetSession(session_id="s"))
        assert read.has_more
        backward = [message.content for message in read.messages]
        assert backward == everything[-100:]
        cursor = read.cursor
        while cursor is not None:
            page = await alice.ask(GetMessages(session_id="s", limit=60, cursor=cursor))
            backward = [message.content for message in page.messages] + backward
            cursor = page.next_cursor
        assert backward == everything
        assert await contents(alice, limit=5, offset=120) == everything[120:125]
        assert await contents(alice, offset=250) == []
        assert await contents(alice, offset=10**30) == []


@pytest.mark.promise("sessions.order")
async def test_since_id_gives_what_is_new_and_counts_it(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        ids = await say(alice, "s", "a", "b", "c", "d")
        page = await alice.ask(GetMessages(session_id="s", since_id=ids[1], limit=1))
        assert ([message.content for message in page.messages], page.total) == (["c"], 2)
        rest = await alice.ask(GetMessages(session_id="s", since_id=ids[1], cursor=page.next_cursor))
        assert ([message.content for message in rest.messages], rest.next_cursor) == (["d"], None)
        assert await contents(alice, since_id=ids[3]) == []
        assert await contents(alice, since_id=2**53 - 1) == []
        assert await contents(alice, since_id=ids[0], offset=2) == ["d"]
        assert await contents(alice, since_id=0) == ["a", "b", "c", "d"]


@pytest.mark.promise("sessions.order")
async def test_a_mangled_or_foreign_cursor_is_refused(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await alice.ask(CreateSession(purpose="p", session_id="other"))
        await say(alice, "s", "a", "b")
        page = await alice.ask(GetMessages(session_id="s", limit=1))
        listed = await alice.ask(ListSessions(limit=1))
        assert page.next_cursor
        assert listed.next_cursor
        mangled = page.next_cursor[:-1] + ("A" if page.next_cursor[-1] != "A" else "B")
        for cursor in (
            mangled,
            "",
            "x",
            "é",
            "=" * 8,
            "A" * 10_000,
            "\0",
            page.next_cursor + "\n",
            listed.next_cursor,
        ):
            with refused("VALIDATION_ERROR", field="cursor"):
                await alice.ask(GetMessages(session_id="s", cursor=cursor))
            if cursor != listed.next_cursor:
                with refused("VALIDATION_ERROR", field="cursor"):
                    await alice.ask(ListSessions(cursor=cursor))
        with refused("VALIDATION_ERROR", field="cursor"):
            await alice.ask(GetMessages(session_id="other", cursor=page.next_cursor))
        with refused("VALIDATION_ERROR", field="cursor"):
            await alice.ask(ListSessions(cursor=listed.next_cursor, status="active"))
        with refused("VALIDATION_ERROR", field="offset"):
            await alice.ask(GetMessages(session_id="s", cursor=page.next_cursor, offset=1))


@pytest.mark.promise("sessions.order")
async def test_pages_of_long_messages_end_early_and_go_on(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at:
        alice = await begin(at)
        for number in range(9):
            await say(alice, "s", str(number) * 1_000_000)
        seen: list[str] = []
        cursor = None
        while True:
            page = await alice.ask(GetMessages(session_id="s", limit=1000, cursor=cursor))
            assert len(msgspec.json.encode(page)) < 5_000_000
            seen += [message.content[0] for message in page.messages]
            if (cursor := page.next_cursor) is None:
                break
        assert "".join(seen) == "012345678"
        read = await alice.ask(GetSession(session_id="s"))
        assert ([message.content[0] for message in read.messages], read.has_more) == (list("678"), True)
        sent = await alice.ask(SearchBySender(session_id="s", sender="alice", limit=100))
        assert (len(sent.messages), sent.truncated) == (3, True)


@pytest.mark.slow
@pytest.mark.promise("sessions.order")
async def test_a_page_fits_a_frame_whatever_is_to_be_escaped(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await say(alice, "s", *["\x01" * 10_000] * 100, metadata=json('{"quoted": "%s"}' % ('\\"' * 5_000)))
        requests: list[Any] = [
            GetMessages(session_id="s", limit=1000),
            SearchBySender(session_id="s", sender="alice", limit=100),
            SearchContext(session_id="s", query="alice", limit=100),
        ]
        for request in requests:
            plain = msgspec.json.encode(await alice.ask(request))
            as_text = msgspec.json.encode(plain.decode())
            assert 4_000_000 < len(plain) + len(as_text) < 8_000_000


async def listed(agent: Agent, **arguments: Any) -> list[str]:
    answer = await agent.ask(ListSessions(**arguments))
    return [session.session_id for session in answer.sessions]


@pytest.mark.promise("sessions.listing")
async def test_sessions_come_by_the_activity_that_each_reader_sees(enter: Enter) -> None:
    async with enter() as at:
        alice, anna, bob = at.agent("alice", "planner"), at.agent("anna", "planner"), at.agent("bob")
        for session_id in "abcd":
            await alice.ask(CreateSession(purpose=session_id, session_id=session_id))
            at.tick()
        for session_id, visibility in (("a", "private"), ("b", "agent_only"), ("c", "public")):
            await say(alice, session_id, "m", visibility=visibility)
            at.tick()
        assert await listed(alice) == ["c", "b", "a", "d"]
        assert await listed(anna) == ["c", "b", "d", "a"]
        assert await listed(bob) == ["c", "d", "b", "a"]
        await say(alice, "a", "m", visibility="private")
        at.tick()
        await bob.ask(UpdateSession(session_id="b", status="paused"))
        assert await listed(alice) == ["b", "a", "c", "d"]
        assert await listed(bob) == ["b", "c", "d", "a"]
        assert await listed(bob, status="paused") == ["b"]
        assert await listed(bob, status="active") == ["c"]
        assert await listed(bob, status="created") == ["d", "a"]
        by_id = {one.session_id: one for one in (await alice.ask(ListSessions())).sessions}
        assert {session_id: one.message_count for session_id, one in by_id.items()} == {
            "a": 2,
            "b": 1,
            "c": 1,
            "d": 0,
        }
        for session_id, one in by_id.items():
            read = await alice.ask(GetSession(session_id=session_id))
            assert one.last_activity == read.statistics.last_activity


@pytest.mark.promise("sessions.listing")
async def test_listings_go_page_by_page_also_among_equal_times(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice", "planner"), at.agent("bob")
        for number in range(23):
            await alice.ask(
                CreateSession(purpose="p", session_id=f"s{number}", project_id=("x", None)[number % 2])
            )
            await say(alice, f"s{number}", "m", visibility=("public", "private", "agent_only")[number % 3])
            at.tick(number % 4 == 0)
        for agent in (alice, bob, at.agent("carl", projects=frozenset())):
            whole = await listed(agent)
            pages: list[str] = []
            cursor = None
            while True:
                answer = await agent.ask(ListSessions(limit=4, cursor=cursor))
                pages += [session.session_id for session in answer.sessions]
                if (cursor := answer.next_cursor) is None:
                    break
            assert pages == whole
            assert len(set(whole)) == len(whole) == (23 if agent.principal.projects is None else 11)
        assert len(await listed(bob, project_id="x")) == 12
        assert await listed(bob, project_id="y") == []


async def test_a_listing_says_when_it_has_its_place_in_the_order(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        accepted: list[str] = []
        await alice.ask(GetSession(session_id="s"), on_accepted=lambda: accepted.append("read"))
        await alice.ask(ListSessions(), on_accepted=lambda: accepted.append("listing"))
        assert accepted == ["read", "listing"]
