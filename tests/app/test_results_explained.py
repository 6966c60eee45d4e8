"""Searches of documents, sessions and code explained: what ranks says why, and why something is missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
from support.agents import refused
from support.corpora import document_of
from support.workspaces import folder_of_code

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    ExplainCode,
    ExplainDocuments,
    ExplainSessionSearch,
    GetAuditLog,
    Principal,
    PutDocument,
    Reach,
    SearchCodeSemantic,
    SearchContext,
    SemanticSearch,
    ask_corpus,
)
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import House
    from support.passports import Opens

    from greenroom.actors import ResultExplained, ResultsExplained, ResultsOfMode, WhyThatResult

OWNER = Principal(agent_id="bot", user="owner")
QUERY = "how does the heron hunt in the reeds"


async def put(at: House, path: str, *parts: tuple[list[str], str], corpus: str = "docs") -> None:
    document = document_of(path, parts)
    await ask_corpus(at.runtime, OWNER, PutDocument(corpus=corpus, document=document), make=True)


async def birds(at: House) -> Agent:
    """Put documents into two corpora; return who may read them."""
    await put(
        at,
        "birds/heron.md",
        (["Birds", "How herons hunt"], "The heron stands still in the reeds and hunts fish"),
        (["Birds", "Nests"], "Herons build their nests in trees"),
    )
    await put(at, "birds/stork.md", (["Storks"], "A stork hunts frogs, and leaves the reeds to others"))
    await put(at, "bills.md", (["Bills"], "Invoices are numbered by year"))
    await put(at, "private.md", (["Salaries"], "What is paid to whom"), corpus="more")
    return at.agent("bot", user="owner")


def mode(said: ResultsExplained, name: str) -> ResultsOfMode:
    return next(each for each in said.modes if each.mode == name)


def about(said: ResultsExplained, name: str) -> WhyThatResult:
    return next(each for each in said.about if each.mode == name)


def strength(hit: ResultExplained) -> float:
    return sum(part.part for part in hit.signals)


def check_scores(hits: list[ResultExplained]) -> None:
    """Check that scores are of strengths, by one line through their logits, as ranking makes them."""
    assert len(hits) > 2
    points = sorted((strength(hit), math.log(hit.score / (1 - hit.score))) for hit in hits)
    (left, low), (right, high) = points[0], points[-1]
    for at, logit in points:
        assert logit == pytest.approx(low + (high - low) * (at - left) / (right - left), abs=0.02)
    for hit in hits:
        assert sum(part.share for part in hit.signals) == pytest.approx(1, abs=0.001)
        assert [abs(part.part) for part in hit.signals] == sorted(
            (abs(part.part) for part in hit.signals), reverse=True
        )


@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_documents_have_the_signals_that_rank_them(open_at: Opens, embedder: str) -> None:
    async with open_at(embedder=embedder) as at:
        agent = await birds(at)
        if embedder == "static":
            while (await agent.ask(SemanticSearch(query=QUERY, corpus="*"))).freshness.waiting_for_vectors:
                await trio.lowlevel.checkpoint()
        said = await agent.ask(ExplainDocuments(query=QUERY))
        assert [each.mode for each in said.modes] == ["auto", "hybrid", "vector", "bm25"]
        for each in said.modes:
            asked = SemanticSearch(query=QUERY, strategy=each.mode, corpus="*")  # type: ignore[arg-type]
            found = (await agent.ask(asked)).results
            named = [f"{hit.corpus}#{hit.chunk_id}" for hit in found]
            assert [hit.id for hit in each.hits] == named
            assert [hit.score for hit in each.hits] == [hit.hybrid_score for hit in found]
            assert [hit.place for hit in each.hits] == list(range(1, len(found) + 1))
            check_scores([hit for hit in each.hits if hit.corpus == "user:owner:docs"])
        first = mode(said, "bm25").hits[0]
        assert first.path == "birds/heron.md"
        assert {part.name for part in first.signals} >= {"text", "coverage", "titled", "headings", "path"}
        vector = {part.name for hit in mode(said, "vector").hits for part in hit.signals}
        if embedder == "static":
            assert vector == {"meaning"}
            assert "meaning" in said.meanings
        else:
            assert "meaning" not in vector
            assert "by bm25" in mode(said, "vector").how


async def test_the_audit_log_has_what_was_searched_to_explain_it(open_at: Opens) -> None:
    async with open_at() as at:
        agent = await birds(at)
        said = await agent.ask(ExplainDocuments(query=QUERY, about="bills.md"))
        log = await agent.ask(GetAuditLog(action="semantic_search"))
        assert sum(each.times for each in log.records) == len(said.modes)
        assert {(each.agent, each.details["corpus"]) for each in log.records} == {("bot", "*")}


async def test_why_a_document_is_missing(open_at: Opens) -> None:
    async with open_at() as at:
        agent = await birds(at)

        async def why(named: str, corpus: str = "docs") -> WhyThatResult:
            asked = ExplainDocuments(query=QUERY, corpus=corpus, limit=1, about=named)
            return about(await agent.ask(asked), "bm25")

        stork = await why("birds/stork.md")
        assert (stork.place, stork.reasons) == (2, [])
        assert stork.hit is not None
        assert stork.hit.text.startswith("A stork")
        by_id = await why(stork.hit.id.rpartition("#")[2])
        assert by_id == stork
        bills = await why("bills.md")
        assert (bills.place, bills.reasons) == (None, ["it has nothing of the query"])
        assert (await why("private.md")).reasons == ["it is in another corpus: user:owner:more"]
        for unknown in ("never.md", "9" * 40, "999", "²", HOSTILE):
            found = await why(unknown)
            assert (found.hit, found.reasons) == (
                None,
                ["there is no such passage or document, or you may not see it"],
            )
        for number in range(50):
            await put(at, f"{number}.md", ([QUERY], QUERY))
        weak = await why("birds/stork.md")
        assert (weak.place, weak.reasons) == (None, ["51 others are better"])
        bob = at.agent("bot", user="bob")
        said = await bob.ask(ExplainDocuments(query=QUERY, about="birds/heron.md"))
        assert "there is no such" in about(said, "bm25").reasons[0]
        assert not any(each.hits for each in said.modes)
        with refused("CORPUS_NOT_FOUND"):
            await bob.ask(ExplainDocuments(query=QUERY, corpus="user:owner:docs"))


HOSTILE = '"><script>alert(1)</script>{{7*7}}'


async def talk(agent: Agent) -> dict[str, int]:
    """Say things in a session; return the messages' ids by their first words."""
    await agent.ask(CreateSession(purpose="p", session_id="s1"))
    said = (
        "Yesterday we looked at birds near the lake",
        "A grey heron stood in the reeds",
        "It caught a fish, then flew away",
        "The invoices are due in March",
    )
    return {
        text.split()[0]: (await agent.ask(AddMessage(session_id="s1", content=text))).message_id
        for text in said
    }


