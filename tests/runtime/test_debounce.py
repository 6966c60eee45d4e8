"""When a subscriber hears of a topic, as a function of times."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.runtime.base.debounce import Debounce

WINDOW = 100
times = st.lists(st.integers(0, 2_000), max_size=60).map(sorted)


def tellings(changes: list[int], topic: str = "t", noise: list[int] | None = None) -> list[int]:
    """Return when an attentive subscriber takes ``topic``, given when it and another topic change."""
    debounce = Debounce(WINDOW)
    told: list[int] = []
    deeds = sorted([(time, topic) for time in changes] + [(time, "other") for time in noise or []])
    now = 0
    for time, changed in [*deeds, (100_000, "")]:
        while (due := debounce.due()) <= time:
            now = max(now, int(due))  # what is ready already is due at once
            if debounce.take(now) == topic:
                told.append(now)
        now = time
        if changed:
            debounce.change(changed, time)
            while (taken := debounce.take(time)) is not None:
                if taken == topic:
                    told.append(time)
    assert debounce.due() == float("inf")
    return told


@pytest.mark.promise("bus.debounce")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([], []),
        ([5], [5]),
        ([5, 6], [5, 105]),
        ([5, 6, 7, 50, 104], [5, 105]),
        ([5, 105], [5, 105]),
        ([5, 106], [5, 106]),
        ([5, 6, 106, 107], [5, 105, 205]),
        ([5, 6, 300], [5, 105, 300]),
    ],
)
def test_the_first_change_is_told_at_once_and_those_of_a_window_at_its_end(
    changes: list[int], told: list[int]
) -> None:
    assert tellings(changes) == told


@pytest.mark.promise("bus.debounce")
@given(changes=times)
def test_no_change_goes_untold_and_no_two_tellings_are_within_a_window(changes: list[int]) -> None:
    told = tellings(changes)
    assert all(later - earlier >= WINDOW for earlier, later in itertools.pairwise(told))
    assert all(any(change <= time <= change + WINDOW for time in told) for change in changes)
    assert all(any(time - WINDOW <= change <= time for change in changes) for time in told)


@pytest.mark.promise("bus.debounce")
@given(changes=times, noise=times)
def test_another_topic_changes_nothing(changes: list[int], noise: list[int]) -> None:
    assert tellings(changes, noise=noise) == tellings(changes)


@pytest.mark.promise("bus.debounce")
def test_a_forgotten_topic_is_told_no_more_and_begins_anew() -> None:
    debounce = Debounce(WINDOW)
    debounce.change("t", 0)
    assert debounce.take(0) == "t"
    debounce.change("t", 1)
    debounce.forget("t")
    assert debounce.due() == float("inf")
    assert debounce.take(1_000) is None
    assert debounce.change("t", 2) == 2
    assert debounce.take(2) == "t"


@pytest.mark.promise("bus.debounce")
def test_without_a_window_every_change_is_told_at_once() -> None:
    debounce = Debounce(0)
    for time in (1, 1, 2):
        debounce.change("t", time)
        assert debounce.take(time) == "t"
