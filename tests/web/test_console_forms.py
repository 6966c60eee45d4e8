"""The forms of the console that work without a script: a memory to add, a decision to note."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from support.agents import begin
from support.console import Shown, looker
from support.keyed import create_key, premises

from greenroom.actors import CreateSession, EndSession, GetSessionContext, InspectMemory, ListMemories

if TYPE_CHECKING:
    from support.agents import Enter
    from support.console import Looker
    from support.https import Answer

NEW = "/memories/new"


async def send(me: Looker, path: str, **fields: Any) -> Answer:
    return await me.form(path, urlencode({"csrf_token": me.token, **fields}), accept="text/html")


async def test_a_memory_is_added_and_its_page_follows(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        me = await looker(here)
        page = await me.look(f"{NEW}?namespace=project:shop")
        assert [each.get("value") for each in page.named("input") if each.get("name") == "namespace"] == [
            "project:shop"
        ]
        answer = await send(
            me,
            NEW,
            content="The hull is oak.\r\nSince 1912.",
            tags="ship, oak,",
            namespace="project:shop",
            kind="episodic",
        )
        assert answer.status == 303
        assert answer.headers["location"].startswith("../memories/")
        memory_id = answer.headers["location"].rpartition("/")[2]
        stored = (await at.agent("bot", user="owner").ask(InspectMemory(memory_id=memory_id))).memory
        assert (stored.content, stored.tags, stored.kind) == (
            "The hull is oak.\nSince 1912.",
            ["ship", "oak"],
            "episodic",
        )
        assert stored.namespace == "project:shop"
        assert "Since 1912." in (await me.look(f"/memories/{memory_id}")).text


@pytest.mark.parametrize(
    ("namespace", "usually", "alone"),
    [
        ("", "your namespace: you and all agents that work for you.", "you and all agents that work for you"),
        ("project:shop", "project:shop: all members of its project.", "you and all agents that work for you"),
        ("team:x", "team:x: all members of its owner's projects.", "you and all agents that work for you"),
        ("agent:console", "agent:console: its agent alone.", "its agent alone"),
    ],
)
async def test_the_form_says_who_will_see_a_memory(
    enter: Enter, namespace: str, usually: str, alone: str
) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        me = await looker(here)
        page = await me.look(f"{NEW}?namespace={namespace}")
        assert f"As usual in {usually} Elsewhere" in page.text.replace(" :", ":")
        assert "only me" not in page.text
        answer = await send(me, NEW, content="x", namespace=namespace, scope="private")
        memory_id = answer.headers["location"].rpartition("/")[2]
        assert f"seen by {alone} " in (await me.look(f"/memories/{memory_id}")).text
        others = await at.agent("bot", user="owner").ask(ListMemories(namespace=namespace or None))
        assert [each.memory_id for each in others.memories] == [memory_id] * ("agents" in alone)


async def test_what_is_refused_is_said_beside_what_was_typed(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        me = await looker(here)
        hostile = "</textarea><script>alert(1)</script>"
        page = Shown(await send(me, NEW, content=hostile, namespace='"><script>', tags=hostile, key=hostile))
        page.check_inert()
        assert page.status == 422
        assert [each for each in page.named("p") if each.get("role") == "alert"]
        assert hostile in page.text
        assert (await at.agent("bot", user="owner").ask(ListMemories())).memories == []
        assert "content" in Shown(await send(me, NEW, content="  ")).text.lower()


@pytest.mark.promise("console.policy")
async def test_who_may_not_write_adds_nothing(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read", user="owner")
        await here.settled()
        for me in (await looker(here, key), await looker(here, read_only=True)):
            assert (await me.look(NEW)).status == 403
            assert NEW not in " ".join((await me.look("/memories")).links)
            assert (await send(me, NEW, content="x")).status == 403
            assert "Note the decision" not in (await me.look("/sessions/s/context")).text
            assert (await send(me, "/sessions/s/context", what="x")).status == 403
        owner = await looker(here)
        for headers in ({"origin": "https://elsewhere.example"}, {"cookie": None}):
            body = urlencode({"csrf_token": owner.token, "content": "x"})
            assert (await owner.form(NEW, body, **headers)).status in {401, 403}
        for token in ("", "x" * 43):
            assert (await owner.form(NEW, urlencode({"csrf_token": token, "content": "x"}))).status == 403
        assert (await send(owner, NEW, content="x", author="root")).status == 400
        assert (await send(owner, NEW, content="x" * 300_000)).status == 413
        assert (await send(owner, f"{NEW}?as=bot", content="x")).status == 400
        assert (await at.agent("bot", user="owner").ask(ListMemories())).memories == []


async def test_a_decision_is_noted_and_seen(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        await agent.ask(CreateSession(session_id="s", purpose="the sale"))
        me = await looker(here)
        answer = await send(me, "/sessions/s/context", what="We go by **train**", why="it is near")
        assert (answer.status, answer.headers["location"]) == (303, "../../sessions/s/context#c-decisions")
        (noted,) = (await agent.ask(GetSessionContext(session_id="s"))).context.decisions
        assert (noted.what, noted.why, noted.by) == ("We go by **train**", "it is near", "console")
        page = await me.look("/sessions/s/context")
        assert "strong" in {tag for tag, _ in page.elements}
        page = Shown(await send(me, "/sessions/s/context", what="", why="typed </textarea><b>"))
        page.check_inert()
        assert page.status == 422
        assert "typed </textarea><b>" in page.text
        await agent.ask(EndSession(session_id="s"))
        assert (await send(me, "/sessions/s/context", what="too late")).status == 422
        assert (await send(me, "/sessions/none/context", what="x")).status == 404