async def test_messages_have_the_signals_that_rank_them(open_at: Opens) -> None:
    async with open_at() as at:
        agent = at.agent("bot", user="owner")
        ids = await talk(agent)
        for query in ("heron", "grey heron in reeds", "what did the bird catch", "inv"):
            said = await agent.ask(ExplainSessionSearch(session_id="s1", query=query))
            asked = SearchContext(session_id="s1", query=query, fuzzy_threshold=0, recent_hours=None)
            found = (await agent.ask(asked)).results
            everything = mode(said, "everything")
            assert [hit.id for hit in everything.hits] == [str(hit.message.message_id) for hit in found]
            assert [hit.score for hit in everything.hits] == [round(hit.score / 100, 4) for hit in found]
            usual = (await agent.ask(SearchContext(session_id="s1", query=query))).results
            assert [hit.id for hit in mode(said, "usual").hits] == [
                str(hit.message.message_id) for hit in usual
            ]
        said = await agent.ask(ExplainSessionSearch(session_id="s1", query="heron"))
        by_id = {hit.id: hit for hit in mode(said, "everything").hits}
        heron, fish = by_id[str(ids["A"])], by_id[str(ids["It"])]
        assert heron.decided == "it contains the literal query"
        assert {"words", "length"} <= {part.name for part in heron.signals}
        assert fish.decided.startswith("the signals; it contains 0% of the query")
        # Of a query of one word the score is 97 times the strength, where the signals decide.
        assert fish.score == pytest.approx(0.97 * strength(fish), abs=0.001)
        assert set(said.meanings) >= {part.name for hit in by_id.values() for part in hit.signals}


