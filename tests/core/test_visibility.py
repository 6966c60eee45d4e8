"""What a reader may not see leaves no trace in anything that it gets.

The same story is told in two worlds: whole, and without what the reader may not see.
Every answer to the reader must be the same in both, ids aside, which are compared by
their order.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import example, given

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMemory,
    GetMessages,
    GetSession,
    ListMemory,
    ListSessions,
    MessageAdded,
    Principal,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    SetMemory,
    UpdateSession,
    open_greenroom,
)
from greenroom.runtime import InlineCommitter, Refusal, RuntimeOptions
from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

PEOPLE = {
    "ann": Principal(agent_id="ann", agent_type="coder", projects=frozenset({"p"})),
    "ben": Principal(agent_id="ben", agent_type="coder", projects=frozenset({"p"})),
    "cat": Principal(agent_id="cat", agent_type="tester", projects=frozenset({"p"})),
    "dan": Principal(agent_id="dan", projects=frozenset()),
}
IDS = {"id", "message_id", "parent_message_id"}
PROJECT_OF = {"open": None, "closed": "p"}
WORDS = ["deploy", "database", "databse", "the secret plan", "deploy the database tonight", "42"]

people = st.sampled_from(sorted(PEOPLE))
places = st.sampled_from(sorted(PROJECT_OF))
sayings = st.tuples(
    st.just("say"), people, places, st.sampled_from(WORDS),
    st.sampled_from(["public", "private", "agent_only"]),
    st.booleans(),  # whether it answers the newest message there that the doer may know
)  # fmt: skip
updates = st.tuples(st.just("update"), people, places, st.sampled_from([None, "active", "paused"]))
notes = st.tuples(st.just("note"), people, st.none() | st.just("open"), st.sampled_from(["k1", "k2"]))
gaps = st.sampled_from([0, 1, 1_000_000])  # microseconds; ids tell times from 16 on apart
stories = st.lists(
    st.tuples(gaps, st.one_of(sayings, sayings, sayings, notes, updates)), min_size=1, max_size=25
)
Deed = tuple[Any, ...]
Story = list[tuple[int, Deed]]


def is_member(name: str, session: str) -> bool:
    project = PROJECT_OF[session]
    return project is None or project in (PEOPLE[name].projects or ())


def may_know(reader: str, deed: Deed) -> bool:
    """Say by the rules of the specification whether ``reader`` may notice a deed."""
    kind, doer = deed[0], deed[1]
    if kind == "note":
        return bool(doer == reader)
    if not is_member(reader, deed[2]):
        return False
    if kind == "update":
        return True
    visibility = deed[4]
    mine, theirs = PEOPLE[reader].agent_type, PEOPLE[doer].agent_type
    same_type = mine is not None and mine == theirs
    return visibility == "public" or doer == reader or (visibility == "agent_only" and same_type)


@asynccontextmanager
async def world(folder: str, reader: str, story: Story, *, whole: bool) -> AsyncIterator[Agent]:
    """Tell a story, at the same times whether or not all of it happens, and let the reader in."""
    clock = VirtualClock()
    async with open_greenroom(
        Path(folder) / ("whole" if whole else "seen"),
        clock=clock,
        committer=InlineCommitter(),
        options=RuntimeOptions(durability="process"),
    ) as runtime:
        agents = {name: Agent(runtime, principal) for name, principal in PEOPLE.items()}
        for session, project in PROJECT_OF.items():
            clock.jump(1_000)
            if whole or is_member(reader, session):
                await agents["ann"].ask(CreateSession(purpose="p", session_id=session, project_id=project))
        said: dict[int, int] = {}  # by number of the deed
        for number, (gap, deed) in enumerate(story):
            clock.jump(gap)
            if whole or may_know(reader, deed):
                reply = await do(agents[deed[1]], deed, parent_of(deed, story[:number], said))
                if isinstance(reply, MessageAdded):
                    said[number] = reply.message_id
        clock.jump(1_000_000)
        yield agents[reader]


def parent_of(deed: Deed, before: Story, said: dict[int, int]) -> int | None:
    """Return the id of the message that a deed answers, None if it answers none or it was not said here."""
    if deed[0] == "say" and deed[5]:
        for number, (_, other) in reversed(list(enumerate(before))):
            known = other[0] == "say" and may_know(deed[1], other) and is_member(other[1], other[2])
            if known and other[2] == deed[2]:
                return said.get(number)
    return None


async def do(agent: Agent, deed: Deed, parent: int | None) -> Any:
    request: Any
    if deed[0] == "say":
        _, _, session, content, visibility, _ = deed
        request = AddMessage(
            session_id=session, content=content, visibility=visibility, parent_message_id=parent
        )
    elif deed[0] == "update":
        _, _, session, status = deed
        request = UpdateSession(session_id=session, status=status, metadata=msgspec.Raw(b'{"a": 1}'))
    else:
        _, _, session, key = deed
        request = SetMemory(key=key, value=msgspec.Raw(b"1"), session_id=session)
    try:
        return await agent.ask(request)
    except Refusal as refusal:
        # The outsiders' tries are part of the story, and so is a session that does not go back.
        assert refusal.code in {"SESSION_NOT_FOUND", "VALIDATION_ERROR"}  # noqa: PT017  see above


async def everything(agent: Agent) -> list[Any]:
    """Return the answers of every read path, as a client parses them, with comparable ids.

    Ids are compared within a session; those of two sessions have no order when the clock stands still.
    """
    past, future = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    requests: list[Any] = [ListSessions(limit=1), ListSessions(), ListMemory(session_id="all")]
    requests += [GetMemory(key=key, session_id=scope) for key in ("k1", "k2") for scope in (None, "open")]
    answers = ranked(await answered(agent, requests))
    for session in PROJECT_OF:
        requests = [
            GetSession(session_id=session),
            GetMessages(session_id=session, limit=2),
            GetMessages(session_id=session, offset=1),
            SearchByTimerange(session_id=session, start_time=past, end_time=future),
            SearchContext(session_id=session, query="deploy database", fuzzy_threshold=0, limit=5),
            SearchContext(session_id=session, query="databas", max_rows_scanned=3),
            SearchContext(session_id=session, query="secret", recent_hours=None, max_rows_scanned=None),
        ]
        requests += [
            GetMessages(session_id=session, visibility_filter=kind)
            for kind in ("public", "private", "agent_only")
        ]
        requests += [SearchBySender(session_id=session, sender=name) for name in PEOPLE]
        answers += ranked(await answered(agent, requests))
    return answers


async def answered(agent: Agent, requests: list[Any]) -> list[Any]:
    answers: list[Any] = []
    for request in requests:
        try:
            reply = msgspec.json.decode(msgspec.json.encode(await agent.ask(request)))
        except Refusal as refusal:
            reply = (refusal.code, refusal.sentence, refusal.details)
        answers.append(reply)
    return answers


def ranked(answers: list[Any]) -> list[Any]:
    """Replace message ids by their rank, and cursors, which carry ids, by whether there is one."""
    ids: set[int] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            ids.update(value[name] for name in ("message_id",) if name in value)
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)

    collect(answers)
    rank = {message_id: number for number, message_id in enumerate(sorted(ids))}

    def replaced(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: replaced(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [replaced(part, name) for part in value]
        if name in {"next_cursor", "cursor"}:
            return value is not None
        return rank.get(value, value) if name in IDS else value

    result: list[Any] = replaced(answers)
    return result


@pytest.mark.promise(
    "sessions.visibility", "identity.visible-only", "identity.alike", "sessions.project", "sessions.listing",
    "memory.private", "sessions.message-ids",
)  # fmt: skip
@given(story=stories, reader=people)
@example(
    story=[(1, ("say", "ann", "open", "42", kind, kind == "public")) for kind in ("private", "public")],
    reader="ben",
)
def test_the_hidden_leaves_no_trace(story: Story, reader: str) -> None:
    async def compare() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with world(folder, reader, story, whole=True) as agent:
                whole = await everything(agent)
            async with world(folder, reader, story, whole=False) as agent:
                seen = await everything(agent)
        for of_whole, of_seen in zip(whole, seen, strict=True):
            assert of_whole == of_seen

    trio.run(compare, clock=trio.testing.MockClock())
