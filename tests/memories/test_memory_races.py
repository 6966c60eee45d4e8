"""Two who go through the same memories: who comes second does nothing to what he did not see."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import refused

from greenroom.actors import (
    BrowseMemories,
    ForgetMemory,
    InspectMemory,
    ListForgotten,
    ListMemoryPairs,
    MergeMemories,
    MoveMemory,
    RateMemory,
    RestoreMemory,
    StoreMemory,
    UpdateMemory,
    WithdrawRating,
)
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Enter

    from greenroom.actors import Agent

VAULT = "The deploy key of the staging server lies in the vault below operations"


async def store(agent: Agent, content: str, **more: Any) -> str:
    return (await agent.ask(StoreMemory(content=content, **more))).memory_id


async def seen(agent: Agent, memory_id: str) -> Any:
    return await agent.ask(InspectMemory(memory_id=memory_id))


async def answered(agent: Agent, request: Any) -> str | None:
    """Return the code of the refusal; None where it was done."""
    try:
        await agent.ask(request)
    except Refusal as refusal:
        return refusal.code
    return None


def id_of(shown: Any) -> str:
    """Return the id of a memory in a list; of a pair that of the newer one."""
    return str(getattr(shown, "newer", getattr(shown, "memory", shown)).memory_id)


async def states(agent: Agent, *ids: str) -> list[Any]:
    """Return of memories their text, tags, version, place, what hides them, and since when they are gone."""
    found = [(await seen(agent, each)).memory for each in ids]
    return [
        (each.content, each.tags, each.version, each.namespace, each.superseded_by, each.deleted_at)
        for each in found
    ]


def deeds(one: str, other: str, versions: tuple[int, int]) -> dict[str, Any]:
    """Return what an agent may ask that saw these versions of two memories."""
    of_one, of_other = versions
    return {
        "edit": UpdateMemory(memory_id=one, content="edited", expected_version=of_one),
        "tag": UpdateMemory(memory_id=one, tags=["new"], expected_version=of_one),
        "forget": ForgetMemory(memory_id=one, expected_version=of_one),
        "forget for good": ForgetMemory(memory_id=one, expected_version=of_one, purge=True),
        "restore": RestoreMemory(
            memory_id=one, version=of_one - 1, expected_version=of_one, expected_forgotten=False
        ),
        "merge into it": MergeMemories(
            memory_id=one, others=[other], content="merged", expected_versions={one: of_one, other: of_other}
        ),
        "merge it": MergeMemories(
            memory_id=other, others=[one], expected_versions={one: of_one, other: of_other}
        ),
        "supersede": UpdateMemory(memory_id=one, supersedes=other, expected_version=of_one),
        "move": MoveMemory(memory_id=one, to="team:x:elsewhere", expected_version=of_one),
    }


SOME_ID = "00000000-0000-8000-8000-000000000000"
NAMES = tuple(deeds(SOME_ID, SOME_ID, (2, 1)))
SEEN = {"merge it"}
"""What makes no version of the first memory: it is hidden from then on, its history and its page stay."""


@pytest.mark.promise("console.undo")
@pytest.mark.parametrize("first", NAMES)
async def test_what_somebody_did_meanwhile_stands_and_the_second_is_told(enter: Enter, first: str) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        for second in NAMES:
            one = await store(ann, "first", namespace="team:x", scope="public")
            of_one = (await ann.ask(UpdateMemory(memory_id=one, content="second"))).version
            other = await store(ann, "other", namespace="team:x", scope="public")
            versions = of_one, (await seen(ann, other)).newest
            await ann.ask(deeds(one, other, versions)[first])
            there = [other] if first == "forget for good" else [one, other]
            before = await states(ann, *there)
            code = await answered(bob, deeds(one, other, versions)[second])
            if code is not None:
                told = {"VERSION_CONFLICT", "MEMORY_NOT_FOUND"}
                assert code in (told if first.startswith("forget") else {"VERSION_CONFLICT"}), second
                assert await states(ann, *there) == before, second
            else:
                assert first in SEEN or (first, second) == ("forget", "forget for good"), second
                if second != "forget for good":
                    assert {of_one - 1, of_one} <= {each.version for each in (await seen(ann, one)).versions}


async def test_a_version_is_not_restored_over_a_forgetting_that_nobody_saw_nor_the_other_way(
    enter: Enter,
) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        memory = await store(ann, "first", key="k", namespace="team:x", scope="public")
        await ann.ask(UpdateMemory(memory_id=memory, content="second"))
        await bob.ask(ForgetMemory(memory_id=memory, expected_version=2))
        undo = RestoreMemory(memory_id=memory, version=1, expected_version=2, expected_forgotten=False)
        with refused("VERSION_CONFLICT", current_version=2, is_forgotten=True) as caught:
            await ann.ask(undo)
        assert "'k' in 'team:x' was forgotten" in str(caught.value)
        back = RestoreMemory(memory_id=memory, expected_version=2, expected_forgotten=True)
        await bob.ask(back)
        with refused("VERSION_CONFLICT", current_version=3):
            await ann.ask(back)
        unforget = RestoreMemory(memory_id=memory, version=1, expected_version=3, expected_forgotten=True)
        with refused("VERSION_CONFLICT", is_forgotten=False) as caught:
            await ann.ask(unforget)
        assert "is not forgotten" in str(caught.value)
        with refused("VERSION_CONFLICT", current_version=3):
            await ann.ask(ForgetMemory(memory_id=memory, expected_version=2))
        assert (await seen(ann, memory)).memory.content == "second"


async def test_a_merge_is_taken_back_only_where_nobody_wrote_since(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        ids = [
            await store(ann, f"n {n}", namespace="team:x", scope="public", tags=[f"{n}"]) for n in range(4)
        ]
        merged = await ann.ask(MergeMemories(memory_id=ids[0], others=ids[1:]))
        assert len(merged.changed) == 3
        hidden = merged.changed[1].memory_id
        await bob.ask(UpdateMemory(memory_id=hidden, content="written meanwhile"))
        await bob.ask(ForgetMemory(memory_id=merged.changed[2].memory_id))
        codes: list[str | None] = []
        for each in reversed(merged.changed):
            request = RestoreMemory(
                memory_id=each.memory_id,
                version=each.version - 1,
                expected_version=each.version,
                expected_forgotten=False,
            )
            codes.append(await answered(ann, request))
        assert codes == ["VERSION_CONFLICT", "VERSION_CONFLICT", None]
        views = {each: (await seen(ann, each)).memory for each in ids}
        assert (views[ids[0]].tags, views[ids[0]].supersedes) == (["0"], None)
        assert views[hidden].content == "written meanwhile"
        assert [views[each].deleted_at is not None for each in ids].count(True) == 1
        listed = await ann.ask(BrowseMemories(namespace="team:x"))
        kept = await ann.ask(ListForgotten(namespace="team:x"))
        shown = {each.memory_id for each in listed.memories} | {
            each.memory.memory_id for each in kept.memories
        }
        assert {ids[0], hidden} <= shown


async def test_who_takes_a_rating_back_does_not_take_a_later_one(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("console", user="ann")  # in two browsers
        memory = await store(ann, "x", key="k")
        await ann.ask(RateMemory(memory_id=memory, rating=1.0))
        await ann.ask(RateMemory(memory_id=memory, rating=-0.5, note="it misled"))
        with refused("VERSION_CONFLICT", current_rating=-0.5) as caught:
            await ann.ask(WithdrawRating(memory_id=memory, expected_rating=1.0))
        assert "you last rated -0.5 the memory 'k'" in str(caught.value)
        assert [each.rating for each in (await seen(ann, memory)).ratings] == [-0.5]
        await ann.ask(WithdrawRating(memory_id=memory, expected_rating=-0.5))
        await ann.ask(WithdrawRating(memory_id=memory, expected_rating=1.0))
        with refused("VERSION_CONFLICT", current_rating=None):
            await ann.ask(WithdrawRating(memory_id=memory, expected_rating=1.0))
        assert (await seen(ann, memory)).ratings == []


async def test_of_many_who_do_the_same_at_once_one_does_it(enter: Enter) -> None:
    async with enter() as at:
        agents = [at.agent(f"a{number}", user=f"u{number}") for number in range(6)]
        one = await store(agents[0], "first", namespace="team:x", scope="public")
        other = await store(agents[0], "other", namespace="team:x", scope="public")
        codes: dict[str, list[str | None]] = {}

        async def tried(name: str, agent: Agent, request: Any) -> None:
            codes.setdefault(name, []).append(await answered(agent, request))

        async def together(name: str, make: Callable[[int], Any]) -> None:
            async with trio.open_nursery() as nursery:
                for number, agent in enumerate(agents):
                    nursery.start_soon(tried, name, agent, make(number))

        def edit(number: int) -> Any:
            return UpdateMemory(memory_id=one, content=f"by {number}", expected_version=1)

        await together("edit", edit)
        await together(
            "merge", lambda _: MergeMemories(memory_id=one, others=[other], expected_versions={one: 2})
        )
        await together("undo", lambda _: RestoreMemory(memory_id=one, version=2, expected_version=3))
        await together("forget", lambda _: ForgetMemory(memory_id=one, expected_version=4))
        await together("restore", lambda _: RestoreMemory(memory_id=one, expected_version=4))
        mixed: list[Callable[..., Any]] = [
            partial(UpdateMemory, content="late"),
            ForgetMemory,
            partial(RestoreMemory, version=1, expected_forgotten=False),
            partial(MoveMemory, to="team:x:y"),
        ]
        await together("mixed", lambda n: mixed[n % 4](memory_id=one, expected_version=5))
        for name, given in codes.items():
            assert given.count(None) == 1, name
            assert set(given) <= {None, "VERSION_CONFLICT", "MEMORY_NOT_FOUND"}, name


async def test_a_slow_reader_of_pages_misses_nothing_that_stayed(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        shared: dict[str, Any] = {"namespace": "team:x", "scope": "public"}
        twins = [[await store(ann, f"{VAULT} {n}", **shared) for _ in range(2)] for n in range(3)]
        ids = [await store(ann, f"filler{n} words{n} of{n}", **shared) for n in range(30)]
        for each in ids[:12]:
            at.tick()
            await ann.ask(ForgetMemory(memory_id=each))
        kept, stays = ids[:12], ids[12:]

        async def pages(request: Any, meanwhile: list[Any]) -> list[str]:
            """Return the ids on all pages, while somebody writes between one and the next."""
            found: list[str] = []
            cursor = None
            while True:
                page = await ann.ask(request(cursor=cursor))
                found += [
                    id_of(each) for each in getattr(page, "pairs", None) or getattr(page, "memories", [])
                ]
                if (cursor := page.next_cursor) is None:
                    return found
                if meanwhile:
                    await bob.ask(meanwhile.pop())
                await store(bob, "new on every page", **shared)

        for order in ("newest", "oldest", "used", "untouched"):
            touched, gone = stays.pop(), stays.pop(0)
            writes = [UpdateMemory(memory_id=touched, content="moved on"), ForgetMemory(memory_id=gone)]
            browse = partial(BrowseMemories, namespace="team:x", order=order, limit=5)
            found = await pages(browse, writes)
            assert set(stays) <= set(found), order
            assert len([each for each in found if each in stays]) == len(stays), order
            kept.append(gone)
        restored, purged = kept.pop(), kept.pop(0)
        writes = [RestoreMemory(memory_id=restored), ForgetMemory(memory_id=purged, purge=True)]
        found = await pages(partial(ListForgotten, namespace="team:x", limit=3), writes)
        assert [each for each in found if each in kept] == kept[::-1]
        writes = [ForgetMemory(memory_id=twins[0][0]), UpdateMemory(memory_id=twins[1][0], content="other")]
        found = await pages(partial(ListMemoryPairs, namespace="team:x", limit=1), writes)
        assert twins[2][1] in found
