"""A key bound to projects sees its user's memories of these and of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from core.test_matrix import ASKED, MEMORY, WORKSPACE, answers, arranged
from msgspec.json import encode
from support.agents import refused
from support.console import looker
from support.keyed import create_key, premises

from greenroom.actors import (
    Agent,
    ExportMemories,
    GetSessionContext,
    ListMemories,
    ListTold,
    MemorySearch,
    MemoryStats,
    Principal,
    RecallContext,
    StartSession,
    StoreMemory,
    UpdateMemory,
    parse_request,
)
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.memories.storage.directory import BrowseNamespaces

if TYPE_CHECKING:
    from support.agents import Enter, House

pytestmark = pytest.mark.promise("memory.key-projects")

HERE, ELSEWHERE = project_of_path("/home/ann/atlas"), project_of_path("/home/ann/zeus")
TOOLS = [
    tool
    for tool, asked in ASKED.items()
    if asked.row == MEMORY
    and tool not in {"set_preferences", "list_passports", "browse_namespaces", "memory_stats"}
]
"""What is decided by who sees a memory; a user's own namespace is listed to each of its agents."""


def scribe(at: House) -> Agent:
    return at.agent("scribe", user="ann")


def bound(at: House, *projects: str) -> Agent:
    principal = Principal(agent_id="clerk", user="ann", key_id="ann's", projects=frozenset(projects))
    return Agent(at.runtime, principal, reach=WORKSPACE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("namespace", "sees"),
    [
        ("user:ann", True),
        ("user:ann:notes", True),
        (f"user:ann:{HERE}", True),
        (f"user:ann:{ELSEWHERE}", False),
        (f"user:ann:{ELSEWHERE}:deeper", False),
    ],
)
async def test_every_tool_shows_it_memories_of_its_projects_and_of_none(
    enter: Enter, namespace: str, *, sees: bool
) -> None:
    async with enter(embedder="none") as at:
        for number, tool in enumerate(TOOLS):
            names = await arranged(at, scribe(at), number, namespace=namespace)
            at.tick()
            assert await answers(bound(at, HERE), tool, names) == sees, tool
            if not sees:
                assert await answers(bound(at, HERE, ELSEWHERE), tool, names), tool
        counted = await bound(at, HERE).ask(MemoryStats(namespace=namespace))
        assert (counted.memories > 0) == sees


@pytest.mark.parametrize("scope", ["private", "shared"])
async def test_what_its_user_wrote_into_another_projects_namespace_is_not_there(
    enter: Enter, scope: Any
) -> None:
    async with enter() as at:
        writer = scribe(at)
        made = await writer.ask(
            parse_request(
                StoreMemory,
                encode(
                    {"namespace": "project:q", "key": "k", "content": "quagga", "metadata": {"scope": scope}}
                ),
            )
        )
        for agent, sees in ((bound(at, "p"), False), (bound(at), False), (bound(at, "q"), True)):
            found = await agent.ask(ListMemories(namespace="project:q"))
            assert ([each.memory_id for each in found.memories] == [made.memory_id]) == sees
            assert bool((await agent.ask(MemorySearch(query="quagga"))).memories) == sees
            assert (await agent.ask(MemoryStats(namespace="project:q"))).memories == sees
            assert ("project:q" in (await agent.ask(BrowseNamespaces())).namespaces) == sees
            assert (await agent.ask(ExportMemories(namespace="project:q"))).count == sees
            with agent.subscriber(0) as subscriber:
                subscriber.add("greenroom://memories/project:q")
                await writer.ask(UpdateMemory(memory_id=made.memory_id, content="quagga again"))
                with trio.move_on_after(1) as waited:
                    await subscriber.next()
                assert waited.cancelled_caught != sees


async def test_it_writes_nothing_about_a_project_that_it_does_not_see(enter: Enter) -> None:
    async with enter() as at:
        for namespace in (f"user:ann:{ELSEWHERE}", "project:q"):
            with refused("PERMISSION_DENIED", namespace=namespace):
                await bound(at, HERE).ask(StoreMemory(namespace=namespace, content="x"))
        await bound(at, HERE).ask(StoreMemory(namespace=f"user:ann:{HERE}", content="x"))


async def test_what_it_was_shared_with_by_its_users_other_keys_is_of_their_projects(enter: Enter) -> None:
    async with enter() as at:
        await bound(at, "q").ask(StoreMemory(namespace="team:all", key="k", content="quagga"))
        for projects, found in ((("p",), 0), (("p", "q"), 1)):
            assert len((await bound(at, *projects).ask(MemorySearch(query="quagga"))).memories) == found
        await bound(at, "p").ask(StoreMemory(namespace="team:all", key="k", content="zebra"))
        (mine,) = (await bound(at, "p").ask(ListMemories(namespace="team:all"))).memories
        assert mine.content == "zebra"


