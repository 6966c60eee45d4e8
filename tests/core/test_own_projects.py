"""`user:NAME` belongs to that user: to every key and token, at every door."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trio
from core.test_matrix import ASKED, SESSION, WORKSPACE, answers, arranged, asked_of
from support.agents import AuditTrail, house, refused, say
from support.api import posted
from support.console import looker
from support.corpora import document_of
from support.keyed import bearer, create_key, premises

from greenroom.actors import (
    AddMessage,
    Agent,
    CompleteResource,
    CreateSession,
    DecisionMade,
    GetMessages,
    GetOverview,
    GetSession,
    ListCorpora,
    ListMemories,
    ListResources,
    ListSessions,
    MemorySearch,
    MemoryStats,
    Principal,
    PutDocument,
    ReadResource,
    RecordContext,
    SessionService,
    StartSession,
    StoreMemory,
    ask_corpus,
)
from greenroom.actors.memories.storage.directory import BrowseNamespaces
from greenroom.runtime import Refusal
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from support.agents import Enter, House
    from support.https import Guest
    from support.keyed import Premises

    from greenroom.actors import ApiKeyMade

ANN: dict[str, Any] = {"agent_id": "scribe", "user": "ann", "key_id": "ann's"}
OWN: dict[str, dict[str, Any]] = {
    "a key of every project": {},
    "a key of another project": {"projects": frozenset({"q"})},
    "a key of no project": {"projects": frozenset()},
    "a token": {"key_id": "oauth:1", "projects": frozenset()},
}
"""By what ann's other agents come."""
STRANGERS: dict[str, dict[str, Any]] = {
    "a key of every project": {"user": "bob"},
    "a key that names it": {"user": "bob", "projects": frozenset({"user:ann", "p"})},
    "a key of its user's own": {"user": "bob", "projects": frozenset({"user:bob"})},
    "a key of no user": {},
    "a key of no user that names it": {"projects": frozenset({"user:ann"})},
    "a user of other letters": {"user": "Ann"},
    "an administrator": {"user": "root", "scopes": frozenset({"*"})},
    "a token that names it": {"user": "bob", "key_id": "oauth:1", "projects": frozenset({"user:ann"})},
}
"""By what all others come."""


def keyed(at: House, agent_id: str, **identity: Any) -> Agent:
    principal = Principal(**{"agent_id": agent_id, "key_id": "another's", **identity})
    return Agent(at.runtime, principal, reach=WORKSPACE)


# -- every tool ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("identity.own-project", "identity.alike")
@pytest.mark.parametrize("who", STRANGERS)
async def test_no_tool_opens_what_is_another_users_alone(enter: Enter, who: str) -> None:
    tools = [tool for tool, asked in ASKED.items() if asked.row == SESSION]
    async with enter(embedder="none") as at:
        scribe, stranger = Agent(at.runtime, Principal(**ANN)), keyed(at, "spy", **STRANGERS[who])
        for number, tool in enumerate(tools):
            names = await arranged(at, scribe, number, "user:ann")
            at.tick()
            if tool != "create_session":
                assert not await answers(stranger, tool, names), tool
                unknown = names | {"SESSION": "nowhere", "ENDED": "nowhere"}
                hidden = await said(stranger, asked_of(tool, names))
                assert hidden == await said(stranger, asked_of(tool, unknown)), tool
            assert await answers(scribe, tool, names), tool
        create = CreateSession(purpose="p", project_id="user:ann")
        with refused("PERMISSION_DENIED", field="project_id"):
            await stranger.ask(create)


@pytest.mark.slow
@pytest.mark.promise("identity.own-project")
@pytest.mark.parametrize("how", OWN)
async def test_ones_own_other_agents_come_in_whatever_their_key_names(enter: Enter, how: str) -> None:
    tools = [tool for tool, asked in ASKED.items() if asked.row == SESSION and tool != "create_session"]
    async with enter(embedder="none") as at:
        scribe, clerk = Agent(at.runtime, Principal(**ANN)), keyed(at, "clerk", user="ann", **OWN[how])
        for number, tool in enumerate(tools):
            names = await arranged(at, scribe, number, "user:ann")
            at.tick()
            assert await answers(clerk, tool, names), tool
        await clerk.ask(CreateSession(purpose="p", project_id="user:ann"))


