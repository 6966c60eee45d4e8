"""Fits the weights of stand-alone notes, for `bench.tune`: see there.

The stores are those of `question_sets.pairs_of_worlds`. What is measured on a world was fitted to the store
of the other two, in which none of its notes is. Each group of questions counts the same, but paraphrases
twice: most other questions are answered whatever the weights. A note that once was the answer is neither
right nor wrong, for which of the two comes first is decided later, by
`greenroom.actors.search.ranking.supersession`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import trio

from bench import fitting, notes, question_sets
from bench.harness import Table, as_text
from bench.ranked_corpus import ORDER, table_of, view_of
from bench.retrieval import DEPTHS, NOTHING
from greenroom.actors.core.validation.times import to_microseconds
from greenroom.actors.memories.recall.query import times_of
from greenroom.actors.search.index import Document
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.weights import Kind, VectorSet, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.harness import Value
    from bench.question_sets import Memory, Question, Store
    from bench.ranked_corpus import Remembering
    from greenroom.actors.search.ranking.view import Floats

FITTED: Final[Mapping[VectorSet, Sequence[str]]] = {
    "words": (),
    "static": ("covered", "tags", "key", "mention", "author", "meaning"),
    "sentences": ("covered", "tags", "key", "author", "meaning"),
    "tokens": ("covered", "tags", "key", "author", "meaning", "tokens"),
}
"""What is fitted in each situation: with it, what else a note has is worth nothing more."""
GROUPS: Final = {group: 2.0 if group == "paraphrase" else 1.0 for group in DEPTHS}
_TOTAL: Final = 50.0
"""What a group counts, in questions of weight 1; the fit's penalty is for some hundred."""


class Trial(NamedTuple):
    """A question in a store; the notes that once were the answer are no rows of its example.

    Attributes:
        dated: Whether it names a time. Then notes are weighed as turns of conversations are.
    """

    world: str
    store: str
    group: str
    text: str
    dated: bool
    example: fitting.Example


def read(folder: Path, embedder: Remembering) -> list[Trial]:
    """Return the questions of a folder that have answers, in each store that they are asked in."""
    worlds = {question.query: world.name for world in notes.load(folder) for question in world.questions}
    found = [
        trial for store in question_sets.pairs_of_worlds(folder) for trial in _trials(store, worlds, embedder)
    ]
    sizes = Counter(trial.group for trial in found)
    return [
        trial._replace(
            example=replace(trial.example, weight=GROUPS[trial.group] * _TOTAL / sizes[trial.group])
        )
        for trial in found
    ]


def measured(asked: Sequence[Trial], situation: VectorSet, *, kept: bool) -> dict[str, float]:
    """Print what weights reach, those of the table or fitted ones; return those fitted to all worlds."""
    names = FITTED[situation]
    if kept or not names:
        _show(f"{situation}: the table as it stands", asked, situation, lambda _: _weights("note", situation))
        return {}
    columns = [ORDER.index(name) for name in names]

    def fit(some: Sequence[Trial]) -> Floats:
        found = np.zeros(len(ORDER), np.float32)
        examples = [trial.example for trial in some if not trial.dated]
        found[columns] = fitting.fit(examples, columns, at_least_0=[names.index("covered")])
        return found

    fitted = {
        world: fit([trial for trial in asked if world not in trial.store.split("-")])
        for world in {trial.world for trial in asked}
    }
    _show(f"{situation}: fitted to the other worlds", asked, situation, fitted.__getitem__)
    return dict(zip(names, fit(asked)[columns].tolist(), strict=True))


def _weights(kind: Kind, situation: VectorSet) -> Floats:
    table = weights(kind, situation)
    return np.array([table.get(name, 0.0) for name in ORDER], np.float32)


def _show(
    title: str, asked: Sequence[Trial], situation: VectorSet, weights_for: Callable[[str], Floats]
) -> None:
    """Print the means by group; a question counts once, however many stores it is asked in."""
    of_dated = _weights("dated note", situation)
    marks: dict[str, dict[str, list[float]]] = {group: {} for group in DEPTHS}
    for trial in asked:
        strength = trial.example.values @ (of_dated if trial.dated else weights_for(trial.world))
        first = np.argsort(-strength, kind="stable")[: DEPTHS[trial.group]]
        right = len(np.intersect1d(first, trial.example.answers))
        marks[trial.group].setdefault(trial.text, []).append(right / len(trial.example.answers))
    row: list[Value] = [
        100 * float(np.mean([np.mean(each) for each in found.values()])) for found in marks.values()
    ]
    columns = [f"{group} R@{depth} %" for group, depth in DEPTHS.items()]
    print(as_text(Table(title=title, columns=columns, rows=[row])), flush=True)


# -- the stores --------------------------------------------------------------


def _trials(store: Store, worlds: Mapping[str, str], embedder: Remembering) -> Iterator[Trial]:
    documents = list(starmap(document, enumerate(store.memories, 1)))
    view = view_of(documents, [memory.text for memory in store.memories], embedder)
    rows = {memory.id: row for row, memory in enumerate(store.memories)}
    for question in store.questions:
        if question.group != NOTHING:
            query = _query(question, embedder)
            example = _example(question, rows, table_of(view, query))
            dated = bool(query.times or query.dates)
            world = worlds[question.text]
            yield Trial(world, store.name, question.group, question.text, dated, example)


def _query(question: Question, embedder: Remembering) -> RankQuery:
    now = to_microseconds(notes.PRESENT)
    text, times = trio.run(times_of, question.text, now, "UTC")
    return RankQuery.read(text or "", embedder.query(text or ""), times=times)


def _example(question: Question, rows: Mapping[str, int], values: Floats) -> fitting.Example:
    kept = np.ones(len(values), np.bool_)
    kept[[rows[each] for each in question.older]] = False
    places = np.cumsum(kept) - 1
    return fitting.Example(values[kept], np.array(sorted(places[rows[each]] for each in question.relevant)))


def document(number: int, memory: Memory) -> Document:
    made = to_microseconds(datetime.fromisoformat(memory.created_at))
    return Document(
        id=number,
        partition="",
        namespace="project:tune",
        text=memory.text,
        key=memory.id,
        author=memory.author or "",
        tags=tuple(memory.tags),
        created_at=made,
        updated_at=made,
    )
