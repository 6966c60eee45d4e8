"""The map's page without a browser: the list of what is on it, its filters, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.api import posted
from support.console import looker
from support.keyed import bearer, create_key, premises

from greenroom.actors import CreateSession, StoreMemory

if TYPE_CHECKING:
    from support.console import Shown
    from support.passports import Opens

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}} javascript:alert(1)'


def rows(page: Shown) -> int:
    return sum("data-row" in each for each in page.named("tr"))


async def test_each_memory_leads_to_its_page_and_to_what_it_is_linked_to(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        bot = at.agent("bot", user="owner")
        await bot.ask(CreateSession(session_id="release", purpose="Plan the release"))
        old = await bot.ask(StoreMemory(content="Mondays.", key="monday"))
        new = StoreMemory(
            content="Tuesdays.", key="tuesday", supersedes=old.memory_id, conversation_id="release"
        )
        made = await bot.ask(new)
        await bot.ask(StoreMemory(content="x", key="said", conversation_id="a/b &c"))
        page = await (await looker(here)).look("/map")
        page.check_inert()
        assert (page.status, page.headings[0], rows(page)) == (200, "Map", 3)
        talk = "memories?conversation=a%2Fb%20%26c&namespace=user%3Aowner"
        assert "said" in (await (await looker(here)).look(f"/{talk}")).text
        assert "tuesday" not in (await (await looker(here)).look(f"/{talk}")).text
        for path in (talk, f"memories/{old.memory_id}", f"memories/{made.memory_id}", "sessions?id=release"):
            assert f"./{path}" in page.links
        assert "superseded by Tuesdays." in page.text
        assert "from session Plan the release" in page.text
        assert "3 memories here" in page.text
        assert any("map.js" in (each.get("src") or "") for each in page.named("script"))
        (drawn,) = [each for each in page.named("section") if "data-map" in each]
        assert "hidden" in drawn, "without the script there is no empty frame"


@pytest.mark.promise("console.inert")
async def test_what_agents_write_stays_text_on_the_map(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        bot = at.agent("bot", user="owner")
        await bot.ask(StoreMemory(content=HOSTILE, conversation_id=HOSTILE[:60], namespace="user:owner"))
        page = await (await looker(here)).look('/map?namespace=%22%3E%3Cscript%3E&q="><img>')
        page.check_inert()
        assert page.status == 422
        page = await (await looker(here)).look("/map")
        page.check_inert()
        assert '"><script>alert(1)</script><img src=x onerror=alert(1)' in page.text
        assert "\u202e" not in page.text
        assert not [link for link in page.links if "<" in link or '"' in link]


@pytest.mark.slow
async def test_filters_are_in_the_url_and_go_along(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        bot = at.agent("bot", user="owner")
        for number in range(101):
            await bot.ask(StoreMemory(content="x", key=f"fact {number:03}", namespace="user:owner:facts"))
        at.tick(40 * 86_400)
        await bot.ask(StoreMemory(content="x", key="event", kind="episodic"))
        guest = await looker(here)
        whole = await guest.look("/map?order=newest")
        assert rows(whole) == 100
        assert "102 memories here" in whole.text
        (following,) = [link for link in whole.links if "page=2" in link]
        assert "order=newest" in following
        second = await guest.look(following.removeprefix("."))
        assert rows(second) == 2
        assert not [link for link in second.links if "page=3" in link]
        assert [rows(await guest.look(f"/map?{query}")) for query in QUERIES] == list(QUERIES.values())


QUERIES = {
    "type=episodic": 1,
    "type=procedural": 0,
    "age=30": 1,
    "namespace=user:owner:facts": 100,
    "namespace=project": 0,
    "kind=plane&colour=namespace&type=episodic&age=&namespace=": 1,
}


async def test_what_the_url_says_wrong_is_told(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        guest = await looker(here)
        empty = await guest.look("/map")
        assert "There are no memories here." in empty.text
        for query, told in {
            "kind=sphere": "kind",
            "type=poem": "kind",
            "age=12": "age: it is '12'",
            "age=-1": "age: it is '-1'",
            "page=0": "page: it is '0'",
            "page=1e3": "page: it is '1e3'",
            "page=99999999": "page: it is '99999999'",
            "order=best": "order",
            "namespace=a%20b": "namespace",
        }.items():
            page = await guest.look(f"/map?{query}")
            assert (page.status, page.headings) == (422, ["Unprocessable Entity"]), query
            assert told in page.text, page.text


async def test_who_may_not_read_memories_sees_no_map(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await at.agent("bot", user="ann").ask(StoreMemory(content="of ann", key="mine"))
        reader = await create_key(at, "memory:read", agent="bot", user="bob")
        closed = await create_key(at, "sessions:read", agent="bot", user="ann")
        await here.settled()
        assert "of ann" not in (await (await looker(here, reader)).look("/map")).text
        guest = await looker(here, closed)
        page = await guest.look("/map")
        assert page.status == 403
        assert "memory:read" in page.text
        assert "./map" not in (await guest.look("/sessions")).links
        answer = await posted(guest.guest, "memory_map", {}, bearer(closed))
        assert answer.status == 403
        seen = await posted(guest.guest, "memory_map", {"kind": "list"}, bearer(reader))
        assert (seen.status, seen.json()["total"]) == (200, 0)


async def test_the_owner_of_the_folder_sees_the_map_of_another_agent(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await at.agent("bot", user="ann").ask(StoreMemory(content="of ann", key="mine"))
        guest = await looker(here)
        assert "of ann" not in (await guest.look("/map")).text
        await guest.see_as("as=bot&as_user=ann")
        page = await guest.look("/map?as=bot&as_user=ann")
        assert "of ann" in page.text
        kept = {each["name"]: each["value"] for each in page.named("input") if each.get("type") == "hidden"}
        assert (kept["as"], kept["as_user"]) == ("bot", "ann")
        assert [link for link in page.links if link.startswith("./memories/") and "?as=bot" in link]


async def test_a_read_only_session_may_draw_the_map(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        await at.agent("bot", user="owner").ask(StoreMemory(content="seen", key="x"))
        guest = await looker(here, read_only=True)
        assert "seen" in (await guest.look("/map")).text
        assert (await guest.post("memory_map", kind="graph")).json()["nodes"]["label"] == ["seen"]


@pytest.mark.slow
async def test_the_page_says_whether_what_it_shows_has_changed(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        guest = await looker(here)
        topics: list[str | None] = []

        async def count(query: str = "") -> tuple[str | None, str | None]:
            page = await guest.look(f"/map{query}")
            (main,) = page.named("main")
            assert main["data-every"] == "30.0"
            topics.append(main["data-topics"])
            assert [each for each in page.named("section") if "data-map" in each and "hidden" in each]
            (found,) = [each for each in page.named("p") if each.get("id") == "map-count"]
            return found["data-total"], found["data-revision"]

        bot = at.agent("bot", user="owner")
        empty = await count()
        assert empty[0] == "0"
        await bot.ask(StoreMemory(content="x", key="one", namespace="user:owner"))
        total, revision = await count()
        assert total == "1"
        assert revision != empty[1]
        assert await count() == (total, revision)
        assert await count("?kind=plane&order=newest") == (total, revision)
        drawn = (await guest.post("memory_map", kind="plane")).json()
        assert drawn["revision"] == revision
        own = '["greenroom://memories/user:owner"]'
        assert topics == ["[]", own, own, own]
        await bot.ask(StoreMemory(content="y", namespace="team:x:y"))
        await count()
        assert topics.pop() == '["greenroom://memories/team:x", "greenroom://memories/user:owner"]'
        await count("?namespace=team:z:below")
        assert topics.pop() == '["greenroom://memories/team:z"]'
        await count("?namespace=project")
        assert topics.pop() == "[]"
