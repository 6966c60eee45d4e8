"""Who holds a session, over processes that share a folder, over sockets, and after their deaths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sessions.test_session_context import alone
from sockets.test_http_process import call, guests_at
from sockets.test_http_process import server as http_server
from support.https import Guest
from support.several import ToolClient, tool_clients, until_owner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("passport.held")


async def worked(client: ToolClient | Guest) -> str:
    """Start a session and work in it; return its id."""
    ask: Any = client.call if isinstance(client, ToolClient) else lambda *a, **k: call(client, *a, **k)
    started = await ask("start_session", new=True)
    assert (await ask("record_context", decisions=[{"what": "we go on"}]))["success"]
    session: str = started["session_id"]
    return session


async def test_who_works_in_another_process_holds_its_session_until_it_ends(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        session = await worked(bob)
        for each in (ann, cy):
            began = await each.call("start_session")
            assert began["session_id"] != session
            assert [(offer["held"], offer["held_by"]) for offer in began["offered"]] == [(True, ["bob"])]
        assert await bob.end("end of input") == 0
        assert (await cy.call("start_session"))["session_id"] == session
        assert (await ann.call("start_session"))["session_id"] != session


@pytest.mark.parametrize("who", ["the owner", "an attached one"])
async def test_who_was_killed_holds_nothing(tmp_path: Path, who: str) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        victim = ann if who == "the owner" else bob
        session = await worked(victim)
        assert (await cy.call("start_session"))["session_id"] != session
        await victim.kill()
        began = await cy.call("start_session")
        assert (began["session_id"], began["restored"]) == (session, True)


async def test_what_somebody_holds_stays_held_when_another_process_takes_over(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        session = await worked(bob)
        await ann.kill()
        owner = await until_owner(tmp_path, bob, cy)
        for each in (bob, cy):  # both are attached, or own, by the time that they are answered
            assert (await each.call("get_session", session_id=session))["success"]
        began = await cy.call("start_session")
        assert (began["session_id"] != session, owner in {bob, cy}) == (True, True)


async def test_over_http_a_session_of_the_protocol_holds_and_ends(tmp_path: Path) -> None:
    async with http_server(tmp_path) as (_program, port), guests_at(port, 2) as (one, two):
        await one.initialize(greenroom_agent="claude")
        await two.initialize(greenroom_agent="zed")
        session = await worked(one)
        assert (await call(two, "start_session"))["session_id"] != session
        await one.end_session()
        assert (await call(two, "start_session"))["session_id"] == session


async def test_of_callers_without_connections_only_the_first_takes_a_session_up(tmp_path: Path) -> None:
    async with http_server(tmp_path) as (_program, port), guests_at(port, 2) as (one, two):
        await one.initialize(greenroom_agent="claude")
        session = await worked(one)
        await one.end_session()
        first, second = {"greenroom_agent": "a"}, {"greenroom_agent": "b"}
        assert (await alone(two, "start_session", first))["session_id"] == session
        assert (await alone(two, "start_session", second))["session_id"] != session
        assert (await alone(two, "start_session", first))["session_id"] == session


@pytest.mark.quick
@pytest.mark.parametrize("name", ["omn_create_session", "omn_start_session"])
async def test_a_name_that_promises_an_id_has_one_in_its_answer_in_any_case(
    tmp_path: Path, name: str
) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        session = await worked(ann)
        began = await bob.call(name)
        assert began["session_id"] not in {None, session}
        assert not began["restored"]
        assert [offer["session_id"] for offer in began["offered"]] == [session]
        assert "Began a new session, and one open session has work in it" in began["notice"]
        await ann.kill()
        assert (await bob.call(name))["session_id"] == session


@pytest.mark.promise("passport.continued", "passport.briefing")
async def test_what_one_process_ended_another_goes_on_with_and_a_third_after_its_death(
    tmp_path: Path,
) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        old = (await bob.call("start_session"))["session_id"]
        for content in ("Facets break on arrays.", "Next: fix the zebra test."):
            await bob.call("add_message", session_id=old, content=content)
        await bob.call("end_session")
        began = await cy.call("start_session", restore_from=old)
        assert (began["continues"], began["talk"]["messages"]) == (old, 2)
        assert "zebra" in began["briefing"]
        read = await cy.call(began["talk"]["read"]["tool"], **began["talk"]["read"]["arguments"])
        assert [each["content"] for each in read["messages"]][-1] == "Next: fix the zebra test."
        await cy.kill()
        again = await ann.call("start_session")
        assert (again["session_id"], again["continues"]) == (began["session_id"], old)
        assert "zebra" in again["briefing"]
        assert "Facets break on arrays" in again["notice"]
