"""How a session begins and ends: those that somebody created, those that nothing came of, and ends undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail, refused
from support.agents import json as raw

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    DecisionMade,
    EndSession,
    ExportSession,
    GetSession,
    GetSessionContext,
    ListSessions,
    MigrateSession,
    Principal,
    RecordContext,
    RenameSession,
    ReopenSession,
    RestoreSession,
    StartSession,
    UpdateSession,
    open_greenroom,
)
from greenroom.actors.sessions.storage import directory, migrations
from greenroom.runtime import IndexReader, Procedure

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

HOUR = 3_600


def tool(runtime: Any, name: str, *, user: str | None = "user", **more: Any) -> Agent:
    return Agent(runtime, Principal(agent_id=name, user=user, **more), client=name)


# -- sessions that somebody created ------------------------------------------------------------------


@pytest.mark.promise("passport.offered")
@pytest.mark.parametrize("user", ["user", None])
async def test_a_created_session_is_taken_up_listed_and_resumed_like_a_started_one(
    tmp_path: Path, user: str | None
) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        planner = tool(runtime, "planner", user=user)
        await planner.ask(CreateSession(session_id="plan", purpose="the plan", project_id="atlas"))
        assert not (await tool(runtime, "planner", user=user).ask(StartSession(project_id="atlas"))).restored
        await planner.ask(AddMessage(session_id="plan", content="first step"))
        again = tool(runtime, "planner", user=user)
        began = await again.ask(StartSession(project_id="atlas"))
        assert (began.session_id, began.restored) == ("plan", True)
        assert began.taken_up is not None
        assert began.taken_up.from_tool == "planner"
        assert (await again.ask(StartSession(project_id="atlas", restore_from="latest"))).session_id == "plan"
        steps = (await again.ask(GetSessionContext())).migrations
        assert {step.outcome for step in steps} == {"resumed"}
        assert "plan" in {each.session_id for each in (await again.ask(ListSessions())).sessions}
        stranger = tool(runtime, "zed", user="mallory")
        assert not (await stranger.ask(StartSession(project_id="atlas"))).restored


@pytest.mark.promise("passport.offered")
async def test_what_is_created_for_somebody_else_is_not_offered_to_who_created_it(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        service = tool(runtime, "service", user=None)
        await service.ask(CreateSession(purpose="p", user_id="customer", initial_state=raw('{"a": 1}')))
        assert not (await service.ask(StartSession())).restored


@pytest.mark.promise("passport.offered")
async def test_a_session_that_an_older_program_created_is_found_among_the_latest(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enter(embedder="none") as house:
        with monkeypatch.context() as before:
            before.setattr(migrations, "put_recent", lambda *_: None)  # it listed what it started alone
            planner = tool(house.runtime, "planner")
            await planner.ask(CreateSession(session_id="plan", purpose="p", initial_state=raw('{"a": 1}')))
        began = await tool(house.runtime, "cursor").ask(StartSession())
        assert began.session_id == "plan"
        assert not (await tool(house.runtime, "zed", user="mallory").ask(StartSession())).restored


# -- sessions of which nothing came ------------------------------------------------------------------


class Rows(Procedure[list[str]], frozen=True, kw_only=True):
    """Whose rows there are in the indexes of sessions."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> list[str]:
        listed = [row.address.key for row in reader.rows(directory.INDEX, object)]
        return listed + [row.address.key for row in reader.rows(migrations.INDEX, object)]


async def left(house: House) -> list[str]:
    found = await tool(house.runtime, "cursor").ask(ListSessions())
    return [each.session_id for each in found.sessions]


@pytest.mark.promise("passport.swept")
async def test_an_unnamed_session_of_which_nothing_came_goes_after_an_hour(enter: Enter) -> None:
    async with enter(embedder="none", queries=[AuditTrail, Rows]) as house:
        claude = tool(house.runtime, "claude-code")
        started = await claude.ask(StartSession())
        claude.close()
        await trio.sleep(HOUR - 1)
        assert await left(house) == [started.session_id]
        await trio.sleep(2)
        assert await left(house) == []
        assert await house.runtime.query(Rows()) == []
        with refused("SESSION_NOT_FOUND"):
            await claude.ask(GetSession(session_id=started.session_id or ""))
        swept = [row for row in await house.runtime.query(AuditTrail()) if row.action == "sweep_session"]
        assert [(row.session, row.agent) for row in swept] == [(started.session_id, None)]


LEFT: dict[str, Callable[[Agent, str], Awaitable[Any]]] = {
    "a message": lambda who, at: who.ask(AddMessage(session_id=at, content="x", visibility="private")),
    "state": lambda who, at: who.ask(UpdateSession(session_id=at, state=raw('{"a": 1}'))),
    "metadata": lambda who, at: who.ask(UpdateSession(session_id=at, metadata=raw('{"a": 1}'))),
    "a search": lambda who, at: who.ask(RecordContext(session_id=at, recent_searches=["x"])),
    "a decision": lambda who, at: who.ask(RecordContext(session_id=at, decisions=[DecisionMade(what="x")])),
    "a hand-over": lambda who, at: who.ask(MigrateSession(session_id=at, to_tool="zed")),
    "a name given later": lambda who, at: who.ask(RenameSession(session_id=at, purpose="for later")),
    "its end": lambda who, at: who.ask(EndSession(session_id=at)),
}


