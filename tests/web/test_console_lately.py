"""What the first page says for people, and the search over everything."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import pytest
from support.agents import begin
from support.console import looker
from support.corpora import document_of
from support.keyed import create_key, premises

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    EndSession,
    GetOverview,
    Ledger,
    MemorySearch,
    Principal,
    PutDocument,
    RecordContext,
    SemanticSearch,
    StoreMemory,
    ask_corpus,
    open_savings,
)
from greenroom.testing import DAY

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from support.agents import Enter, House

HOSTILE = '"><script>alert(1)</script>\u202e{{7*7}} heron'


def decision(what: str, why: str | None = None) -> RecordContext:
    """Return a request that records a decision in the session ``s``."""
    made = {"what": what} if why is None else {"what": what, "why": why}
    body = {"session_id": "s", "decisions": [made]}
    return msgspec.convert(body, RecordContext)


def ledger_of(at: House) -> AbstractAsyncContextManager[Ledger]:
    """Return a ledger by the test's clock, which tells the first page what day it is."""
    return open_savings(at.runtime, lambda: at.clock.now() * 1_000)


async def warmed(at: House) -> None:
    """Return when a search loads nothing in a thread any more: a test's clock does not wait for that."""
    await at.agent("bot", user="owner").ask(MemorySearch(query="heron"))
    await at.agent("bot", user="owner").ask(SemanticSearch(query="heron", corpus="*"))


@pytest.mark.promise("console.lately")
async def test_the_first_page_says_what_was_learned_decided_and_done(enter: Enter) -> None:
    async with enter() as at, ledger_of(at) as ledger, premises(at, savings=ledger) as here:
        alice = await begin(at)
        await alice.ask(decision("One page instead of four steps", "A third of the visitors left"))
        await alice.ask(CreateSession(session_id="over", purpose="The old matter"))
        await alice.ask(EndSession(session_id="over"))
        await at.agent("bot", user="owner").ask(StoreMemory(key="k", content="# Release\nOn Thursdays."))
        browser = await looker(here)
        page = await browser.look("/")
        page.check_inert()
        assert {"Learned lately", "Decided lately", "Sessions that run", "Sessions that ended"} <= set(
            page.headings
        )
        learned, _, rest = page.text.partition("Decided lately")
        assert "Release bot in user:owner" in learned
        decided, _, rest = rest.partition("Sessions that run")
        assert "One page instead of four steps A third of the visitors left" in decided
        running, _, ended = rest.partition("Sessions that ended")
        assert "The old matter" not in running
        assert "The old matter" in ended.partition("Activity")[0]
        assert "chart-activity" in [each.get("id") for each in page.named("table")]


@pytest.mark.promise("console.lately")
async def test_who_may_not_read_it_is_told_nothing_of_it(enter: Enter) -> None:
    async with enter() as at:
        secret = at.agent("bot", user="ann")
        await secret.ask(StoreMemory(content="hers", key="hers"))
        await secret.ask(CreateSession(purpose="p", session_id="s", project_id="secret"))
        await secret.ask(decision("hers"))
        others = at.agent("bot", user="bob", projects=frozenset({"other"}))
        lately = (await others.ask(GetOverview())).lately
        assert (lately.learned, lately.decided, lately.running, lately.days) == ([], [], [], [])
        bare = at.agent("bot", user="ann", scopes=frozenset({"server:read"}))
        lately = (await bare.ask(GetOverview())).lately
        assert (lately.learned, lately.decided, lately.running, lately.days) == ([], [], [], [])


async def test_activity_has_each_day_since_the_first_of_a_month(enter: Enter) -> None:
    async with enter() as at, ledger_of(at) as ledger:
        ann = Agent(at.runtime, Principal(agent_id="bot", user="ann"), savings=ledger)
        for days in (100, 20, 0):
            for number in range(2):
                await ann.ask(StoreMemory(content="x", key=f"{days} {number}"))
            at.clock.jump(days * DAY)
        listed = (await ann.ask(GetOverview())).lately.days
        assert [each.memories for each in listed] == [2, *[0] * 19, 2]
        assert len({each.begins.time() for each in listed}) == 1