@pytest.mark.promise("identity.cooperative")
async def test_without_a_key_the_separation_is_cooperative(enter: Enter) -> None:
    async with enter() as at:
        scribe, local = Agent(at.runtime, Principal(**ANN)), at.agent("local", user="bob")
        await scribe.ask(CreateSession(purpose="p", session_id="s", project_id="user:ann"))
        assert [each.session_id for each in (await local.ask(ListSessions())).sessions] == ["s"]
        await say(local, "s", "from this machine")
        of_owner = at.agent("console", user="bob", key_id="console:0123456789abcdef")
        assert (await of_owner.ask(GetMessages(session_id="s"))).count == 1


async def said(agent: Agent, request: Any) -> tuple[str, str]:
    """Return what is answered, or how it is refused, whatever the session is called."""
    try:
        code, text = "", msgspec.json.encode(await agent.ask(request)).decode()
    except Refusal as refusal:
        code, text = refusal.code, f"{refusal.sentence} {refusal.details}"
    for name in ("session_id", "restore_from"):
        text = text.replace(getattr(request, name, None) or "\0", "ID")
    return code, text


@pytest.mark.promise("identity.own-project")
@pytest.mark.parametrize(
    "project",
    ["USER:ann", "User:ann", " user:ann", "user :ann", "\uff55ser:ann", "user\uff1aann", "\u200buser:ann"],
)
async def test_no_project_that_reads_like_a_users_own_begins(enter: Enter, project: str) -> None:
    async with enter(embedder="none") as at:
        for agent in (keyed(at, "scribe", user="ann"), at.agent("local", user="ann")):
            for asked in (
                CreateSession(purpose="p", project_id=project),
                StartSession(purpose="p", project_id=project, new=True),
            ):
                with refused("VALIDATION_ERROR", field="project_id"):
                    await agent.ask(asked)
            for other in ("users:ann", "a user: ann", "superuser:ann", "user"):
                await agent.ask(CreateSession(purpose="p", project_id=other))


# -- every count, listing and wake-up ------------------------------------------------------------------


async def life(at: House, *, hidden: bool) -> None:
    """Let ann and bob work, with or without what is ann's alone."""
    scribe, bob = Agent(at.runtime, Principal(**ANN)), keyed(at, "bob", user="bob")
    await scribe.ask(CreateSession(purpose="p", session_id="open"))
    await bob.ask(CreateSession(purpose="p", session_id="bobs", project_id="user:bob"))
    if hidden:
        await scribe.ask(CreateSession(purpose="quagga", session_id="hers", project_id="user:ann"))
        await say(scribe, "hers", "quagga")
        await scribe.ask(RecordContext(session_id="hers", decisions=[DecisionMade(what="quagga")]))
        await scribe.ask(StoreMemory(namespace="project:user~3aann", key="k", content="quagga"))
        put = PutDocument(corpus="project:user~3aann:docs", document=document_of("a.md", [([], "quagga")]))
        await ask_corpus(at.runtime, scribe.principal, put, make=True)
        of_ann = keyed(at, "other", user="ann", projects=frozenset({"user:ann"}))
        await of_ann.ask(StoreMemory(namespace="team:all", key="k", content="quagga"))
    await bob.ask(StoreMemory(namespace="team:all", key="k", content="hello"))


READS: list[Any] = [
    ListSessions(),
    ListSessions(project_id="user:ann"),
    ListResources(),
    ListCorpora(),
    ListMemories(),
    ListMemories(namespace="project:atlas"),
    MemorySearch(query="quagga"),
    MemoryStats(namespace="project:user~3aann"),
    MemoryStats(namespace="team:all"),
    BrowseNamespaces(),
    CompleteResource(template="greenroom://project/{project_id}", argument="project_id"),
    CompleteResource(template="session://{session_id}", argument="session_id"),
]


@pytest.mark.promise("identity.own-project", "identity.visible-only")
@pytest.mark.parametrize("who", STRANGERS)
async def test_nothing_that_is_counted_or_listed_tells_of_it(
    tmp_path: Path,
    who: str,
    autojump_clock: object,  # noqa: ARG001  pytest-trio runs the test on it
) -> None:
    async def seen(*, hidden: bool) -> list[tuple[str, str]]:
        async with house(tmp_path / f"{who} {hidden}", VirtualClock()) as at:
            await life(at, hidden=hidden)
            stranger = keyed(at, "spy", **STRANGERS[who])
            found = [await said(stranger, each) for each in READS]
            overview = await stranger.ask(GetOverview())
            return [*found, ("", str((overview.sessions, overview.memories)))]

    with_it, without = await seen(hidden=True), await seen(hidden=False)
    for one, other in zip(with_it, without, strict=True):
        assert without_ids(one) == without_ids(other)


