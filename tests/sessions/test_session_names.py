"""A session that was begun without a purpose is named by what is said in it first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import server_process
from support.agents import AuditTrail, refused, say

from greenroom.actors import (
    Agent,
    CreateSession,
    EraseUser,
    GetSession,
    ListSessions,
    Principal,
    RecordContext,
    RenameSession,
    RestoreSession,
    StartSession,
    UpdateSession,
    parse_request,
)
from greenroom.runtime import IdempotencyConflictError

if TYPE_CHECKING:
    from pathlib import Path

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
        assert "Resumed 'datasette: Facets break on arrays'" in began.notice


@pytest.mark.quick
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


def renaming(session_id: str, purpose: str, **more: Any) -> Any:
    """Return the request that gives a session a name."""
    return RenameSession(session_id=session_id, purpose=purpose, **more)


async def test_who_may_write_to_a_session_may_name_it_and_nothing_that_is_said_does_then(
    enter: Enter,
) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        zed = tool(at, "zed", user="bob")
        with claude.subscriber() as subscriber:
            subscriber.add(f"session://{session}")
            reply = await zed.ask(renaming(session, "Port billing"))
            assert (reply.session_id, reply.purpose) == (session, "Port billing")
            assert await subscriber.next() == f"session://{session}"
        await say(claude, session, "Facets break on arrays.", message_type="human_input")
        assert await name(claude, session) == "Port billing"
        trail = await at.runtime.query(AuditTrail())
        assert [row.agent for row in trail if row.action == "rename_session"] == ["zed"]
        assert b"billing" not in msgspec.json.encode(trail)
        await Agent(at.runtime, Principal(agent_id="root")).ask(
            EraseUser(user="bob", agents=["zed"], confirm=True)
        )
        assert await name(claude, session) == "Work in Claude Code"


async def test_a_name_is_given_once_for_each_key(enter: Enter) -> None:
    async with enter() as at:
        claude, session = await begun(at)
        first = await claude.ask(renaming(session, "Port billing", idempotency_key="k"))
        await claude.ask(renaming(session, "Port facets"))
        assert await claude.ask(renaming(session, "Port billing", idempotency_key="k")) == first
        assert await name(claude, session) == "Port facets"
        with pytest.raises(IdempotencyConflictError):
            await claude.ask(renaming(session, "Port nothing", idempotency_key="k"))


async def test_a_session_that_has_ended_or_is_hidden_gets_no_name(enter: Enter) -> None:
    async with enter() as at:
        ann, spy = tool(at, "a", projects=frozenset({"p"})), tool(at, "spy", projects=frozenset({"q"}))
        for each in ("s", "ended"):
            await ann.ask(CreateSession(purpose="kept", session_id=each, project_id="p"))
        await ann.ask(UpdateSession(session_id="ended", status="terminated"))
        with refused("SESSION_CLOSED", session_id="ended"):
            await ann.ask(renaming("ended", "Port billing"))
        said = set()
        for session_id in ("s", "ended", "nowhere"):
            with refused("SESSION_NOT_FOUND", session_id=session_id) as caught:
                await spy.ask(renaming(session_id, "Port billing"))
            said.add(str(caught.value).replace(repr(session_id), "it"))
        assert len(said) == 1
        assert [await name(ann, each) for each in ("s", "ended")] == ["kept", "kept"]


@pytest.mark.parametrize(
    ("purpose", "size"), [("", 0), ("x" * 501, 501), ("\U0001f600" * 501, 501)], ids=["empty", "long", "wide"]
)
def test_a_name_that_is_none_is_refused_with_its_limit(purpose: str, size: int) -> None:
    with refused("VALIDATION_ERROR", field="purpose", size=size):
        parse_request(RenameSession, msgspec.json.encode({"session_id": "s", "purpose": purpose}))


@pytest.mark.slow
async def test_a_client_renames_a_session_over_stdio(tmp_path: Path) -> None:
    async with server_process(tmp_path, "--tools", "all") as server:
        client = server.client
        await client.initialize()
        listed = (await client.request("tools/list"))["result"]["tools"]
        assert "rename_session" in [each["name"] for each in listed]
        session = (await client.call("start_session", new=True))["session_id"]
        done = await client.call("rename_session", session_id=session, purpose="Port <b>billing</b>\u202e")
        read = await client.call("get_session", session_id=session)
        assert read["session"]["purpose"] == done["purpose"] == "Port <b>billing</b>\u202e"
        failed = await client.call("rename_session", session_id=session, purpose="")
        assert (failed["code"], failed["details"]["field"]) == ("VALIDATION_ERROR", "purpose")
        assert failed["error"].startswith("purpose")
        await client.end_input()
        await server.process.wait()


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