async def test_why_a_message_is_missing(open_at: Opens) -> None:
    async with open_at() as at:
        agent = at.agent("bot", user="owner")
        ids = await talk(agent)

        async def why(message_id: int, who: Agent = agent) -> list[tuple[int | None, str]]:
            asked = ExplainSessionSearch(session_id="s1", query="heron", about=message_id)
            said = await who.ask(asked)
            return [(each.place, "; ".join(each.reasons)) for each in said.about]

        assert await why(ids["A"]) == [(1, ""), (1, "")]
        usual, everything = await why(ids["It"])
        assert usual[0] is None
        assert usual[1].startswith("its score is ")
        assert usual[1].endswith("and 60 is wanted at least")
        assert everything[0] in {2, 3}
        unknown = (None, "there is no such message in this session, or you may not see it")
        assert await why(ids["The"] + 1_000_000) == [unknown] * 2
        secret = AddMessage(session_id="s1", content="a heron in secret", visibility="private")
        hidden = (await agent.ask(secret)).message_id
        assert [place for place, _ in await why(hidden)] == [1, 1]
        assert await why(hidden, at.agent("other", user="owner")) == [unknown] * 2
        at.tick(25 * 3_600)
        await agent.ask(AddMessage(session_id="s1", content="a day later"))
        usual, everything = await why(ids["A"])
        assert usual == (None, "it is older than the searched messages")
        assert everything[1] == ""


@pytest.mark.slow
async def test_files_have_the_signals_that_rank_them(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 2)
    (code / "anchor.py").write_text("def anchor():\n    return 'anchor, let it go'\n")
    (code / "test_anchor.py").write_text("from anchor import anchor\n\n\ndef test_anchor():\n    anchor()\n")
    (code / "other.py").write_text("def nothing():\n    return 0\n")
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, open_workspaces(at.runtime) as kept:
        agent = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (await agent.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        said = await agent.ask(ExplainCode(query="anchor", about="test_anchor.py"))
        found = (await agent.ask(SearchCodeSemantic(query="anchor"))).results
        (only,) = said.modes
        assert [hit.id for hit in only.hits] == [hit.file_path for hit in found]
        assert [hit.score for hit in only.hits] == [hit.relevance_score for hit in found]
        check_scores(only.hits)
        parts = {part.name: part.part for part in only.hits[0].signals}
        assert only.hits[0].id == "anchor.py"
        assert parts["defined"] == pytest.approx(2.5)
        (tested,) = said.about
        assert tested.place == only.places["test_anchor.py"]
        assert tested.hit is not None
        assert {part.name: part.part for part in tested.hit.signals}["test"] == pytest.approx(-2.5)
        for path, why in (
            ("other.py", "it has nothing of the query, or is below another folder"),
            ("never.py", "it is not in the index: there is no such file below the folder, or it is left out"),
        ):
            (missing,) = (await agent.ask(ExplainCode(query="anchor", about=path))).about
            assert (missing.place, missing.reasons) == (None, [why])


async def test_explaining_needs_what_searching_needs(open_at: Opens) -> None:
    async with open_at() as at:
        await talk(at.agent("bot", user="owner"))
        few = at.agent("bot", user="owner", scopes=frozenset({"memory:read"}))
        for request in (
            ExplainDocuments(query="heron"),
            ExplainSessionSearch(session_id="s1", query="heron"),
            ExplainCode(query="heron"),
        ):
            with refused("PERMISSION_DENIED"):
                await few.ask(request)
