"""The fit of weights: it finds those that the examples were made with."""

from __future__ import annotations

import numpy as np
import pytest

from bench import fitting, trials

pytestmark = pytest.mark.promise("ranking.fit")


def examples(weights: list[float], *, count: int = 200, noise: float = 0.3) -> list[fitting.Example]:
    generator = np.random.default_rng(5)
    made = []
    for _ in range(count):
        values = generator.normal(size=(30, len(weights))).astype(np.float32)
        strength = values @ np.array(weights) + noise * generator.gumbel(size=30)
        made.append(fitting.Example(values, np.array([int(strength.argmax())])))
    return made


def test_weights_are_found_again_up_to_their_scale() -> None:
    found = fitting.fit(examples([2.0, -1.0, 0.0]), [0, 1, 2])
    assert found[0] / -found[1] == pytest.approx(2, rel=0.15)
    assert abs(found[2]) < 0.1 * found[0]


def test_weights_that_must_not_be_negative_are_none() -> None:
    found = fitting.fit(examples([2.0, -1.0, 0.0]), [0, 1, 2], at_least_0=[1])
    assert found[1] == 0
    assert found[0] > 1


def test_only_the_chosen_columns_count() -> None:
    found = fitting.fit(examples([0.0, 0.0, 3.0]), [2])
    assert found.shape == (1,)
    assert found[0] > 1


def test_the_measures_are_those_of_the_books() -> None:
    found = trials.measures(["a", "b", "a", "c", "d", "e"], ["c", "x"])
    named = dict(zip(trials.MEASURES, found, strict=True))
    assert named["recall@5"] == 0.5
    assert named["hit@10"] == 1
    assert named["MRR"] == pytest.approx(1 / 3)
    assert named["nDCG@10"] == pytest.approx((1 / 2) / (1 + 1 / np.log2(3)))
    assert trials.measures([], ["c"]) == [0.0] * len(trials.MEASURES)


@pytest.mark.parametrize("seed", range(20))
def test_a_slip_is_one_slip_in_the_longest_word(seed: int) -> None:
    question = "When did Caroline visit the elephants?"
    changed = trials.mistyped(question, seed)
    assert changed == trials.mistyped(question, seed)
    assert changed.startswith("When did Caroline visit the e")
    assert changed.endswith("?")
    assert abs(len(changed) - len(question)) <= 1


def test_what_has_no_long_word_is_left_as_it_is() -> None:
    assert trials.mistyped("who is he?", 1) == "who is he?"
    assert trials.mistyped("", 1) == ""
