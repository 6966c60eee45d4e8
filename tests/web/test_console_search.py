"""The console's search debugger without a browser: every mode, why one is missing, and hostile texts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import trio
from support.agents import begin
from support.console import looker
from support.corpora import document_of
from support.keyed import create_key, premises
from support.workspaces import folder_of_code

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    MemorySearch,
    Principal,
    PutDocument,
    Reach,
    SearchCodeSemantic,
    SemanticSearch,
    StoreMemory,
    ask_corpus,
)
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter
    from support.passports import Opens

OWNER = Principal(agent_id="bot", user="owner")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}} heron'


async def warmed(agent: Agent) -> None:
    """Return when a search loads nothing in a thread any more: a test's clock does not wait for that."""
    await agent.ask(MemorySearch(query="heron"))
    await agent.ask(SemanticSearch(query="heron", corpus="*"))


async def test_modes_stand_beside_each_other_with_their_signals(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        await agent.ask(StoreMemory(key="bird", content="The mascot is a grey heron"))
        await agent.ask(StoreMemory(key="bill", content="Invoices are numbered by year"))
        await warmed(agent)
        visitor = await looker(here)
        page = await visitor.look("/search?q=grey+heron")
        page.check_inert()
        assert page.status == 200, page.text
        assert {"semantic", "hybrid", "exact", "recall", "retrieve"} <= set(page.headings)
        bars = [each.get("aria-label") for each in page.named("meter")]
        assert {"words", "length", "score", "relevance", "quality"} <= set(bars)
        assert "0.09" in page.text  # the weight of words
        assert any(link.startswith("./memories/") for link in page.links)
        empty = await visitor.look("/search")
        assert not empty.named("meter")


async def test_it_says_why_a_memory_is_missing(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        made = await agent.ask(StoreMemory(key="bird", content="The mascot is a grey heron"))
        await warmed(agent)
        visitor = await looker(here)
        page = await visitor.look(f"/search?q=heron&tag=other&memory={made.memory_id}")
        assert "It has other tags" in page.text
        for wrong in ("time_expr=nonsense+words", "kind=nonsense", "memory=nonsense"):
            page = await visitor.look(f"/search?q=heron&{wrong}")
            assert page.named("main"), wrong
            page.check_inert()


@pytest.mark.slow
async def test_hostile_texts_stay_texts(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        await agent.ask(StoreMemory(key="k", content=HOSTILE + "a" * 1_000_000, tags=[HOSTILE]))
        await warmed(agent)
        visitor = await looker(here)
        for query in (HOSTILE, "heron", "%ED%A0%80+heron", "\u202e", "javascript:alert(1)"):
            given = query if query.startswith("%") else quote(query)
            for where in ("memories", "documents", "session", "code", "<script>"):
                page = await visitor.look(f"/search?q={given}&in={quote(where)}&session={quote(HOSTILE)}")
                page.check_inert()
                assert page.named("main"), (query, where)
                assert len(page.answer.body) < 500_000
        assert "<script>alert(1)</script>" in (await visitor.look("/search?q=heron")).text


async def test_a_visitor_sees_what_they_may(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await begin(at)
        ann = at.agent("bot", user="ann")
        await ann.ask(StoreMemory(key="of ann", content="The grey heron"))
        await warmed(ann)
        key = await create_key(at, "memory:read", agent="bot", user="bob")
        none = await create_key(at, "sessions:read", agent="bot", user="bob")
        await here.settled()
        bob = await looker(here, key)
        page = await bob.look("/search?q=grey+heron")
        assert page.status == 200
        assert "of ann" not in page.text
        assert not [link for link in page.links if "in=documents" in link]
        stranger = await looker(here, none)
        page = await stranger.look("/search?q=grey+heron")
        assert "memory:read" in page.text
        assert "./search" not in page.links


async def test_documents_and_sessions_are_searched_too(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        agent = at.agent("bot", user="owner")
        await agent.ask(CreateSession(purpose="p", session_id="s1"))
        await agent.ask(AddMessage(session_id="s1", content="we saw a grey heron"))
        await warmed(agent)
        visitor = await looker(here)
        page = await visitor.look("/search?in=session&session=s1&q=heron&about=999999")
        page.check_inert()
        assert "we saw a grey heron" in page.text
        assert {"usual", "everything"} <= set(page.headings)
        assert {"words", "score"} <= {each.get("aria-label") for each in page.named("meter")}
        assert "There is no such message in this session" in page.text
        assert [link for link in page.links if link.startswith("./sessions/s1?message=")]
        page = await visitor.look("/search?in=documents&q=heron")
        assert "No mode finds any passages" in page.text, page.text
        document = document_of("birds/heron.md", [(["Herons"], f"A heron hunts {HOSTILE}")])
        await ask_corpus(at.runtime, OWNER, PutDocument(corpus="docs", document=document), make=True)
        page = await visitor.look("/search?in=documents&q=heron&about=birds/never.md")
        page.check_inert()
        assert {"auto", "hybrid", "vector", "bm25"} <= set(page.headings)
        assert {"text", "coverage", "titled"} <= {each.get("aria-label") for each in page.named("meter")}
        assert "There is no such passage or document" in page.text
        assert [link for link in page.links if link.endswith("?document=birds%2Fheron.md")], page.links


@pytest.mark.slow
async def test_files_of_code_are_searched_too(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 2)
    (code / "test_part.py").write_text("def test_part():\n    assert 'anchor'\n")
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as kept:
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (await bot.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        visitor = await looker(here)
        page = await visitor.look("/search?in=code&q=anchor&about=test_part.py")
        page.check_inert()
        assert page.headings[:2] == ["Search", "Why not"]
        assert {"passage", "test", "score"} <= {each.get("aria-label") for each in page.named("meter")}
        assert "-2.5" in page.text  # what a test is lowered by
        assert [link for link in page.links if link.endswith("?file=part_0.py")]
        for whose, found in (("owner", "part_0.py"), ("zed", "there is no corpus")):
            seen_as = f"as=bot&as_user={whose}"
            await visitor.see_as(seen_as)
            page = await visitor.look(f"/search?in=code&q=anchor&{seen_as}")
            assert found in page.text
            listed = await visitor.look(f"/code?{seen_as}")
            assert bool([link for link in listed.links if "./code/" in link]) == (whose == "owner")
