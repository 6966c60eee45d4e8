"""Where one tool ended, the next one begins: a start takes up the session that is clearly meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import json as raw
from support.briefings import lines_of

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    DecisionMade,
    EndSession,
    ExportSession,
    GetSession,
    GetSessionContext,
    MigrateSession,
    Principal,
    RecordContext,
    RenameSession,
    RestoreSession,
    SessionLocator,
    SetMemory,
    StartSession,
    UpdateSession,
    WorkflowCheckpoint,
    open_greenroom,
)
from greenroom.actors.core.replies.replies import ToolCall
from greenroom.actors.core.resources.resource_uris import session_uri
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

    from greenroom.actors import SessionStarted
    from greenroom.actors.sessions.requests.handover import Offer

HOME = "/home/user/greenroom"
pytestmark = pytest.mark.promise("passport.taken-up")


def agent(runtime: Any, name: str, *, user: str | None = "user", **more: Any) -> Agent:
    locator = more.pop("locator", None)
    who = Principal(agent_id=name, user=user, **more)
    return Agent(runtime, who, client=name, locator=locator)


def call_of(offer: Offer) -> dict[str, Any]:
    """The arguments of an offer's complete call of `start_session`."""
    assert isinstance(offer.call, ToolCall)
    assert offer.call.tool == "start_session"
    return offer.call.arguments


async def worked(runtime: Any, name: str = "claude-code", **arguments: Any) -> str:
    """A tool starts a session, works in it and goes; return the session's id."""
    tool = agent(runtime, name)
    started = await tool.ask(StartSession(new=True, **arguments))
    assert started.session_id is not None
    await tool.ask(RecordContext(decisions=[DecisionMade(what=f"{name} did it")]))
    tool.close()
    return started.session_id


