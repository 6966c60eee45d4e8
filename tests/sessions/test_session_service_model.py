"""The session service against a plain-Python model: crashes, full disks, one event appended many times."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from support.effort import by_night
from support.lives import ENDINGS, Action, Lives, answer_to
from support.model import CLOSED, SESSIONS, STEPS

from greenroom.actors import (
    AddMessage,
    Agent,
    GetMessages,
    ListSessions,
    Principal,
    ServiceError,
    SessionService,
)
from greenroom.runtime import RuntimeClient, StorageFullError
from greenroom.testing import Fault

pytestmark = pytest.mark.slow

sessions = st.sampled_from(SESSIONS)
keys = st.sampled_from(["k", "user:k", "temp:k", "temp:"])
values = st.sampled_from([None, 1, "1", {"deep": [1.5]}])
deltas = st.none() | st.dictionaries(keys, values, max_size=2)
ACTIONS = st.one_of(
    st.tuples(st.just("create"), sessions, deltas),
    st.tuples(st.just("append"), sessions, st.sampled_from(["a", "b", "c", "d"]),
              st.sampled_from(["message", "action"]), deltas, st.integers(1, 3)),
    st.tuples(st.just("say"), sessions),
    st.tuples(st.just("step"), sessions, st.sampled_from([*sorted(STEPS), "unknown"])),
    st.tuples(st.just("put"), sessions, keys, values),
)  # fmt: skip


@dataclass
class Kept:
    """A session of the model; an event is its id (None: a message), its type, and who appended it."""

    status: str = "created"
    state: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str | None, str]] = field(default_factory=list)
    ended: int | None = None

    @property
    def seen_status(self) -> str:
        talked = any(kind == "message" for _, kind in self.events)
        return "active" if self.status == "created" and talked else self.status


class Model:
    """Everything that was ever acknowledged."""

    def __init__(self) -> None:
        self.sessions: dict[str, Kept] = {}

    def copy(self) -> Model:
        return copy.deepcopy(self)

    def create(self, _: int, name: str, state: dict[str, Any] | None) -> str:
        if name in self.sessions:
            return "KEY_EXISTS"
        self.sessions[name] = Kept(state=dict(state or {}))
        return "done"

    def append(
        self, _: int, name: str, event_id: str, kind: str, delta: dict[str, Any] | None, __: int
    ) -> str:
        session = self.sessions.get(name)
        if session is None:
            return "SESSION_NOT_FOUND"
        if event_id in (known := dict(session.events)):
            return "done" if known[event_id] == kind else "IDEMPOTENCY_CONFLICT"
        if session.status in CLOSED:
            return "SESSION_CLOSED"
        session.events.append((event_id, kind))
        session.state.update(delta or {})
        return "done"

    def say(self, _: int, name: str) -> str:
        session = self.sessions.get(name)
        if session is None:
            return "SESSION_NOT_FOUND"
        if session.status in CLOSED:
            return "SESSION_CLOSED"
        session.events.append((None, "message"))
        return "done"

    def step(self, now: int, name: str, status: str) -> str:
        session = self.sessions.get(name)
        if status not in STEPS:
            return "VALIDATION_ERROR"
        if session is None:
            return "SESSION_NOT_FOUND"
        if status not in {*STEPS[session.status], session.seen_status}:
            return "VALIDATION_ERROR"
        if status in CLOSED and session.status not in CLOSED:
            session.ended = now
            session.state = {k: v for k, v in session.state.items() if not k.startswith("temp:")}
        session.status = status
        return "done"

    def put(self, _: int, name: str, key: str, value: Any) -> str:
        session = self.sessions.get(name)
        if session is None:
            return "SESSION_NOT_FOUND"
        if session.status in CLOSED:
            return "SESSION_CLOSED"
        session.state[key] = value
        return "done"

    def shown(self) -> dict[str, Any]:
        return {
            name: (
                (kept.seen_status, kept.ended, list(kept.state.items()), kept.events)
                if (kept := self.sessions.get(name)) is not None
                else None
            )
            for name in SESSIONS
        }


class Life:
    """One opening of the store, by a service and an agent."""

    def __init__(self, runtime: RuntimeClient) -> None:
        self._service = SessionService(runtime)
        self._agent = Agent(runtime, Principal(agent_id="alice"))

    async def act(self, action: Action) -> str:
        name, *arguments = action
        return await answer_to(getattr(self, f"_{name}")(*arguments))

    async def _create(self, session: str, state: dict[str, Any] | None) -> None:
        await self._service.create_session(session, "model", "ada", initial_state=state)

    async def _append(
        self, session: str, event_id: str, kind: str, delta: dict[str, Any] | None, times: int
    ) -> None:
        """Append one event several times at once; whatever one is answered, all are, and it is one event."""
        answers: list[Any] = []

        async def append() -> None:
            event = {"event_id": event_id, "event_type": kind, "actor": "system", "content": {"of": kind}}
            try:
                answers.append(await self._service.append_event(session, event, delta))
            except (ServiceError, StorageFullError) as error:
                answers.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(times):
                nursery.start_soon(append)
        if isinstance(answers[0], Exception):
            assert {type(answer) for answer in answers} == {type(answers[0])}
            raise answers[0]
        assert answers == [answers[0]] * times

    async def _say(self, session: str) -> None:
        await self._agent.ask(AddMessage(session_id=session, content="a message"))

    async def _step(self, session: str, status: str) -> None:
        await self._service.update_status(session, status)

    async def _put(self, session: str, key: str, value: Any) -> None:
        await self._service.set_state(session, key, value)

    async def look(self) -> dict[str, Any]:
        """Return what the service shows of everything, in the form of `Model.shown`."""
        return {name: await self._session(name) for name in SESSIONS}

    async def _session(self, name: str) -> Any:
        session = await self._service.get_session(name)
        if session is None:
            return None
        page = await self._agent.ask(GetMessages(session_id=name, limit=1_000))
        assert page.total == len(session.events)
        events: list[tuple[str | None, str]] = []
        for message, event in zip(page.messages, session.events, strict=True):
            said = event.event_id == f"message_{message.message_id}"
            assert event.timestamp == message.timestamp
            assert message.sender == ("alice" if said else "system")
            events.append((None if said else event.event_id, event.event_type))
        for key, value in session.state.items():
            assert await self._service.get_state(name, key) == value
        [status] = [
            each.status
            for each in (await self._agent.ask(ListSessions())).sessions
            if each.session_id == name
        ]
        assert status == session.status
        ended = None if session.terminated_at is None else round(session.terminated_at.timestamp() * 1e6)
        return (session.status, ended, list(session.state.items()), events)


class Machine(Lives):
    """Sessions of the service, and an agent's messages in them."""

    def __init__(self) -> None:
        super().__init__(Model())

    @rule(actions=st.lists(ACTIONS, min_size=1, max_size=12), ending=ENDINGS, at=st.integers(1, 12))
    def live(self, actions: list[Action], ending: Fault | None, at: int) -> None:
        self.lead(actions, ending, at)

    def life(self, runtime: RuntimeClient) -> Life:
        return Life(runtime)

    def apply(self, model: Any, action: Action) -> str:
        name, *arguments = action
        answer: str = getattr(model, name)(self.clock.now(), *arguments)
        return answer

    def expected(self, model: Any, _: Any) -> Any:
        return model.shown()


@pytest.mark.promise(
    "service.session", "service.one-log", "service.atomic-append", "service.event-once", "service.state",
    "service.status", "store.kill",
)  # fmt: skip
def test_the_service_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=by_night(300, by_day=12),
            stateful_step_count=6,
            suppress_health_check=list(HealthCheck),
        ),
    )
