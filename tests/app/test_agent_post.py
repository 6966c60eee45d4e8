"""An agent posts what it could ask, and hears the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import FAR_AHEAD, begin, contents, json, refused, value_of
from support.postings import posting
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import (
    REQUESTS,
    AddMessage,
    Agent,
    CreateSession,
    GetMemory,
    GetSession,
    ListResources,
    ListSessions,
    ReadResource,
    SetMemory,
    parse_request,
)
from greenroom.runtime import DeadlineExceededError, Message, Refusal, RuntimeClosedError
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from support.agents import Enter
    from support.postings import Posting

pytestmark = pytest.mark.promise("runtime.post")

ARGUMENTS: dict[str, bytes] = {
    "create_session": b'{"purpose":"p","session_id":"t"}',
    "get_session": b'{"session_id":"s"}',
    "update_session": b'{"session_id":"s","status":"paused"}',
    "add_message": b'{"session_id":"s","content":"hello"}',
    "get_messages": b'{"session_id":"s"}',
    "search_by_sender": b'{"session_id":"s","sender":"alice"}',
    "search_by_timerange": (
        b'{"session_id":"s","start_time":"2000-01-01T00:00:00Z","end_time":"2000-01-02T00:00:00Z"}'
    ),
    "set_memory": b'{"key":"k","value":[1],"session_id":"s"}',
    "get_memory": b'{"key":"k","session_id":"s"}',
    "list_memory": b'{"session_id":"all"}',
    "delete_memory": b'{"key":"k","session_id":"s"}',
    "store_memory": b'{"content":"hello","key":"m"}',
    "update_memory": b'{"key":"m","content":"hello again"}',
    "rate_memory": b'{"key":"m","rating":1}',
    "list_memories": b"{}",
    "list_memory_versions": b'{"key":"m"}',
    "memory_stats": b"{}",
    "forget_memory": b'{"key":"m"}',
    "record_context": b'{"session_id":"s","recent_searches":["hello"]}',
    "get_session_context": b'{"session_id":"s"}',
    "end_session": b'{"session_id":"t"}',
    "reopen_session": b'{"session_id":"t"}',
    "set_preferences": b'{"preferences":{"theme":"dark"}}',
}


def call(agent: Agent, tool: str, arguments: bytes, **options: Any) -> Posting:
    return posting(agent.post, parse_request(REQUESTS[tool], arguments), **options)


ASKED = {"search_context": b'{"session_id":"s","query":"hello"}'}
"""Those that wait for something before the actor has its turn."""


async def test_every_tool_that_is_a_message_can_be_posted_but_those_that_wait(enter: Enter) -> None:
    messages = {name for name, request in REQUESTS.items() if issubclass(request, Message)}
    assert messages == {*ARGUMENTS, *ASKED}
    async with enter() as at:
        alice = await begin(at)
        for tool, arguments in ARGUMENTS.items():
            reply = await call(alice, tool, arguments).reply()
            assert reply.success, tool
        for tool, arguments in ASKED.items():
            with pytest.raises(TypeError, match="not a request that agents post"):
                call(alice, tool, arguments)


async def test_a_post_gets_the_answer_of_an_ask(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        assert await posting(bob.post, GetSession(session_id="s")).reply() == await bob.ask(
            GetSession(session_id="s")
        )
        resource = ReadResource(uri="session://s")
        assert await posting(bob.post, resource).reply() == await bob.ask(resource)
        created = await posting(alice.post, CreateSession(purpose="p")).reply()
        assert created.session_id.startswith("session_")
        with refused("SESSION_NOT_FOUND", session_id="nowhere"):
            await posting(alice.post, GetSession(session_id="nowhere")).reply()


async def test_what_is_no_message_of_an_agent_is_not_posted(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for request in (ListSessions(), ListResources(), "nothing"):
            with pytest.raises(TypeError, match="not a request that agents post"):
                posting(alice.post, request)
        with pytest.raises(Refusal, match="weather"):
            posting(alice.post, ReadResource(uri="weather://tomorrow"))


async def test_a_memory_for_a_session_asks_the_session_first(enter: Enter) -> None:
    gate = GatedCommitter()
    async with enter(committer=gate) as at:
        alice = at.agent("alice", projects=frozenset({"p"}))
        bob = at.agent("bob", projects=frozenset({"q"}))
        creation = posting(alice.post, CreateSession(purpose="p", session_id="s", project_id="p"))
        await gate.arrived()
        keeping = posting(alice.post, SetMemory(key="k", value=json("1"), session_id="s"))
        await wait_all_tasks_blocked()
        assert (creation.accepted, keeping.accepted) == (True, False)
        given_up = posting(alice.post, SetMemory(key="gone", value=json("1"), session_id="s"))
        given_up.posted.cancel()
        gate.let_all_through()
        assert (await keeping.reply()).scope == "session"
        assert keeping.accepted
        assert await value_of(alice, "k", session_id="s") == "1"
        with refused("SESSION_NOT_FOUND", session_id="s"):
            await posting(bob.post, SetMemory(key="k", value=json("2"), session_id="s")).reply()
        with refused("MEMORY_NOT_FOUND"):
            await value_of(alice, "gone", session_id="s")
        assert not given_up.accepted


async def test_a_repeat_with_a_key_adds_one_message(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        raw = b'{"session_id":"s","content":"once","idempotency_key":"i"}'
        first, repeat = (call(alice, "add_message", raw) for _ in range(2))
        assert await first.reply() == await repeat.reply()
        asked = await alice.ask(AddMessage(session_id="s", content="once", idempotency_key="i"))
        assert asked == await call(alice, "add_message", raw).reply()
        assert await contents(alice) == ["once"]


async def test_posts_of_one_agent_take_effect_in_order(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        said = [posting(alice.post, AddMessage(session_id="s", content=str(number))) for number in range(99)]
        ids = [(await one.reply()).message_id for one in said]
        assert ids == sorted(ids)
        assert await contents(alice, limit=100) == [str(number) for number in range(99)]


async def test_deadlines_and_the_end_are_told(enter: Enter) -> None:
    gate = GatedCommitter()
    async with enter(committer=gate) as at:
        alice = at.agent("alice")
        now = trio.current_time()
        late = posting(alice.post, GetMemory(key="k"), deadline=now)
        with pytest.raises(DeadlineExceededError):
            await late.reply()
        with refused("MEMORY_NOT_FOUND", key="k"):
            await posting(alice.post, GetMemory(key="k"), deadline=now + 1).reply()
        kept = posting(alice.post, SetMemory(key="k", value=json("1"), expires_in=60))
        await gate.arrived()
        gate.let_all_through()
    assert (await kept.reply()).expires_at < FAR_AHEAD
    with pytest.raises(RuntimeClosedError):
        posting(alice.post, GetMemory(key="k"))
