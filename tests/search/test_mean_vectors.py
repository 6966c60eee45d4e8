"""The mean of a model's vectors: taken out before the cosine, the same in every store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.ranking import Note, stored

from greenroom.actors.search.embedding.models.static import StaticEmbedder, load_static
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.mean_vectors import mean_of
from greenroom.actors.search.ranking.meaning import cosines
from greenroom.actors.search.ranking.view import Floats, View
from greenroom.runtime import finish

pytestmark = pytest.mark.promise("ranking.signals")


def stored_by(embedder: StaticEmbedder, texts: Sequence[str]) -> Corpus:
    corpus = stored([Note(text) for text in texts])
    for number, made in enumerate(embedder.embed(texts), 1):
        put(corpus, embedder.space, number, made)
    return corpus


def put(corpus: Corpus, space: str, number: int, made: Vectors) -> None:
    values, scales = np.frombuffer(made.values, np.int8)[None], np.array([made.scale], np.float32)
    corpus.set_vectors(space, np.array([number], np.uint64), values, scales)


def unit(made: Vectors) -> Floats:
    return np.frombuffer(made.values, np.int8).astype(np.float32) * np.float32(made.scale)


def test_the_mean_of_the_model_is_taken_out_of_notes_and_query() -> None:
    embedder = load_static()
    texts = ["the cat is fed at seven", "the backups go to the disk", "", "the dentist is in the station"]
    view = View(stored_by(embedder, texts), np.ones(len(texts), np.bool_))
    asked = unit(embedder.embed(["when does the kitten eat"])[0])
    mean = mean_of(embedder.space)
    assert mean is not None
    for _ in range(2):  # what rows have in common with the mean is known the second time
        found = finish(cosines(view, embedder.space, asked))
        assert found is not None
        for row in (0, 1, 3):
            one, other = unit(embedder.embed([texts[row]])[0]) - mean, asked - mean
            right = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
            assert found.centred[row] == pytest.approx(right, abs=1e-5)
        assert found.centred[2] == 0  # a text without a word means nothing


def test_a_vector_that_comes_later_is_compared_as_one_that_was_there() -> None:
    embedder = load_static()
    texts = ["the cat is fed at seven", "the backups go to the disk"]
    whole, later = stored_by(embedder, texts), stored([Note(text) for text in texts])
    made = embedder.embed(texts)
    asked = unit(made[0])
    view, found = View(later, np.array([True, True])), []
    for number, each in enumerate(made, 1):
        put(later, embedder.space, number, each)
        found.append(finish(cosines(view, embedder.space, asked)))
    right = finish(cosines(View(whole, np.array([True, True])), embedder.space, asked))
    assert found[1] is not None
    assert right is not None
    assert found[1].centred.tolist() == right.centred.tolist()


@pytest.mark.promise("ranking.hidden")
def test_hidden_notes_move_no_cosine_and_not_what_neighbours_count() -> None:
    embedder = load_static()
    texts = ["the cat is fed at seven", "the backups go to the disk", "the tea is green"]
    alone = View(stored_by(embedder, texts), np.ones(3, np.bool_))
    among = View(
        stored_by(embedder, [*texts, *["a secret of the king"] * 4]), np.array([True] * 3 + [False] * 4)
    )
    asked = unit(embedder.embed(["when does the kitten eat"])[0])
    right, found = (finish(cosines(view, embedder.space, asked)) for view in (alone, among))
    assert right is not None
    assert found is not None
    assert found.centred[:3].tolist() == right.centred.tolist()
    assert among.neighbours_alike(embedder.space) == alone.neighbours_alike(embedder.space)