@pytest.mark.promise("passport.swept")
@pytest.mark.parametrize("what", [*LEFT, "a name", "a creation"])
@pytest.mark.slow
async def test_a_session_in_which_anything_was_left_stays(enter: Enter, what: str) -> None:
    async with enter(embedder="none") as house:
        claude = tool(house.runtime, "claude-code")
        if what == "a creation":
            session_id: str | None = (
                await claude.ask(CreateSession(purpose="Work in Claude Code"))
            ).session_id
        else:
            purpose = "later" if what == "a name" else None
            session_id = (await claude.ask(StartSession(purpose=purpose))).session_id
        if what in LEFT:
            assert session_id is not None
            await LEFT[what](claude, session_id)
        claude.close()
        for _ in range(3):
            await trio.sleep(HOUR + 1)
        assert await left(house) == [session_id]


@pytest.mark.promise("passport.swept")
@pytest.mark.parametrize("who", ["its connection", "a subscriber"])
@pytest.mark.slow
async def test_a_session_where_somebody_is_there_goes_when_nobody_is_any_more(enter: Enter, who: str) -> None:
    async with enter(embedder="none") as house:
        claude = tool(house.runtime, "claude-code")
        started = await claude.ask(StartSession())
        with tool(house.runtime, "cursor").subscriber() as subscriber:
            if who == "a subscriber":
                subscriber.add(f"session://{started.session_id}")
                claude.close()
            for _ in range(3):
                await trio.sleep(HOUR + 1)
                assert await left(house) == [started.session_id]
        claude.close()
        await trio.sleep(HOUR + 1)
        assert await left(house) == []


# -- ends undone -------------------------------------------------------------------------------------


@pytest.mark.promise("passport.reopened")
async def test_a_terminated_session_is_reopened_and_goes_on(enter: Enter) -> None:
    async with enter(embedder="none", queries=[AuditTrail]) as house:
        claude, cursor = tool(house.runtime, "claude-code"), tool(house.runtime, "cursor")
        session = (await claude.ask(StartSession(purpose="release"))).session_id
        assert session is not None
        await claude.ask(UpdateSession(session_id=session, state=raw('{"a": 1, "temp:b": 2}')))
        house.tick()
        ended = await claude.ask(EndSession(summary="done"))
        house.tick()
        with refused("SESSION_CLOSED") as caught:
            await cursor.ask(AddMessage(session_id=session, content="more"))
        assert "reopen_session opens it again" in caught.value.sentence
        reopened = await cursor.ask(ReopenSession(session_id=session))
        assert (reopened.status, reopened.ended_at) == ("active", ended.ended_at)
        shown = (await cursor.ask(GetSession(session_id=session))).session
        assert (shown.status, shown.terminated_at, bytes(shown.state)) == ("active", None, b'{"a":1}')
        began = await cursor.ask(StartSession())
        assert (began.session_id, [made.what for made in began.context.decisions]) == (session, ["done"])
        steps = (await cursor.ask(GetSessionContext())).migrations
        assert [(step.outcome, step.by) for step in steps] == [
            ("started", "claude-code"),
            ("reopened", "cursor"),
            ("resumed", "cursor"),
        ]
        rows = [(row.action, row.session, row.agent) for row in await house.runtime.query(AuditTrail())]
        assert ("reopen_session", session, "cursor") in rows
        exported = await cursor.ask(ExportSession())  # its way can travel, too
        await cursor.ask(EndSession())
        assert (await cursor.ask(RestoreSession(passport=exported.claim))).session_id != session


@pytest.mark.promise("passport.reopened")
async def test_only_a_terminated_session_is_reopened_and_by_no_other_step(enter: Enter) -> None:
    async with enter(embedder="none") as house:
        claude = tool(house.runtime, "claude-code")
        await claude.ask(CreateSession(session_id="s", purpose="p"))
        with refused("VALIDATION_ERROR", field="session_id", status="created"):
            await claude.ask(ReopenSession(session_id="s"))
        await claude.ask(UpdateSession(session_id="s", status="terminated"))
        with refused("VALIDATION_ERROR", allowed=["archived"]):
            await claude.ask(UpdateSession(session_id="s", status="active"))
        await claude.ask(UpdateSession(session_id="s", status="archived"))
        with refused("VALIDATION_ERROR", status="archived") as caught:
            await claude.ask(ReopenSession(session_id="s"))
        assert "start_session with restore_from begins one that continues it" in caught.value.sentence
        assert (await claude.ask(RestoreSession(session_id="s"))).continues == "s"
        assert (await claude.ask(GetSession(session_id="s"))).session.status == "archived"
        stranger = tool(house.runtime, "zed", projects=frozenset({"q"}))
        await claude.ask(CreateSession(session_id="t", purpose="p", project_id="p"))
        for session_id in ("t", "nowhere"):
            with refused("SESSION_NOT_FOUND"):
                await stranger.ask(ReopenSession(session_id=session_id))


@pytest.mark.promise("passport.reopened")
async def test_a_repeated_reopening_gets_the_first_answer(enter: Enter) -> None:
    async with enter(embedder="none") as house:
        claude = tool(house.runtime, "claude-code")
        await claude.ask(CreateSession(session_id="s", purpose="p"))
        await claude.ask(EndSession(session_id="s"))
        asked = ReopenSession(session_id="s", idempotency_key="k")
        first = await claude.ask(asked)
        await claude.ask(EndSession(session_id="s"))
        assert await claude.ask(asked) == first
        assert (await claude.ask(GetSession(session_id="s"))).session.status == "terminated"
