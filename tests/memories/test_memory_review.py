"""Going through memories: what is restored is as it was, merges come back, pairs are found in steps."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import json, refused

from greenroom.actors import (
    BrowseMemories,
    BrowseNamespaces,
    EraseUser,
    ForgetMemory,
    InspectMemory,
    ListForgotten,
    ListMemoryPairs,
    MemoryFilters,
    MemorySearch,
    MergeMemories,
    MoveMemory,
    RateMemory,
    RestoreMemory,
    SettleMemoryPair,
    StoreMemory,
    UpdateMemory,
    WithdrawRating,
)

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import Agent, MemoriesMerged, MemoryView

VAULT = "The deploy key of the staging server lies in the vault below operations"
ALL = MemoryFilters(superseded=True)


async def store(agent: Agent, content: str, **more: Any) -> str:
    return (await agent.ask(StoreMemory(content=content, **more))).memory_id


async def seen(agent: Agent, memory_id: str, version: int | None = None) -> MemoryView:
    return (await agent.ask(InspectMemory(memory_id=memory_id, version=version))).memory


async def state(agent: Agent, memory_id: str) -> Any:
    """Return all of a memory that a version has, and what it hides."""
    view = await seen(agent, memory_id)
    return msgspec.structs.replace(view, id=0, version=0, updated_at=view.created_at, updated_by="")


def later(at: House, days: int) -> dt.datetime:
    """Return a time some days from now."""
    return dt.datetime.fromtimestamp(at.clock.now() / 1e6, dt.UTC) + dt.timedelta(days=days)


async def visible(agent: Agent, **arguments: Any) -> list[str]:
    page = await agent.ask(BrowseMemories(**arguments))
    return [each.memory_id for each in page.memories]


async def pairs_of(agent: Agent) -> list[set[str]]:
    """Return the pairs on the first page."""
    page = await agent.ask(ListMemoryPairs())
    return [{pair.newer.memory_id, pair.older.memory_id} for pair in page.pairs]


async def take_back(agent: Agent, merged: MemoriesMerged) -> None:
    """Undo a merge as its reply says."""
    for each in reversed(merged.changed):
        restore = RestoreMemory(
            memory_id=each.memory_id, version=each.version - 1, expected_version=each.version
        )
        await agent.ask(restore)


@pytest.mark.promise("memory.restore")
@pytest.mark.parametrize("namespace", ["user:ann", "user:ann:sub", "agent:bot", "project:p", "team:x"])
async def test_a_restored_memory_is_as_it_was(enter: Enter, namespace: str) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann", projects=frozenset({"p"}))
        hidden = await store(ann, "older", namespace=namespace)
        memory = await store(
            ann,
            "x" * 9_000,  # compressed
            key="k",
            namespace=namespace,
            tags=["one", "two"],
            importance=0.9,
            kind="procedural",
            expiry="2999-01-01",
            metadata=json('{"a":{"b":"é"}}'),
            supersedes=hidden,
            unreviewed=False,
        )
        await ann.ask(RateMemory(memory_id=memory, rating=0.5))
        before = await state(ann, memory)
        other = await store(ann, "unrelated", namespace=namespace)
        await ann.ask(
            UpdateMemory(
                memory_id=memory,
                value=json("1"),
                tags=[],
                importance=0.0,
                kind="semantic",
                metadata=json('{"a":1,"expiry":null}'),
                supersedes=other,
            )
        )
        assert await state(ann, memory) != before
        assert hidden in await visible(ann, namespace=namespace)
        await ann.ask(RestoreMemory(memory_id=memory, version=1, expected_version=2))
        assert await state(ann, memory) == before
        assert await visible(ann, namespace=namespace) == [memory, other]
        await ann.ask(ForgetMemory(memory_id=memory))
        assert hidden in await visible(ann, namespace=namespace)
        assert (await ann.ask(MemorySearch(query="xxx", namespace=namespace))).memories == []
        await ann.ask(RestoreMemory(memory_id=memory, expected_version=3))
        assert await state(ann, memory) == before
        assert await visible(ann, namespace=namespace) == [memory, other]
        history = (await ann.ask(InspectMemory(memory_id=memory))).versions
        assert [each.version for each in history] == [4, 3, 2, 1]
        with refused("VALIDATION_ERROR"):
            await ann.ask(RestoreMemory(memory_id=memory))
    async with enter() as at:
        ann = at.agent("bot", user="ann", projects=frozenset({"p"}))
        assert await state(ann, memory) == before


async def test_what_was_forgotten_does_not_come_back_over_what_took_its_key(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        old = await store(ann, "old", key="k")
        await ann.ask(ForgetMemory(memory_id=old))
        new = await store(ann, "new", key="k")
        with refused("VALIDATION_ERROR"):
            await ann.ask(RestoreMemory(memory_id=old))
        await ann.ask(ForgetMemory(memory_id=new))
        await ann.ask(RestoreMemory(memory_id=old))
        assert (await seen(ann, old)).content == "old"
        assert (await seen(ann, new)).deleted_at is not None
        with refused("VERSION_CONFLICT", current_version=3):
            await ann.ask(RestoreMemory(memory_id=old, version=1, expected_version=1))
        await ann.ask(ForgetMemory(memory_id=new, purge=True))
        with refused("MEMORY_NOT_FOUND"):
            await ann.ask(RestoreMemory(memory_id=new))


@pytest.mark.promise("memory.forgotten")
async def test_what_was_forgotten_is_listed_as_long_as_it_can_come_back(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("bot", user="ann"), at.agent("b", user="bob")
        assert (await ann.ask(ListForgotten())).memories == []
        ids = [
            await store(ann, f"number {n}", key=f"k{n}", namespace="team:x", scope="public") for n in range(5)
        ]
        private = await store(ann, "mine", namespace="team:x", scope="private")
        below = await store(ann, "below", namespace="team:x:y", scope="public")
        ends = await store(ann, "ends", namespace="team:x", scope="public", expiry=str(later(at, days=1)))
        for number, each in enumerate((*ids, private, below, ends)):
            at.tick()
            await (bob if number < 2 else ann).ask(ForgetMemory(memory_id=each))
        page = await ann.ask(ListForgotten(namespace="team:x"))
        assert [each.memory.memory_id for each in page.memories] == [ends, below, private, *ids[::-1]]
        assert [each.forgotten_by for each in page.memories] == ["bot"] * 6 + ["b"] * 2
        assert page.memories[-1].memory.preview == "number 0"
        assert page.memories[0].forgotten_at - page.memories[-1].forgotten_at == dt.timedelta(seconds=7)
        of_bob = await bob.ask(ListForgotten(namespace="team:x", limit=3))
        assert [each.memory.memory_id for each in of_bob.memories] == [ends, below, ids[4]]
        again = await bob.ask(ListForgotten(namespace="team:x", limit=4, cursor=of_bob.next_cursor))
        assert [each.memory.memory_id for each in again.memories] == ids[3::-1]
        assert again.next_cursor is None
        deep = await bob.ask(ListForgotten(namespace="team:x:y"))
        assert [each.memory.memory_id for each in deep.memories] == [below]
        with refused("VALIDATION_ERROR"):
            await bob.ask(ListForgotten(namespace="team:x:y", cursor=of_bob.next_cursor))

        new = await store(bob, "new", key="k0", namespace="team:x", scope="public")  # in a place of its own
        taken = await store(ann, "new", key="k1", namespace="team:x", scope="public")
        listed = (await ann.ask(ListForgotten(namespace="team:x"))).memories
        assert [each.memory.key for each in listed if each.key_is_taken] == ["k1"]
        for kept in listed:
            restore = RestoreMemory(memory_id=kept.memory.memory_id, expected_version=kept.memory.version)
            if kept.key_is_taken:
                with refused("VALIDATION_ERROR"):
                    await ann.ask(restore)
        await ann.ask(ForgetMemory(memory_id=ids[2], purge=True))
        for _ in range(2):
            await ann.ask(RestoreMemory(memory_id=ids[3], expected_forgotten=True))
            at.tick()
            await ann.ask(ForgetMemory(memory_id=ids[3]))
        listed = (await ann.ask(ListForgotten(namespace="team:x", limit=1))).memories
        assert [each.memory.memory_id for each in listed] == [ids[3]]
        await ann.ask(RestoreMemory(memory_id=ids[3], expected_forgotten=True))
        at.tick(2 * 86_400)
        left = [each.memory.memory_id for each in (await ann.ask(ListForgotten(namespace="team:x"))).memories]
        assert left == [below, private, ids[4], ids[1], ids[0]]
        await ann.ask(ForgetMemory(memory_id=taken, purge=True))
        await ann.ask(ForgetMemory(memory_id=new))
    async with enter() as at:
        page = await at.agent("bot", user="ann").ask(ListForgotten(namespace="team:x"))
        found = [each.memory.memory_id for each in page.memories]
        assert (found, page.memories[0].forgotten_by) == ([new, *left], "bot")
        assert not any(each.key_is_taken for each in page.memories)
        assert (await at.agent("eve", user="eve").ask(ListForgotten(namespace="user:ann"))).memories == []


@pytest.mark.promise("memory.forgotten")
async def test_of_a_person_who_was_erased_nothing_is_kept(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        hers = await store(ann, "hers", namespace="team:x", scope="public")
        his = await store(bob, "his", namespace="team:x", scope="public")
        for each in (hers, his):
            await ann.ask(ForgetMemory(memory_id=each))
        await at.agent("root").ask(EraseUser(user="ann", confirm=True))
        (kept,) = (await bob.ask(ListForgotten(namespace="team:x"))).memories
        assert (kept.memory.memory_id, kept.forgotten_by) == (his, "erased")


async def test_nobody_restores_merges_or_settles_what_is_not_his_to_write(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        eve = at.agent("eve", user="eve")
        private = await store(ann, "mine")
        public = await store(ann, VAULT, scope="public")
        twin = await store(ann, VAULT + " now", scope="public")
        await ann.ask(UpdateMemory(memory_id=private, content="changed"))
        await ann.ask(UpdateMemory(memory_id=public, content=VAULT + " too"))
        for memory, code in ((private, "MEMORY_NOT_FOUND"), (public, "PERMISSION_DENIED")):
            for request in (
                RestoreMemory(memory_id=memory, version=1),
                MergeMemories(memory_id=memory, others=[twin]),
                SettleMemoryPair(memory_id=memory, other_id=twin),
            ):
                with refused(code):
                    await eve.ask(request)
        with refused("MEMORY_NOT_FOUND"):
            await eve.ask(InspectMemory(memory_id=private))
        assert (await eve.ask(InspectMemory(memory_id=public))).may_change is False
        assert await visible(eve, namespace="user:ann") == [public, twin]
        assert (await eve.ask(BrowseNamespaces())).namespaces == ["user:ann"]


@pytest.mark.promise("memory.merge")
async def test_a_merge_hides_all_others_also_what_they_hid_and_can_be_taken_back(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        ids = [await store(ann, f"number {n}", tags=[f"t{n}", "all"], importance=n / 10) for n in range(4)]
        below = [await store(ann, f"below {n}") for n in range(2)]
        await ann.ask(UpdateMemory(memory_id=ids[0], supersedes=below[0]))
        await ann.ask(UpdateMemory(memory_id=ids[1], supersedes=below[1]))
        shown = await visible(ann)
        before = [await state(ann, each) for each in (*ids, *below)]
        versions = {each: (await seen(ann, each)).version for each in ids}
        merge = MergeMemories(
            memory_id=ids[0], others=ids[1:], content="all of it", expected_versions=versions
        )
        merged = await ann.ask(merge)
        assert await visible(ann) == [ids[0]]
        into = await seen(ann, ids[0])
        assert (into.content, into.importance) == ("all of it", 0.3)
        assert into.tags == ["t0", "all", "t1", "t2", "t3"]
        found = await ann.ask(InspectMemory(memory_id=ids[0]))
        assert {each.memory_id for each in found.superseded} == {*ids[1:], *below}
        last = await ann.ask(InspectMemory(memory_id=below[0]))
        assert len(last.superseded_by) == 5
        with refused("VERSION_CONFLICT"):
            await ann.ask(merge)
        await take_back(ann, merged)
        assert sorted(await visible(ann)) == sorted(shown)
        assert [await state(ann, each) for each in (*ids, *below)] == before


async def test_merging_what_is_linked_already_keeps_everything_hidden(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        old = await store(ann, "old")
        middle = await store(ann, "middle", supersedes=old)
        top = await store(ann, "top", supersedes=middle)
        beside = await store(ann, "beside")
        with refused("VALIDATION_ERROR"):
            await ann.ask(MergeMemories(memory_id=middle, others=[beside]))
        with refused("VALIDATION_ERROR"):
            await ann.ask(MergeMemories(memory_id=top, others=[top]))
        with refused("VALIDATION_ERROR"):
            await ann.ask(MergeMemories(memory_id=top, others=[beside, beside]))
        before = [await state(ann, each) for each in (top, middle, old, beside)]
        merged = await ann.ask(MergeMemories(memory_id=top, others=[old, beside]))
        assert await visible(ann) == [top]
        await take_back(ann, merged)
        assert [await state(ann, each) for each in (top, middle, old, beside)] == before
        merged = await ann.ask(MergeMemories(memory_id=top, others=[old], content="said anew"))
        assert await visible(ann) == [top, beside]
        assert (await seen(ann, top)).content == "said anew"
        await take_back(ann, merged)
        assert [await state(ann, each) for each in (top, middle, old, beside)] == before


@pytest.mark.parametrize("root", ["user:ann", "team:x"])
async def test_a_moved_memory_keeps_its_id_history_and_links_and_comes_back(enter: Enter, root: str) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        old = await store(ann, "old", namespace=root)
        memory = await store(ann, "first", key="k", namespace=root, tags=["t"], supersedes=old)
        taken = await store(ann, "taken", key="k", namespace=f"{root}:b")
        before = await state(ann, memory)
        with refused("VALIDATION_ERROR"):
            await ann.ask(MoveMemory(memory_id=memory, to=f"{root}:b"))
        for to in ("project:p", root):
            with refused("VALIDATION_ERROR"):
                await ann.ask(MoveMemory(memory_id=memory, to=to))
        with refused("VERSION_CONFLICT"):
            await ann.ask(MoveMemory(memory_id=memory, to=f"{root}:a", expected_version=7))
        moved = await ann.ask(MoveMemory(memory_id=memory, to=f"{root}:a", expected_version=1))
        assert (moved.namespace, moved.before, moved.version) == (f"{root}:a", root, 2)
        assert await visible(ann, namespace=f"{root}:a") == [memory]
        assert await visible(ann, namespace=root) == [memory, taken]
        assert (await ann.ask(StoreMemory(content="new", key="k", namespace=root))).created
        with refused("VALIDATION_ERROR"):
            await ann.ask(MoveMemory(memory_id=memory, to=root))
        await ann.ask(ForgetMemory(key="k", namespace=root))
        await ann.ask(MoveMemory(memory_id=memory, to=moved.before, expected_version=2))
        assert await state(ann, memory) == before
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        assert await state(ann, memory) == before
        assert await visible(ann, namespace=f"{root}:a") == []
        found = await ann.ask(MemorySearch(query="first", namespace=root))
        assert [each.memory_id for each in found.memories] == [memory]


async def test_a_rating_is_taken_back_to_the_one_before(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        memory = await store(ann, "x", namespace="team:x")
        await bob.ask(RateMemory(memory_id=memory, rating=1.0))
        at.tick()
        for rating in (-1.0, 0.25):
            await ann.ask(RateMemory(memory_id=memory, rating=rating, note=f"{rating}"))
        means = [(await ann.ask(WithdrawRating(memory_id=memory))) for _ in range(3)]
        assert [(each.rating, each.ratings) for each in means] == [(0.0, 2), (1.0, 1), (1.0, 1)]
        ratings = (await ann.ask(InspectMemory(memory_id=memory))).ratings
        assert [(each.rater, each.rating, each.by_use) for each in ratings] == [("b", 1.0, False)]
        assert await visible(ann, namespace="team:x", state="disliked") == []


@pytest.mark.promise("memory.pairs")
async def test_pairs_come_once_in_bounded_steps_and_not_again_once_they_are_settled(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        first = await store(ann, VAULT, key="first")
        for number in range(150):
            await store(ann, f"filler{number} words{number} of{number} no{number} matter{number}")
        second = await store(ann, VAULT + " now", key="second")
        third = await store(ann, VAULT.replace("lies", "lay"), key="third", unreviewed=True)
        pages, cursor = [], None
        while True:
            page = await ann.ask(ListMemoryPairs(cursor=cursor))
            pages.append(page)
            cursor = page.next_cursor
            if cursor is None:
                break
        assert [page.compared for page in pages] == [100, 53]
        found = [(pair.newer.memory_id, pair.older.memory_id) for page in pages for pair in page.pairs]
        assert sorted(found) == sorted([(third, second), (third, first), (second, first)])
        settled = SettleMemoryPair(memory_id=first, other_id=third)
        await ann.ask(settled)
        assert {first, third} not in await pairs_of(ann)
        await ann.ask(MergeMemories(memory_id=second, others=[first]))
        assert await pairs_of(ann) == [{second, third}]
        await ann.ask(RestoreMemory(memory_id=second, version=1))
        await ann.ask(msgspec.structs.replace(settled, settled=False))
        assert {first, third} in await pairs_of(ann)
        with refused("VALIDATION_ERROR"):
            await ann.ask(SettleMemoryPair(memory_id=first, other_id=first))
        bob = at.agent("b", user="bob")
        assert (await bob.ask(ListMemoryPairs(namespace="user:ann"))).pairs == []


async def test_a_newer_memory_that_may_contradict_an_older_one_is_told_at_both(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        for number in range(30):
            await store(ann, f"filler{number} words{number} of{number} no{number} matter{number}")
        old = await store(ann, "The payments team deploys to Frankfurt with Jenkins every Tuesday morning")
        new = await store(
            ann, "The payments team no longer deploys with Jenkins to Frankfurt; it moved to Argo on Friday"
        )
        pairs = (await ann.ask(ListMemoryPairs(kind="conflicts"))).pairs
        assert [(each.newer.memory_id, each.older.memory_id) for each in pairs] == [(new, old)]
        assert [each.memory_id for each in (await ann.ask(InspectMemory(memory_id=new))).replaces] == [old]
        assert [each.memory_id for each in (await ann.ask(InspectMemory(memory_id=old))).replaced_by] == [new]


async def test_facets_count_what_a_reader_sees_through_segments_and_removals(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        for number in range(60):
            await store(ann, f"n {number}", namespace="team:x", tags=["even" if number % 2 else "odd", "all"])
        mine = await store(bob, "private", namespace="team:x", scope="private", tags=["secret"])
        gone = await store(ann, "gone", namespace="team:x", tags=["gone"])
        await ann.ask(ForgetMemory(memory_id=gone))
        page = await ann.ask(BrowseMemories(namespace="team:x", limit=1))
        assert (page.total, page.facets.by_tag) == (60, {"all": 60, "even": 30, "odd": 30})
        page = await bob.ask(BrowseMemories(namespace="team:x", filters=MemoryFilters(tags=["secret"])))
        assert (page.total, page.facets.by_tag) == (1, {"secret": 1})
        assert [each.memory_id for each in page.memories] == [mine]
        ends = (dt.datetime.fromtimestamp(at.clock.now() / 1e6, dt.UTC) + dt.timedelta(days=3)).isoformat()
        expiring = await store(bob, "ends", namespace="team:x", expiry=ends)
        assert await visible(ann, namespace="team:x", state="expiring") == [expiring]
        page = await ann.ask(BrowseMemories(namespace="team:x"))
        assert page.waiting == {"unreviewed": 0, "unused": 0, "disliked": 0, "expiring": 1}
