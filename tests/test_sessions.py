"""Sessions: what goes in comes back, in order, at a constant price, and hostile values get a clear answer."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import AuditTrail, json, refused, say, wire
from support.clocks import DAY, HOUR, START

from greenroom.actors import (
    AddMessage,
    CreateSession,
    GetMessages,
    GetSession,
    ListSessions,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    UpdateSession,
    parse_request,
)
from greenroom.actors.requests._types import SessionStatus
from greenroom.actors.session import _ids
from greenroom.actors.session._lifecycle import STEPS
from greenroom.runtime import IdempotencyConflictError, InlineCommitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter, House

    from greenroom.actors import Agent
    from greenroom.runtime._store import Store, Work

LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
FAR_AHEAD = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)


async def contents(agent: Agent, **arguments: Any) -> list[str]:
    page = await agent.ask(GetMessages(session_id="s", **arguments))
    return [message.content for message in page.messages]


async def begin(at: House, **arguments: Any) -> Agent:
    alice = at.agent("alice", "planner")
    await alice.ask(CreateSession(purpose="p", session_id="s", **arguments))
    return alice


# -- what measured peers get wrong -------------------------------------------


@pytest.mark.promise("sessions.identical-messages")
async def test_identical_messages_keep_their_own_ids_on_every_path(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        ids = await say(alice, "s", "the same", "the same", "the same")
        assert len(set(ids)) == 3
        page = await alice.ask(GetMessages(session_id="s"))
        found = await alice.ask(SearchContext(session_id="s", query="the same"))
        sent = await alice.ask(SearchBySender(session_id="s", sender="alice"))
        ranged = await alice.ask(SearchByTimerange(session_id="s", start_time=LONG_AGO, end_time=FAR_AHEAD))
        read = await alice.ask(GetSession(session_id="s"))
        for messages in (page.messages, sent.messages, ranged.messages, read.messages):
            assert sorted(message.message_id for message in messages) == ids
        assert sorted(hit.message.message_id for hit in found.results) == ids
        assert all(message.id == message.message_id for message in page.messages)


@pytest.mark.promise("sessions.bounded-writes")
async def test_a_write_costs_the_same_bytes_however_long_the_session_is(enter: Enter) -> None:
    written: list[int] = []

    def weigh(store: Store, works: Sequence[Work]) -> None:
        written.append(sum(len(key) + len(payload or b"") for work in works for _, key, payload in work.ops))
        store.commit(works)

    async with enter(committer=InlineCommitter(weigh)) as at:
        alice = await begin(at, metadata=json('{"long": "' + "x" * 50_000 + '"}'))
        written.clear()
        for number in range(400):
            at.tick(0.01)
            await say(alice, "s", f"message {number:05}", visibility=("public", "private")[number % 2])
        assert len(written) == 400
        assert max(written) < 1_500
        assert max(written[300:]) - max(written[:100]) < 20


# -- ids ---------------------------------------------------------------------


@pytest.mark.promise("sessions.message-ids")
@given(
    times=st.lists(st.integers(min_value=-(10**12), max_value=2**62), min_size=2, max_size=50),
    seed=st.integers(0, 1_000),
)
def test_ids_increase_within_53_bits_whatever_the_clock_does(times: list[int], seed: int) -> None:
    last, ahead, source = 0, 0, random.Random(seed)  # noqa: S311  a seeded one is what is wanted
    bound = 0
    for time in times:
        stamp = _ids.next_stamp(last, ahead, time, source)
        bound = max(bound, stamp.ahead)
        assert last < stamp.message_id < 2**53
        assert _ids.lowest_id(time) <= stamp.message_id <= _ids.highest_id(time, bound)
        last, ahead = stamp


@pytest.mark.promise("sessions.message-ids")
async def test_a_jumping_clock_mixes_nothing_up(enter: Enter) -> None:
    jumps = [
        0,
        -HOUR,
        0,
        0,
        2 * HOUR,
        -400 * DAY,
        0,
        30_000 * DAY,
        -30_000 * DAY,
        -19_000 * DAY,
        19_400 * DAY,
        0,
    ]
    async with enter() as at:
        alice = await begin(at)
        ids, times = [], []
        for number, jump in enumerate(jumps):
            at.clock.jump(jump)
            times.append(at.clock.now())
            ids += await say(alice, "s", str(number), visibility=("public", "private")[number % 2])
        assert ids == sorted(set(ids))
        assert await contents(alice) == [str(number) for number in range(len(jumps))]
        order = [one.session_id for one in (await alice.ask(ListSessions())).sessions]
        assert order == ["s"]
    async with enter() as at:
        alice = at.agent("alice")
        ids += await say(alice, "s", "after a restart")
        assert ids == sorted(set(ids))
        assert [one.session_id for one in (await alice.ask(ListSessions())).sessions] == ["s"]
        for start, end in itertools.combinations(sorted(set(times)), 2):
            ranged = await alice.ask(
                SearchByTimerange(session_id="s", start_time=moment(start), end_time=moment(end), limit=200)
            )
            within = [str(number) for number, time in enumerate(times) if start <= time <= end]
            if start <= at.clock.now() <= end:
                within.append("after a restart")
            assert [message.content for message in ranged.messages] == within


def moment(microseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)


# -- pages and cursors ---------------------------------------------------------


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


# -- sessions ------------------------------------------------------------------


@pytest.mark.promise("sessions.statuses")
async def test_statuses_change_along_the_table_and_no_other_way(enter: Enter) -> None:
    paths: dict[SessionStatus, list[SessionStatus]] = {
        "created": [],
        "active": ["active"],
        "paused": ["paused"],
        "terminated": ["terminated"],
        "archived": ["terminated", "archived"],
    }
    async with enter() as at:
        alice = at.agent("alice")
        for old, new in itertools.product(STATUSES, STATUSES):
            made = await alice.ask(CreateSession(purpose="p"))
            for step in paths[old]:
                await alice.ask(UpdateSession(session_id=made.session_id, status=step))
            if new in STEPS[old]:
                updated = await alice.ask(UpdateSession(session_id=made.session_id, status=new))
                assert updated.session.status == new
            else:
                with refused("VALIDATION_ERROR", field="status", allowed=list(STEPS[old])) as caught:
                    await alice.ask(UpdateSession(session_id=made.session_id, status=new))
                assert (caught.value.details["from"], caught.value.details["to"]) == (old, new)
        made = await alice.ask(CreateSession(purpose="p"))
        with refused("VALIDATION_ERROR", field="status"):
            await alice.ask(UpdateSession(session_id=made.session_id, status="deleted"))  # type: ignore[arg-type]  # on purpose
        with refused("VALIDATION_ERROR", field="status"):
            await alice.ask(UpdateSession(session_id=made.session_id))


@pytest.mark.promise("sessions.statuses")
async def test_an_ended_session_takes_no_writes_and_keeps_its_end(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at, initial_state=json('{"temp:a": 1, "b": 2}'))
        await say(alice, "s", "c")
        at.tick()
        ended = await alice.ask(
            UpdateSession(session_id="s", status="terminated", state=json('{"temp:c": 3, "d": 4, "temp": 5}'))
        )
        assert wire(ended)["session"]["state"] == {"b": 2, "d": 4, "temp": 5}
        assert ended.session.terminated_at == moment(at.clock.now())
        with refused("SESSION_CLOSED", status="terminated"):
            await say(alice, "s", "too late")
        with refused("SESSION_CLOSED"):
            await alice.ask(UpdateSession(session_id="s", state=json('{"e": 5}')))
        with refused("SESSION_CLOSED"):
            await alice.ask(UpdateSession(session_id="s", status="archived", metadata=json('{"e": 5}')))
        at.tick()
        archived = await alice.ask(UpdateSession(session_id="s", status="archived"))
        assert archived.session.terminated_at == ended.session.terminated_at
        with refused("SESSION_CLOSED", status="archived"):
            await say(alice, "s", "too late")
        assert await contents(alice) == ["c"]


@pytest.mark.promise("sessions.statuses")
async def test_the_first_message_makes_a_session_active_for_those_who_see_it(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")

        async def status(agent: Agent) -> tuple[str, list[str]]:
            listed = await agent.ask(ListSessions(status="created"))
            read = await agent.ask(GetSession(session_id="s"))
            return read.session.status, [one.session_id for one in listed.sessions]

        assert await status(alice) == ("created", ["s"])
        await say(alice, "s", "note", visibility="private")
        assert await status(alice) == ("active", [])
        assert await status(bob) == ("created", ["s"])
        await say(alice, "s", "hello")
        assert await status(bob) == ("active", [])


@pytest.mark.promise("memory.json")
async def test_metadata_and_state_merge_by_key_and_keep_every_digit(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(
            at,
            metadata=json('{"int": 123456789012345678901234567890, "text": "123", "one": 1.10}'),
            initial_state=json('{"": null, "app:x": {"a": [1, 2.50]}, "e\\u0301": "\\u0000"}'),
        )
        await alice.ask(UpdateSession(session_id="s", metadata=json('{"one" : 1E5, "new": -0.0}')))
        await alice.ask(UpdateSession(session_id="s", state=json('{"app:x": {"b": 1}}'), status="paused"))
    async with enter() as at:
        session = (await at.agent("bob").ask(GetSession(session_id="s"))).session
        assert bytes(session.metadata) == (
            b'{"int":123456789012345678901234567890,"text":"123","one":1E5,"new":-0.0}'
        )
        assert bytes(session.state) == '{"":null,"app:x":{"b": 1},"e\u0301":"\\u0000"}'.encode()
        assert session.status == "paused"


@pytest.mark.promise("mcp.limits")
async def test_metadata_and_state_have_a_limit_as_a_whole(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        half = '"' + "x" * 600_000 + '"'
        await alice.ask(UpdateSession(session_id="s", state=json('{"a": ' + half + "}")))
        with refused("VALIDATION_ERROR", field="state", limit=1_048_576, unit="bytes") as caught:
            await alice.ask(UpdateSession(session_id="s", state=json('{"b": ' + half + "}")))
        assert caught.value.details["size"] > 1_200_000
        await alice.ask(UpdateSession(session_id="s", state=json('{"a": ' + half + "}")))
        await alice.ask(UpdateSession(session_id="s", metadata=json('{"a": ' + half + "}")))


@pytest.mark.promise("mcp.limits")
@pytest.mark.promise("sessions.statuses")
async def test_ids_are_made_up_or_checked(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        made = await alice.ask(CreateSession(purpose="p"))
        prefix, _, rest = made.session_id.partition("_")
        assert (prefix, len(rest), rest.isascii(), rest.isalnum()) == ("session", 16, True, True)
        assert (made.created_by, made.created_at) == ("alice", moment(at.clock.now()))
        for session_id in ("a" * 128, "..", "-", "A.b_c-9"):
            assert (
                await alice.ask(CreateSession(purpose="p", session_id=session_id))
            ).session_id == session_id
            with refused("KEY_EXISTS", session_id=session_id):
                await alice.ask(CreateSession(purpose="p", session_id=session_id))
        for session_id in ("", "a" * 129, "../x", "a/b", "a b", "a\n", "ä", "a\0"):
            with refused("VALIDATION_ERROR", field="session_id", size=len(session_id)):
                await alice.ask(CreateSession(purpose="p", session_id=session_id))
            with refused("VALIDATION_ERROR", field="session_id"):
                await alice.ask(GetSession(session_id=session_id))
        for reserved in ("all", "current"):
            with refused("VALIDATION_ERROR", field="session_id"):
                await alice.ask(CreateSession(purpose="p", session_id=reserved))
            with refused("SESSION_NOT_FOUND"):
                await alice.ask(GetSession(session_id=reserved))


# -- the directory ---------------------------------------------------------------


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


# -- limits, exactly once, audit ---------------------------------------------------


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize(
    ("request_type", "arguments", "field", "told"),
    [
        (CreateSession, {"purpose": ""}, "purpose", {"size": 0}),
        (CreateSession, {"purpose": "x" * 501}, "purpose", {"size": 501}),
        (CreateSession, {}, "purpose", {}),
        (CreateSession, {"purpose": 5}, "purpose", {"value": "5"}),
        (CreateSession, {"purpose": "p", "metadata": [1]}, "metadata", {}),
        (CreateSession, {"purpose": "p", "metadata": "{}"}, "metadata", {}),
        (CreateSession, {"purpose": "p", "app_name": ""}, "app_name", {"size": 0}),
        (AddMessage, {"session_id": "s", "content": ""}, "content", {"size": 0}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "message_type": "x" * 51},
            "message_type",
            {"size": 51},
        ),
        (AddMessage, {"session_id": "s", "content": "c", "visibility": "secret"}, "visibility", {"size": 6}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "idempotency_key": "x" * 256},
            "idempotency_key",
            {},
        ),
        (AddMessage, {"session_id": "s", "content": "c", "parent_message_id": "1"}, "parent_message_id", {}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "parent_message_id": 2**53},
            "parent_message_id",
            {},
        ),
        (GetMessages, {"session_id": "s", "limit": 0}, "limit", {"value": "0"}),
        (GetMessages, {"session_id": "s", "limit": 1001}, "limit", {"value": "1001"}),
        (GetMessages, {"session_id": "s", "limit": True}, "limit", {"value": "true"}),
        (GetMessages, {"session_id": "s", "offset": -1}, "offset", {"value": "-1"}),
        (GetMessages, {"session_id": "s", "page": 2}, "page", {}),
        (ListSessions, {"limit": 201}, "limit", {"value": "201"}),
        (ListSessions, {"status": "open"}, "status", {"size": 4}),
        (SearchContext, {"session_id": "s", "query": "x" * 501}, "query", {"size": 501}),
        (SearchContext, {"session_id": "s", "query": "q", "fuzzy_threshold": 100.5}, "fuzzy_threshold", {}),
        (SearchContext, {"session_id": "s", "query": "q", "limit": 101}, "limit", {"value": "101"}),
        (SearchContext, {"session_id": "s", "query": "q", "recent_hours": 0}, "recent_hours", {"value": "0"}),
        (SearchContext, {"session_id": "s", "query": "q", "search_scope": "agent_only"}, "search_scope", {}),
        (SearchBySender, {"session_id": "s", "sender": ""}, "sender", {"size": 0}),
        (
            SearchByTimerange,
            {"session_id": "s", "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:00Z"},
            "start_time",
            {"size": 19},
        ),
        (
            SearchByTimerange,
            {"session_id": "s", "start_time": "yesterday", "end_time": "x"},
            "start_time",
            {"size": 9},
        ),
    ],
)
def test_a_violated_limit_names_the_field_and_the_size(
    request_type: Any, arguments: dict[str, Any], field: str, told: dict[str, Any]
) -> None:
    with refused("VALIDATION_ERROR", field=field, **told) as caught:
        parse_request(request_type, msgspec.json.encode(arguments))
    assert str(caught.value).startswith(field)


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize("limit", [10_000, 20, 1_048_576])
async def test_content_has_the_configured_limit_in_characters(enter: Enter, limit: int) -> None:
    options = {} if limit == 10_000 else {"content_limit": limit}
    async with enter(**options) as at:
        alice = await begin(at)
        await say(alice, "s", "x" * limit)
        if limit < 1_000_000:
            await say(alice, "s", "\U0001f600" * limit)
            with refused("VALIDATION_ERROR", field="content", limit=limit, size=limit + 1, unit="characters"):
                await say(alice, "s", "x" * (limit + 1))
        else:
            with refused("VALIDATION_ERROR", field="content", limit=limit, size=2 * limit, unit="bytes"):
                await say(alice, "s", "é" * limit)
            with refused("VALIDATION_ERROR", field="content", size=limit + 1):
                await say(alice, "s", "x" * (limit + 1))


@pytest.mark.parametrize("options", [{"content_limit": 0}, {"content_limit": 1_048_577}, {"audit_days": 0}])
async def test_an_impossible_setting_is_no_setting(enter: Enter, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        async with enter(**options):
            raise AssertionError("it opened")


@pytest.mark.promise("runtime.exactly-once")
async def test_a_repeated_key_gets_the_first_answer(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        first = await alice.ask(CreateSession(purpose="p", idempotency_key="k"))
        at.tick()
        assert await alice.ask(CreateSession(purpose="p", idempotency_key="k")) == first
        assert len(await listed(alice)) == 1
        session_id = first.session_id
        said = AddMessage(
            session_id=session_id, content="c", metadata=json('{"a": 1, "b": 2}'), idempotency_key="k"
        )
        message = await alice.ask(said)
        again = msgspec.structs.replace(said, metadata=json(' {"b":2,"a":1}'))
        assert await alice.ask(again) == message
        with pytest.raises(IdempotencyConflictError):
            await alice.ask(msgspec.structs.replace(said, metadata=json('{"a": 1.0, "b": 2}')))
        with pytest.raises(IdempotencyConflictError):
            await alice.ask(msgspec.structs.replace(said, visibility="private"))
        assert (await bob.ask(said)).message_id != message.message_id
        updated = UpdateSession(session_id=session_id, metadata=json('{"n": 1.10}'), idempotency_key="k")
        assert bytes((await alice.ask(updated)).session.metadata) == b'{"n":1.10}'
    async with enter() as at:
        alice = at.agent("alice")
        assert await alice.ask(said) == message
        assert bytes((await alice.ask(updated)).session.metadata) == b'{"n":1.10}'
        assert (await alice.ask(GetSession(session_id=session_id))).message_count == 2


@pytest.mark.promise("sessions.audit")
async def test_changes_and_searches_leave_a_trail_without_content(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        await say(alice, "s", "a secret text", visibility="private", metadata=json('{"x": "secret"}'))
        await bob.ask(SearchContext(session_id="s", query="secret words"))
        await bob.ask(SearchBySender(session_id="s", sender="alice"))
        await bob.ask(SearchByTimerange(session_id="s", start_time=LONG_AGO, end_time=FAR_AHEAD))
        await alice.ask(UpdateSession(session_id="s", status="paused", state=json('{"y": "secret"}')))
        await bob.ask(GetMessages(session_id="s"))
        with refused("SESSION_NOT_FOUND"):
            await say(bob, "nowhere", "secret")
        trail = await at.runtime.query(AuditTrail())
        assert sorted((row.agent, row.session, row.action) for row in trail) == [
            ("alice", "s", "add_message"),
            ("alice", "s", "create_session"),
            ("alice", "s", "update_session"),
            ("bob", "s", "search_by_sender"),
            ("bob", "s", "search_by_timerange"),
            ("bob", "s", "search_context"),
        ]
        assert all(row.at == at.clock.now() for row in trail)
        assert b"secret" not in msgspec.json.encode(trail)


# -- search ------------------------------------------------------------------------


@pytest.mark.promise("sessions.search")
async def test_a_search_says_what_its_window_hid(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        await say(alice, "s", "an ancient zebra")
        at.tick(25 * 3_600)
        await say(alice, "s", *[f"zebra number {number}" for number in range(10)])
        await say(alice, "s", *[f"hidden zebra {number}" for number in range(10)], visibility="private")

        async def search(**arguments: Any) -> tuple[int, int, bool]:
            found = await bob.ask(SearchContext(session_id="s", query="zebra", limit=100, **arguments))
            assert (found.query, found.threshold, found.search_scope) == ("zebra", 60, "all")
            assert found.performance_note.startswith("RapidFuzz enabled")
            return found.message_count, found.scanned, found.truncated

        assert await search() == (10, 10, True)
        assert await search(max_rows_scanned=3) == (3, 3, True)
        assert await search(recent_hours=26) == (11, 11, False)
        assert await search(recent_hours=None) == (11, 11, False)
        assert await search(recent_hours=None, max_rows_scanned=11) == (11, 11, False)
        assert await search(recent_hours=None, max_rows_scanned=None) == (11, 11, False)
        await say(alice, "s", "zebra again")
        assert await search(max_rows_scanned=1) == (1, 1, True)
        assert await search() == (11, 11, True)
        assert await search(recent_hours=1e308) == (12, 12, False)


@pytest.mark.promise("sessions.search")
async def test_a_match_comes_with_its_message_and_its_place(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        text = "lorem ipsum " * 40 + "the quick brown fox" + " dolor sit amet" * 40
        [parent] = await say(alice, "s", text, metadata=json('{"animal": ["wolverine", 7]}'))
        await say(alice, "s", "nothing of the kind", visibility="private", parent_message_id=parent)
        hit = (await alice.ask(SearchContext(session_id="s", query="quick brown fox"))).results[0]
        assert hit.match_preview[hit.match_start : hit.match_end] == "quick brown fox"
        assert (len(hit.match_preview), hit.score, hit.relevance) == (150, 100.0, "high")
        assert hit.match_preview in hit.message.content
        assert hit.message == (await alice.ask(GetMessages(session_id="s"))).messages[0]
        arguments: dict[str, Any] = {"session_id": "s", "query": "wolverine"}
        assert (await alice.ask(SearchContext(**arguments))).message_count == 1
        assert (await alice.ask(SearchContext(**arguments, search_metadata=False))).message_count == 0
        assert (await alice.ask(SearchContext(**arguments, search_scope="private"))).scanned == 1
        assert (await alice.ask(SearchContext(**arguments, search_scope="public"))).scanned == 1
        for row in (await alice.ask(SearchContext(session_id="s", query="fax", fuzzy_threshold=0))).results:
            assert row.relevance == ("high" if row.score >= 80 else "medium" if row.score >= 60 else "low")


@pytest.mark.promise("sessions.search")
async def test_what_is_said_between_searches_is_found(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        source = random.Random(7)  # noqa: S311  a seeded one is what is wanted
        words: list[str] = []
        for number in range(120):
            words.append(f"word{number}x{number * 7919}")
            await say(alice, "s", words[-1], visibility="public" if number % 3 else "private")
            if number % 10 == 0:
                for agent in (alice, bob):
                    sought = source.randrange(len(words))
                    found = await agent.ask(
                        SearchContext(
                            session_id="s",
                            query=words[sought],
                            fuzzy_threshold=100,
                            max_rows_scanned=source.choice([None, 1, 5, 50]),
                        )
                    )
                    seen = [word for index, word in enumerate(words) if index % 3 or agent is alice]
                    window = seen[-found.scanned :] if found.scanned else []
                    expected = [words[sought]] if words[sought] in window else []
                    assert [hit.message.content for hit in found.results] == expected


async def test_searches_of_a_session_are_in_order_and_bounded(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        for number in range(30):
            await say((alice, bob)[number % 2], "s", str(number))
            at.tick()
        sent = await bob.ask(SearchBySender(session_id="s", sender="alice", limit=3))
        assert [message.content for message in sent.messages] == ["28", "26", "24"]
        assert (sent.sender, sent.count, sent.truncated) == ("alice", 3, True)
        nobody = await bob.ask(SearchBySender(session_id="s", sender="not an id/.."))
        assert (nobody.messages, nobody.truncated) == ([], False)
        start, end = moment(START + 5_000_000), moment(START + 9_000_000)
        ranged = await bob.ask(SearchByTimerange(session_id="s", start_time=start, end_time=end, limit=5))
        assert [message.content for message in ranged.messages] == ["5", "6", "7", "8", "9"]
        assert (ranged.timerange.start, ranged.timerange.end, ranged.truncated) == (start, end, False)
        ranged = await bob.ask(SearchByTimerange(session_id="s", start_time=start, end_time=end, limit=4))
        assert (ranged.count, ranged.truncated) == (4, True)
        with refused("VALIDATION_ERROR", field="end_time"):
            await bob.ask(SearchByTimerange(session_id="s", start_time=end, end_time=start))


@pytest.mark.promise("store.kill")
async def test_a_reopened_session_answers_as_before(enter: Enter) -> None:
    async def answers(at: House) -> list[Any]:
        asked: list[Any] = [
            GetSession(session_id="s"),
            GetMessages(session_id="s"),
            ListSessions(),
            SearchContext(session_id="s", query="3", fuzzy_threshold=0),
        ]
        return [await at.agent(name, "planner").ask(one) for name in ("alice", "bob") for one in asked]

    async with enter() as at:
        alice = await begin(at, metadata=json('{"a": 1}'), user_id="u", app_name="a", project_id="x")
        for number in range(5):
            await say(alice, "s", str(number), visibility=("public", "private", "agent_only")[number % 3])
            at.tick()
        before = await answers(at)
        now = at.clock.now()
    async with enter() as at:
        at.clock.jump(now - at.clock.now())
        assert await answers(at) == before
