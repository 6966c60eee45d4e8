"""Whether a query with a negation puts what denies before what affirms, with the rule for it and without.

The rule is `greenroom.actors.search.ranking.denial_order`. Asked are

- pairs of notes, one that affirms and one that denies (`bench/negation/pairs.toml`), among those of
  `bench/notes`: with a negation the one that denies is to be first, without one the one that affirms;
- the questions of `bench/notes` that have a negation, and with ``--data`` those about turns of conversations,
  as if these were notes: what is found is not to become less.

Ranked in this process, for no door leaves the rule out.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench import present_state, question_sets
from bench.harness import Figure, Plan, Report, Table, check
from bench.question_sets import Memory, Question, Store
from bench.ranked_corpus import Remembering, corpus_of
from bench.tune_notes import document
from greenroom.actors.memories.storage.embedding import strip_author
from greenroom.actors.search.ranking.denial_order import find_order, is_negated, read_sentences, weigh_terms
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import finish

if TYPE_CHECKING:
    from bench.harness import Value
    from greenroom.actors.search.ranking.rank import Ranked

PAIRS: Final = Path(__file__).with_name("negation") / "pairs.toml"
DENIED, AFFIRMED = "pairs, with a negation", "pairs, without"
NOTES, UNSEEN, TURNS = (
    "notes, with a negation",
    "unseen notes, with a negation",
    "turns as notes, with a negation",
)
FIRST: Final = {DENIED, AFFIRMED}
"""Groups of which the first place is counted; of the others how high up the first answer is (MRR)."""
DEPTH: Final = 10
CHANCE: Final = 0.5
"""Per cent less that is chance."""
GAIN: Final = 10.0
"""How many per cent more of the pairs' questions the rule is to answer first."""


class Case(NamedTuple):
    """A question, and the memories found without the rule and with it, best first."""

    question: Question
    without: Sequence[str]
    found: Sequence[str]


def run(plan: Plan) -> Report:
    """Ask all sets with each embedder."""
    rows: list[list[Value]] = []
    figures: list[Figure] = []
    with plan.folder() as models:
        for name, embedder in present_state.embedders(plan, models):
            cases: dict[str, list[Case]] = {}
            for store in _stores(plan):
                for case in _cases(store, embedder, plan):
                    cases.setdefault(case.question.group, []).append(case)
            for group, some in cases.items():
                without, found = _share(some, "without"), _share(some, "found")
                counted = "first" if group in FIRST else f"MRR@{DEPTH}"
                rows.append(
                    [group, name, len({case.question.text for case in some}), counted, without, found]
                )
                what = f"{group}, {name}: {counted} % more than without the rule"
                least = GAIN if group == DENIED else -CHANCE
                figures.append(Figure(what=what, value=found - without, least=least))
    title = "what is found with the rule for negations, and without it"
    columns = ["set", "embedder", "n", "counted", "without the rule %", "with it %"]
    return Report(
        tables=[Table(title=title, columns=columns, rows=rows)], figures=[] if plan.smoke else figures
    )


def _stores(plan: Plan) -> Iterator[Store]:
    yield pairs()
    for store in question_sets.pairs_of_worlds(present_state.NOTES):
        yield _negated(store, NOTES)
    for store in question_sets.worlds(present_state.NOTES / "unseen"):
        yield _negated(store, UNSEEN)
    if plan.data is not None:
        for store in question_sets.conversations(plan.data):
            yield _negated(store, TURNS)


def pairs() -> Store:
    """Return the pairs, among the notes of one world."""
    world = question_sets.worlds(present_state.NOTES)[0]
    memories, asked = list(world.memories), list[Question]()
    made = memories[-1].created_at
    for number, each in enumerate(tomllib.loads(PAIRS.read_text())["pair"]):
        for form, name, group in (("question", "denies", DENIED), ("plain", "affirms", AFFIRMED)):
            memories.append(Memory(f"{name}-{number}", each[name], made, None))
            asked.append(Question(each[form], [f"{name}-{number}"], group))
    return Store("pairs", memories, asked)


def _negated(store: Store, group: str) -> Store:
    asked = [
        Question(each.text, each.relevant, group)
        for each in store.questions
        if each.relevant and is_negated(each.text)
    ]
    return Store(store.name, store.memories, asked)


def _cases(store: Store, embedder: Remembering | None, plan: Plan) -> Iterator[Case]:
    documents = list(starmap(document, enumerate(store.memories, 1)))
    texts = [strip_author(memory.text, memory.author or "") for memory in store.memories]
    view = View(corpus := corpus_of(documents, texts, embedder), corpus.alive.copy())
    wanted = np.ones(len(documents), np.bool_)
    for question in store.questions[:: plan.size(1, 11)]:
        vectors = None if embedder is None else embedder.query(question.text)
        ranked = finish(rank(view, RankQuery.read(question.text, vectors), wanted, limit=DEPTH))
        ids = [store.memories[row].id for row in ranked.rows.tolist()]
        found = ids
        if is_negated(question.text):
            found = _ordered(ids, [documents[row].text for row in ranked.rows.tolist()], ranked)
        check({*ids} == {*found}, f"{question.text!r} lost a memory altogether")
        yield Case(question, ids, found)


def _ordered(ids: Sequence[str], texts: Sequence[str], ranked: Ranked) -> list[str]:
    """Return ids in the order for a negation, as `greenroom.actors.memories.reading.ranking` does."""
    count = max(FEW, ranked.visible)
    weights = weigh_terms(
        {term: idf(len(each.rows), count) for each in ranked.reading.groups for term in each.meant}
    )
    order = find_order(ranked.log_odds, [read_sentences(text, weights) for text in texts], weights)
    return [ids[place] for place in order.tolist()]


def _share(cases: Sequence[Case], column: str) -> float:
    """Return the mean in per cent. A question that several stores were asked counts once."""
    marks: dict[str, list[float]] = {}
    for case in cases:
        relevant = set(case.question.relevant)
        found = getattr(case, column)[: 1 if case.question.group in FIRST else DEPTH]
        place = next((place for place, each in enumerate(found, 1) if each in relevant), None)
        marks.setdefault(case.question.text, []).append(0.0 if place is None else 1 / place)
    return 100 * statistics.fmean(map(statistics.fmean, marks.values()))
