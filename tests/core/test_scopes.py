"""Scopes: what they let somebody do, and that nothing gets past them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import samples
from support.agents import begin, contents, json, keys, refused, value_of
from support.postings import asking

from greenroom.actors import (
    REQUESTS,
    TEMPLATES,
    AddMessage,
    Agent,
    CompleteResource,
    CreateSession,
    GetMemory,
    ListResources,
    ListSessions,
    Principal,
    ReadResource,
    SetMemory,
)
from greenroom.actors.app.requests import NEEDED
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.actors.core.auth.policy import allows
from greenroom.actors.core.auth.scopes import (
    ADMIN,
    AUDIT,
    RESOURCES,
    SCOPES,
    WILDCARDS,
    needed_for_request,
    unknown_scopes,
)
from greenroom.actors.sessions.passports.actor import PassportActor
from greenroom.testing import mcp_client
from greenroom.transports import TOOLS as LISTED
from greenroom.transports.mcp.tools.tools import visible_tools

if TYPE_CHECKING:
    from support.agents import Enter, House

PREFERENCES = "greenroom://user/alice/preferences"
SAVINGS = "greenroom://savings"

pytestmark = pytest.mark.promise("identity.scopes")


def holder(at: House, *scopes: str, agent_id: str = "alice", **identity: Any) -> Agent:
    return at.agent(agent_id, scopes=frozenset(scopes), **identity)


@pytest.mark.parametrize(
    ("held", "needed", "may"),
    [
        ({"*"}, "admin", True),
        ({"*"}, "sessions:write", True),
        (set(), "sessions:read", False),
        ({"sessions:read"}, "sessions:read", True),
        ({"sessions:read"}, "sessions:write", False),
        ({"sessions:write"}, "sessions:read", False),
        ({"sessions:*"}, "sessions:write", True),
        ({"sessions:*"}, "memory:write", False),
        ({"*:read"}, "memory:read", True),
        ({"*:read"}, "memory:write", False),
        ({"*:read"}, "audit:read", False),
        ({"audit:*"}, "audit:read", True),
        ({"*:write"}, "sessions:write", True),
        ({"*:read", "*:write", "sessions:*", "audit:*"}, "admin", False),
        ({"admin"}, "sessions:read", False),
        ({"admin"}, "admin", True),
        ({"sessions"}, "sessions:read", False),
        ({"sessions:read "}, "sessions:read", False),
        ({":read", "sessions:", "*:", ":*", "**", "*:*"}, "sessions:read", False),
    ],
)
def test_what_scopes_allow(held: set[str], needed: str, may: bool) -> None:  # noqa: FBT001
    assert allows(held, needed) is may


def test_the_table_names_every_tool_and_every_kind_of_resource() -> None:
    assert set(TOOLS) == set(REQUESTS)
    assert set(RESOURCES) == {template.kind for template in TEMPLATES} | {
        "export",
        "savings",
        PassportActor.kind,
    }
    assert set(NEEDED.values()) <= set(SCOPES)
    assert needed_for_request("a tool that nobody listed") == ADMIN


def test_scopes_that_are_none_are_told() -> None:
    assert unknown_scopes([*SCOPES, *WILDCARDS]) == []
    assert unknown_scopes(["*", "memory:*", "sessions:*", "*:read", "*:write", "read:*"]) == ["read:*"]
    assert unknown_scopes(["session:read", "*", "root"]) == ["root", "session:read"]


async def test_every_tool_is_closed_to_whoever_lacks_its_scope_and_nothing_happens(enter: Enter) -> None:
    async with enter() as at:
        whole = await begin(at)
        await whole.ask(SetMemory(key="k", value=json("1")))
        for name in REQUESTS:
            others = holder(at, *(scope for scope in SCOPES if scope != TOOLS[name]))
            asked = samples.request(name)
            with refused("PERMISSION_DENIED", scope=TOOLS[name]):
                await others.ask(asked)
            with refused("PERMISSION_DENIED", scope=TOOLS[name]):
                asking(others, asked)
        assert (await contents(whole), await keys(whole), await value_of(whole, "k")) == ([], ["k"], "1")
        assert len((await whole.ask(ListSessions())).sessions) == 1


async def test_the_scope_that_a_tool_names_opens_it(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        await holder(at, "sessions:write").ask(AddMessage(session_id="s", content="hello"))
        await holder(at, "memory:write").ask(SetMemory(key="k", value=json("1")))
        assert (await holder(at, "memory:read").ask(GetMemory(key="k"))).key == "k"
        assert len((await holder(at, "*:read").ask(ListSessions())).sessions) == 1


async def test_resources_open_with_the_scope_of_their_kind(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        session, memory = "session://s", "agent://alice/memory"
        reads_sessions, reads_memory = holder(at, "sessions:read"), holder(at, "memory:read")
        for agent, mine, other in ((reads_sessions, session, memory), (reads_memory, memory, session)):
            await agent.ask(ReadResource(uri=mine))
            with refused("PERMISSION_DENIED"):
                await agent.ask(ReadResource(uri=other))
            with refused("PERMISSION_DENIED"):
                asking(agent, ReadResource(uri=other))
            with agent.subscriber() as subscriber:
                subscriber.add(mine)
                with refused("PERMISSION_DENIED"):
                    subscriber.add(other)
                with refused("PERMISSION_DENIED"):
                    subscriber.add(f"{other}/no such/")
                subscriber.add(f"{mine}/no such/")
                assert len(subscriber) == 1
            with refused("PERMISSION_DENIED"):
                await agent.ask(ReadResource(uri=f"{other}/no such/"))
            with refused("RESOURCE_NOT_FOUND"):
                await agent.ask(ReadResource(uri=f"{mine}/no such/"))
        with refused("RESOURCE_NOT_FOUND"):
            await holder(at).ask(ReadResource(uri="weather://tomorrow"))


async def test_what_is_closed_does_not_answer_otherwise_when_it_is_there(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        answers = set()
        for session_id in ("s", "nowhere"):
            with pytest.raises(Exception, match="sessions:read") as caught:
                await holder(at, "memory:*").ask(ReadResource(uri=f"session://{session_id}"))
            answers.add(str(caught.value))
        assert len(answers) == 1


async def test_listings_and_completions_show_what_the_scopes_reach(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await alice.ask(CreateSession(purpose="q", session_id="t"))
        for scopes, uris in (
            (("sessions:read",), ["session://t", "session://s"]),
            (("memory:read",), ["agent://alice/memory", PREFERENCES]),
            (("sessions:write",), []),
            (("server:read",), [SAVINGS]),
            (("*:read",), ["agent://alice/memory", "session://t", "session://s", PREFERENCES, SAVINGS]),
        ):
            page = await holder(at, *scopes).ask(ListResources())
            assert ([item.uri for item in page.resources], page.next_cursor) == (uris, None)
            completed = [
                await holder(at, *scopes).ask(CompleteResource(template=template, argument=argument))
                for template, argument in (
                    ("session://{session_id}", "session_id"),
                    ("agent://{agent_id}/memory", "agent_id"),
                )
            ]
            assert [bool(found.values) for found in completed] == [
                "session://s" in uris,
                "agent://alice/memory" in uris,
            ]


def test_tools_are_listed_as_far_as_the_scopes_reach() -> None:
    listing: dict[str, dict[str, Any]] = {name: {} for name in LISTED}
    assert visible_tools(listing, LISTED, frozenset()) == ()
    everything = visible_tools(listing, LISTED, frozenset({"*", "admin", "audit:read"}))
    assert everything == tuple(LISTED)
    assert visible_tools(listing, LISTED, frozenset({"*"})) == tuple(
        name for name in everything if LISTED[name].scope not in {ADMIN, AUDIT}
    )
    reading = visible_tools(listing, LISTED, frozenset({"memory:read"}))
    assert {"get_memory", "omn_retrieve_memory", "debug_retrieve"} <= set(reading)
    assert not {"set_memory", "omn_store_memory", "get_session"} & set(reading)


async def test_templates_are_listed_as_far_as_the_scopes_reach(enter: Enter) -> None:
    async with enter() as at, mcp_client(lambda _: holder(at, "memory:read")) as client:
        await client.initialize()
        listed = (await client.request("resources/templates/list"))["result"]["resourceTemplates"]
        assert [each["name"] for each in listed] == [
            "agent_memory",
            "preferences",
            "omnimemory_preferences",
        ]


async def test_a_repeat_by_another_key_gets_the_first_answer_but_not_by_other_scopes(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        said = AddMessage(session_id="s", content="once", idempotency_key="i")
        first = await holder(at, "sessions:*", key_id="a", address="10.0.0.1").ask(said)
        again = await holder(at, "sessions:*", key_id="b", address="10.0.0.2").ask(said)
        other = await holder(at, "sessions:write").ask(said)
        assert first.message_id == again.message_id != other.message_id


def test_a_principal_may_do_everything_unless_it_is_told_otherwise() -> None:
    assert Principal(agent_id="a").scopes == {"*"}
