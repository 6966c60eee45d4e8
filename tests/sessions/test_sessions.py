"""Sessions: identities, statuses and fields; what is written costs the same however much is there."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import (
    FAR_AHEAD,
    LONG_AGO,
    begin,
    contents,
    json,
    keep,
    moment,
    refused,
    say,
    value_of,
    wire,
)

from greenroom.actors import (
    CreateSession,
    GetMessages,
    GetSession,
    ListSessions,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    UpdateSession,
)
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.sessions.storage import records as session_ids
from greenroom.actors.sessions.storage.records import STEPS
from greenroom.runtime import InlineCommitter
from greenroom.testing import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter, House

    from greenroom.actors import Agent
    from greenroom.runtime import Store, WriteBatch

STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)


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


@pytest.mark.promise("sessions.bounded-writes")
async def test_a_write_costs_the_same_bytes_however_long_the_session_is(enter: Enter) -> None:
    written: list[int] = []

    def weigh(store: Store, works: Sequence[WriteBatch]) -> None:
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


@pytest.mark.promise("sessions.message-ids")
@given(
    times=st.lists(st.integers(min_value=-(10**12), max_value=2**62), min_size=2, max_size=50),
    seed=st.integers(0, 1_000),
)
def test_ids_increase_within_53_bits_whatever_the_clock_does(times: list[int], seed: int) -> None:
    last, ahead, source = 0, 0, random.Random(seed)  # noqa: S311  a seeded one is what is wanted
    bound = 0
    for time in times:
        stamp = session_ids.next_id(last, ahead, time, source)
        bound = max(bound, stamp.ahead)
        assert last < stamp.message_id < 2**53
        assert session_ids.lowest_id(time) <= stamp.message_id <= session_ids.highest_id(time, bound)
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


async def test_a_clock_that_jumped_back_leaves_one_place_in_the_listing(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        at.clock.jump(-HOUR)
        await alice.ask(UpdateSession(session_id="s", status="paused"))
        listed = (await alice.ask(ListSessions())).sessions[0].last_activity
    async with enter() as at:
        alice = at.agent("alice", "planner")
        assert (await alice.ask(GetSession(session_id="s"))).statistics.last_activity == listed


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
            if new in {*STEPS[old], old}:
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
async def test_the_status_that_a_session_has_changes_nothing(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        for status in STATUSES:
            if status != "created":
                at.tick()
                await alice.ask(UpdateSession(session_id="s", status=status))
            before = await alice.ask(GetSession(session_id="s"))
            at.tick()
            updated = await alice.ask(UpdateSession(session_id="s", status=status))
            assert updated.session == before.session
            assert await alice.ask(GetSession(session_id="s")) == before
            if status in {"terminated", "archived"}:
                with refused("SESSION_CLOSED"):
                    await alice.ask(UpdateSession(session_id="s", status=status, state=json('{"a": 1}')))
        await alice.ask(CreateSession(purpose="p", session_id="t"))
        await say(alice, "t", "note", visibility="private")
        with refused("VALIDATION_ERROR", **{"from": "active", "to": "created"}):
            await alice.ask(UpdateSession(session_id="t", status="created"))
        assert (await bob.ask(UpdateSession(session_id="t", status="created"))).session.status == "created"


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
async def test_a_memory_for_an_ended_session_is_refused_as_a_message_is(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at, project_id="p")
        stranger = at.agent("eve", projects=frozenset())
        await keep(alice, "k", session_id="s", idempotency_key="once")
        for status in ("terminated", "archived"):
            await alice.ask(UpdateSession(session_id="s", status=status))
            for key in ("k", "new"):
                with refused("SESSION_CLOSED", status=status, session_id="s"):
                    await keep(alice, key, session_id="s")
                with refused("SESSION_NOT_FOUND", session_id="s"):
                    await keep(stranger, key, session_id="s")
            assert await keep(alice, "k", session_id="s", idempotency_key="once") == 1
            assert await value_of(alice, "k", session_id="s") == "1"
        assert await keep(alice, "k") == 1, "what is kept for no session needs none"


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
