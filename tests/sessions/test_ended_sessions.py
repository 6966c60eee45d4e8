"""A session that has ended is handed over, too: by another one that continues it and leaves it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import UNSET
from support.agents import refused, say
from support.briefings import lines_of

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    DecisionMade,
    EndSession,
    EraseUser,
    ExportSession,
    GetMessages,
    GetSession,
    GetSessionContext,
    ListSessions,
    Principal,
    RecordContext,
    RestoreSession,
    StartSession,
    UpdateSession,
    WorkflowState,
)
from greenroom.actors.core.replies.replies import ToolCall
from greenroom.runtime import IdempotencyConflictError

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import SessionStarted

TALK = ("The okapi engine stays, since two shops use it.", "Next: fix the zebra test.")
pytestmark = pytest.mark.promise("passport.continued")


def tool(at: House, name: str, *, user: str = "ann", **more: Any) -> Agent:
    return Agent(at.runtime, Principal(agent_id=name, user=user, **more), client=name)


async def ended(at: House, *, archived: bool = False, **arguments: Any) -> tuple[Agent, str, str]:
    """Return an agent that ended its work properly, the session's id, and a claim to it."""
    claude = tool(at, "claude-code")
    started = await claude.ask(StartSession(purpose="Port billing", **arguments))
    session_id = started.session_id
    assert session_id is not None
    assert started.memory_passport is not None
    await say(claude, session_id, *TALK)
    await claude.ask(
        RecordContext(
            decisions=[DecisionMade(what="okapi stays")],
            workflow_state=WorkflowState(task="port", next=["zebra"]),
        )
    )
    at.tick()
    await claude.ask(EndSession())
    if archived:
        await claude.ask(UpdateSession(session_id=session_id, status="archived"))
    claude.close()
    at.tick()
    return claude, session_id, started.memory_passport.claim


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("by", ["start", "restore", "claim"])
async def test_a_session_that_has_ended_is_continued_and_stays_as_it_is(
    enter: Enter, by: str, *, archived: bool
) -> None:
    async with enter() as at:
        claude, old, claim = await ended(at, archived=archived, project_id="shop")
        before = [
            await claude.ask(each) for each in (GetSession(session_id=old), GetSessionContext(session_id=old))
        ]
        listed = (await claude.ask(ListSessions())).sessions
        cursor = tool(at, "cursor")
        answer: Any
        if by == "start":
            answer = await cursor.ask(StartSession(restore_from=old))
            assert answer.notice.startswith("Began a session that continues 'Port billing': 2 messages")
        elif by == "restore":
            answer = await cursor.ask(RestoreSession(session_id=old))
        else:
            answer = await cursor.ask(RestoreSession(passport=claim))
        assert answer.session_id not in {old, None}
        assert (answer.continues, answer.project_id) == (old, "shop")
        assert [each for each in TALK if each not in answer.briefing] == []
        assert answer.talk.messages == len(TALK)
        page = await cursor.ask(GetMessages(**answer.talk.read.arguments))
        assert [message.content for message in page.messages] == list(TALK)
        after = [
            await claude.ask(each) for each in (GetSession(session_id=old), GetSessionContext(session_id=old))
        ]
        assert after == before
        assert [
            each for each in (await claude.ask(ListSessions())).sessions if each.session_id == old
        ] == listed
        read = await cursor.ask(GetSessionContext())
        assert (read.session_id, read.continues, read.purpose) == (answer.session_id, old, "Port billing")
        assert [made.what for made in read.context.decisions] == ["okapi stays"]
        assert read.context.workflow_state is not None
        assert [(step.outcome, step.session_id) for step in read.migrations] == [("resumed", old)]
        await say(cursor, answer.session_id, "I go on.")  # it takes writes
        with refused("SESSION_CLOSED"):
            await cursor.ask(AddMessage(session_id=old, content="x"))


