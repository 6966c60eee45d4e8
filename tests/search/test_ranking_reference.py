"""What words score, by their definition: row by row in plain Python, beside what ranking counts at once."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.search.index import Document
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import signals
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

FEW = 50  # texts that there are at least, as far as rarity in texts goes
WORDS = ("walrus", "walnut", "cheese", "moon", "rocket", "garden")
BEFORE, AFTER = (0.6, 0.45, 0.3, 0.2), (0.25, 0.2, 0.1)
B = 0.4

Row = tuple[str | None, tuple[str, ...]]
rows = st.lists(
    st.tuples(st.sampled_from([None, "a", "b"]), st.lists(st.sampled_from(WORDS), max_size=7).map(tuple)),
    min_size=1,
    max_size=25,
)


def bm25(times: float, length: float, mean: float, weight: float, k: float) -> float:
    return weight * (k + 1) * times / (times + k * (1 - B + B * length / mean))


def rarity(count: int, of: int) -> float:
    return math.log(1 + (of - count + 0.5) / (count + 0.5))


def around(values: Sequence[float], group: Sequence[int], place: int) -> float:
    total = values[group[place]]
    for away, weight in enumerate(BEFORE, 1):
        total += weight * values[group[place - away]] if place >= away else 0
    for away, weight in enumerate(AFTER, 1):
        total += weight * values[group[place + away]] if place + away < len(group) else 0
    return total


def by_definition(store: Sequence[Row], asked: Sequence[str]) -> dict[str, list[float]]:
    size = len(store)
    groups = [[n for n in range(size) if store[n][0] == name] for name in ("a", "b")]
    groups = [group for group in groups if group] + [[n] for n in range(size) if store[n][0] is None]
    lengths = [float(len(said)) for _, said in store]
    wide = {group[at]: around(lengths, group, at) for group in groups for at in range(len(group))}
    found = {name: [0.0] * size for name in ("words", "nearby", "conversation")}
    for word in asked:
        times = [float(said.count(word)) for _, said in store]
        weight = rarity(sum(map(bool, times)), max(size, FEW))
        telling = sum(any(times[n] for n in group) for group in groups)
        rare = rarity(telling, len(groups) + max(0, FEW - size))
        for group in groups:
            said = sum(times[n] for n in group)
            long = sum(lengths[n] for n in group)
            of_all = bm25(said, long, max(1, sum(lengths) / len(groups)), rare, 1.2)
            for at, row in enumerate(group):
                nearby = around(times, group, at)
                found["words"][row] += bm25(
                    times[row], lengths[row], max(1, sum(lengths) / size), weight, 0.8
                )
                found["nearby"][row] += bm25(
                    nearby, wide[row], max(1, sum(wide.values()) / size), weight, 0.8
                )
                found["conversation"][row] += of_all
    return found


@pytest.mark.promise("ranking.signals")
@given(store=rows, asked=st.lists(st.sampled_from(WORDS), min_size=1, unique=True), sealed=st.integers(0, 25))
def test_what_words_score_is_what_the_definition_says(
    store: list[Row], asked: list[str], sealed: int
) -> None:
    corpus = Corpus()
    for number, (conversation, said) in enumerate(store):
        if number == sealed:
            finish(corpus.seal())
        document = Document(
            id=number + 1,
            partition="",
            namespace="n",
            text=" ".join(said),
            conversation=conversation,
            position=number,
        )
        finish(corpus.add(document))
    there = [word for word in asked if any(word in said for _, said in store)]
    view = View(corpus, corpus.alive.copy())
    found = finish(signals(view, RankQuery.read(" ".join(there))))
    for name, values in by_definition(store, there).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.promise("ranking.hidden")
def test_words_score_the_same_among_few_rows_and_among_many_hidden_ones() -> None:
    chance = random.Random(3)  # noqa: S311 - as in a test
    corpus = Corpus()
    for number in range(60):
        said = " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))
        name = chance.choice(["a", "b", None])
        document = Document(
            id=number + 1, partition="", namespace="n", text=said, conversation=name, position=number
        )
        finish(corpus.add(document))
    query = RankQuery.read("walrus cheese rocket")
    few = finish(signals(View(corpus, corpus.alive.copy()), query))
    for number in range(60, 9_000):
        finish(corpus.add(Document(id=number + 1, partition="", namespace="n", text="", conversation="a")))
    visible = np.arange(corpus.size) < 60
    many = finish(signals(View(corpus, visible), query))
    for name in ("words", "nearby", "conversation"):
        assert many[name][:60].tolist() == few[name].tolist()
