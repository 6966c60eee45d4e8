"""A session that was begun without a purpose is named by what is said in it first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.agents import say

from greenroom.actors import (
    Agent,
    CreateSession,
    EraseUser,
    GetSession,
    ListSessions,
    Principal,
    RecordContext,
    RestoreSession,
    StartSession,
    UpdateSession,
)

if TYPE_CHECKING:
    from support.agents import Enter, House

HOME = "/home/ann/datasette"
LONGEST = 100
pytestmark = pytest.mark.promise("passport.named")


def tool(at: House, name: str, agent_type: str | None = None, *, user: str = "ann", **more: Any) -> Agent:
    return Agent(at.runtime, Principal(agent_id=name, agent_type=agent_type, user=user, **more), client=name)


async def begun(at: House, **arguments: Any) -> tuple[Agent, str]:
    claude = tool(at, "claude-code", "planner")
    started = await claude.ask(StartSession(**{"workspace_path": HOME, "new": True, **arguments}))
    assert started.session_id is not None
    return claude, started.session_id


async def name(agent: Agent, session_id: str) -> str:
    """Return the name that a session has wherever it is shown."""
    read = (await agent.ask(GetSession(session_id=session_id))).session.purpose
    (listed,) = [each for each in (await agent.ask(ListSessions())).sessions if each.session_id == session_id]
    assert listed.purpose == read
    return read


async def test_the_first_request_names_a_session_with_its_project(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        assert await name(claude, session) == "Work in Claude Code"
        await say(claude, session, "Facets break on arrays.", message_type="human_input")
        assert await name(claude, session) == "datasette: Facets break on arrays"
        await say(claude, session, "The billing module is ported to Rust.", message_type="human_input")
        assert await name(claude, session) == "datasette: Facets break on arrays"
        claude.close()
        began = await tool(at, "cursor").ask(StartSession(workspace_path=HOME))
        assert "Took up 'datasette: Facets break on arrays'" in began.notice


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("Hi!\n\nCould you please fix the flaky login test? It fails on CI.", "fix the flaky login test"),
        ("# Plan\n\n- port the billing module\n- test it", "port the billing module"),
        (
            "```\nTraceback: boom\n```\nThe importer crashes on empty files.",
            "The importer crashes on empty files",
        ),
        ("検索が遅いので直してください。", "検索が遅いので直してください"),
        ("x" * 9_000, None),
        ("ok", None),
        ("\x00\u202e\u200b", None),
        ("Port <b>billing</b> \u202eto\x1b[31m Rust", "Port \u2039b>billing\u2039/b> to[31m Rust"),
    ],
)
async def test_a_name_is_the_first_that_tells_something_on_one_line(
    enter: Enter, said: str, named: str | None
) -> None:
    async with enter() as at:
        claude, session = await begun(at, workspace_path=None)
        await say(claude, session, said)
        assert await name(claude, session) == (named or "Work in Claude Code")


async def test_a_name_is_short_whatever_is_said(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at, workspace_path="/home/ann/" + "very-" * 30)
        await say(claude, session, "the port of billing goes on " * 300)
        found = await name(claude, session)
        assert len(found) <= 2 * LONGEST
        assert found.isprintable()


async def test_a_person_is_heard_before_an_agent_and_the_name_stays_then(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        names = []
        for content, message_type in (
            ("hello", "human_input"),
            ("I will look at the repository first.", "agent_response"),
            ("The tests are red.", "agent_response"),
            ("Please make facets work on arrays.", "human_input"),
            ("No, port the billing module.", "human_input"),
        ):
            await say(claude, session, content, message_type=message_type)
            names.append(await name(claude, session))
        assert names == [
            "Work in Claude Code",
            *["datasette: I will look at the repository first"] * 2,
            *["datasette: make facets work on arrays"] * 2,
        ]
        for number in range(10):
            await say(claude, session, f"Quite another topic, number {number}.", message_type="human_input")
        assert await name(claude, session) == names[-1]


async def test_what_comes_late_names_nothing(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        await say(claude, session, *["ok"] * 5)
        await say(claude, session, "Please make facets work on arrays.", message_type="human_input")
        assert await name(claude, session) == "Work in Claude Code"


@pytest.mark.parametrize("visibility", ["private", "agent_only"])
async def test_what_not_everybody_may_read_names_nothing(enter: Enter, visibility: Any) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        await say(
            claude, session, "The merger is at noon.", visibility=visibility, message_type="human_input"
        )
        assert await name(claude, session) == "Work in Claude Code"
        await say(claude, session, "Facets break on arrays.")
        assert await name(claude, session) == "datasette: Facets break on arrays"


async def test_a_name_that_was_given_stays(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at, purpose="Ship release 2")
        await claude.ask(CreateSession(session_id="s", purpose="Work in Claude Code"))
        for each in (session, "s"):
            await say(claude, each, "Facets break on arrays.", message_type="human_input")
        assert await name(claude, session) == "Ship release 2"
        assert await name(claude, "s") == "Work in Claude Code"


async def test_a_name_survives_changes_and_is_what_continues_it_is_called(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        await say(claude, session, "Facets break on arrays.")
        await claude.ask(UpdateSession(session_id=session, status="terminated"))
        new = (await tool(at, "cursor").ask(RestoreSession(session_id=session))).session_id
        assert await name(claude, new) == "datasette: Facets break on arrays"
        await say(tool(at, "cursor"), new, "Another topic altogether.", message_type="human_input")
        assert await name(claude, new) == "datasette: Facets break on arrays"


async def test_a_name_goes_with_the_person_whose_words_it_is(enter: Enter) -> None:
    async with enter() as at:
        root = Agent(at.runtime, Principal(agent_id="root"))
        claude, session = await begun(at, workspace_path=None)
        bob = tool(at, "zed", user="bob")
        await say(bob, session, "Bob's secret plan is to leave.", message_type="human_input")
        await claude.ask(UpdateSession(session_id=session, status="terminated"))
        new = (await claude.ask(RestoreSession(session_id=session))).session_id
        assert "secret plan" in await name(claude, new)
        await root.ask(EraseUser(user="bob", agents=["zed"], confirm=True))
        for each in (session, new):
            assert await name(claude, each) == "Work in Claude Code"


@pytest.mark.promise("passport.taken-up")
async def test_a_session_with_words_is_taken_up_whatever_was_opened_after_it(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        await say(claude, session, "Facets break on arrays.")
        claude.close()
        for _ in range(7):
            at.tick(60)
            zed = tool(at, "zed")
            await zed.ask(StartSession(workspace_path=HOME, new=True))
            await zed.ask(RecordContext(recent_searches=["facets"]))  # as the server notes by itself
            zed.close()
        at.tick(60)
        for asked in (
            StartSession(workspace_path=HOME, restore_from="latest"),
            StartSession(workspace_path=HOME),
        ):
            cursor = tool(at, "cursor")
            began = await cursor.ask(asked)
            assert began.session_id == session
            cursor.close()
            at.tick(60)
