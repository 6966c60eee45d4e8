"""Queries of words that no index has: they are looked for as they stand, wherever words are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET
from support.agents import FAST
from support.code_agents import agent_in, search, settled
from support.corpora import document_of

from greenroom.actors import (
    AddMessage,
    Agent,
    BrowseMemories,
    CreateSession,
    ExplainSearch,
    MemorySearch,
    Principal,
    PutDocument,
    SearchContext,
    SemanticSearch,
    StoreMemory,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.content.text.verbatim import MOST_READ, Verbatim, build_verbatim
from greenroom.runtime import finish

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("recall.stop-words")

ANN = Principal(agent_id="planner", user="ann")
TEXTS = {
    "rain": "It is raining, so we stay in with them.",
    "floor": "IT has moved to the third floor.",
    "band": "We saw The Who in Leeds.",
    "play": "To be or not to be, that is the question.",
    "cake": "Who took the last cake? The dog.",
    "note": "we like the who more than others",
    "plain": "Nothing of the kind was ever said.",
}
QUERIES = {
    "The Who": ["band", "note"],
    "the who": ["note", "band"],
    "IT": ["floor", "rain"],
    "To be or not to be": ["play"],
    "to be, or not to be?": ["play"],
    "more than": ["note"],
    "over again": [],
}
"""Queries of stop words alone, and what says them: what has them as typed first, then the newest."""


async def kept(agent: Agent) -> None:
    for key, text in TEXTS.items():
        await agent.ask(StoreMemory(content=text, key=key))


async def found(agent: Agent, query: str, **more: Any) -> list[str]:
    return [hit.key for hit in (await agent.ask(MemorySearch(query=query, **more))).memories]


@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_memories_are_found_by_stop_words_alone(tmp_path: Path, embedder: str) -> None:
    async with open_greenroom(tmp_path, embedder=embedder, options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await kept(agent)
        for query, keys in QUERIES.items():
            for mode in ("semantic", "hybrid"):
                answer = await agent.ask(MemorySearch(query=query, mode=mode, include_debug=True))
                if keys:
                    assert [hit.key for hit in answer.memories] == keys, query
                    assert answer.total == len(keys)
                elif embedder == "none":
                    assert answer.empty_because is not None
        assert await found(agent, "IT", limit=1) == ["floor"]
        assert await found(agent, "The Who", min_relevance=0.6) == ["band"]
        first = (await agent.ask(ExplainSearch(query="The Who"))).modes[0]
        assert [hit.key for hit in first.hits] == ["band", "note"]


async def test_stop_words_of_other_languages_are_words_of_the_index(tmp_path: Path) -> None:
    texts = {"german": "Wer ist das denn?", "french": "Il y en a pour les autres.", "other": "Boat."}
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        for key, text in texts.items():
            await agent.ask(StoreMemory(content=text, key=key))
        for query, key in (("wer ist das", "german"), ("das", "german"), ("pour les autres", "french")):
            assert await found(agent, query) == [key]


async def test_keys_tags_and_values_say_stop_words_too(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await agent.ask(StoreMemory(content="printers", key="tagged", tags=["IT"]))
        await agent.ask(StoreMemory(content='{"band":"The Who"}', key="value"))
        await agent.ask(StoreMemory(content="lost", key="who-again"))
        assert await found(agent, "IT") == ["tagged"]
        assert await found(agent, "The Who") == ["value"]
        assert await found(agent, "who again") == ["who-again"]
        browsed = await agent.ask(BrowseMemories(text="IT"))
        assert ([each.key for each in browsed.memories], browsed.total) == (["tagged"], 1)


async def test_a_question_about_a_time_stays_one_though_its_other_words_are_stop_words(
    tmp_path: Path,
) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await agent.ask(StoreMemory(content="What did we do with the ladder?", key="words"))
        await agent.ask(StoreMemory(content="The ladder is up.", key="newest"))
        assert await found(agent, "What did we do today?") == ["newest", "words"]


async def test_messages_are_found_by_stop_words_alone(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await agent.ask(CreateSession(purpose="p", session_id="s"))
        for text in TEXTS.values():
            await agent.ask(AddMessage(session_id="s", content=text))
        for query, keys in QUERIES.items():
            answer = await agent.ask(SearchContext(session_id="s", query=query))
            texts = {result.message.content for result in answer.results}
            assert {TEXTS[key] for key in keys} <= texts, query


async def test_documents_are_found_by_stop_words_alone(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        for key, text in TEXTS.items():
            document = document_of(f"{key}.md", [(["Chapter"], text)], title="Book")
            await ask_corpus(runtime, ANN, PutDocument(corpus="books", document=document), make=True)
        agent = Agent(runtime, ANN)
        for query, keys in QUERIES.items():
            answer = await agent.ask(SemanticSearch(corpus="books", query=query, detail_level="full"))
            files = [result.source_file for result in answer.results]
            assert sorted(files) == sorted(f"{key}.md" for key in keys), query
            if keys:
                exact = {result.source_file for result in answer.results if result.score == 1}
                assert exact == set(files[: len(exact)])


@pytest.mark.slow
async def test_documents_of_which_not_all_is_read_say_so(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        passages = [(["Chapter"], f"It is page {number}.") for number in range(MOST_READ + 1)]
        document = document_of("long.md", passages, title="Book")
        await ask_corpus(runtime, ANN, PutDocument(corpus="books", document=document), make=True)
        agent = Agent(runtime, ANN)
        for query, is_found in (("It is", True), ("over again", False)):
            answer = await agent.ask(SemanticSearch(corpus="books", query=query))
            assert (bool(answer.results), answer.partial) == (is_found, True)
            assert f"in the first {MOST_READ:,} passages alone" in str(answer.partial_reason)


@pytest.mark.slow
async def test_code_is_found_by_stop_words_alone(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "band.py").write_text('BAND = "The Who"\n')
    (folder / "other.py").write_text('BANDS = ["Them"]\n\n\ndef play(who): ...\n')
    async with agent_in(tmp_path, folder, is_kept=True) as agent:
        await settled(agent)
        answer = await search(agent, '{"query":"The Who"}')
        assert [each.file_path for each in answer.results] == ["band.py"]
        answer = await search(agent, '{"query":"who"}')
        assert [each.file_path for each in answer.results] == ["other.py", "band.py"]


async def test_a_search_that_has_its_hits_reads_no_further_and_says_so(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await kept(agent)
        answer = await agent.ask(MemorySearch(query="we", limit=1))
        assert ([hit.key for hit in answer.memories], answer.total_is_minimum) == (["note"], True)
        answer = await agent.ask(MemorySearch(query="The Who", limit=2))
        assert answer.total_is_minimum is UNSET


async def test_memories_of_which_not_all_is_read_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.memories.reading.search_root.MOST_READ", 2)
    monkeypatch.setattr("greenroom.actors.memories.reading.browsing.MOST_READ", 2)
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        agent = Agent(runtime, ANN)
        await kept(agent)
        answer = await agent.ask(MemorySearch(query="To be or not to be"))
        assert (answer.memories, answer.partial) == ([], True)
        assert "in the newest memories only" in str(answer.partial_reason)
        answer = await agent.ask(MemorySearch(query="we"))
        assert [hit.key for hit in answer.memories] == ["note"]
        browsed = await agent.ask(BrowseMemories(text="IT"))
        assert (browsed.total, browsed.partial) == (0, True)
        assert "in the newest memories only" in str(browsed.partial_reason)
        assert (await agent.ask(BrowseMemories(text="Leeds"))).partial is UNSET


def test_what_counts_as_stop_words_alone() -> None:
    for query in ("The Who", "IT", "don't", "to be, or not to be?", "who?"):
        assert build_verbatim(query) is not None, query
        assert not any(token.posted for token in tokens(query))
    for query in ("", "?", "->", "The Kinks", "who is 42", "wer ist das", "\U0001f3b8"):
        assert build_verbatim(query) is None, query
    said = build_verbatim("don't")
    assert said is not None
    assert [likeness(said, text) for text in ("we don't", "DON\u2019T", "dont", "don and t")] == [
        1,
        0.5,
        0,
        0,
    ]


def likeness(said: Verbatim, text: str) -> float:
    return float(finish(said.likeness(text)))


@pytest.mark.parametrize("before", [0, 8_186, 8_187, 8_190, 8_191, 8_192, 8_193, 16_384, 50_000])
def test_a_large_text_is_looked_through_in_stretches_that_hide_nothing(before: int) -> None:
    said = build_verbatim("The Who")
    assert said is not None
    padding = "x" * (before - 1) + " " if before else ""
    for text, like in (("The Who", 1), ("the who", 0.5), ("The Whole", 0), ("The", 0)):
        assert likeness(said, padding + text) == like
        assert likeness(said, padding + text + " y" * 9_000) == like
    assert likeness(said, padding + "the who" + " y" * 9_000 + " The Who") == 1
    assert likeness(said, padding + "xThe Who") == 0


def test_others_have_their_turn_while_a_large_text_is_looked_through() -> None:
    said = build_verbatim("The Who")
    assert said is not None
    assert sum(1 for _ in said.likeness("the " * 250_000 + "who")) > 100