@pytest.mark.promise("console.first-visit")
async def test_the_first_visit_says_what_to_do_until_it_is_done(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        browser = await looker(here)
        page = await browser.look("/")
        assert "Begin here" in page.headings
        assert "greenroom setup" in page.text
        await begin(at)
        page = await browser.look("/")
        assert "Set up a client done" in page.text
        await at.agent("bot", user="owner").ask(StoreMemory(content="We release on Thursdays.", key="k"))
        page = await browser.look("/")
        assert "Begin here" not in page.headings


@pytest.mark.promise("console.everything")
async def test_one_search_finds_each_kind_of_thing(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        alice = await begin(at)
        await alice.ask(AddMessage(session_id="s", content="The heron is too large for a phone"))
        await alice.ask(decision("A heron is the mascot"))
        await alice.ask(CreateSession(session_id="h", purpose="Draw a heron"))
        owner = at.agent("bot", user="owner")
        await owner.ask(StoreMemory(key="bird", content="The mascot is a grey heron"))
        document = document_of("birds.md", [(["Birds"], "A heron eats fish.")])
        await ask_corpus(
            at.runtime, owner.principal, PutDocument(corpus="docs", document=document), make=True
        )
        await warmed(at)
        browser = await looker(here)
        page = await browser.look("/search?in=everything&q=heron")
        page.check_inert()
        found = {"Memories", "Decisions", "Sessions", "Messages", "Documents"}
        assert found <= set(page.headings), page.text
        assert "Code" not in page.headings, page.text
        assert "bot in " in page.text  # who wrote the memory
        for query, is_weak in (("the mascot is a grey heron", False), ("tax office mascot", True)):
            said = await owner.ask(MemorySearch(query=query, mode="hybrid"))
            assert (said.weak is True) == is_weak
            for where in ("everything", "memories"):
                page = await browser.look(f"/search?in={where}&q={quote(query)}")
                assert ("Nothing fits well" in page.text) == is_weak, where
        key = await create_key(at, "memory:read", agent="bot", user="owner")
        await here.settled()
        page = await (await looker(here, key)).look("/search?in=everything&q=heron")
        assert found & set(page.headings) == {"Memories"}


async def test_links_to_a_decision_lead_to_it_in_its_session(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        alice = await begin(at)
        for what in ("A heron is the mascot", "A crane is not"):
            await alice.ask(decision(what))
        browser = await looker(here)
        context = await browser.look("/sessions/s/context")
        ids = [name for each in context.named("li") if (name := each.get("id"))]
        assert len(set(ids)) == 2
        for path, count in (("/", 2), ("/search?in=everything&q=heron", 1)):
            links = (await browser.look(path)).links
            led = {link.partition("#")[2] for link in links if "sessions/s/context#" in link}
            assert len(led) == count
            assert led <= set(ids)


async def test_what_a_refusal_names_in_backticks_is_shown_as_code(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await begin(at)
        page = await (await looker(here)).look("/search?in=code&q=heron")
        assert "it is not known which folder" in page.text
        assert "`" not in page.text
        assert b"<code>greenroom serve --workspace FOLDER</code> says it" in page.answer.body


@pytest.mark.promise("console.inert")
async def test_hostile_texts_stay_texts(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        alice = await begin(at)
        await alice.ask(AddMessage(session_id="s", content=HOSTILE))
        await alice.ask(decision(HOSTILE, HOSTILE))
        await alice.ask(CreateSession(session_id="h", purpose=HOSTILE))
        await at.agent("bot", user="owner").ask(StoreMemory(key="k", content=HOSTILE))
        await warmed(at)
        browser = await looker(here)
        for path in ("/", f"/search?in=everything&q={quote(HOSTILE)}", "/search?in=everything&q=heron"):
            page = await browser.look(path)
            page.check_inert()
            assert page.status == 200
            assert "alert(1)" in page.text
