"""How well each kind of text is found: a row for each set of questions, a column for each embedder.

    python -m bench quality [--data DIR]

The sets are notes (`bench/notes`, pairs of worlds; the unseen one; all worlds and commands as one store),
descriptions of commands (`bench/present`), messages and pages in other words (`bench/other_words`) and, with
``--data``, conversations as memories and as sessions. Everything is ranked in this process, with the rule for
states. Silence is asked of each world of notes: absurd questions and near misses should be answered with a
list that is empty or weak, and questions with an answer should not.
"""

from __future__ import annotations

import random
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from bench import present_state, question_sets, trials
from bench.document_relevance import view_of_library
from bench.documents import Library
from bench.harness import Plan, Report, Table
from bench.headings import documents_of
from bench.present_state import NOTES, asked_cases, commands, embedders, series
from bench.question_sets import Question
from bench.relevance import query_of, view_of_store
from bench.retrieval import DEPTHS, NOTHING
from greenroom.actors.core.replies.grades import WEAK
from greenroom.actors.search.ranking.documents import rank_chunks
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.relevance import RIVALS, rivals
from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest
from greenroom.runtime import finish

if TYPE_CHECKING:
    from bench.harness import Value
    from bench.locomo import Turn
    from bench.ranked_corpus import Remembering
    from greenroom.actors.search.ranking.rank import Ranked

OTHER_WORDS: Final = Path(__file__).with_name("other_words")
SESSIONS: Final = Path(__file__).with_name("sessions")
DOCS: Final = Path(__file__).parents[1] / "docs"
PARTITION: Final = "public"
THRESHOLD: Final = 60.0
TEN: Final = 10
SEED: Final = 5


class Mark(NamedTuple):
    """What a question of a set reached, from 0 to 1."""

    set: str
    question: str
    value: float


class Message(NamedTuple):
    """A message of a session, as a session's search has it."""

    id: str
    sender: str
    text: str
    made: int


def run(plan: Plan) -> Report:
    """Ask all sets with each embedder."""
    columns: dict[str, dict[str, list[float]]] = {}
    with plan.folder() as models:
        for name, embedder in embedders(plan, models):
            columns[name] = by_set(marks(plan, embedder))
    rows: list[list[Value]] = [
        [each, len(values), *(100 * statistics.fmean(column[each]) for column in columns.values())]
        for each, values in next(iter(columns.values())).items()
    ]
    table = Table(title="what is found, in per cent", columns=["set", "n", *columns], rows=rows)
    return Report(tables=[table])


def by_set(found: Iterator[Mark]) -> dict[str, list[float]]:
    """Return the values of each set. A question that several stores were asked counts once."""
    sets: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for mark in found:
        sets[mark.set][mark.question].append(mark.value)
    return {name: [statistics.fmean(each) for each in asked.values()] for name, asked in sets.items()}