def without_ids(answer: tuple[str, str]) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|took_ms\W+[0-9.]+|query_time_ms\W+[0-9.]+", "", str(answer))


@pytest.mark.promise("identity.own-project")
@pytest.mark.parametrize("who", [*STRANGERS, *(f"own: {each}" for each in OWN)])
async def test_a_change_wakes_its_user_alone(enter: Enter, who: str) -> None:
    is_own = who.startswith("own: ")
    identity = {"user": "ann", **OWN[who.removeprefix("own: ")]} if is_own else STRANGERS[who]
    async with enter() as at:
        scribe, reader = Agent(at.runtime, Principal(**ANN)), keyed(at, "reader", **identity)
        await scribe.ask(CreateSession(purpose="p", session_id="s", project_id="user:ann"))
        changes = {
            "session://s": AddMessage(session_id="s", content="x"),
            "greenroom://project/user:ann": RecordContext(session_id="s", decisions=[DecisionMade(what="x")]),
            "greenroom://memories/project:user~3aann": StoreMemory(
                namespace="project:user~3aann", content="x"
            ),
        }
        for uri, change in changes.items():
            with reader.subscriber(0) as subscriber:
                subscriber.add(uri)
                await scribe.ask(change)
                with trio.move_on_after(1) as scope:
                    await subscriber.next()
                assert scope.cancelled_caught != is_own, uri
        if not is_own:
            with refused("RESOURCE_NOT_FOUND") as hidden:
                await reader.ask(ReadResource(uri="greenroom://project/user:ann"))
            with refused("RESOURCE_NOT_FOUND") as unknown:
                await reader.ask(ReadResource(uri="greenroom://project/user:nobody"))
            assert str(hidden.value).replace("ann", "nobody") == str(unknown.value)
            with refused("PERMISSION_DENIED"):
                await reader.ask(StoreMemory(namespace="project:user~3aann", content="x"))


# -- what was done before a key was shown --------------------------------------------------------------


@pytest.mark.promise("identity.own-project")
async def test_what_was_answered_without_a_key_is_answered_anew_to_who_comes_by_one(enter: Enter) -> None:
    async with enter() as at:
        scribe, local = Agent(at.runtime, Principal(**ANN)), at.agent("bob", user="bob")
        by_key = keyed(at, "bob", user="bob")
        await scribe.ask(CreateSession(purpose="p", session_id="s", project_id="user:ann"))
        once = AddMessage(session_id="s", content="x", idempotency_key="once")
        first = await local.ask(once)
        assert (await local.ask(once)).message_id == first.message_id
        with refused("SESSION_NOT_FOUND", session_id="s"):
            await by_key.ask(once)
        await scribe.ask(StoreMemory(namespace="project:user~3aann", content="quagga"))
        for agent, found in ((local, 1), (by_key, 0), (local, 1)):
            assert len((await agent.ask(MemorySearch(query="quagga"))).memories) == found
            counted = (await agent.ask(GetOverview())).sessions
            assert counted
            assert counted.count == found


@pytest.mark.promise("identity.own-project")
async def test_what_a_program_was_told_is_its_users_alone(enter: Enter) -> None:
    """The service for programs has no key, and sees all users; its users' agents see their own."""
    async with enter() as at:
        program = Principal(agent_id="adk", user="ann")
        service = SessionService(at.runtime, program)
        await service.create_session("told", "app", "ann", "user:ann", {"mood": "quagga"})
        for who, identity in STRANGERS.items():
            stranger = keyed(at, "spy", **identity)
            with refused("SESSION_NOT_FOUND"):
                await stranger.ask(GetSession(session_id="told"))
            by_key = SessionService(at.runtime, stranger.principal)
            assert await by_key.get_session("told") is None, who
            await by_key.delete_session("told")
        assert await service.get_session("told") is not None


# -- real keys, tokens and browsers --------------------------------------------------------------------


