"""Sessions and memory against a plain-Python model, with crashes and failed commits at any commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from support.effort import by_night
from support.lives import ENDINGS, Action, Lives, answer_to
from support.model import AGENTS, SESSIONS, STEPS, Model, Said

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    DeleteMemory,
    GetMemory,
    GetMessages,
    GetSession,
    ListMemory,
    ListSessions,
    SearchBySender,
    SetMemory,
    UpdateSession,
)
from greenroom.runtime import RuntimeClient
from greenroom.testing import Fault, VirtualClock

pytestmark = pytest.mark.slow

agents = st.sampled_from(sorted(AGENTS))
sessions = st.sampled_from(SESSIONS)
scopes = st.none() | sessions
keys = st.sampled_from(["k", "key", "\N{FROG FACE}" * 255])
values = st.sampled_from([None, "123", 123, [1, {"deep": "ly"}], "text"])
ACTIONS = st.one_of(
    st.tuples(st.just("create"), sessions),
    st.tuples(st.just("say"), sessions, agents, st.sampled_from(["hello", "same", "same again"]),
              st.sampled_from(["public", "private", "agent_only"])),
    st.tuples(st.just("step"), sessions, st.sampled_from(sorted(STEPS))),
    st.tuples(st.just("store"), agents, scopes, keys, values, st.sampled_from([None, 1, 100]), st.booleans()),
    st.tuples(st.just("forget"), agents, scopes, keys),
    st.tuples(st.just("tick"), st.sampled_from([1, 99, 101])),
)  # fmt: skip


class Life:
    """One opening of the store: asks as the agents do, and looks at everything they can see."""

    def __init__(self, runtime: RuntimeClient, clock: VirtualClock) -> None:
        self._agents = {name: Agent(runtime, principal) for name, principal in AGENTS.items()}
        self._clock = clock

    async def act(self, action: Action) -> str:
        name, *arguments = action
        do: Callable[..., Awaitable[Any]] = getattr(self, f"_{name}")
        return await answer_to(do(*arguments))

    async def _create(self, session: str) -> None:
        await self._agents["alice"].ask(CreateSession(purpose="model", session_id=session))

    async def _say(self, session: str, agent: str, content: str, visibility: Any) -> None:
        await self._agents[agent].ask(AddMessage(session_id=session, content=content, visibility=visibility))

    async def _step(self, session: str, status: Any) -> None:
        await self._agents["bob"].ask(UpdateSession(session_id=session, status=status))

    async def _store(
        self,
        agent: str,
        session: str | None,
        key: str,
        value: Any,
        lifetime: int | None,
        overwrite: bool,  # noqa: FBT001
    ) -> None:
        raw = msgspec.Raw(msgspec.json.encode(value))
        await self._agents[agent].ask(
            SetMemory(key=key, value=raw, session_id=session, expires_in=lifetime, overwrite=overwrite)
        )

    async def _forget(self, agent: str, session: str | None, key: str) -> str:
        reply = await self._agents[agent].ask(DeleteMemory(key=key, session_id=session))
        return "existed" if reply.existed else "missing"

    async def look(self) -> dict[str, Any]:
        """Return what each agent sees of everything."""
        return {name: await self._look(agent) for name, agent in self._agents.items()}

    async def _look(self, agent: Agent) -> dict[str, Any]:
        listed = (await agent.ask(ListSessions())).sessions
        return {
            "order": [summary.session_id for summary in listed],
            "sessions": {summary.session_id: await self._session(agent, summary) for summary in listed},
            "memory": [await self._entry(agent, entry) for entry in await self._entries(agent)],
        }

    async def _session(self, agent: Agent, summary: Any) -> dict[str, Any]:
        session_id = summary.session_id
        read = await agent.ask(GetSession(session_id=session_id))
        messages: list[Any] = []
        cursor = None
        while not messages or cursor is not None:
            page = await agent.ask(GetMessages(session_id=session_id, limit=2, cursor=cursor))
            assert page.total == read.statistics.message_count == summary.message_count
            messages += page.messages
            cursor = page.next_cursor
            if not page.messages:
                break
        ids = [message.message_id for message in messages]
        assert ids == sorted(set(ids))
        assert [message.message_id for message in read.messages] == ids[-100:]
        for sender in AGENTS:
            found = (await agent.ask(SearchBySender(session_id=session_id, sender=sender))).messages
            theirs = [message.message_id for message in messages if message.sender == sender]
            assert [message.message_id for message in found] == theirs[::-1][:20]
        assert summary.last_activity == read.statistics.last_activity
        assert read.statistics.unique_agents == len({message.sender for message in messages})
        return {
            "status": read.session.status,
            "messages": [(message.sender, message.content, message.visibility) for message in messages],
        }

    async def _entries(self, agent: Agent) -> list[Any]:
        entries: list[Any] = []
        cursor = None
        while True:
            page = await agent.ask(ListMemory(session_id="all", limit=2, cursor=cursor))
            entries += page.entries
            cursor = page.next_cursor
            if cursor is None:
                return entries

    async def _entry(self, agent: Agent, entry: Any) -> tuple[Any, ...]:
        read = await agent.ask(GetMemory(key=entry.key, session_id=entry.session_id))
        assert entry.value_size == len(bytes(read.value))
        assert read.version == entry.version
        return (entry.session_id, entry.key, msgspec.json.decode(read.value), read.version)


def expected(model: Model, now: int) -> dict[str, Any]:
    """Return what `Life.look` must return."""
    return {agent: _expected_of(model, agent, now) for agent in AGENTS}


def _expected_of(model: Model, agent: str, now: int) -> dict[str, Any]:
    mine = [(key, entry) for key, entry in model.live(now).items() if key[0] == agent]
    return {
        "order": sorted(
            model.sessions, key=lambda name: model.sessions[name].last_activity(agent), reverse=True
        ),
        "sessions": {
            name: {
                "status": session.seen_status(agent),
                "messages": [(said.sender, said.content, said.visibility) for said in session.visible(agent)],
            }
            for name, session in model.sessions.items()
        },
        "memory": [
            (session, key, entry.value, entry.version)
            for (_, session, key), entry in sorted(mine, key=lambda item: item[1].at, reverse=True)
        ],
    }


def apply(model: Model, now: int, action: Action) -> str:
    name, *arguments = action
    if name == "say":
        session, sender, content, visibility = arguments
        return model.say(now, session, Said(sender, content, visibility, now))
    if name == "store":
        *arguments, overwrite = arguments
        return model.store(now, *arguments, overwrite=overwrite)
    result: str = getattr(model, name)(now, *arguments)
    return result


class Machine(Lives):
    """Agents' sessions and memory."""

    looks_every = 4
    looking_writes = True  # a search leaves an audit record

    def __init__(self) -> None:
        super().__init__(Model())

    @rule(actions=st.lists(ACTIONS, min_size=1, max_size=12), ending=ENDINGS, at=st.integers(1, 12))
    def live(self, actions: list[Action], ending: Fault | None, at: int) -> None:
        self.lead(actions, ending, at)

    def life(self, runtime: RuntimeClient) -> Life:
        return Life(runtime, self.clock)

    def apply(self, model: Any, action: Action) -> str:
        return apply(model, self.clock.now(), action)

    def expected(self, model: Any, _: Any) -> Any:
        return expected(model, self.clock.now())


@pytest.mark.promise(
    "sessions.visibility", "sessions.order", "sessions.listing", "sessions.statuses", "identity.visible-only",
    "memory.private", "memory.expiry", "memory.scopes", "memory.listing", "runtime.all-or-nothing",
    "store.kill",
)  # fmt: skip
def test_sessions_and_memory_agree_with_the_model() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=by_night(300, by_day=12),
            stateful_step_count=6,
            suppress_health_check=list(HealthCheck),
        ),
    )
