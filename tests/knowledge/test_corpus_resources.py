"""Corpora and documents as resources: read, listed, completed and heard of by those who may see them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from harness import PATIENCE
from support.agents import FAST
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    ClientContext,
    CompleteResource,
    CorpusResource,
    DocumentResource,
    DropCorpus,
    ListResources,
    Principal,
    PutDocument,
    ReadResource,
    RemoveDocuments,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import Refusal
from greenroom.testing import mcp_client

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann", projects=frozenset({"atlas"}))
BEN = Principal(agent_id="b", user="ben", projects=frozenset())
QUIET: dict[str, Any] = {"embedder": "none", "options": FAST}
CORPUS = "greenroom://corpus/user:ann:docs"
PAGE = "greenroom://document/user:ann:docs/a%20b/%C3%BC%23.md"
DOCUMENT = document_of("a b/ü#.md", [(["One"], "first"), (["Two"], "second")], title="Pages")


async def filled(runtime: RuntimeClient) -> Agent:
    await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=DOCUMENT), make=True)
    return Agent(runtime, ANN)


@pytest.mark.promise("knowledge.resources")
async def test_a_corpus_says_what_is_in_it_and_a_document_what_it_says(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        agent = await filled(runtime)
        corpus = await agent.ask(ReadResource(uri=CORPUS))
        assert isinstance(corpus, CorpusResource)
        assert (corpus.corpus.documents, corpus.corpus.chunks, corpus.has_more) == (1, 2, False)
        assert [(each.uri, each.path) for each in corpus.documents] == [(PAGE, "a b/ü#.md")]
        document = await agent.ask(ReadResource(uri=PAGE))
        assert isinstance(document, DocumentResource)
        assert (document.title, document.text, document.is_cut) == (
            "Pages",
            "first\n\n# Two\n\nsecond",
            False,
        )
        assert document.resource_info.uri == PAGE


async def test_a_document_has_the_time_of_its_file_and_one_without_a_file_has_none(tmp_path: Path) -> None:
    changed = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    moment = int(changed.timestamp()) * 1_000_000
    of_a_file = msgspec.structs.replace(DOCUMENT, path="/b.md", modified_at=moment)
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        agent = await filled(runtime)
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=of_a_file))
        for uri, expected in ((PAGE, None), ("greenroom://document/user:ann:docs//b.md", changed)):
            document = await agent.ask(ReadResource(uri=uri))
            assert isinstance(document, DocumentResource)
            assert document.modified_at == expected


@pytest.mark.promise("resources.alike", "knowledge.policy")
async def test_to_others_they_are_like_what_is_not_there(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        await filled(runtime)
        for uri in (CORPUS, PAGE, "greenroom://corpus/user:ann:never", "greenroom://corpus/all:never"):
            with pytest.raises(Refusal) as refused:
                await Agent(runtime, BEN).ask(ReadResource(uri=uri))
            assert refused.value.code == "RESOURCE_NOT_FOUND"
        unheard = f"{CORPUS.replace('corpus', 'document')}/unknown.md"
        with pytest.raises(Refusal):
            await Agent(runtime, ANN).ask(ReadResource(uri=unheard))
        closed = Agent(runtime, Principal(agent_id="a", user="ann", scopes=frozenset({"memory:read"})))
        with pytest.raises(Refusal) as refused:
            await closed.ask(ReadResource(uri=CORPUS))
        assert refused.value.code == "PERMISSION_DENIED"


@pytest.mark.promise("resources.listing", "resources.completion")
async def test_they_are_listed_and_completed(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        agent = await filled(runtime)
        listed = [each.uri for each in (await agent.ask(ListResources())).resources]
        assert CORPUS in listed
        assert CORPUS not in [each.uri for each in (await Agent(runtime, BEN).ask(ListResources())).resources]
        for begun, wanted in (("user:ann", ["user:ann:docs"]), ("do", ["user:ann:docs"]), ("x", [])):
            asked = CompleteResource(template="greenroom://corpus/{corpus}", argument="corpus", value=begun)
            assert (await agent.ask(asked)).values == wanted
            assert (await Agent(runtime, BEN).ask(asked)).values == []


async def test_over_mcp_they_are_read_as_json(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        await filled(runtime)
        async with mcp_client(lambda _: Agent(runtime, ANN)) as client:
            await client.initialize()
            for uri in (CORPUS, PAGE):
                (content,) = (await client.request("resources/read", {"uri": uri}))["result"]["contents"]
                assert content["mimeType"] == "application/json"
                assert uri in content["text"]


@pytest.mark.promise("resources.heard", "knowledge.policy")
async def test_a_change_is_heard_of_by_who_may_see_it(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        agent = await filled(runtime)
        with agent.subscriber(0) as mine, Agent(runtime, BEN).subscriber(0) as other:
            for subscriber in (mine, other):
                subscriber.add(CORPUS)
                subscriber.add(PAGE)
            other.add("greenroom://corpus/all:docs")

            async def next_two() -> set[str]:
                with trio.fail_after(PATIENCE):
                    return {await mine.next(), await mine.next()}

            changed = document_of("a b/ü#.md", [(["One"], "first anew")])
            await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=changed))
            assert await next_two() == {CORPUS, PAGE}
            await ask_corpus(runtime, ANN, RemoveDocuments(corpus="docs", paths=["a b/ü#.md"]))
            assert await next_two() == {CORPUS, PAGE}
            await DropCorpus(corpus="docs").run(ClientContext(runtime, ANN))
            with trio.fail_after(PATIENCE):
                assert await mine.next() == CORPUS
            await ask_corpus(runtime, ANN, PutDocument(corpus="all:docs", document=changed), make=True)
            with trio.fail_after(PATIENCE):
                assert await other.next() == "greenroom://corpus/all:docs"