@pytest.fixture
def rooms(enter: Enter) -> Callable[[], AbstractAsyncContextManager[Rooms]]:
    """Return what lets ann keep a session over HTTP, on a server with keys."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Rooms]:
        async with enter(embedder="none") as at, premises(at) as here:
            keys = {
                "ann": await create_key(at, user="ann"),
                "ann-q": await create_key(
                    at, "sessions:*", "memory:*", "knowledge:*", user="ann", projects=["q"]
                ),
                "bob": await create_key(at, user="bob"),
                "bob-names-it": await create_key(at, "sessions:*", user="bob", projects=["user:ann"]),
                "none": await create_key(at),
                "root": await create_key(at, "admin", "*:read", "*:write", user="root"),
            }
            await here.settled()
            guest = await here.guest()
            made = {"purpose": "salary talk", "session_id": "s", "project_id": "user:ann"}
            answer = await posted(guest, "create_session", made, bearer(keys["ann"]))
            assert answer.status == 200, answer
            message = {"session_id": "s", "content": "quagga"}
            await posted(guest, "add_message", message, bearer(keys["ann"]))
            yield Rooms(here, guest, keys)

    return opened


class Rooms(NamedTuple):
    here: Premises
    guest: Guest
    keys: dict[str, ApiKeyMade]


@pytest.mark.promise("identity.own-project")
@pytest.mark.parametrize("who", ["bob", "bob-names-it", "none", "root"])
async def test_over_http_and_websocket_no_other_user_lists_reads_or_ends_it(
    rooms: Callable[[], AbstractAsyncContextManager[Rooms]], who: str
) -> None:
    async with rooms() as (here, guest, keys):
        shown = bearer(keys[who])
        assert b"salary" not in (await posted(guest, "list_sessions", {}, shown)).body
        for tool, more in (("get_messages", {}), ("end_session", {}), ("add_message", {"content": "x"})):
            hidden = await posted(guest, tool, {"session_id": "s", **more}, shown)
            unknown = await posted(guest, tool, {"session_id": "t", **more}, shown)
            assert (hidden.status, hidden.json()["details"]) == (404, {"session_id": "s"}), tool
            assert hidden.status == unknown.status
        peer = await here.websocket(keys[who])
        await peer.request("tools/call", {"name": "list_sessions", "arguments": {}})
        listed = str(await peer.receive())
        assert "sessions" in listed
        assert "salary" not in listed
        kept = await posted(guest, "get_session", {"session_id": "s"}, bearer(keys["ann"]))
        assert (kept.status, kept.json()["session"]["status"]) == (200, "active")
        own = await posted(guest, "get_messages", {"session_id": "s"}, bearer(keys["ann-q"]))
        assert own.status == 200


@pytest.mark.slow
@pytest.mark.promise("identity.own-project")
async def test_a_browser_shows_what_the_key_opens_and_the_owners_link_everything(
    rooms: Callable[[], AbstractAsyncContextManager[Rooms]],
) -> None:
    async with rooms() as (here, _, keys):
        for who in ("bob", "none", "root"):
            visitor = await looker(here, keys[who])
            for page in ("/", "/sessions", "/search?q=quagga", "/map", "/people"):
                assert "salary" not in (await visitor.look(page)).text, (who, page)
            assert (await visitor.look("/sessions/s")).status == 404
        for key in (keys["ann"], None):
            assert "salary" in (await (await looker(here, key)).look("/sessions")).text


@pytest.mark.promise("identity.own-project")
async def test_an_administrator_sees_it_as_that_user_alone_reads_only_and_is_recorded(
    rooms: Callable[[], AbstractAsyncContextManager[Rooms]],
) -> None:
    async with rooms() as (here, guest, keys):
        shown = bearer(keys["root"])
        as_ann = {**shown, "greenroom-as": "any", "greenroom-as-user": "ann"}
        as_bob = {**shown, "greenroom-as": "any", "greenroom-as-user": "bob"}
        read = {"session_id": "s"}
        assert b"quagga" in (await posted(guest, "get_messages", read, as_ann)).body
        assert (await posted(guest, "get_messages", read, as_bob)).status == 404
        assert (await posted(guest, "end_session", read, as_ann)).status == 403
        await here.settled()
        looks = [row for row in await here.at.runtime.query(AuditTrail()) if row.action == "see_as"]
        assert {row.details["user"] for row in looks} == {"ann", "bob"}