async def test_no_successor_that_it_does_not_see_hides_what_it_sees(enter: Enter) -> None:
    async with enter() as at:
        old = await scribe(at).ask(StoreMemory(namespace="user:ann:notes", content="quagga in the old house"))
        await scribe(at).ask(
            StoreMemory(
                namespace=f"user:ann:{ELSEWHERE}", content="quagga in the new one", supersedes=old.memory_id
            )
        )
        for agent, text in ((bound(at, HERE), "old house"), (scribe(at), "new one")):
            (found,) = (await agent.ask(ListMemories(namespace="user:ann"))).memories
            assert text in (found.content or "")


# -- what was told -------------------------------------------------------------------------------------


async def test_no_line_of_what_was_told_is_about_another_project(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        kept = {}
        for namespace in ("user:ann:notes", f"user:ann:{HERE}", f"user:ann:{ELSEWHERE}"):
            word = {"notes": "zebra", HERE: "walrus", ELSEWHERE: "quagga"}[namespace.rpartition(":")[2]]
            made = await scribe(at).ask(StoreMemory(namespace=namespace, content=f"the {word} is red"))
            kept[word] = made.memory_id
            at.tick()
            await scribe(at).ask(RecallContext(task=f"{word}"))
        whole = await scribe(at).ask(ListTold())
        assert {each.query for each in whole.told} == {"zebra", "walrus", "quagga"}
        seen = await bound(at, HERE).ask(ListTold())
        assert [each.query for each in seen.told] == ["walrus", "zebra"]
        assert seen.total == 2
        for agent, total in ((bound(at, HERE), 0), (bound(at, ELSEWHERE), 1)):
            found = await agent.ask(ListTold(memory_id=kept["quagga"]))
            assert (found.total, len(found.told)) == (total, total)


async def test_no_session_says_what_was_kept_about_another_project(enter: Enter) -> None:
    async with enter() as at:
        writer = scribe(at)
        started = await writer.ask(StartSession())
        for namespace in ("user:ann:notes", f"user:ann:{ELSEWHERE}"):
            await writer.ask(StoreMemory(namespace=namespace, content="x"))
        await trio.testing.wait_all_tasks_blocked()
        asked = GetSessionContext(session_id=started.session_id)
        for agent, places in (
            (scribe(at), {"user:ann:notes", f"user:ann:{ELSEWHERE}"}),
            (bound(at, HERE), {"user:ann:notes"}),
        ):
            assert {each.namespace for each in (await agent.ask(asked)).context.memories} == places


@pytest.mark.slow
async def test_the_console_shows_it_neither_memories_nor_lines_about_them(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        for word, namespace in (("zebra", "user:ann:notes"), ("quagga", f"user:ann:{ELSEWHERE}")):
            await scribe(at).ask(StoreMemory(namespace=namespace, content=f"the {word} is red"))
            await scribe(at).ask(RecallContext(task=word))
        whole = await create_key(at, "*:read", user="ann")
        narrow = await create_key(at, "*:read", user="ann", projects=[HERE])
        await here.settled()
        for key, words in ((whole, {"zebra", "quagga"}), (narrow, {"zebra"})):
            visitor = await looker(here, key)
            for page in ("/told", "/memories"):
                text = (await visitor.look(page)).text
                assert {word for word in ("zebra", "quagga") if word in text} == words, page


async def test_it_ends_no_memory_that_it_does_not_see_by_the_same_key(enter: Enter) -> None:
    async with enter() as at:
        shared = parse_request(
            StoreMemory,
            encode(
                {
                    "namespace": "user:ann:notes",
                    "key": "k",
                    "content": "quagga",
                    "metadata": {"scope": "shared"},
                }
            ),
        )
        made = await bound(at, HERE).ask(shared)
        assert not (await bound(at, ELSEWHERE).ask(ListMemories(namespace="user:ann:notes"))).memories
        with refused("KEY_EXISTS", key="k"):
            await bound(at, ELSEWHERE).ask(StoreMemory(namespace="user:ann:notes", key="k", content="zebra"))
        (kept,) = (await bound(at, HERE).ask(ListMemories(namespace="user:ann:notes"))).memories
        assert (kept.memory_id, kept.content) == (made.memory_id, "quagga")
