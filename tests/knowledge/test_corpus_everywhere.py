"""Searches of all corpora that one may see: one order, what did not answer, nothing of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import refused, wire
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    ChunksFound,
    ClientContext,
    DropCorpus,
    GetFullContent,
    Principal,
    PutDocument,
    SemanticSearch,
    ask_corpus,
)
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.runtime import Address

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann", projects=frozenset({"atlas"}))
BEN = Principal(agent_id="b", user="ben", projects=frozenset({"other"}))
MOST = 20  # corpora that one search asks
FILLING = [f"the {word} of page {number}" for number, word in enumerate(["tide", "sail", "rope"] * 20)]


async def put(
    runtime: RuntimeClient, corpus: str, *texts: str, who: Principal = ANN, path: str = "a.md"
) -> None:
    document = document_of(path, [([], text) for text in texts])
    await ask_corpus(runtime, who, PutDocument(corpus=corpus, document=document), make=True)


async def everywhere(
    runtime: RuntimeClient, query: str = "harbour", who: Principal = ANN, **more: Any
) -> ChunksFound:
    return await Agent(runtime, who).ask(SemanticSearch(query=query, corpus="*", **more))


@pytest.mark.promise("knowledge.everywhere")
async def test_all_corpora_that_one_may_see_answer_in_one_order_and_say_which_they_are(enter: Enter) -> None:
    async with enter() as at:
        await put(at.runtime, "docs", "the harbour of the city", "nothing of it")
        await put(
            at.runtime, "project:atlas:plans", "a harbour", "the harbour is full of ships, the harbour is"
        )
        await put(at.runtime, "all:news", "ships leave the harbour", path="b.md")
        found = await everywhere(at.runtime)
        assert {each.corpus for each in found.results} == {"user:ann:docs", "project:atlas:plans", "all:news"}
        scores = [each.hybrid_score for each in found.results]
        assert (len(scores), scores) == (4, sorted(scores, reverse=True))
        assert [each.rank for each in found.results] == [1, 2, 3, 4]
        assert (found.corpus, found.total_found) == ("*", 4)
        assert not found.partial
        for each in found.results:
            assert isinstance(each.corpus, str)
            read = await Agent(at.runtime, ANN).ask(
                GetFullContent(chunk_ids=[each.chunk_id], corpus=each.corpus)
            )
            assert read.chunks[0].chunk_text == each.chunk_text
        best = await everywhere(at.runtime, top_k=2, detail_level="metadata")
        assert [(each.corpus, each.chunk_id) for each in best.results] == [
            (each.corpus, each.chunk_id) for each in found.results[:2]
        ]
        alone = await Agent(at.runtime, ANN).ask(SemanticSearch(query="harbour", corpus="docs"))
        assert "corpus" not in wire(alone)["results"][0]
        same = next(each for each in found.results if each.corpus == "user:ann:docs")
        assert alone.results[0].hybrid_score == same.hybrid_score


@pytest.mark.promise("knowledge.policy", "knowledge.everywhere")
async def test_others_corpora_leave_no_trace(enter: Enter) -> None:
    async with enter() as at:
        await put(at.runtime, "docs", "the harbour of the city")
        before = await everywhere(at.runtime)
        for number in range(MOST + 5):
            await put(at.runtime, f"own{number}", "harbour harbour", "harbuor", who=BEN)
        after = await everywhere(at.runtime)
        assert wire(after.results) == wire(before.results)
        assert (after.total_found, after.partial) == (before.total_found, before.partial)
        assert (await everywhere(at.runtime, who=Principal(agent_id="c", user="eve"))).results == []


async def test_a_word_that_one_corpus_has_is_neither_unknown_nor_corrected(enter: Enter) -> None:
    async with enter() as at:
        await put(at.runtime, "docs", "the harbour of the city")
        await put(at.runtime, "other", "zebras graze")
        told = (await everywhere(at.runtime, "harbour zebras qqqqqqqq gaze")).query_analysis
        assert told
        assert (told.unknown, told.corrected) == (["qqqqqqqq"], {"gaze": ["graze"]})


@pytest.mark.promise("knowledge.everywhere")
@pytest.mark.parametrize("query", ["before_request", "what does before_request do", "zebras at the harbour"])
async def test_a_corpus_that_lacks_what_is_asked_does_not_come_before_one_that_has_it(
    enter: Enter, query: str
) -> None:
    async with enter() as at:
        await put(at.runtime, "one", "before_request is called by zebras at a harbour, with others", *FILLING)
        await put(at.runtime, "two", "what happens before the request is sent at the harbour", *FILLING)
        found = await everywhere(at.runtime, query)
        assert found.results[0].corpus == "user:ann:one"


async def test_a_folder_of_code_is_no_corpus_of_documents(enter: Enter) -> None:
    async with enter() as at:
        await put(at.runtime, "docs", "the harbour of the city")
        await ensure_corpus(at.runtime, ANN, "user:ann:code", "/code")
        await put(at.runtime, "user:ann:code", "def harbour(): pass", path="harbour.py")
        assert [each.source_file for each in (await everywhere(at.runtime)).results] == ["a.md"]


async def test_too_many_are_refused_with_their_number(enter: Enter) -> None:
    async with enter() as at:
        for number in range(MOST):
            await put(at.runtime, f"c{number}", "harbour")
        assert (await everywhere(at.runtime, top_k=50)).total_found == MOST
        await put(at.runtime, "one-more", "harbour")
        with refused("VALIDATION_ERROR", limit=MOST) as caught:
            await everywhere(at.runtime)
        assert f"{MOST + 1} corpora" in str(caught.value)
        await DropCorpus(corpus="one-more").run(ClientContext(at.runtime, ANN))
        assert (await everywhere(at.runtime, top_k=50)).total_found == MOST


@pytest.mark.promise("knowledge.in-time")
async def test_what_does_not_answer_in_two_seconds_is_named_and_the_rest_is_answered(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_one(context: Any, row: Any, asked: Any) -> Any:
        if row.name == "slow":
            await trio.sleep_forever()
        message = msgspec.structs.replace(asked, corpus=row.full_name)
        return await context.ask(Address("corpus", row.key), message)

    monkeypatch.setattr("greenroom.actors.knowledge.corpora.tools.query_service.query_corpus", ask_one)
    async with enter() as at:
        await put(at.runtime, "docs", "the harbour of the city")
        await put(at.runtime, "slow", "a harbour")
        began = trio.current_time()
        found = await everywhere(at.runtime)
        assert trio.current_time() - began == pytest.approx(2, abs=0.1)
        assert [each.corpus for each in found.results] == ["user:ann:docs"]
        assert "user:ann:slow" in str(found.partial_reason)
        assert "user:ann:docs" not in str(found.partial_reason)
        alone = await Agent(at.runtime, ANN).ask(SemanticSearch(query="harbour", corpus="slow"))
        assert (alone.results, alone.total_found) == ([], 0)
        assert "user:ann:slow" in str(alone.partial_reason)


@pytest.mark.promise("knowledge.in-time")
async def test_an_embedder_that_hangs_is_not_waited_for(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_self: object, _text: str, **_: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr("greenroom.actors.search.embedding.embedding_service.EmbeddingService.query", hang)
    async with enter(embedder="static") as at:
        await put(at.runtime, "docs", "the harbour of the city")
        began = trio.current_time()
        found = await everywhere(at.runtime)
        assert trio.current_time() - began == pytest.approx(1, abs=0.1)
        assert (len(found.results), found.strategy_used) == (1, "bm25")
        assert found.query_analysis
        assert "words alone" in found.query_analysis.reason