async def test_what_is_handed_over_again_at_once_carries_what_was_said_before(enter: Enter) -> None:
    async with enter() as at:
        _, old, _ = await ended(at)
        cursor = tool(at, "cursor")
        second = (await cursor.ask(StartSession(restore_from=old))).session_id
        assert second is not None
        cursor.close()
        ways: list[Any] = [
            StartSession(),
            StartSession(restore_from=second),
            RestoreSession(session_id=second),
        ]
        for asked in ways:
            zed = tool(at, "zed")
            answer = await zed.ask(asked)
            assert (answer.session_id, answer.continues) == (second, old)
            assert [each for each in TALK if each not in answer.briefing] == []
            zed.close()
        zed = tool(at, "zed")
        await zed.ask(RestoreSession(session_id=second))
        await say(zed, second, "The zebra test is green.")
        await zed.ask(EndSession())
        third = await tool(at, "vscode").ask(StartSession(restore_from=second))
        assert third.continues == second
        assert [each for each in (*TALK, "The zebra test is green.") if each not in third.briefing] == []
        assert len(third.briefing.encode()) <= 3_200


@pytest.mark.promise("passport.briefing-private")
async def test_of_the_session_before_a_reader_is_told_what_it_may_see_there(enter: Enter) -> None:
    async with enter() as at:
        claude = tool(at, "claude-code")
        await claude.ask(CreateSession(session_id="s", purpose="p"))
        await say(claude, "s", "The salary is 4711.", visibility="private")
        await say(claude, "s", "The port is open.")
        await claude.ask(EndSession(session_id="s"))
        mine = await claude.ask(StartSession(restore_from="s"))
        assert "4711" in mine.briefing
        claude.close()
        theirs = await tool(at, "cursor").ask(StartSession(restore_from=mine.session_id))
        assert ("port is open" in theirs.briefing, "4711" in theirs.briefing) == (True, False)
        again = await tool(at, "claude-code").ask(RestoreSession(session_id=mine.session_id))
        assert "4711" in again.briefing


async def test_a_full_talk_leaves_no_room_for_what_was_said_before(enter: Enter) -> None:
    async with enter() as at:
        _, old, _ = await ended(at)
        cursor = tool(at, "cursor")
        second = (await cursor.ask(StartSession(restore_from=old))).session_id
        assert second is not None
        await say(
            cursor, second, *(f"Fact {number} is about the {number}th stripe." for number in range(200))
        )
        answer = await tool(at, "zed").ask(RestoreSession(session_id=second))
        assert len(answer.briefing.encode()) <= 3_200
        lines_of(answer.briefing)  # one block, of this session alone


async def test_of_a_session_that_was_erased_since_nothing_is_told_and_nothing_fails(enter: Enter) -> None:
    async with enter() as at:
        bob = tool(at, "bobs", user="bob")
        await bob.ask(CreateSession(session_id="s", purpose="p"))
        await say(bob, "s", *TALK)
        await bob.ask(EndSession(session_id="s"))
        second = (await tool(at, "cursor").ask(StartSession(restore_from="s"))).session_id
        root = Agent(at.runtime, Principal(agent_id="root"))
        assert (await root.ask(EraseUser(user="bob", confirm=True))).erased
        answer = await tool(at, "zed").ask(RestoreSession(session_id=second))
        assert answer.continues == "s"
        assert "okapi" not in answer.briefing


async def test_a_repeat_gets_the_session_that_the_first_request_began(enter: Enter) -> None:
    async with enter() as at:
        claude, old, _ = await ended(at)
        ways: list[Any] = [
            StartSession(restore_from=old, idempotency_key="a"),
            RestoreSession(session_id=old, idempotency_key="b"),
        ]
        for asked in ways:
            cursor = tool(at, "cursor")
            first = await cursor.ask(asked)
            at.tick(60)
            again = await cursor.ask(asked)
            assert (again.session_id, again.continues, again.briefing) == (
                first.session_id,
                old,
                first.briefing,
            )
        with pytest.raises(IdempotencyConflictError):
            await tool(at, "cursor").ask(StartSession(restore_from="another", idempotency_key="a"))
        assert (await claude.ask(ListSessions())).count == 3


async def test_two_that_continue_it_at_once_get_a_session_each(enter: Enter) -> None:
    async with enter() as at:
        claude, old, _ = await ended(at)
        before = await claude.ask(GetSession(session_id=old))
        began: list[SessionStarted] = []

        async def start(name: str) -> None:
            began.append(await tool(at, name).ask(StartSession(restore_from=old)))

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(start, f"tool-{number}")
        assert len({each.session_id for each in began} - {old}) == 4
        assert {each.continues for each in began} == {old}
        assert await claude.ask(GetSession(session_id=old)) == before