def marks(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    """Ask every set."""
    yield from _commands(plan, embedder)
    yield from _notes(plan, embedder)
    yield from _silence(plan, embedder)
    yield from _messages(plan, embedder)
    yield from _documents(plan, embedder)
    if plan.data is not None:
        yield from _conversations(plan, plan.data, embedder)


# -- memories ----------------------------------------------------------------


def _commands(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    for case in asked_cases(commands(), embedder, plan):
        yield _found(f"{case.question.group} R@10", case, TEN)
    for case in asked_cases(series(), embedder, plan):
        yield _found(f"{case.question.group} R@1", case, 1)


def _notes(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    worlds, unseen = question_sets.worlds(NOTES), question_sets.worlds(NOTES / "unseen")
    large = question_sets.merged([*worlds, *unseen])
    others = [each._replace(id=f"commands.{each.id}") for each in commands().memories]
    large = large._replace(memories=[*large.memories, *others])
    stores = question_sets.pairs_of_worlds(NOTES)
    for title, some in (("notes", stores), ("unseen notes", unseen), ("notes among 1,800", [large])):
        for store in some:
            for case in asked_cases(store, embedder, plan):
                group = case.question.group
                if title != "notes among 1,800" or group in {"paraphrase", "plain"}:
                    depth = DEPTHS[group]
                    yield _found(f"{title}, {group} R@{depth}", case, depth)


def _found(title: str, case: present_state.Case, depth: int) -> Mark:
    relevant = set(case.question.relevant)
    among = len(relevant.intersection(case.found[:depth]))
    value = float(among > 0) if depth == 1 else among / len(relevant)
    return Mark(title, case.question.text, value)


def _silence(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    absurd = (OTHER_WORDS / "absurd.txt").read_text().splitlines()
    for store in question_sets.worlds(NOTES):
        view = view_of_store(store, embedder)
        asked = [*store.questions, *(Question(each, [], "absurd") for each in absurd)]
        for question in asked[:: plan.size(1, 40)]:
            query = query_of(question, "words" if embedder is None else "tokens", embedder, dated=True)
            ranked = finish(rank(view, query, view.visible, limit=RIVALS))
            is_weak = ranked.is_nothing or is_weak_list(ranked)
            kind = {NOTHING: "near misses", "absurd": "absurd questions"}.get(question.group, "answers")
            yield Mark(f"{kind} that are empty or weak", question.text, float(is_weak))


# -- messages ----------------------------------------------------------------


def _messages(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    asked = tomllib.loads((OTHER_WORDS / "messages.toml").read_text())["question"]
    index = SearchIndex()
    every = list(_session(dict.fromkeys(each["session"] for each in asked)))
    _fill(index, every, embedder)
    for each in asked[:: plan.size(1, 20)]:
        wanted = [f"{each['session']}.{each['message']}"]
        yield from _asked("messages in other words", index, every, embedder, each["text"], wanted)
    notes = question_sets.merged(question_sets.worlds(NOTES))
    every = [Message(each.id, each.author or "bench", each.text, 0) for each in notes.memories]
    random.Random(SEED).shuffle(every)
    _fill(index := SearchIndex(), every, embedder)
    for question in notes.questions[:: plan.size(1, 40)]:
        if question.group == "paraphrase":
            yield from _asked("notes as messages", index, every, embedder, question.text, question.relevant)


def _session(names: Mapping[str, None]) -> Iterator[Message]:
    for name in names:
        read = tomllib.loads((SESSIONS / f"{name}.toml").read_text())
        for number, each in enumerate(read["message"]):
            yield Message(f"{name}.{each['id']}", each["sender"], each["text"], number)


def _fill(index: SearchIndex, every: Sequence[Message], embedder: Remembering | None) -> None:
    for number, each in enumerate(every):
        index.add(number, PARTITION, each.sender, each.text, created_at=each.made)
    if embedder is not None:
        made = embedder.embed([each.text for each in every])
        index.set_vectors(embedder.space, dict(enumerate(made)))


def _asked(
    title: str,
    index: SearchIndex,
    every: Sequence[Message],
    embedder: Remembering | None,
    text: str,
    wanted: Sequence[str],
) -> Iterator[Mark]:
    """Ask a session at both thresholds; at 60 both lists are taken in turn."""
    vectors = None if embedder is None else embedder.query(text)
    if vectors is not None and vectors.sentence is not None:
        vectors = msgspec.structs.replace(vectors, words=[], rows=b"")
    for threshold in (THRESHOLD, 0.0):
        request = SearchRequest(
            text=text, partitions=[PARTITION], threshold=threshold, limit=TEN, vectors=vectors
        )
        found = finish(index.find(request))
        turns = [each for each in chain.from_iterable(zip_longest(*found)) if each is not None]
        ids = {every[match.id].id for match in turns[:TEN]}
        value = len(ids.intersection(wanted)) / len(wanted)
        yield Mark(f"{title} R@10, threshold {threshold:.0f}", text, value)


# -- documents ---------------------------------------------------------------


def _documents(plan: Plan, embedder: Remembering | None) -> Iterator[Mark]:
    asked = tomllib.loads((OTHER_WORDS / "documents.toml").read_text())["question"]
    pages = [each for each in documents_of(DOCS) if not each.path.startswith("reference/")]
    view = view_of_library(Library("docs", pages, []), embedder)
    for each in asked[:: plan.size(1, 20)]:
        query = RankQuery.read(each["text"], None if embedder is None else embedder.query(each["text"]))
        ranked = finish(rank_chunks(view, query, limit=TEN))
        files = [view.corpus.authors[author] for author in view.corpus.author[ranked.rows]]
        for depth in (1, TEN):
            right = bool({*each["pages"]}.intersection(files[:depth]))
            yield Mark(f"documents in other words R@{depth}", each["text"], float(right))


# -- conversations -----------------------------------------------------------


def _conversations(plan: Plan, data: Path, embedder: Remembering | None) -> Iterator[Mark]:
    given = trials.load(data)
    for store in question_sets.conversations(data):
        view = view_of_store(store, embedder)
        turns = sorted(
            (turn for turn in given.turns if turn.conv == store.name), key=lambda turn: turn.position
        )
        messages = [_message(turn) for turn in turns]
        _fill(index := SearchIndex(), messages, embedder)
        for question in store.questions[:: plan.size(1, 40)]:
            query = query_of(question, "words" if embedder is None else "tokens", embedder, dated=False)
            ranked = finish(rank(view, query, view.visible, limit=TEN))
            ids = {store.memories[row].id for row in ranked.rows}
            share = len(ids.intersection(question.relevant)) / len(question.relevant)
            yield Mark("conversations R@10", f"{store.name} {question.text}", share)
            for mark in _asked(
                "conversations as sessions", index, messages, embedder, question.text[:500], question.relevant
            ):
                yield mark._replace(question=f"{store.name} {mark.question}")


def _message(turn: Turn) -> Message:
    said = datetime.fromisoformat(turn.date).replace(tzinfo=UTC)
    text = turn.text.removeprefix(f"{turn.speaker}: ")
    return Message(turn.id.replace(":", "."), turn.speaker, text, int(said.timestamp()) * 1_000_000)


def is_weak_list(ranked: Ranked) -> bool:
    """Return whether a search would call its list weak."""
    odds = np.exp(ranked.log_odds.astype(np.float64))
    return bool((odds / (1 + rivals(odds))).sum() < WEAK[ranked.vectors])
