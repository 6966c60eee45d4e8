"""A query with a negation puts what denies before what affirms, and changes nothing else."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from support.agents import FAST
from support.corpora import document_of
from support.embedding import WAITS, Loaded

from greenroom.actors import (
    Agent,
    MemorySearch,
    Principal,
    PutDocument,
    SemanticSearch,
    StoreMemory,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.search.ranking import denial_order
from greenroom.actors.search.ranking.denial_order import (
    SentenceTerms,
    find_order,
    is_negated,
    read_sentences,
    weigh_terms,
)
from greenroom.actors.search.ranking.documents import RankedChunks
from greenroom.actors.search.ranking.sums import RankedRow

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

ANN = Principal(agent_id="planner", user="ann")
PAIRS = {
    "redis": (
        "We use Redis for sessions, and Redis for mail.",
        "The billing of the southern branch does not use Redis, for it has a cache in the process.",
    ),
    "friday": (
        "Deploy on Friday: deploy before noon.",
        "When the warehouse counts its goods, twice in each quarter, never deploy on Friday.",
    ),
    "french": (
        "Anna speaks French.",
        "Pavel, who takes the calls of most customers in the east, doesn't speak French.",
    ),
    "ticket": (
        "Der Kundendienst benutzt Tickets, Tickets.",
        "Die Buchhaltung, die sonst alles so macht wie der Rest, benutzt seit jeher keine Tickets.",
    ),
}
"""What affirms and what denies; the former has the query's words in fewer others."""
QUERIES = {
    "redis": ("Where do we not use Redis?", "Where do we use Redis?"),
    "friday": ("never deploy on Friday", "deploy on Friday"),
    "french": ("Who doesn't speak French?", "Who speaks French?"),
    "ticket": ("Wer benutzt keine Tickets?", "Wer benutzt Tickets?"),
}
"""With a negation, and without."""


async def _store(agent: Agent) -> None:
    for name, (affirms, denies) in PAIRS.items():
        await agent.ask(StoreMemory(key=f"{name}-denies", content=denies))
        await agent.ask(StoreMemory(key=f"{name}-affirms", content=affirms))


@pytest.mark.promise("recall.negation")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_what_denies_comes_before_what_affirms_where_the_query_has_a_negation(
    enter: Enter, embedder: str
) -> None:
    async with enter(embedder=embedder, queries=WAITS) as at:
        if embedder != "none":
            await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        await _store(ann)
        moved = 0
        for name, queries in QUERIES.items():
            denied, affirmed = [
                await ann.ask(MemorySearch(query=query, include_debug=True)) for query in queries
            ]
            assert denied.memories[0].key == f"{name}-denies", name
            assert denied.debug is not UNSET
            assert affirmed.debug is not UNSET
            gains = {
                hit.key: denied.debug.scores[hit.memory_id].get("negation", 0) for hit in denied.memories
            }
            assert gains[f"{name}-denies"] >= 0 >= gains[f"{name}-affirms"]
            moved += gains[f"{name}-denies"] > 0
            assert affirmed.memories[0].key == f"{name}-affirms", name
            assert all("negation" not in shares for shares in affirmed.debug.scores.values())
            relevances = [hit.relevance for hit in denied.memories]
            assert relevances == sorted(relevances, reverse=True), "each place keeps its score"
        assert moved, "without the rule none of them would be first"


