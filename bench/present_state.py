"""Whether a word about the present throws a memory out, with the rule and without.

A query for the present state puts the newer note first (`greenroom.actors.search.ranking.supersession`),
and words such as "current" make it one. What that costs is asked of alike notes, `bench/present`:

- `commands.toml`: descriptions of shell commands, a question each in other words, and one with such a word;
- `dated.toml`: series of notes over a year, with questions that only one note answers, not always the newest.

What it brings is asked of `bench/notes`. With ``--data`` turns of conversations are asked for as if they were
notes; as turns the rule leaves them alone. Ranked in this process, for no door leaves the rule out.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import trio

from bench import minilm, notes, question_sets
from bench.harness import Figure, Plan, Report, Table, check
from bench.question_sets import Memory, Question, Store
from bench.ranked_corpus import Remembering, corpus_of
from bench.tune_notes import document
from greenroom.actors.core.validation.times import to_microseconds
from greenroom.actors.memories.recall.query import times_of
from greenroom.actors.memories.storage.embedding import strip_author
from greenroom.actors.search.embedding.models.minilm import load_minilm
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing
from greenroom.actors.search.embedding.models.static import load_static
from greenroom.actors.search.ranking.intent import detect_state
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.supersession import (
    COMPARED,
    LONGEST,
    UNIT,
    Statement,
    compute_gains,
    estimate_supersessions,
)
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import finish

if TYPE_CHECKING:
    from bench.harness import Value
    from greenroom.actors.search.index import Document
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.intent import State
    from greenroom.actors.search.ranking.rank import Ranked
    from greenroom.actors.search.ranking.supersession import Floats, Places

PRESENT: Final = Path(__file__).with_name("present")
NOTES: Final = Path(__file__).with_name("notes")
WITH, WITHOUT, SERIES = "commands, with a word", "commands, without", "series of alike notes"
STATES: Final = ("newer", "history")
"""Groups of questions that ask for a state: counted is whether the right note is first."""
DEPTH: Final = 10
APART: Final = timedelta(hours=17)
"""What the commands are apart, so that 500 are a year."""


class Case(NamedTuple):
    """A question, and the memories found without the rule and with it, best first.

    Attributes:
        forced: What is found if the question is taken for one for the present, whatever it says.
    """

    question: Question
    asks: bool
    without: Sequence[str]
    found: Sequence[str]
    forced: Sequence[str]


def run(plan: Plan) -> Report:
    """Ask all sets with each embedder."""
    rows: list[list[Value]] = []
    figures: list[Figure] = []
    with plan.folder() as models:
        for name, embedder in embedders(plan, models):
            for title, stores in _sets(plan).items():
                cases = [case for store in stores for case in _cases(store, embedder, plan)]
                for group in dict.fromkeys(_group(case.question) for case in cases):
                    some = [case for case in cases if _group(case.question) == group]
                    rows.append(_row(title, group, name, some))
                    if group in {WITH, WITHOUT, SERIES}:
                        gained = _share(some, "found") - _share(some, "without")
                        what = f"{group}, {name}: R@{DEPTH} % more than without the rule"
                        figures.append(Figure(what=what, value=gained, least=0))
    columns = [
        "set", "questions", "embedder", "n", "ask for a state", "counted",
        "without the rule %", "with it %", "all taken for the present %",
    ]  # fmt: skip
    title = "what is found with the rule for states, and without it"
    return Report(
        tables=[Table(title=title, columns=columns, rows=rows)], figures=[] if plan.smoke else figures
    )


def commands() -> Store:
    """Return the descriptions of commands, each asked for twice."""
    read = tomllib.loads((PRESENT / "commands.toml").read_text())["command"]
    first = datetime(2025, 11, 1, tzinfo=UTC)
    memories = [
        Memory(f"command-{number}", each["description"], (first + number * APART).isoformat(), None)
        for number, each in enumerate(read)
    ]
    asked = [
        Question(each[form], [f"command-{number}"], group)
        for number, each in enumerate(read)
        for form, group in (("question", WITHOUT), ("question_with", WITH))
    ]
    return Store("commands", memories, asked)


def series() -> Store:
    """Return the series of alike notes."""
    read = tomllib.loads((PRESENT / "dated.toml").read_text())["series"]
    every = [note for one in read for note in one["note"]]
    memories = [
        Memory(note["id"], note["text"], f"{note['date'].isoformat()}T00:00:00+00:00", None) for note in every
    ]
    asked = [Question(note["question"], [note["id"]], SERIES) for note in every if "question" in note]
    return Store("series", memories, asked)


def _sets(plan: Plan) -> dict[str, Sequence[Store]]:
    found: dict[str, Sequence[Store]] = {
        "commands": [commands()],
        "series": [series()],
        "notes": question_sets.pairs_of_worlds(NOTES),
        "unseen notes": question_sets.worlds(NOTES / "unseen"),
    }
    if plan.data is not None:
        found["turns as notes"] = question_sets.conversations(plan.data)
    return found


def embedders(plan: Plan, models: Path) -> Iterator[tuple[str, Remembering | None]]:
    yield "words", None
    yield "static", Remembering(load_static())
    package = minilm.installed()
    if package is not None and not plan.smoke:
        with installing(models) as unfinished:
            model = install_unpacked(package.parents[1], unfinished, models)
        yield "MiniLM", Remembering(load_minilm(model, lambda: None))


def _cases(store: Store, embedder: Remembering | None, plan: Plan) -> Iterator[Case]:
    documents = list(starmap(document, enumerate(store.memories, 1)))
    texts = [strip_author(memory.text, memory.author or "") for memory in store.memories]
    view = View(corpus := corpus_of(documents, texts, embedder), corpus.alive.copy())
    wanted = np.ones(len(documents), np.bool_)
    now = to_microseconds(notes.PRESENT)
    for question in store.questions[:: plan.size(1, 41)]:
        if not question.relevant:
            continue
        text, times = trio.run(times_of, question.text, now, "UTC")
        vectors = None if embedder is None else embedder.query(text or "")
        query = RankQuery.read(text or "", vectors, times=times)
        ranked = finish(rank(view, query, wanted, limit=COMPARED))
        rows = ranked.rows.tolist()
        ids = [store.memories[row].id for row in rows]
        some = [documents[row] for row in rows]
        cosines = None if embedder is None else _cosines(corpus, embedder.space, ranked.rows)
        state = detect_state(question.text)
        found = ids if state is None else _ordered(ids, some, ranked, cosines, state)
        forced = _ordered(ids, some, ranked, cosines, "present")
        check({*ids} == {*found} == {*forced}, f"{question.text!r} lost a memory altogether")
        yield Case(question, state is not None, ids, found, forced)


def _ordered(
    ids: Sequence[str], some: Sequence[Document], ranked: Ranked, cosines: Floats | None, state: State
) -> list[str]:
    """Return ids in the order of a state, as `greenroom.actors.memories.reading.ranking` does."""
    places = np.array([place for place, each in enumerate(some) if len(each.text) <= LONGEST], np.intp)
    if len(places) <= 1:
        return list(ids)
    statements = [
        Statement.read(some[place].text, some[place].tags, some[place].created_at, is_imported=True)
        for place in places.tolist()
    ]
    strengths = ranked.strengths[places].astype(np.float64) / UNIT
    chosen = None if cosines is None else cosines[np.ix_(places, places)]
    probabilities = estimate_supersessions(statements, chosen, ranked.vectors)
    gained = compute_gains(strengths, places, statements, probabilities, ranked.vectors, state)
    order = np.arange(len(ids))
    order[places] = places[np.argsort(-strengths - gained, kind="stable")]
    return [ids[place] for place in order.tolist()]


def _cosines(corpus: Corpus, space: str, rows: Places) -> Floats | None:
    found = corpus.vectors(space)
    if found is None:
        return None
    values = found[0][rows].astype(np.float64)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return values @ values.T


def _share(cases: Sequence[Case], column: str) -> float:
    """Return the mean in per cent. A question that several stores were asked counts once."""
    marks: dict[str, list[float]] = {}
    for case in cases:
        found, relevant = getattr(case, column), set(case.question.relevant)
        first = found[:1] if case.question.group in STATES else found[:DEPTH]
        right = len(relevant.intersection(first))
        mark = float(right > 0) if case.question.group in STATES else right / len(relevant)
        marks.setdefault(case.question.text, []).append(mark)
    return 100 * statistics.fmean(map(statistics.fmean, marks.values()))


def _group(question: Question) -> str:
    known = {*STATES, WITH, WITHOUT, SERIES}
    return question.group if question.group in known else "others"


def _row(title: str, group: str, embedder: str, cases: Sequence[Case]) -> list[Value]:
    texts = {case.question.text for case in cases}
    asking = {case.question.text for case in cases if case.asks}
    counted = "first" if group in STATES else f"R@{DEPTH}"
    shares = [_share(cases, column) for column in ("without", "found", "forced")]
    return [title, group, embedder, len(texts), len(asking), counted, *shares]