async def test_an_ended_session_is_not_offered_and_what_continues_it_is(enter: Enter) -> None:
    async with enter() as at:
        _, old, _ = await ended(at)
        cursor = tool(at, "cursor")
        fresh = await cursor.ask(StartSession(restore_from="latest"))
        assert (fresh.restored, fresh.offered, fresh.continues) == (False, [], UNSET)
        cursor.close()
        cursor = tool(at, "cursor")
        second = await cursor.ask(StartSession(restore_from=old))
        cursor.close()
        found = await tool(at, "zed").ask(StartSession())
        assert (found.session_id, found.continues) == (second.session_id, old)


async def test_who_may_not_see_a_session_cannot_continue_it(enter: Enter) -> None:
    async with enter() as at:
        _, old, _ = await ended(at, project_id="atlas")
        bob = tool(at, "zed", user="bob", projects=frozenset({"boreas"}))
        for asked in (StartSession(restore_from=old), RestoreSession(session_id=old)):
            with refused("SESSION_NOT_FOUND"):
                await bob.ask(asked)
        assert (await bob.ask(ListSessions())).count == 0


async def test_a_passport_of_what_continues_travels_alone(enter: Enter) -> None:
    async with enter() as at:
        _, old, _ = await ended(at)
        cursor = tool(at, "cursor")
        await cursor.ask(StartSession(restore_from=old))
        exported = await cursor.ask(ExportSession())
        assert exported.messages == 0
        assert b"okapi engine" not in bytes(exported.passport)  # type: ignore[arg-type]


def recorded(briefing: str) -> list[str]:
    """Return the lines of a briefing that stand before what was said."""
    return [each for each in briefing.partition("\n## Said")[0].splitlines()[2:] if each[0] != "<"]


@pytest.mark.parametrize("continued", [False, True])
async def test_the_summary_of_the_end_comes_first_and_older_work_is_marked(
    enter: Enter, *, continued: bool
) -> None:
    async with enter() as at:
        claude = tool(at, "claude-code")
        await claude.ask(StartSession(purpose="Port billing"))
        state = WorkflowState(task="port", next=["zebra"], blockers=["review"])
        await claude.ask(RecordContext(workflow_state=state, decisions=[DecisionMade(what="okapi stays")]))
        at.tick()
        old = (
            await claude.ask(EndSession(summary=f"Ported; quagga is left. {'It is long. ' * 40}"))
        ).session_id
        cursor = tool(at, "cursor")
        session_id = (await cursor.ask(StartSession(restore_from=old))).session_id if continued else old
        before = (await cursor.ask(GetSessionContext(session_id=session_id))).briefing
        purpose, summary, *lines = recorded(before)
        assert purpose == "Session: Port billing"
        assert summary.startswith("Summary when it ended: Ported; quagga is left.")
        assert summary.endswith("It is long.")
        assert lines == [
            "Decided: okapi stays",
            "Before that, Task (active): port",
            "Before that, Next: zebra",
            "Before that, Waits for: review",
        ]
        if not continued:
            return
        at.tick()
        await cursor.ask(RecordContext(workflow_state=WorkflowState(task="quagga", next=["gnu"])))
        after = (await cursor.ask(GetSessionContext())).briefing
        assert recorded(after)[1:3] == ["Task (active): quagga", "Next: gnu"]
        assert any(each.startswith("Summary when it ended: Ported") for each in recorded(after))


async def test_of_a_session_without_messages_the_one_before_is_read_by_the_call_that_is_answered(
    enter: Enter,
) -> None:
    async with enter() as at:
        _, old, _ = await ended(at)
        cursor = tool(at, "cursor")
        second = (await cursor.ask(StartSession(restore_from=old))).session_id
        assert second is not None
        empty = await cursor.ask(GetMessages(session_id=second))
        assert (empty.total, empty.continues) == (0, old)
        assert isinstance(empty.earlier, ToolCall)
        cursor.close()
        zed = tool(at, "zed")
        again = await zed.ask(StartSession(restore_from=second))
        assert f"the session that it continues: extracts of 2 messages (get_messages, session_id {old})" in (
            again.briefing
        )
        read = await zed.ask(GetSessionContext())
        for call in (empty.earlier, again.talk.earlier, read.talk.earlier):
            assert isinstance(call, ToolCall)
            assert call.tool == "get_messages"
            page = await zed.ask(GetMessages(**call.arguments))
            assert [message.content for message in page.messages] == list(TALK)
            assert page.continues is UNSET
        await say(zed, second, "I go on.")
        assert (await zed.ask(GetMessages(session_id=second))).continues is UNSET
