"""What a share of a chunk of documents is worth, for `python -m bench.relevance --documents DIR`.

``DIR`` is that of `bench.documents`. Each heading is asked of its project, with and without the headings in
the index, and the headings of the project before it as well, which nothing answers there. The ten best
answers are right where they are of the file with the section. Fitted is the share of these that are right:
middle and width of a logistic curve, for each way to search.

Printed is how far scores are from that share: as they stand, and by what was fitted to the other projects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.documents import DEPTH, libraries_in, strangers, without_headings
from bench.harness import Table, as_text
from bench.ranked_corpus import corpus_of
from greenroom.actors.knowledge.corpora.handlers.embedding import EMBEDDED_CHARACTERS
from greenroom.actors.knowledge.corpora.storage.preparation import make_indexed
from greenroom.actors.knowledge.corpora.storage.records import Passage
from greenroom.actors.knowledge.corpora.storage.repository import text_to_embed
from greenroom.actors.memories.recall.evaluate import Scored, expected_error
from greenroom.actors.search.ranking.chunks import Chunks
from greenroom.actors.search.ranking.documents import rank_chunks
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bench.documents import Library
    from bench.harness import Value
    from bench.ranked_corpus import Remembering
    from greenroom.actors.search.ranking.weights import VectorSet

    Floats = npt.NDArray[np.float64]

COLUMNS = ["scores", "answers", "error", "error of the first", "score of the first", "right of the first"]
_STEPS = 30


class Answer(NamedTuple):
    """One of the best answers to a question.

    Attributes:
        project: What was asked.
        place: Its own, from 1.
        share: Its strength by what the query is worth.
        score: What the ranking makes of that as it stands.
        right: Whether it is of the file with the section that was asked for.
    """

    project: str
    place: int
    share: float
    score: float
    right: bool


def fit(data: Path, vectors: VectorSet, embedder: Remembering | None) -> None:
    """Print how far scores are from what was right in projects left out, and the scales fitted to all."""
    libraries = strangers(libraries_in(data))
    forms = [libraries, [without_headings(library) for library in libraries]]
    views = [(library, view_of_library(library, embedder)) for form in forms for library in form]
    for only in ("words",) if embedder is None else (None, "meaning"):
        answers = [each for library, view in views for each in _answers(library, view, embedder, only)]
        name = only if embedder is None else f"{only or 'both'}, {vectors}"
        rows = [
            ["as they stand", *_figures([(each, each.score) for each in answers])],
            ["fitted to the others", *_figures(fitted_to_others(answers))],
        ]
        print(as_text(Table(title=f"documents, {name}", columns=COLUMNS, rows=rows)))
        middle, width = fitted(answers)
        print(f'    "{name}": ({middle:.2f}, {width:.3f}),\n', flush=True)


# -- fitting -----------------------------------------------------------------


def fitted(answers: Sequence[Answer]) -> tuple[float, float]:
    """Return the middle and the width by which what was right is most likely: Newton's steps."""
    known = np.array([[each.share, 1.0] for each in answers])
    right = np.array([each.right for each in answers], float)
    line = np.zeros(2)
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-known @ line))
        second = (known * (chances * (1 - chances))[:, None]).T @ known
        line -= np.linalg.solve(second, known.T @ (chances - right))
    slope, offset = line.tolist()
    return -offset / slope, 1 / slope


def fitted_to_others(answers: Sequence[Answer]) -> list[tuple[Answer, float]]:
    """Return all answers, with their scores by what was fitted to the other projects."""
    found = []
    for project in dict.fromkeys(each.project for each in answers):
        middle, width = fitted([each for each in answers if each.project != project])
        these = [each for each in answers if each.project == project]
        shares = np.array([each.share for each in these])
        found += list(zip(these, (1 / (1 + np.exp((middle - shares) / width))).tolist(), strict=True))
    return found


def _figures(found: Sequence[tuple[Answer, float]]) -> list[Value]:
    scored = [Scored(score, answer.right) for answer, score in found]
    first = [Scored(score, answer.right) for answer, score in found if answer.place == 1]
    score, right = np.mean(first, axis=0).tolist()
    return [len(scored), expected_error(scored), expected_error(first), score, right]


# -- asking ------------------------------------------------------------------


def view_of_library(library: Library, embedder: Remembering | None) -> Chunks:
    chunks = [
        (document, Passage(chunk.text, chunk.headings))
        for document in library.documents
        for chunk in document.chunks
    ]
    indexed = [
        make_indexed(document, number, passage, is_code=False)
        for number, (document, passage) in enumerate(chunks, 1)
    ]
    texts = [text_to_embed(document, passage)[:EMBEDDED_CHARACTERS] for document, passage in chunks]
    return Chunks(corpus_of(indexed, texts, embedder))


def _answers(
    library: Library, view: Chunks, embedder: Remembering | None, only: str | None
) -> Iterator[Answer]:
    asked = [*library.questions, *(each._replace(file="") for each in library.strange)]
    for question in asked:
        vectors = None if embedder is None else embedder.query(question.query)
        query = RankQuery.read(question.query, vectors)
        ranked = finish(rank_chunks(view, query, limit=DEPTH, only=only))
        files = [view.corpus.authors[author] for author in view.corpus.author[ranked.rows]]
        found = zip(files, ranked.shares.tolist(), ranked.scores.tolist(), strict=True)
        for place, (file, share, score) in enumerate(found, 1):
            yield Answer(library.name, place, share, score, file == question.file)