async def test_a_start_takes_up_what_the_tool_before_it_left(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        left = await worked(runtime, purpose="Ship release 2")
        cursor = agent(runtime, "cursor")
        began = await cursor.ask(StartSession())
        assert (began.session_id, began.restored, began.offered) == (left, True, [])
        assert [made.what for made in began.context.decisions] == ["claude-code did it"]
        assert lines_of(began.briefing) == ["Session: Ship release 2", "Decided: claude-code did it"]
        assert began.taken_up is not None
        assert began.taken_up.from_tool == "claude-code"
        assert "Resumed 'Ship release 2' from claude-code, last used 2" in began.notice
        read = await cursor.ask(GetSessionContext())
        assert (read.session_id, read.tool, read.original_tool) == (left, "cursor", "claude-code")
        assert [move.outcome for move in read.migrations] == ["started", "resumed"]
        assert (await cursor.ask(StartSession())).session_id == left  # what it holds itself is no obstacle


@pytest.mark.parametrize("kind", ["message", "state", "metadata", "search", "note", "handed over", "created"])
async def test_whatever_work_is_in_a_session_makes_it_one_to_take_up(tmp_path: Path, kind: str) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        tool = agent(runtime, "claude-code")
        session_id = (await tool.ask(StartSession())).session_id
        if kind == "created":
            made = CreateSession(purpose="plan", initial_state=raw('{"a": 1}'))
            session_id = (await tool.ask(made)).session_id
        assert session_id is not None
        requests: dict[str, Any] = {
            "message": AddMessage(session_id=session_id, content="hello"),
            "state": UpdateSession(session_id=session_id, state=raw('{"step": 1}')),
            "metadata": UpdateSession(session_id=session_id, metadata=raw('{"step": 1}')),
            "search": RecordContext(recent_searches=["x"]),
            "note": RecordContext(decisions=[DecisionMade(what="x")]),
            "handed over": MigrateSession(to_tool="cursor", note="tests are next"),
            "created": GetSession(session_id=session_id),
        }
        await tool.ask(requests[kind])
        tool.close()
        began = await agent(runtime, "cursor").ask(StartSession())
    assert (began.session_id, began.restored) == (session_id, True)


async def test_an_empty_session_is_neither_offered_nor_the_latest(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        left = await worked(runtime)
        empty = agent(runtime, "zed")
        await empty.ask(StartSession(new=True, purpose="later"))
        latest = await agent(runtime, "cursor").ask(StartSession(restore_from="latest"))
        assert (latest.session_id, latest.offered) == (left, [])
        assert latest.restored


async def test_what_a_reader_may_not_see_is_no_work_to_it(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        tool = agent(runtime, "claude-code")
        started = await tool.ask(StartSession())
        assert started.session_id is not None
        await tool.ask(AddMessage(session_id=started.session_id, content="mine", visibility="private"))
        tool.close()
        assert not (await agent(runtime, "cursor").ask(StartSession())).restored
        assert (await agent(runtime, "claude-code").ask(StartSession())).session_id == started.session_id


async def test_another_user_and_another_project_take_up_nothing(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        await worked(runtime, workspace_path=HOME)
        for began in (
            await agent(runtime, "cursor").ask(StartSession(workspace_path="/elsewhere")),
            await agent(runtime, "cursor").ask(StartSession()),
            await agent(runtime, "cursor", user="mallory").ask(StartSession(workspace_path=HOME)),
        ):
            assert (began.restored, began.offered) == (False, [])
            assert began.notice.startswith("Began a new session")
        latest = await agent(runtime, "cursor", user="mallory").ask(StartSession(restore_from="latest"))
        assert not latest.restored
        assert latest.notice.startswith(
            "Began a new session: you have no open one in this project to restore"
        )


def offers(began: SessionStarted) -> list[tuple[str, str, str, bool, str]]:
    return [(each.session_id, each.purpose, each.tool, each.held, each.contents) for each in began.offered]


async def test_among_several_the_caller_chooses(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        first = await worked(runtime, purpose="one")
        second = await worked(runtime, "zed", purpose="two")
        cursor = agent(runtime, "cursor")
        began = await cursor.ask(StartSession())
        assert (began.restored, began.taken_up, began.briefing) == (False, None, "")
        assert began.session_id not in {first, second}
        assert (await cursor.ask(AddMessage(session_id=began.session_id, content="here"))).message_id
        assert offers(began) == [
            (second, "two", "zed", False, "1 decision"),
            (first, "one", "claude-code", False, "1 decision"),
        ]
        assert "2 open sessions have work in them: to go on with one instead" in began.notice
        chosen = await cursor.ask(StartSession(**call_of(began.offered[1])))
        assert (chosen.session_id, chosen.restored) == (first, True)
        assert [each.session_id for each in chosen.offered] == [began.session_id, second]
        latest = await cursor.ask(StartSession(restore_from="latest"))
        assert latest.session_id == first  # it was used last
        own = await cursor.ask(StartSession(new=True))
        assert own.session_id not in {first, second, None}
        assert not own.restored


async def test_what_somebody_holds_is_offered_and_left_alone(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        started = await claude.ask(StartSession(purpose="mine"))
        await claude.ask(RecordContext(recent_searches=["x"]))
        cursor = agent(runtime, "cursor")
        began = await cursor.ask(StartSession())
        assert began.session_id not in {started.session_id, None}
        assert offers(began) == [(started.session_id, "mine", "claude-code", True, "1 search")]
        assert began.offered[0].held_by == ["claude-code"]
        assert "one open session has work in it (claude-code at work there now)" in began.notice
        await claude.ask(StartSession(new=True))  # from now on it works elsewhere
        assert (await cursor.ask(StartSession())).session_id == started.session_id
        cursor.close()
        assert (await claude.ask(StartSession())).session_id == started.session_id


async def test_restoring_holds_a_session_as_starting_does(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        left = await worked(runtime)
        zed = agent(runtime, "zed")
        await zed.ask(RestoreSession(session_id=left))
        assert (await agent(runtime, "cursor").ask(StartSession())).offered[0].held_by == ["zed"]
        zed.close()
        assert (await agent(runtime, "cursor").ask(StartSession())).session_id == left


async def test_of_two_that_start_at_once_one_takes_it_up(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        left = await worked(runtime)
        began: list[SessionStarted] = []

        async def start(name: str) -> None:
            began.append(await agent(runtime, name).ask(StartSession()))

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(start, f"tool-{number}")
    ids = [each.session_id for each in began]
    assert (ids.count(left), len(set(ids))) == (1, 5)
    assert [each.offered[0].held for each in began if each.session_id != left] == [True] * 4


async def is_there(runtime: Any, session_id: str | None) -> bool:
    """Ask the session itself, behind whatever was sent to it before."""
    assert session_id is not None
    try:
        await agent(runtime, "onlooker").ask(GetSession(session_id=session_id))
    except Refusal as refusal:
        if refusal.code != "SESSION_NOT_FOUND":
            raise
        return False
    return True


@pytest.mark.parametrize("purpose", [None, "a plan"])
@pytest.mark.parametrize("way", [{"new": True}, {"restore_from": "left"}])
async def test_a_session_in_which_nothing_was_said_goes_when_its_agent_moves_on(
    tmp_path: Path, purpose: str | None, way: dict[str, Any]
) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        left = await worked(runtime)
        await agent(runtime, "zed").ask(RestoreSession(session_id=left))
        cursor = agent(runtime, "cursor")
        blank = (await cursor.ask(StartSession(purpose=purpose))).session_id
        assert await is_there(runtime, blank)
        way = {key: left if value == "left" else value for key, value in way.items()}
        moved = (await cursor.ask(StartSession(**way))).session_id
        assert [await is_there(runtime, each) for each in (blank, moved)] == [False, True]


async def test_of_callers_without_connections_one_window_removes_no_session_of_another(
    tmp_path: Path,
) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        places = SessionLocator()
        one, other = (agent(runtime, "cursor", locator=places) for _ in range(2))
        session = (await one.ask(StartSession(purpose="window one"))).session_id
        await other.ask(StartSession(purpose="window two", new=True))
        assert await is_there(runtime, session)


@pytest.mark.parametrize(
    "reason", ["said", "named", "joined", "created", "of another", "exported", "watched", "again"]
)
async def test_a_session_that_matters_stays_when_an_agent_moves_on(tmp_path: Path, reason: str) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        cursor, zed = agent(runtime, "cursor"), agent(runtime, "zed")
        session = (await cursor.ask(StartSession())).session_id
        leaving = cursor
        if reason == "said":
            await cursor.ask(AddMessage(session_id=session, content="here"))
        elif reason == "named":
            await cursor.ask(RenameSession(session_id=session, purpose="for later"))
        elif reason == "joined":
            await zed.ask(StartSession(restore_from=session))
        elif reason == "created":
            session = (await cursor.ask(CreateSession(purpose="for later"))).session_id
            await cursor.ask(StartSession(restore_from=session))
        elif reason == "of another":
            await zed.ask(StartSession(restore_from=session))
            cursor.close()
            leaving = zed
        elif reason == "exported":
            await cursor.ask(ExportSession())
        elif reason == "watched":
            runtime.subscriber().add(session_uri(session))
        elif reason == "again":
            await cursor.ask(StartSession(restore_from=session))
            assert await is_there(runtime, session)
            return
        await leaving.ask(StartSession(new=True))
        assert await is_there(runtime, session)


@pytest.mark.parametrize("reason", ["memory", "checkpoint", "namesake"])
async def test_what_others_keep_for_a_session_keeps_it(tmp_path: Path, reason: str) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        cursor = agent(runtime, "cursor")
        eve = agent(runtime, "cursor" if reason == "namesake" else "eve", user="eve")
        session = (await cursor.ask(StartSession())).session_id
        leaving = cursor
        if reason == "memory":
            await eve.ask(SetMemory(key="k", value=msgspec.Raw(b"1"), session_id=session))
        elif reason == "checkpoint":
            await eve.ask(StartSession(restore_from=session))
            await eve.ask(WorkflowCheckpoint(name="here", state=msgspec.Raw(b'{"a": 1}')))
            eve.close()
        else:
            cursor.close()
            await eve.ask(StartSession(restore_from=session))
            leaving = eve
        await leaving.ask(StartSession(new=True))
        assert await is_there(runtime, session)


async def test_a_caller_without_a_connection_holds_for_a_minute(enter: Enter) -> None:
    async with enter(embedder="none") as house:
        runtime = house.runtime
        left = await worked(runtime)
        places = SessionLocator()
        first, again, other = (agent(runtime, name, locator=places) for name in ("one", "one", "two"))
        assert (await first.ask(StartSession())).session_id == left
        assert (await again.ask(StartSession())).session_id == left
        assert (await other.ask(StartSession())).session_id != left
        house.tick(61)
        assert (await other.ask(StartSession())).session_id == left


async def test_a_repeated_start_gets_the_first_answer_whatever_there_is_now(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        cursor, asked = agent(runtime, "cursor"), StartSession(idempotency_key="k")
        alone = await cursor.ask(asked)
        first = await worked(runtime)
        assert (await cursor.ask(asked)).session_id == alone.session_id
        taking = StartSession(idempotency_key="t")
        cursor.close()
        taken = await agent(runtime, "cursor").ask(taking)
        assert taken.session_id == first
        second = await worked(runtime)
        again = agent(runtime, "cursor")
        assert await again.ask(taking) == taken
        choosing = StartSession(idempotency_key="c")
        choice = await again.ask(choosing)
        assert {each.session_id for each in choice.offered} == {first, second}
        await again.ask(EndSession(session_id=second))
        assert await again.ask(choosing) == choice


async def test_a_session_that_came_of_a_repeat_is_held_by_who_asked_again(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude, asked = agent(runtime, "claude-code"), StartSession(idempotency_key="k")
        await claude.ask(asked)
        claude.close()  # as if it had crashed before the answer came
        again = agent(runtime, "claude-code")
        await again.ask(asked)
        await again.ask(RecordContext(recent_searches=["x"]))
        assert (await agent(runtime, "cursor").ask(StartSession())).offered[0].held
