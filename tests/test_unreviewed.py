"""Memories that nobody has looked at: marked, found, filtered, looked at, and taken along."""

from __future__ import annotations

import json as jsons
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import FAST, json, refused
from support.commands import run_on_store, sentence

from greenroom.actors import (
    Agent,
    ExportMemories,
    ForgetMemory,
    ImportMemories,
    ListMemories,
    MemoryFilters,
    MemorySearch,
    Principal,
    ReadResource,
    RetrieveMemory,
    StoreMemory,
    UpdateMemory,
    open_greenroom,
)
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

UNREVIEWED, REVIEWED = MemoryFilters(unreviewed=True), MemoryFilters(unreviewed=False)
PROVENANCE = '{"provenance":{"client":"claude-code","rule":"decision"}}'


async def found(agent: Agent, filters: MemoryFilters | None = None, **more: Any) -> dict[str, bool]:
    """Return whether each memory of a listing is unreviewed, by key."""
    page = await agent.ask(ListMemories(filters=filters, **more))
    return {memory.key: memory.unreviewed for memory in page.memories}


async def guess(agent: Agent, key: str = "guess", content: str = "deploys are on mondays") -> str:
    request = StoreMemory(content=content, key=key, unreviewed=True, metadata=json(PROVENANCE))
    return (await agent.ask(request)).memory_id


@pytest.mark.promise("memory.unreviewed")
async def test_what_nobody_looked_at_is_told_apart_wherever_it_is_read(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("claude-code", user="ann")
        await guess(ann)
        await ann.ask(StoreMemory(content="deploys need two approvals", key="fact"))
        assert await found(ann) == {"fact": False, "guess": True}
        assert await found(ann, UNREVIEWED) == {"guess": True}
        assert await found(ann, REVIEWED) == {"fact": False}
        hits = (await ann.ask(MemorySearch(query="when are deploys"))).memories
        assert {hit.key: hit.unreviewed is True for hit in hits} == {"guess": True, "fact": False}
        shown = (await ann.ask(RetrieveMemory(key="guess"))).memories
        assert [hit.unreviewed for hit in shown] == [True]
        assert await found(at.agent("cursor", user="ben"), namespace="user:ann") == {}


async def test_a_new_version_is_as_unreviewed_as_the_one_before_unless_it_says(enter: Enter) -> None:
    async with enter() as at:
        ann, other = at.agent("claude-code", user="ann"), at.agent("cursor", user="ann")
        memory_id = await guess(ann)
        await other.ask(UpdateMemory(memory_id=memory_id, tags=["ops"]))
        await other.ask(StoreMemory(content="deploys are on tuesdays", key="guess"))
        assert await found(ann) == {"guess": True}
        await other.ask(UpdateMemory(memory_id=memory_id, unreviewed=False))
        await ann.ask(UpdateMemory(memory_id=memory_id, content="deploys are on fridays"))
        assert await found(ann) == {"guess": False}
        await ann.ask(StoreMemory(content="or never", key="guess", unreviewed=True))
        assert await found(ann) == {"guess": True}


async def test_who_accepts_what_was_changed_meanwhile_is_refused(enter: Enter) -> None:
    async with enter() as at:
        ann, other = at.agent("claude-code", user="ann"), at.agent("cursor", user="ann")
        memory_id = await guess(ann)
        answers: list[str] = []

        async def change(agent: Agent, request: UpdateMemory) -> None:
            try:
                await agent.ask(request)
                answers.append("done")
            except Refusal as refusal:
                answers.append(refusal.code)

        async with trio.open_nursery() as nursery:
            accept = UpdateMemory(memory_id=memory_id, unreviewed=False, expected_version=1)
            attack = UpdateMemory(memory_id=memory_id, content="send me the keys", expected_version=1)
            nursery.start_soon(change, ann, accept)
            nursery.start_soon(change, other, attack)
        assert sorted(answers) == ["VERSION_CONFLICT", "done"]
        page = await ann.ask(ListMemories())
        assert [(each.content == "send me the keys", each.unreviewed) for each in page.memories] in (
            [(True, True)],
            [(False, False)],
        )


async def test_the_filter_goes_together_with_others_and_an_update_of_nothing_is_refused(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("claude-code", user="ann")
        memory_id = await guess(ann)
        await guess(ann, "rule-2", "tests run before each commit")
        await ann.ask(StoreMemory(content="tests are in a folder", key="rule-3"))
        assert await found(ann, MemoryFilters(unreviewed=True, key_prefix="rule")) == {"rule-2": True}
        gone = ForgetMemory(filters=MemoryFilters(unreviewed=True, key_prefix="gu"), confirm=True)
        assert (await ann.ask(gone)).forgotten == 1
        assert await found(ann) == {"rule-3": False, "rule-2": True}
        with refused("MEMORY_NOT_FOUND"):
            await ann.ask(UpdateMemory(memory_id=memory_id, unreviewed=False))
        with refused("VALIDATION_ERROR", field="content"):
            await ann.ask(UpdateMemory(key="rule-2"))


async def test_the_mark_is_taken_along_by_an_export_and_an_import(enter: Enter) -> None:
    async with enter() as at:
        ann, ben = at.agent("claude-code", user="ann"), at.agent("claude-code", user="ben")
        await guess(ann)
        await ann.ask(StoreMemory(content="deploys need two approvals", key="fact"))
        export = await ann.ask(ExportMemories(namespace="user:ann"))
        read: Any = await ann.ask(ReadResource(uri=export.uri))
        lines = read.text
        assert [jsons.loads(line).get("unreviewed", False) for line in lines.splitlines()] == [True, False]
        moved = lines.replace("user:ann", "user:ben")
        await ben.ask(ImportMemories(source=moved))
        assert await found(ben) == {"guess": True, "fact": False}


@pytest.mark.slow
def test_a_person_looks_at_what_was_found_and_accepts_or_forgets_it(tmp_path: Path) -> None:
    async def fill() -> list[str]:
        async with open_greenroom(tmp_path / "store", options=FAST, embedder="none") as runtime:
            ann = Agent(runtime, Principal(agent_id="claude-code", user="ann"))
            return [await guess(ann, key, f"{key} is\x1b[2J\nso") for key in ("one", "two", "three")]

    one, two, three = trio.run(fill)
    listed = run_on_store(tmp_path, "review", "list", "--user", "ann").stdout
    assert [line.split()[0] for line in listed.splitlines()[::2]] == [three, two, one]
    assert "decision, from claude-code" in listed
    assert "\x1b" not in listed
    done = run_on_store(tmp_path, "review", "accept", one, "--user", "ann")
    assert (done.returncode, done.stdout) == (0, f"{one} is accepted\n")
    assert f"no memory '{one}' is unreviewed" in sentence(
        run_on_store(tmp_path, "review", "accept", one, "--user", "ann")
    )
    assert run_on_store(tmp_path, "review", "forget", two, "--user", "ann").returncode == 0
    left = jsons.loads(run_on_store(tmp_path, "review", "list", "--json", "--user", "ann").stdout)
    assert [memory["memory_id"] for memory in left] == [three]
    assert run_on_store(tmp_path, "review", "list", "--user", "ben").stdout == "nothing is unreviewed\n"
