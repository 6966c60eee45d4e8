"""Sessions and memory against a plain-Python model, with crashes and failed commits at any commit."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from support.clocks import VirtualClock
from support.model import AGENTS, SESSIONS, STEPS, Model, Said
from support.sabotage import Crash, Saboteur

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
    open_greenroom,
)
from greenroom.runtime import Doors, InlineCommitter, Refusal, RuntimeOptions, StorageFullError

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
ENDINGS = st.sampled_from(["close", "crash before", "crash after", "full"])


class Life:
    """One opening of the store: asks as the agents do, and looks at everything they can see."""

    def __init__(self, runtime: Doors, clock: VirtualClock) -> None:
        self._agents = {name: Agent(runtime, principal) for name, principal in AGENTS.items()}
        self._clock = clock

    async def act(self, action: tuple[Any, ...]) -> str:
        name, *arguments = action
        do: Callable[..., Awaitable[Any]] = getattr(self, f"_{name}")
        try:
            return str(await do(*arguments) or "done")
        except Refusal as refusal:
            return refusal.code
        except StorageFullError:
            return "full"

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
            assert page.total == read.message_count == summary.message_count
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


def apply(model: Model, now: int, action: tuple[Any, ...]) -> str:
    name, *arguments = action
    if name == "say":
        session, sender, content, visibility = arguments
        return model.say(now, session, Said(sender, content, visibility, now))
    if name == "store":
        *arguments, overwrite = arguments
        return model.store(now, *arguments, overwrite=overwrite)
    result: str = getattr(model, name)(now, *arguments)
    return result


class Machine(RuleBasedStateMachine):
    """Lives of one store, one after the other; after each, the next must see exactly what was answered."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._clock = VirtualClock()
        self._models = [Model()]  # two after a crash: with and without the action it interrupted

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(actions=st.lists(ACTIONS, min_size=1, max_size=12), ending=ENDINGS, at=st.integers(1, 12))
    def live(self, actions: list[tuple[Any, ...]], ending: str, at: int) -> None:
        trio.run(self._live, actions, Saboteur(ending, at), clock=trio.testing.MockClock())

    async def _live(self, actions: list[tuple[Any, ...]], saboteur: Saboteur) -> None:
        self._clock.jump(1_000_000)
        try:
            async with open_greenroom(
                Path(self._folder.name) / "store",
                clock=self._clock,
                committer=InlineCommitter(saboteur),
                options=RuntimeOptions(durability="process"),
            ) as runtime:
                life = Life(runtime, self._clock)
                await self._compare(life)
                for number, action in enumerate(actions, start=1):
                    await self._do(life, action, saboteur)
                    if number % 4 == 0 or number == len(actions):
                        await self._compare(life)
        except* Crash:
            assert saboteur.struck

    async def _do(self, life: Life, action: tuple[Any, ...], saboteur: Saboteur) -> None:
        self._clock.jump(1_000)
        if action[0] == "tick":
            self._clock.jump(action[1] * 1_000_000)
            return
        model = self._models[0]
        changed = model.copy()
        wanted = apply(changed, self._clock.now(), action)
        self._models = [model, changed]
        struck_before = saboteur.struck
        answer = await life.act(action)  # a crash leaves from here, and both models stay possible
        if answer == "full":
            assert saboteur.struck > struck_before
            self._models = [model]
        else:
            assert answer == wanted
            self._models = [changed]

    async def _compare(self, life: Life) -> None:
        try:
            seen = await life.look()
        except StorageFullError:  # a search leaves an audit record, so the fault can strike here too
            seen = await life.look()
        possible = [model for model in self._models if expected(model, self._clock.now()) == seen]
        if not possible:
            assert seen == expected(self._models[-1], self._clock.now())
        self._models = possible[:1]


@pytest.mark.promise(
    "sessions.visibility", "sessions.order", "sessions.listing", "sessions.statuses", "identity.visible-only",
    "memory.private", "memory.expiry", "memory.scopes", "memory.listing", "runtime.all-or-nothing",
    "store.kill",
)  # fmt: skip
def test_sessions_and_memory_agree_with_the_model() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=6,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
