"""Seeing below `/api/v1` what another agent sees: for administrators, to read only, and on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import AuditTrail, begin, json, say
from support.api import ROOT, browser, posted
from support.keyed import bearer, create_key, premises, revoke_key

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMemory,
    GetSessionContext,
    ListMemories,
    MemorySearch,
    Principal,
    RetrieveMemory,
    SessionLocator,
    SetMemory,
    StartSession,
    StoreMemory,
)

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors.core.audit.record import AuditRow

pytestmark = pytest.mark.promise("api.seeing-as")

AS_SCRIBE = {"greenroom-as": "scribe", "greenroom-as-user": "ann"}


async def looks(at: House) -> list[AuditRow]:
    return [row for row in await at.runtime.query(AuditTrail()) if row.action == "see_as"]


async def test_an_administrator_reads_what_an_agent_reads_and_no_more(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        scribe = at.agent("scribe", agent_type="writer", user="ann", projects=frozenset({"apollo"}))
        await begin(at)
        await scribe.ask(CreateSession(session_id="mine", purpose="p", project_id="apollo"))
        await scribe.ask(AddMessage(session_id="mine", content="to myself", visibility="private"))
        await scribe.ask(AddMessage(session_id="mine", content="to writers", visibility="agent_only"))
        await at.agent("other", user="bob").ask(
            CreateSession(session_id="hers", purpose="p", project_id="zeus")
        )
        await scribe.ask(StoreMemory(key="k", content="a memory of ann"))
        await scribe.ask(SetMemory(key="kept", value=json('"kept by scribe"')))
        key = await create_key(at, "admin", agent="root")
        await here.settled()
        guest, shown = await here.guest(), {**bearer(key), **AS_SCRIBE}

        async def asked(path: str, arguments: Any, **more: str) -> Any:
            return await posted(guest, path, arguments, {**shown, **more})

        assert (await posted(guest, "get_messages", {"session_id": "mine"}, bearer(key))).status == 403
        said = (await asked("get_messages", {"session_id": "mine"})).json()["messages"]
        assert [each["content"] for each in said] == ["to myself"]  # it was not said that it is a writer
        writer = {"greenroom-as-type": "writer", "greenroom-as-project": "apollo"}
        said = (await asked("get_messages", {"session_id": "mine"}, **writer)).json()["messages"]
        assert [each["content"] for each in said] == ["to myself", "to writers"]
        assert (await asked("get_session", {"session_id": "hers"}, **writer)).status == 404
        assert (await asked("get_memory", {"key": "kept"})).json()["value"] == "kept by scribe"
        assert "a memory of ann" in (await asked("list_memories", {})).body.decode()
        nobody = {**bearer(key), "greenroom-as": "scribe", "greenroom-as-user": ""}
        assert "a memory of ann" not in (await posted(guest, "list_memories", {}, nobody)).body.decode()
        query = "as=scribe&as_type=writer&as_user=ann&as_project=apollo"
        read = await guest.ask("GET", f"{ROOT}/resources?uri=session://mine&{query}", **bearer(key))
        assert (read.status, read.json()["session"]["session_id"]) == (200, "mine")
        who = (await guest.ask("GET", f"{ROOT}/session?{query}", **bearer(key))).json()
        assert who == {
            "agent": "scribe",
            "agent_type": "writer",
            "user": "ann",
            "projects": ["apollo"],
            "scopes": ["*:read"],
            "seen_by": "root",
            "csrf_token": None,
            "expires_in": None,
        }


@pytest.mark.slow
async def test_who_looks_on_is_refused_whatever_changes_something(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*", agent="root")
        await here.settled()
        guest, shown = await here.guest(), {**bearer(key), **AS_SCRIBE}
        for path, arguments in (
            ("set_memory", {"key": "mast", "value": 1}),
            ("create_session", {"purpose": "p"}),
            ("export_memories", {}),
            ("get_audit_log", {}),
            ("create_api_key", {"name": "n", "scopes": ["*"]}),
        ):
            answer = await posted(guest, path, arguments, shown)
            assert (answer.status, answer.json()["code"]) == (403, "PERMISSION_DENIED")
            sentence = "you see as 'scribe', which is read-only; ask for"
            assert answer.json()["detail"] == f"{sentence} {path} as yourself"
        denied = [row for row in await at.runtime.query(AuditTrail()) if row.action == "set_memory"]
        assert [(row.agent, row.outcome, row.details["seen_by"]) for row in denied] == [
            ("scribe", "denied", "root")
        ]


async def test_what_somebody_looks_at_is_not_counted_as_the_agents(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        everything = Principal(agent_id="scribe", user="ann")
        scribe = Agent(at.runtime, everything)
        await scribe.ask(StoreMemory(key="mast", content="the mast is painted"))
        await scribe.ask(SetMemory(key="sail", value=json('"white"')))

        async def uses_after_reading(by: Agent) -> dict[str, int]:
            for request in (
                GetMemory(key="mast", namespace="user:ann"),
                GetMemory(key="sail"),
                MemorySearch(query="mast"),
                RetrieveMemory(query="mast"),
            ):
                assert await by.ask(request)
            at.tick(60)
            await trio.sleep(60)
            spaces = "user:ann", "agent:scribe"
            listed = [(await scribe.ask(ListMemories(namespace=each))).memories for each in spaces]
            return {each.key: each.uses for memories in listed for each in memories}

        onlooker = Agent(at.runtime, msgspec.structs.replace(everything, seen_by="root"))
        assert await uses_after_reading(onlooker) == {"mast": 0, "sail": 0}
        assert min((await uses_after_reading(scribe)).values()) > 0


async def test_what_somebody_looks_for_is_not_in_the_context_of_the_agents_session(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        locator, who = SessionLocator(), Principal(agent_id="scribe")
        session = (await Agent(at.runtime, who, locator=locator).ask(StartSession(purpose="p"))).session_id
        looked = Principal(agent_id="scribe", seen_by="root")
        for principal, query in ((looked, "looked for"), (who, "searched for")):
            agent = Agent(at.runtime, principal, locator=locator)
            await agent.ask(MemorySearch(query=query))
        context = await at.agent("scribe").ask(GetSessionContext(session_id=session))
        assert [each.query for each in context.context.recent_searches] == ["searched for"]


async def test_each_session_that_is_looked_at_is_on_record_once_a_minute(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("bob").ask(CreateSession(purpose="p", session_id="t"))
        key = await create_key(at, "admin", agent="root", user="owner")
        await here.settled()
        guest, shown = await here.guest(), {**bearer(key), **AS_SCRIBE}
        for _ in range(3):
            for session in ("s", "t"):
                await posted(guest, "get_messages", {"session_id": session}, shown)
            await posted(guest, "list_sessions", {}, shown)
            await posted(guest, "list_memories", {}, shown)
            await guest.ask("GET", f"{ROOT}/resources?uri=session://s", **shown)
        first = [
            ("root", "owner", "s", {"agent": "scribe", "user": "ann"}),
            ("root", "owner", "t", {"agent": "scribe", "user": "ann"}),
            ("root", "owner", None, {"agent": "scribe", "user": "ann"}),
            ("root", "owner", None, {"agent": "scribe", "user": "ann", "target": "session://s"}),
        ]
        assert [(row.agent, row.user, row.session, row.details) for row in await looks(at)] == first
        assert {row.key_id for row in await looks(at)} == {key.key.key_id}
        await posted(guest, "get_session", {"session_id": "s"}, {**bearer(key), "greenroom-as": "clerk"})
        assert (await looks(at))[-1].details == {"agent": "clerk", "user": "owner"}
        await trio.sleep(60)
        await posted(guest, "get_messages", {"session_id": "s"}, shown)
        assert [row.session for row in await looks(at)][len(first) + 1 :] == ["s"]


async def test_a_browser_looks_on_as_an_agent_and_hears_what_that_one_hears(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner = await browser(here)
        hearing = await browser(here)
        for each in (owner, hearing):
            assert (await each.see_as("as=alice")).status == 200
        await hearing.guest.send("GET", f"{ROOT}/events?topic=session://s&as=alice", hearing.headers)
        assert (await hearing.guest.head())[0] == 200
        assert (await hearing.guest.event()) is not None
        await say(at.agent("alice"), "s", "for myself", visibility="private")
        event = await hearing.guest.event()
        assert event is not None
        assert event.json() == {"uri": "session://s"}
        page = (await owner.get("session?as=alice")).json()
        assert (page["agent"], page["seen_by"], page["csrf_token"]) == ("alice", "console", owner.token)
        answer = await posted(
            owner.guest,
            "get_messages",
            {"session_id": "s"},
            {**owner.headers, "greenroom-as": "alice", "x-csrf-token": owner.token},
        )
        assert [each["content"] for each in answer.json()["messages"]] == ["for myself"]
        assert (await owner.post("get_messages", session_id="s")).json()["messages"] == []
        assert (await owner.post("logout?as=alice")).status == 403
        assert (await owner.post("logout")).status == 204
        assert (await owner.get("session?as=alice")).status == 401


async def test_nobody_else_looks_on(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read", "*:write", "audit:read")
        admin = await create_key(at, "admin")
        await here.settled()
        guest = await here.guest()
        reader = await browser(here, read_only=True)
        refused = [
            await guest.ask("GET", f"{ROOT}/session?as=scribe", **bearer(key)),
            await posted(guest, "list_sessions", {}, {**bearer(key), "greenroom-as": "scribe"}),
            await reader.get("resources?uri=session://s&as=scribe"),
        ]
        for answer in refused:
            assert answer.status == 403
            assert "seeing what the agent 'scribe' sees needs the scope 'admin'" in answer.json()["detail"]
        assert (await guest.ask("GET", f"{ROOT}/session?as=scribe")).status == 401
        assert [(row.outcome, row.details["status"]) for row in await looks(at)] == [("denied", 403)] * 3
        shown = bearer(admin)
        for query in (
            "as=",
            "as=a&as=b",
            "as=a%20b",
            "as=%00",
            "as_user=ann",
            "as_project=p",
            "as=a&as_type=%3Cb%3E",
            "as=a&as_user=" + "u" * 129,
            "as=a&as_user=a%0Ab",
        ):
            assert (await guest.ask("GET", f"{ROOT}/session?{query}", **shown)).status == 400, query
        twice = await guest.ask("GET", f"{ROOT}/session?as=a", **shown, **{"greenroom-as": "b"})
        assert twice.status == 400
        await revoke_key(at, admin)
        await here.settled()
        assert (await guest.ask("GET", f"{ROOT}/session?as=a", **shown)).status == 401


async def test_the_owner_of_some_projects_looks_on_in_no_other(enter: Enter) -> None:
    async with enter() as at, premises(at, project=("apollo", "gemini")) as here:
        owner = await browser(here)
        seen = [
            (await owner.see_as(f"as=scribe{more}")).json().get("projects")
            for more in ("", "&as_project=apollo", "&as_project=zeus", "&as_project=apollo&as_project=zeus")
        ]
        assert seen == [["apollo", "gemini"], ["apollo"], None, None]
