"""The session that a client works in, as a resource: which one it is, for whom, and when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail, begin, refused, say, wire

from greenroom.actors import (
    Agent,
    AuditRow,
    CreateSession,
    DecisionMade,
    EndSession,
    FileUse,
    ListResources,
    Principal,
    ReadResource,
    RecordContext,
    RestoreSession,
    SessionLocator,
    StartSession,
)

if TYPE_CHECKING:
    from support.agents import Enter

CURRENT = ("greenroom://session/current", "omnimemory://session/current")
ANN: dict[str, Any] = {"user": "ann"}


async def current(agent: Agent, uri: str = CURRENT[0]) -> dict[str, Any]:
    read: dict[str, Any] = wire(await agent.ask(ReadResource(uri=uri)))
    return read


@pytest.mark.promise("resources.current")
async def test_it_is_the_session_that_each_client_has_started_or_restored(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        one, two = at.agent("one", **ANN), at.agent("two", **ANN)
        for uri in CURRENT:
            with refused("RESOURCE_NOT_FOUND") as caught:
                await current(one, uri)
            assert "start_session" in str(caught.value)
        assert not {each.uri for each in (await one.ask(ListResources())).resources} & set(CURRENT)
        started = await one.ask(StartSession(purpose="mine"))
        await two.ask(RestoreSession(session_id="s"))
        for agent, session in ((one, started.session_id), (two, "s")):
            for uri in CURRENT:
                read = await current(agent, uri)
                assert read["session"]["session_id"] == read["work"]["session_id"] == session
                assert read["conversation"] == f"greenroom://conversation/{session}"
                said = wire(await agent.ask(ReadResource(uri=read["conversation"])))
                assert said["session_id"] == session
            assert CURRENT[0] in {each.uri for each in (await agent.ask(ListResources())).resources}


@pytest.mark.promise("resources.current")
async def test_it_holds_the_work_of_ones_own_user_and_no_figure_of_what_is_hidden(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await say(alice, "s", "hidden", visibility="private")
        await alice.ask(RecordContext(session_id="s", files_accessed=[FileUse(path="hers.py")]))
        await alice.ask(RecordContext(session_id="s", decisions=[DecisionMade(what="we sail")]))
        bob = at.agent("bob", user="bob")
        await bob.ask(RestoreSession(session_id="s"))
        read = await current(bob)
        assert read["statistics"]["message_count"] == 0
        assert read["work"]["context"]["files_accessed"] == []
        assert [each["what"] for each in read["work"]["context"]["decisions"]] == ["we sail"]


@pytest.mark.promise("resources.current", "resources.alike")
async def test_a_session_that_one_may_see_no_more_is_not_the_current_one_any_more(enter: Enter) -> None:
    """A client whose key loses a project keeps nothing of it."""
    async with enter() as at:
        locator = SessionLocator()
        member = Agent(
            at.runtime, Principal(agent_id="a", user="ann", projects=frozenset({"p"})), locator=locator
        )
        await member.ask(CreateSession(purpose="p", session_id="theirs", project_id="p"))
        await member.ask(RestoreSession(session_id="theirs"))
        assert (await current(member))["session"]["session_id"] == "theirs"
        outside = Agent(
            at.runtime, Principal(agent_id="a", user="ann", projects=frozenset()), locator=locator
        )
        with refused("RESOURCE_NOT_FOUND"):
            await current(outside)


@pytest.mark.promise("resources.current", "resources.heard")
async def test_it_says_when_it_is_another_one_and_then_hears_of_that_alone(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        bob = at.agent("bob", user="bob")
        with bob.subscriber(0) as subscriber:
            for uri in CURRENT:
                subscriber.add(uri)

            async def hears() -> bool:
                with trio.move_on_after(1):
                    assert {await subscriber.next(), await subscriber.next()} == set(CURRENT)
                    return True
                return False

            assert not await hears()
            await bob.ask(RestoreSession(session_id="s"))
            while await hears():  # also of the session's own change
                pass
            assert (await current(bob))["session"]["session_id"] == "s"
            await say(alice, "s", "to bob")
            assert await hears()
            assert not await hears()
            await say(alice, "s", "to nobody", visibility="private")
            assert not await hears()
            await alice.ask(RecordContext(session_id="s", files_accessed=[FileUse(path="hers.py")]))
            assert not await hears()
            await bob.ask(RecordContext(session_id="s", files_accessed=[FileUse(path="his.py")]))
            assert await hears()
            await alice.ask(CreateSession(purpose="another", session_id="t"))
            assert not await hears()
            await bob.ask(RestoreSession(session_id="t"))
            assert await hears()
            while await hears():
                pass
            await say(alice, "s", "to all")
            assert not await hears()
            await bob.ask(EndSession())
            assert await hears()


@pytest.mark.promise("resources.current", "resources.heard")
async def test_a_client_without_a_connection_hears_of_what_another_request_of_it_began(enter: Enter) -> None:
    async with enter() as at:
        locator = SessionLocator()

        def request() -> Agent:
            return Agent(at.runtime, Principal(agent_id="a", user="ann"), locator=locator)

        other = Agent(at.runtime, Principal(agent_id="b", user="ben"), locator=locator)
        listening = request()
        with listening.subscriber(0) as subscriber:
            subscriber.add(CURRENT[0])
            await other.ask(StartSession(purpose="theirs"))
            with trio.move_on_after(1) as scope:
                await subscriber.next()
            assert scope.cancelled_caught
            started = await request().ask(StartSession(purpose="mine"))
            with trio.fail_after(5):
                assert await subscriber.next() == CURRENT[0]
            assert (await current(listening))["session"]["session_id"] == started.session_id
            assert (await current(request()))["session"]["session_id"] == started.session_id


@pytest.mark.promise("resources.audited")
async def test_a_read_is_recorded_as_one_of_the_session(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        bob = at.agent("bob")
        await bob.ask(RestoreSession(session_id="s"))
        await current(bob)
        rows: list[AuditRow] = await at.runtime.query(AuditTrail())
        read = next(row for row in rows if row.action == "read_resource")
        assert (read.agent, read.session, read.outcome) == ("bob", "s", "done")
