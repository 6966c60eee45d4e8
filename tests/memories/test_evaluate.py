"""The figures of `greenroom evaluate`, beside their definitions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exchanges import imported, line

from greenroom.actors import Principal
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.recall.evaluate import (
    JudgedQuery,
    Scored,
    expected_error,
    judge,
    measure,
    ready,
    tenths,
)
from greenroom.actors.memories.requests.requests import ReadMemory

if TYPE_CHECKING:
    from support.agents import Enter

ANN = Principal(agent_id="planner", user="ann")


@pytest.mark.promise("exchange.evaluate")
def test_the_figures_of_one_answer() -> None:
    assert measure(["x", "a", "y", "b"], ["a", "b"], (1, 2, 5)) == pytest.approx(
        {
            "R@1": 0.0,
            "R@2": 0.5,
            "R@5": 1.0,
            "hit@10": 1.0,
            "MRR": 0.5,
            "nDCG@10": (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)),
        }
    )
    assert measure([], ["a"], (1,)) == {"R@1": 0.0, "hit@10": 0.0, "MRR": 0.0, "nDCG@10": 0.0}
    late = measure([f"x{n}" for n in range(10)] + ["a"], ["a"], (10, 20))
    assert (late["R@10"], late["R@20"], late["hit@10"], late["MRR"]) == (0.0, 1.0, 0.0, 1 / 11)


@pytest.mark.promise("exchange.evaluate")
def test_newer_is_whether_a_relevant_one_comes_before_every_older_one() -> None:
    def newer(*ranked: str) -> float:
        return measure(ranked, ["new"], (1,), older=["old", "oldest"])["newer"]

    assert newer("x", "new", "old") == newer("new") == 1.0
    assert newer("oldest", "new") == newer("old") == newer("x") == newer() == 0.0
    assert "newer" not in measure(["new"], ["new"])


@pytest.mark.promise("exchange.evaluate")
def test_where_nothing_is_relevant_an_empty_answer_is_right() -> None:
    assert measure([], []) == {"empty": 1.0}
    assert measure(["x"], [], older=["y"]) == {"empty": 0.0}


@given(st.lists(st.builds(Scored, st.floats(0, 1), st.booleans())))
def test_every_score_is_in_one_tenth(scored: list[Scored]) -> None:
    found = tenths(scored)
    assert sum(each.found for each in found) == len(scored)
    assert all(each.score is None or each.least - 1e-9 <= each.score <= each.most + 1e-9 for each in found)
    assert 0 <= expected_error(scored) <= 1 + 1e-9


@pytest.mark.promise("exchange.evaluate")
def test_the_expected_error_weighs_each_tenth_by_its_answers() -> None:
    high = [Scored(0.9, right) for right in (True, True, True, False)]  # 0.15 too high
    low = [Scored(0.2, right=False), Scored(0.2, right=True)]  # 0.3 too low
    assert expected_error([*high, *low]) == pytest.approx((4 * 0.15 + 2 * 0.3) / 6)
    assert [(each.found, each.right) for each in tenths([*high, *low]) if each.found] == [(2, 0.5), (4, 0.75)]
    assert expected_error([]) == 0
    assert tenths([Scored(1.0, right=True)])[-1] == (0.9, 1.0, 1, 1.0, 1.0)


@given(st.lists(st.integers(0, 30).map(str)), st.lists(st.integers(0, 30).map(str), min_size=1))
def test_every_figure_is_a_share_and_recall_grows(ranked: list[str], relevant: list[str]) -> None:
    figures = measure(ranked, relevant)
    assert all(0 <= figure <= 1 + 1e-9 for figure in figures.values())
    recalls = [figures[f"R@{depth}"] for depth in (1, 5, 10, 20, 50)]
    assert recalls == sorted(recalls)
    best = measure(list(dict.fromkeys(relevant)), relevant)
    assert best["MRR"] == 1.0
    assert best["nDCG@10"] == pytest.approx(1.0)


@pytest.mark.promise("exchange.evaluate")
async def test_what_is_found_does_not_count_as_used(enter: Enter) -> None:
    async with enter(embedder="none") as home:
        await imported(home.runtime, ANN, line("a", "the lighthouse"), line("b", "the harbour"))
        assert await ready(home.runtime, ANN) == "by words alone: the embedder is none"
        query = JudgedQuery(query="lighthouse", relevant=["a"])
        for _ in range(3):
            found = await judge(home.runtime, ANN, query, "hybrid", 10, (1,))
        message = ReadMemory(key="a", namespace="user:ann")
        read = await home.runtime.ask(memory_address("user:ann"), message, principal=ANN)
    assert found.metrics["R@1"] == 1.0
    assert read.memory.uses <= 1  # the reading itself
