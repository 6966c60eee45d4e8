"""An agent posts what it could ask, and hears the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support import samples
from support.agents import FAR_AHEAD, AuditTrail, begin, contents, json, refused, value_of
from support.postings import asking
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import (
    API_REQUESTS,
    AddMessage,
    CreateSession,
    GetMemory,
    GetSession,
    ReadResource,
    SetMemory,
    parse_request,
)
from greenroom.runtime import DeadlineExceededError, Message, Refusal, RuntimeClosedError
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from support.agents import Enter

pytestmark = pytest.mark.promise("runtime.post")


async def test_every_operation_of_one_actor_is_answered_by_a_callback(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice", "planner")
        for request in samples.prepared():
            await alice.ask(request)
        for name in samples.in_order():
            if issubclass(API_REQUESTS[name], Message) and name not in samples.ABOUT_NOTHING:
                reply = await asking(alice, samples.request(name)).reply()
                assert reply.success, name


async def test_a_post_gets_the_answer_of_an_ask(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        assert await asking(bob, GetSession(session_id="s")).reply() == await bob.ask(
            GetSession(session_id="s")
        )
        resource = ReadResource(uri="session://s")
        assert await asking(bob, resource).reply() == await bob.ask(resource)
        created = await asking(alice, CreateSession(purpose="p")).reply()
        assert created.session_id.startswith("session_")
        with refused("SESSION_NOT_FOUND", session_id="nowhere"):
            await asking(alice, GetSession(session_id="nowhere")).reply()


async def test_what_no_agent_asks_is_not_posted(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for request in (AuditTrail(), "nothing"):
            with pytest.raises(TypeError, match="not a request that agents ask"):
                asking(alice, request)
        with pytest.raises(Refusal, match="weather"):
            asking(alice, ReadResource(uri="weather://tomorrow"))


async def test_a_memory_for_a_session_asks_the_session_first(enter: Enter) -> None:
    gate = GatedCommitter()
    async with enter(committer=gate) as at:
        alice = at.agent("alice", projects=frozenset({"p"}))
        bob = at.agent("bob", projects=frozenset({"q"}))
        creation = asking(alice, CreateSession(purpose="p", session_id="s", project_id="p"))
        await gate.arrived()
        keeping = asking(alice, SetMemory(key="k", value=json("1"), session_id="s"))
        await wait_all_tasks_blocked()
        assert (creation.accepted, keeping.accepted) == (True, False)
        given_up = asking(alice, SetMemory(key="gone", value=json("1"), session_id="s"))
        given_up.posted.cancel()
        gate.let_all_through()
        assert (await keeping.reply()).scope == "session"
        assert keeping.accepted
        assert await value_of(alice, "k", session_id="s") == "1"
        with refused("SESSION_NOT_FOUND", session_id="s"):
            await asking(bob, SetMemory(key="k", value=json("2"), session_id="s")).reply()
        with refused("MEMORY_NOT_FOUND"):
            await value_of(alice, "gone", session_id="s")
        assert not given_up.accepted


async def test_a_repeat_with_a_key_adds_one_message(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        raw = b'{"session_id":"s","content":"once","idempotency_key":"i"}'
        said = parse_request(AddMessage, raw)
        first, repeat = (asking(alice, said) for _ in range(2))
        assert await first.reply() == await repeat.reply()
        asked = await alice.ask(AddMessage(session_id="s", content="once", idempotency_key="i"))
        assert asked == await asking(alice, said).reply()
        assert await contents(alice) == ["once"]


async def test_posts_of_one_agent_take_effect_in_order(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        said = [asking(alice, AddMessage(session_id="s", content=str(number))) for number in range(99)]
        ids = [(await one.reply()).message_id for one in said]
        assert ids == sorted(ids)
        assert await contents(alice, limit=100) == [str(number) for number in range(99)]


async def test_deadlines_and_the_end_are_told(enter: Enter) -> None:
    gate = GatedCommitter()
    async with enter(committer=gate) as at:
        alice = at.agent("alice")
        now = trio.current_time()
        late = asking(alice, GetMemory(key="k"), deadline=now)
        with pytest.raises(DeadlineExceededError):
            await late.reply()
        with refused("MEMORY_NOT_FOUND", key="k"):
            await asking(alice, GetMemory(key="k"), deadline=now + 1).reply()
        kept = asking(alice, SetMemory(key="k", value=json("1"), expires_in=60))
        await gate.arrived()
        gate.let_all_through()
    assert (await kept.reply()).expires_at < FAR_AHEAD
    with pytest.raises(RuntimeClosedError):
        asking(alice, GetMemory(key="k"))