@pytest.mark.promise("recall.negation")
async def test_documents_that_deny_come_before_those_that_affirm(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        for name, texts in PAIRS.items():
            for kind, text in zip(("affirms", "denies"), texts, strict=True):
                document = document_of(f"{name}-{kind}.md", [(["Notes"], text)])
                await ask_corpus(runtime, ANN, PutDocument(corpus="notes", document=document), make=True)
        agent = Agent(runtime, ANN)
        for name, queries in QUERIES.items():
            for query, kind in zip(queries, ("denies", "affirms"), strict=True):
                for limit in (1, 5):
                    asked = SemanticSearch(corpus="notes", query=query, top_k=limit)
                    results = (await agent.ask(asked)).results
                    assert len(results) <= limit
                    assert results[0].source_file == f"{name}-{kind}.md", query
                    scores = [each.score for each in results]
                    assert scores == sorted(scores, reverse=True), "each place keeps its score"


@pytest.mark.promise("recall.negation")
def test_negations_of_several_languages_are_known_and_what_only_looks_like_one_is_none() -> None:
    for text in (
        "where do we not use Redis",
        "which service doesn\u2019t use it",
        "a server without backups",
        "NEVER on Friday",
        "wo gibt es kein Bad",
        "on ne fume pas ici",
        "el almac\u00e9n nunca cierra",
        "dove non si paga",
        "wij zijn er nooit",
        "\u0433\u0434\u0435 \u043c\u044b \u043d\u0435 \u043f\u0438\u0448\u0435\u043c",
    ):
        assert is_negated(text), text
    for text in (
        "where do we use Redis",
        "knot",
        "404 not found",
        "not only Redis",
        "don't forget it",
        "non-stop",
    ):
        assert not is_negated(text), text


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "not",
                    "isn't",
                    "DON\u2019T",
                    "cannot",
                    "avoids",
                    "forbidden",
                    "keine",
                    "niemandem",
                    "aucun",
                ),
                *(
                    "aucune",
                    "ning\u00fan",
                    "ningunas",
                    "eiv\u00e4t",
                    "\u0928\u0939\u0940\u0902",
                    "\u0411\u0415\u0417",
                    "No",
                ),
                *(
                    "knot",
                    "non-stop",
                    "not only",
                    "aucuns",
                    "use",
                    "404 not found",
                    "t",
                    "n't",
                    "(none)",
                    "sin.",
                ),
            ]
        )
    ),
    st.sampled_from([" ", ", ", "\n", "-"]),
)
def test_what_is_looked_up_first_misses_no_negation(words: list[str], between: str) -> None:
    text = between.join(words)
    slowly = denial_order._NEGATION.search(denial_order._NONE.sub(" ", text)) is not None
    assert is_negated(text) == slowly


def test_of_a_long_text_the_beginning_is_read_and_of_a_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    class Runs:
        def findall(self, text: str) -> list[str]:
            read.append(text)
            return text.split()

    monkeypatch.setattr(denial_order, "_RUN", Runs())
    long = "where we use it " * 1_000 + "not"
    assert [is_negated(long), is_negated(long)] == [False, False]
    assert [len(each) for each in read] == [denial_order.LONGEST]


def test_the_place_of_what_was_asked_about_is_right_where_another_comes_before_it() -> None:
    scores = np.array([0.9, 0.8, 0.7], np.float32)
    ranked = RankedChunks(
        rows=np.array([10, 11, 12]),
        shares=scores,
        scores=scores,
        matches=scores,
        total=3,
        corrected={},
        unknown=(),
        is_nothing=False,
        about=RankedRow(11, 0.8, 0.8, 2, {}),
    )
    for order, limit in ((order, limit) for order in permutations(range(3)) for limit in (1, 2, 3)):
        moved = ranked.reorder(order, limit)
        assert moved.rows.tolist() == [10 + place for place in order][:limit]
        assert moved.about is not None
        assert moved.about.place == 1 + order.index(1)


def test_a_note_is_read_by_its_sentences() -> None:
    weights = weigh_terms({"redi": 2.0, "use": 2.0, "bill": 1.0})
    assert weights["use"] < weights["bill"] < weights["redi"]
    said = read_sentences("We use Redis. Billing does not use it; mail is sent without Redis.", weights)
    assert said == SentenceTerms(negated=frozenset({"redi"}), plain=frozenset({"redi", "use"}))
    assert read_sentences("nothing of that", weights) == SentenceTerms(frozenset(), frozenset())


TERMS = st.frozensets(st.sampled_from("abc"))


@given(st.lists(st.tuples(st.floats(-9, 9), st.builds(SentenceTerms, TERMS, TERMS)), max_size=10))
def test_nothing_is_lost_and_only_denials_rise(matches: list[tuple[float, SentenceTerms]]) -> None:
    matches.sort(key=lambda each: -each[0])
    odds = np.array([each for each, _ in matches])
    said = [each for _, each in matches]
    order = find_order(odds, said, {"a": 1.0, "b": 2.0, "c": 3.0}).tolist()
    assert sorted(order) == list(range(len(matches)))
    risen = {place for at, place in enumerate(order) if any(before < place for before in order[at:])}
    assert all(said[place].negated for place in risen)
    others = [place for place in order if place not in risen]
    assert others == sorted(others)
