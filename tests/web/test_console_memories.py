"""The console's pages of memories without a browser: what is listed, what each shows, and to whom."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from support.agents import json
from support.api import logged_in
from support.console import Looker, Shown, looker
from support.keyed import create_key, premises
from trio.testing import lockstep_stream_pair

from greenroom.actors import ForgetMemory, ListMemories, RateMemory, StoreMemory, UpdateMemory
from greenroom.actors.core.validation.times import to_datetime

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import Agent

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'\u202e{{7*7}}</textarea></pre>"
KEY = "'{{7+7}}&lt;script&gt;%3Cscript%3E&#60;"
RUNNING = "Run the migration of the billing tables before the release, then restart the workers"


async def store(agent: Agent, content: str, **more: Any) -> str:
    return (await agent.ask(StoreMemory(content=content, **more))).memory_id


def rows(page: Shown) -> list[str]:
    """Return the ids of the memories that a page lists."""
    boxes = [each for each in page.named("input") if each.get("name") == "memory"]
    return [each["value"] or "" for each in boxes]


async def link_named(page: Shown, part: str) -> str:
    """Return the path of the first link in which something stands."""
    return next(link for link in page.links if part in link).lstrip(".")


@pytest.mark.slow
async def test_filters_in_the_url_narrow_the_list_and_facets_count_what_is_left(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        red = await store(owner, "red apples", tags=["fruit", "a,b"], namespace="user:owner:food:raw")
        at.tick()
        green = await store(owner, "green apples", tags=["fruit"], kind="episodic", author="ann")
        at.tick(40 * 86_400)
        blue = await store(owner, "blue paint", namespace="user:owner:food")
        guest = await looker(here)
        assert rows(await guest.look("/memories")) == [blue, green, red]
        for query, expected in {
            "namespace=user:owner:food": [blue, red],
            "namespace=user:owner:food:raw": [red],
            "q=APPLES": [green, red],
            "q=apples+red": [red],
            "q=%21%3F": [blue, green, red],
            "tag=fruit&tag=a%2Cb": [red],
            "type=episodic": [green],
            "author=ann": [green],
            "age=day": [blue],
            "age=year": [green, red],
            "order=oldest": [red, green, blue],
            "order=untouched&q=apples": [red, green],
            "tag=none": [],
        }.items():
            page = await guest.look(f"/memories?{query}")
            assert (page.status, rows(page)) == (200, expected), query
            assert f"{len(expected)} memor" in page.text
        page = await guest.look("/memories")
        assert "food 2" in page.text
        assert "raw 1" in page.text
        assert "fruit 2" in page.text
        tagged = await guest.look(await link_named(page, "tag=a%2Cb"))
        assert rows(tagged) == [red]


@pytest.mark.slow
async def test_a_page_has_fifty_and_leads_to_the_next_with_its_filters(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        ids = [await store(owner, f"number {number}", tags=["n"]) for number in range(101)]
        await owner.ask(RateMemory(memory_id=ids[7], rating=-1.0))
        guest = await looker(here)
        for order, expected in {
            "newest": ids[::-1],
            "oldest": ids,
            "worst": [ids[7], *[each for each in ids[::-1] if each != ids[7]]],
        }.items():
            seen: list[str] = []
            path = f"/memories?tag=n&age=day&order={order}"
            while path:
                page = await guest.look(path)
                seen += rows(page)
                following = [each for each in page.named("a") if each.get("rel") == "next"]
                path = (following[0]["href"] or "").lstrip(".") if following else ""
            assert seen == expected, order
        assert (await guest.look("/memories?tag=n&cursor=nonsense")).status == 422


@pytest.mark.parametrize(
    "query",
    [
        "type=nonsense",
        "order=drop",
        "age=%00",
        "namespace=user",
        "namespace=%22%3E%3Cscript%3E",
        "author=%ff",
        "q=" + "x" * 20_000,
        "tag=" + "x" * 300,
    ],
)
async def test_what_cannot_be_asked_is_refused_with_a_sentence(enter: Enter, query: str) -> None:
    async with enter() as at, premises(at) as here:
        await store(at.agent("bot", user="owner"), "x")
        page = await (await looker(here)).look(f"/memories?{query}")
        assert page.status in {200, 400, 414, 422, 431}
        page.check_inert()


@pytest.mark.slow
@pytest.mark.promise("console.inert")
async def test_nothing_of_a_hostile_memory_runs_on_any_page(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        written = {
            "tags": [HOSTILE, "javascript:alert(1)", "a\nb"],
            "metadata": json(
                '{"session":"javascript:alert(1)//\\"><script>","provenance":{"session":"../../login"},'
                '"k\\"><script>":"\\u202e<img src=x onerror=alert(1)>"}'
            ),
            "conversation_id": HOSTILE[:200],
            "author": HOSTILE[:40],
            "unreviewed": True,
        }
        first = await store(owner, HOSTILE + RUNNING, key=KEY, **written)
        second = await store(owner, HOSTILE + RUNNING + " now", key=f"{KEY}2", **written)
        value = await owner.ask(StoreMemory(key="v", value=json('{"</pre><script>":"</textarea>"}')))
        await owner.ask(RateMemory(memory_id=first, rating=-1, note=HOSTILE))
        await owner.ask(UpdateMemory(memory_id=first, content=RUNNING + HOSTILE, tags=["x"]))
        large = await store(owner, HOSTILE * 10_000)
        guest = await looker(here)
        for path in (
            "/memories",
            f"/memories?tag={quote(HOSTILE)}&author={quote(HOSTILE[:40])}&q={quote(HOSTILE)}",
            "/memories/duplicates",
            "/memories/contradictions",
            "/memories/stale?why=disliked",
            "/memories/unreviewed",
            "/memories/forgotten",
            f"/memories/{first}",
            f"/memories/{first}?version=1",
            f"/memories/{second}",
            f"/memories/{value.memory_id}",
            f"/memories/{large}",
            f"/memories/{large}?whole=1",
        ):
            page = await guest.look(path)
            assert page.status == 200, path
            page.check_inert()
            assert not {"14", "49"} & set(page.headings[0].split()), path
        page = await guest.look(f"/memories/{first}?version=1")
        assert "<script>alert(1)</script>" in page.text
        assert not [link for link in page.links if "login" in link and "sessions?id=" not in link]


@pytest.mark.slow
@pytest.mark.promise("console.policy")
async def test_what_somebody_may_not_see_is_on_no_page(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        ann = at.agent("bot", user="ann", projects=frozenset({"p"}))
        secret = await store(
            ann, "the secret " + RUNNING, tags=["secret-tag"], namespace="user:ann:secret-sub"
        )
        mixed = await store(ann, "secret " + RUNNING, key="secret-key", namespace="team:x", scope="private")
        await store(ann, "secret plan " + RUNNING, namespace="project:p", tags=["secret-tag"])
        gone = await store(ann, "secret " + RUNNING, key="secret-key2", namespace="team:x", scope="private")
        await ann.ask(ForgetMemory(memory_id=gone))
        key = await create_key(at, "*:read", agent="bob", user="bob", projects=[])
        await store(at.agent("bob", user="bob", projects=frozenset()), RUNNING, namespace="team:x")
        await here.settled()
        bob = await looker(here, key)
        for path in (
            "/memories",
            "/memories?namespace=user:ann",
            "/memories?namespace=user:ann:secret-sub",
            "/memories?namespace=team:x",
            "/memories?namespace=project:p",
            "/memories/duplicates?namespace=team:x",
            "/memories/contradictions?namespace=team:x",
            "/memories/forgotten?namespace=team:x",
            "/memories/duplicates?namespace=user:ann",
            "/memories/stale?namespace=user:ann",
            "/memories/unreviewed?namespace=user:ann",
            "/memories/forgotten?namespace=user:ann",
            f"/memories/{secret}",
            f"/memories/{mixed}?version=1",
        ):
            page = await bob.look(path)
            assert "secret " not in page.text, path
            assert "secret-tag" not in page.text, path
            assert "secret-key" not in page.text, path
            assert mixed in path or mixed not in page.answer.body.decode(), path
        assert (await bob.look(f"/memories/{secret}")).status == 404
        unknown = "0" * 8 + secret[8:]
        assert (await bob.look(f"/memories/{unknown}")).status == 404
        page = await bob.look("/memories?namespace=team:x")
        assert "1 memory" in page.text
        assert not page.named("form")[1:] or "update_memory" not in page.answer.body.decode()


@pytest.mark.slow
async def test_a_memory_shows_its_history_links_and_ratings_also_when_it_is_forgotten(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        old = await store(owner, RUNNING, key="old")
        new = await store(owner, RUNNING + " twice", key="new", supersedes=old, tags=["before"])
        await owner.ask(UpdateMemory(memory_id=new, content=RUNNING + " thrice", tags=["after"]))
        await owner.ask(RateMemory(memory_id=new, rating=0.5, note="saved the day"))
        guest = await looker(here)
        page = await guest.look(f"/memories/{new}?version=1")
        for said in ("saved the day", "version 1 to 2", "before", "after", "Takes the place of"):
            assert said in page.text, said
        assert f"../memories/{old}" in page.links
        assert [tag for tag, _ in page.elements if tag in {"del", "ins"}] == ["del", "ins"]
        assert f"../memories/{new}" in (await guest.look(f"/memories/{old}")).links
        await owner.ask(ForgetMemory(memory_id=new))
        page = await guest.look(f"/memories/{new}?version=1")
        assert "was forgotten" in page.text
        assert "version 1 to 2" in page.text
        assert "restore_memory" in page.answer.body.decode()
        assert (await guest.look(f"/memories/{new}?version=9")).status == 404


@pytest.mark.slow
async def test_work_lists_have_what_waits_and_nothing_else(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        unused = await store(owner, "nobody asked for this")
        at.tick(91 * 86_400)
        found = await store(owner, "a hook found this", unreviewed=True)
        ends = await store(
            owner, "gone soon", expiry=(to_datetime(at.clock.now()) + dt.timedelta(days=2)).isoformat()
        )
        low = await store(owner, "wrong", key="low")
        await owner.ask(RateMemory(memory_id=low, rating=-0.5))
        guest = await looker(here)
        for path, expected in {
            "unreviewed": [found],
            "stale": [unused],
            "stale?why=disliked": [low],
            "stale?why=expiring": [ends],
        }.items():
            page = await guest.look(f"/memories/{path}")
            assert (page.status, rows(page)) == (200, expected), path
        assert "Rated low 1" in (await guest.look("/memories/stale")).text
        assert (await guest.look("/memories/stale?why=nonsense")).status == 422


async def test_what_was_forgotten_is_listed_to_be_restored_and_nothing_that_is_gone_for_good(
    enter: Enter,
) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        ids = {
            key: await store(owner, f"text of {key} {HOSTILE}", key=key, namespace="team:x")
            for key in ("kept", "taken", "purged", "deleted", KEY)
        }
        for each in ids.values():
            at.tick()
            await owner.ask(ForgetMemory(memory_id=each))
        await store(owner, "another one", key="taken", namespace="team:x")
        await owner.ask(ForgetMemory(memory_id=ids["purged"], purge=True))
        guest, onlooker = await looker(here), await looker(here, read_only=True)
        page = await guest.look("/memories/forgotten?namespace=team:x")
        page.check_inert()
        assert "purged" not in page.text
        assert (
            page.text.index("text of deleted")
            < page.text.index("text of taken")
            < page.text.index("text of kept")
        )
        assert page.text.count("Another memory has its key now.") == 1
        forms = [each for each in page.named("form") if each.get("data-request") == "restore_memory"]
        assert len(forms) == len(ids) - 2
        assert f"../memories/{ids['kept']}" in page.links
        page = await onlooker.look("/memories/forgotten?namespace=team:x")
        assert "text of kept" in page.text
        assert not [each for each in page.named("form") if "data-request" in each]
        assert (await guest.look("/memories/forgotten?cursor=nonsense")).status == 422
        assert "No forgotten memory" in (await guest.look("/memories/forgotten?namespace=team:y")).text


async def test_pages_hear_of_their_namespace_and_are_not_fetched_by_the_clock(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        memory = await store(at.agent("bot", user="owner"), "x", namespace="team:x:y")
        guest = await looker(here)
        for path in ("", "/duplicates", "/contradictions", "/stale", "/unreviewed", "/forgotten"):
            page = await guest.look(f"/memories{path}?namespace=team:x")
            (main,) = page.named("main")
            assert (main["data-topics"], "data-every" in main) == ('["greenroom://memories/team:x"]', False)
        (main,) = (await guest.look(f"/memories/{memory}")).named("main")
        assert (main["data-topics"], "data-every" in main) == ('["greenroom://memories/team:x:y"]', False)


async def test_a_reader_who_is_slow_gets_the_page_of_its_moment_and_keeps_nobody_waiting(
    enter: Enter,
) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        memory = await store(owner, "first words", key="k")
        slow = Looker(await here.guest(lockstep_stream_pair))
        await logged_in(slow, here, None, read_only=False)
        await slow.guest.send("GET", "/memories", slow.headers)
        await here.settled()
        await owner.ask(UpdateMemory(memory_id=memory, content="later words"))
        assert "later words" in (await (await looker(here)).look("/memories")).text
        page = Shown(await slow.guest.answer())
        assert ("first words" in page.text, "later words" in page.text) == (True, False)


async def test_without_the_scope_to_write_nothing_is_offered(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        memory = await store(at.agent("bot", user="owner"), "x")
        guest = await looker(here, read_only=True)
        for path in ("/memories", f"/memories/{memory}", "/memories/duplicates"):
            page = await guest.look(path)
            assert not [each for each in page.named("form") if "data-request" in each], path
            assert rows(page) == []


@pytest.mark.promise("console.merging")
async def test_pairs_say_what_a_merge_would_do_and_each_memory_is_paired_once_more(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        text = "Deploys of the checkout to production need two approvals by engineers"
        for number, tags in enumerate((["old", "both"], ["both"], ["both"])):
            more = {"key": f"note-{number}", "tags": tags, "importance": 0.9 - number / 10}
            await store(owner, f"{text}{'!' * number}", **more)
        page = await (await looker(here)).look("/memories/duplicates")
        page.check_inert()
        assert (page.text.count(f"Newer: {text}!!"), page.text.count("Newer: ")) == (2, 2)
        assert "Agents find only this one, its text as it is, with the tag old of the other" in page.text
        assert "and the other's importance, 0.9. The other is hidden, not deleted." in page.text
        done = [each.get("data-done") or "" for each in page.named("form")]
        merged = f"Merged: “{text[:47]}…” (note-2) stays, and “{text[:47]}…” (note-1) is hidden from agents."
        assert merged in done
        assert "Look in another namespace" not in page.text
        page = await (await looker(here)).look("/memories/contradictions?namespace=project%3Anone")
        assert "../memories/contradictions?namespace=user%3Aowner" in page.links


@pytest.mark.promise("console.merging")
async def test_the_page_of_a_memory_says_how_its_merges_are_undone(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        first, *others = [await store(owner, f"Note {number}", key=str(number)) for number in range(3)]
        browser = await looker(here)
        how, several = "To undo a merge, restore the version before it", "After several merges"
        for count, other in enumerate(others):
            assert (await browser.post("merge_memories", memory_id=first, others=[other])).status == 200
            text = (await browser.look(f"/memories/{first}")).text
            assert (how in text, several in text) == (True, count > 0)
        for merged in (others[-1], first):
            assert (await browser.post("restore_memory", memory_id=merged, version=1)).status == 200
        listed = (await owner.ask(ListMemories())).memories
        assert {each.memory_id for each in listed} == {first, *others}
        assert how not in (await browser.look(f"/memories/{first}")).text


@pytest.mark.promise("console.merging")
async def test_restoring_the_version_before_undoes_a_merge(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        owner = at.agent("bot", user="owner")
        first, other = [await store(owner, f"Note {number}", key=str(number)) for number in range(2)]
        browser = await looker(here)
        await browser.post("merge_memories", memory_id=first, others=[other])
        assert [each.memory_id for each in (await owner.ask(ListMemories())).memories] == [first]
        await browser.post("restore_memory", memory_id=first, version=1)
        assert len((await owner.ask(ListMemories())).memories) == 2
