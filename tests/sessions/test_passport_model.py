"""Export and import are inverse: on whatever the exporter sees, and on nothing else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
import trio
from hypothesis import given
from support.agents import house
from support.passports import begun, member, seen, text_of

from greenroom.actors import (
    AddMessage,
    DecisionMade,
    ExportSession,
    FileUse,
    GetSession,
    RecordContext,
    RestoreSession,
    SetMemory,
    StoreMemory,
    UpdateSession,
    WorkflowState,
)
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.passports.signing import Signers
from greenroom.actors.sessions.requests.requests import AppendEvent
from greenroom.runtime import Address
from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

PEOPLE: dict[str, dict[str, Any]] = {
    "alice": {"user": "u", "agent_type": "planner"},
    "alice-too": {"user": "u", "agent_type": "tester"},
    "bob": {"user": "b", "agent_type": "planner"},
    "eve": {"user": None},
}
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
json_objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.none() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    max_size=3,
).map(lambda value: msgspec.Raw(_json(value)))
people = st.sampled_from([*PEOPLE, "alice", "alice"])
importances = st.none() | st.sampled_from([0.0, 0.3, 0.51, 1.0, 0.123_456_7])
ACTIONS = st.one_of(
    st.tuples(
        st.just("say"),
        people,
        texts,
        st.sampled_from(["public", "private", "agent_only"]),
        json_objects,
        st.booleans(),
    ),
    st.tuples(st.just("event"), people, json_objects, json_objects),
    st.tuples(st.just("state"), people, json_objects, json_objects),
    st.tuples(
        st.just("record"),
        people,
        texts,
        st.none() | st.sampled_from([0.0, 0.3, 0.51, 1.0, 0.123_456_7]),
        texts,
    ),
    st.tuples(st.just("work"), people, texts),
    st.tuples(st.just("remember"), people, texts),
    st.tuples(st.just("tick"), st.sampled_from([-5.0, 0.001, 3_600.0])),
)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.quick
@pytest.mark.promise("passport.identity")
@given(actions=st.lists(ACTIONS, max_size=25), exporter=st.sampled_from(["alice", "bob", "eve"]))
def test_what_comes_back_is_what_the_exporter_saw(actions: list[tuple[Any, ...]], exporter: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trio.run(_there_and_back, Path(folder), actions, exporter)


async def _there_and_back(folder: Path, actions: list[tuple[Any, ...]], exporter: str) -> None:
    clock = VirtualClock()
    async with house(folder / "one", clock, embedder="none") as here:
        agents = {name: member(here.runtime, name, **who) for name, who in PEOPLE.items()}
        session = await begun(agents["alice"], purpose="there and back")
        last: int | None = None
        for number, action in enumerate(actions):
            match action:
                case ("say", name, text, visibility, metadata, answers):
                    said = AddMessage(
                        session_id=session,
                        content=text,
                        visibility=visibility,
                        metadata=metadata,
                        parent_message_id=last if answers and visibility == "public" else None,
                    )
                    added = await agents[name].ask(said)
                    last = added.message_id if visibility == "public" else last
                case ("event", name, content, delta):
                    event = AppendEvent(
                        session_id=session,
                        event_id=f"event-{number}",
                        event_type="action",
                        actor="user",
                        content=content,
                        state_delta=delta,
                        visibility="public",
                    )
                    await here.runtime.ask(
                        Address("session", session), event, principal=agents[name].principal
                    )
                case ("state", name, metadata, state) if {bytes(metadata), bytes(state)} != {b"{}"}:
                    await agents[name].ask(UpdateSession(session_id=session, metadata=metadata, state=state))
                case ("record", name, path, importance, why):
                    record = RecordContext(
                        session_id=session,
                        files_accessed=[FileUse(path=path, importance=importance)],
                        recent_searches=[why],
                        decisions=[DecisionMade(what=path, why=why)],
                    )
                    await agents[name].ask(record)
                case ("work", name, task):
                    await agents[name].ask(
                        RecordContext(session_id=session, workflow_state=WorkflowState(task=task))
                    )
                case ("remember", name, text):
                    await agents[name].ask(StoreMemory(content=text, key=f"memory-{number}"))
                    value = SetMemory(key=f"value-{number}", value=msgspec.Raw(b"1"), session_id=session)
                    await agents[name].ask(value)
                case ("tick", seconds):
                    here.tick(seconds)
        out = agents[exporter]
        before = await seen(here.runtime, out.principal, session)
        exported = await out.ask(ExportSession(session_id=session, include_memories=True))
        text = await text_of(out, exported)
        signer = Signers(here.runtime.derive).name

    async with house(folder / "two", clock, embedder="none") as there:
        into = member(there.runtime, exporter, trusted=(signer,), **PEOPLE[exporter])
        restored = await into.ask(RestoreSession(passport=text))
        assert restored.session_id == session
        after = await seen(there.runtime, into.principal, session)
        assert _kept(after) == _kept(before)
        # Nothing else came: nobody sees more here than there is of what the exporter saw.
        for name, identity in PEOPLE.items():
            reader = member(there.runtime, name, **identity)
            sees = await seen(there.runtime, reader.principal, session)
            assert set(map(bytes, sees.messages)) <= set(map(bytes, before.messages))
            read = await reader.ask(GetSession(session_id=session))
            assert read.statistics.message_count == len(sees.messages)
    async with house(folder / "two", clock, embedder="none") as there:
        into = member(there.runtime, exporter, **PEOPLE[exporter])
        assert _kept(await seen(there.runtime, into.principal, session)) == _kept(before)


def _kept(content: PassportPayload) -> Any:
    """Return what must be the same, as it is written."""
    session = msgspec.structs.replace(content.session, tool=None, original_tool=None)
    lines = [bytes(line) for line in content.messages]
    written = msgspec.json.encode((session, content.context))
    return written, lines, sorted(map(bytes, content.memories))
