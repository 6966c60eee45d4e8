"""How many right answers score over 0.7: `python -m bench.scores` (notes), and what the options name.

A right answer counts where half of the query's words are in it. Printed is, for each way to search, how many
there are among the ten best, how many score over 0.7, and of the lists of questions without an answer, whose
first one does so all the same. Of code it is also printed how far its relevance is from the share of right
files, and what is fitted to that. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench import code_trees, document_relevance, question_sets, relevance
from bench.documents import DEPTH, libraries_in, strangers, without_headings
from bench.harness import Table, as_text
from greenroom.actors.content.compression.compress import terms
from greenroom.actors.memories.recall.evaluate import Scored, expected_error
from greenroom.actors.search.ranking.code import EVEN, rank_files
from greenroom.actors.search.ranking.code_signals import CodeQuery
from greenroom.actors.search.ranking.documents import rank_chunks
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.relevance import RIVALS, match_of
from greenroom.actors.search.ranking.weights import CODE_WEIGHTS
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.harness import Value
    from bench.question_sets import Question, Store
    from bench.ranked_corpus import Remembering
    from greenroom.actors.search.ranking.weights import VectorSet

GOOD = 0.7
HALF = 0.5
COLUMNS = ["search", "right, half of the words", "over 0.7 %", "without an answer", "first over 0.7 %"]


class Answer(NamedTuple):
    """One of the best answers.

    Attributes:
        place: From 1.
        score: Its score.
        words: The share of the query's words that it has.
        right: Whether it is right.
        is_answerable: Whether anything is.
    """

    place: int
    score: float
    words: float
    right: bool
    is_answerable: bool


def main() -> int:
    """Ask, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.scores", description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", type=Path, metavar="DIR", help="conversations; see bench.trials")
    parser.add_argument("--documents", type=Path, metavar="DIR", help="see bench.documents")
    parser.add_argument("--code", type=Path, metavar="DIR", help="see bench.code, with --mirrors")
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="bare repositories")
    chosen = parser.parse_args()
    for vectors, embedder in relevance.embedders():
        for name, answers in _memories(chosen.data, vectors, embedder):
            _say(f"{name}, {vectors}", answers)
        if chosen.documents is not None and vectors != "tokens":
            for only in ("words",) if embedder is None else (None, "meaning"):
                how = only or "both" if embedder is None else f"{only or 'both'}, {vectors}"
                _say(f"documents, {how}", list(_documents(chosen.documents, embedder, only)))
    if chosen.code is not None and chosen.mirrors is not None:
        _code(chosen.code, chosen.mirrors)
    return 0


def _say(name: str, answers: Sequence[Answer]) -> None:
    print(as_text(Table(title="", columns=COLUMNS, rows=[_row(name, answers)])), flush=True)


def _row(name: str, answers: Sequence[Answer]) -> list[Value]:
    right = [each.score > GOOD for each in answers if each.right and each.words >= HALF]
    strange = [each.score > GOOD for each in answers if not each.is_answerable and each.place == 1]
    shares = [100 * float(np.mean(each)) if each else None for each in (right, strange)]
    return [name, len(right), shares[0], len(strange), shares[1]]


def words_in(query: str, text: str) -> float:
    """Return which share of a query's terms a text has."""
    wanted = {term.key for term in terms(query)}
    return len(wanted & {term.key for term in terms(text)}) / len(wanted) if wanted else 0.0


def _memories(
    data: Path | None, vectors: VectorSet, embedder: Remembering | None
) -> Iterator[tuple[str, list[Answer]]]:
    worlds = question_sets.worlds(relevance.NOTES)
    unseen = question_sets.worlds(relevance.NOTES / "unseen")
    yield "notes", [each for world in worlds for each in _of_store(world, worlds, vectors, embedder)]
    yield (
        "unseen notes",
        [each for world in unseen for each in _of_store(world, worlds, vectors, embedder)],
    )
    if data is not None:
        talks = question_sets.conversations(data)
        yield "conversations", [each for talk in talks for each in _of_store(talk, talks, vectors, embedder)]


def _of_store(
    store: Store, all_stores: Sequence[Store], vectors: VectorSet, embedder: Remembering | None
) -> Iterator[Answer]:
    others = [each for each in all_stores if each.name != store.name]
    questions: list[Question] = [*store.questions, *relevance.foreign(others)]
    view = relevance.view_of_store(store, embedder)
    is_note = store.memories[0].conversation is None
    for question in questions:
        query = relevance.query_of(question, vectors, embedder, dated=is_note)
        ranked = finish(rank(view, query, view.visible, limit=RIVALS))
        scores = match_of(ranked.log_odds, ranked.vectors).tolist()
        for place, (row, score) in enumerate(zip(ranked.rows.tolist(), scores, strict=True), 1):
            memory = store.memories[row]
            right = memory.id in question.relevant
            yield Answer(place, score, words_in(question.text, memory.text), right, bool(question.relevant))


def _documents(data: Path, embedder: Remembering | None, only: str | None) -> Iterator[Answer]:
    libraries = strangers(libraries_in(data))
    for library in [*libraries, *map(without_headings, libraries)]:
        view = document_relevance.view_of_library(library, embedder)
        chunks = [(document.path, chunk) for document in library.documents for chunk in document.chunks]
        for question in [*library.questions, *(each._replace(file="") for each in library.strange)]:
            vectors = None if embedder is None else embedder.query(question.query)
            query = RankQuery.read(question.query, vectors)
            ranked = finish(rank_chunks(view, query, limit=DEPTH, only=only))
            found = zip(ranked.rows.tolist(), ranked.matches.tolist(), strict=True)
            for place, (row, score) in enumerate(found, 1):
                path, chunk = chunks[row]
                words = words_in(question.query, " ".join([chunk.text, *chunk.headings]))
                yield Answer(place, score, words, path == question.file, bool(question.file))


def _code(data: Path, mirrors: Path) -> None:
    answers: list[Answer] = []
    measured: list[document_relevance.Answer] = []
    strange: Sequence[code_trees.Question] = ()
    for tree in code_trees.load(data, mirrors):
        view = code_trees.source_view(code_trees.read_files(tree.files))
        known = {path: f"{path} {file.decode(errors='replace')}" for path, file in tree.files.items()}
        for question in [*tree.questions, *strange]:
            query = CodeQuery.read(question.query)
            ranked = finish(rank_files(view, query, limit=DEPTH))
            for place, file in enumerate(ranked.files, 1):
                right = file.path in question.files
                share = sum(file.parts.values()) / (ranked.worth + EVEN)
                words = words_in(question.query, known[file.path])
                answers.append(Answer(place, file.match, words, right, bool(question.files)))
                is_right = right or file.path in question.secondary
                measured.append(
                    document_relevance.Answer(tree.name.partition(".")[2], place, share, file.score, is_right)
                )
        strange = [each._replace(files=(), secondary=()) for each in tree.questions]
    _say("code", answers)
    error = expected_error([Scored(each.score, each.right) for each in measured])
    left = document_relevance.fitted_to_others(measured)
    others = expected_error([Scored(score, each.right) for each, score in left])
    middle, width = document_relevance.fitted(measured)
    print(f"code: error of the relevance {error:.3f}, fitted to the others {others:.3f}")
    print(f"    fitted to all: {middle:.3f}, {width:.3f}; signals: {len(CODE_WEIGHTS)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
