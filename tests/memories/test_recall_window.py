"""The times that a search names, and the budgets that cut its answer: pure functions."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.core.replies import paging as base_budget
from greenroom.actors.memories.recall.time_window import Window, machine_zone, time_window, time_zone
from greenroom.runtime import Refusal

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
NOW = dt.datetime(2026, 3, 31, 10, 0, tzinfo=dt.UTC)  # two days after the clocks were put forward
NOTHING: dict[str, Any] = {"time_expr": None, "after": None, "before": None}


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, tzinfo=dt.UTC)


def window(**given: str) -> Window:
    return time_window(NOW, BERLIN, bounds=BERLIN, **{**NOTHING, **given})


@pytest.mark.promise("recall.times")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"after": "2026-03-29"}, Window(at(2026, 3, 28, 23), None)),
        ({"before": "2026-03-29"}, Window(None, at(2026, 3, 28, 23))),
        ({"before": "2026-03-30"}, Window(None, at(2026, 3, 29, 22))),
        ({"after": "2026-03-29T12:00:00Z"}, Window(at(2026, 3, 29, 12), None)),
        ({"after": "2026-03-29T12:00:00"}, Window(at(2026, 3, 29, 10), None)),
        ({"after": "2026-03-29T12:00:00+05:30"}, Window(at(2026, 3, 29, 6, 30), None)),
        ({"time_expr": "yesterday"}, Window(at(2026, 3, 29, 22), at(2026, 3, 30, 22))),
        ({"time_expr": "2 days ago"}, Window(at(2026, 3, 28, 23), at(2026, 3, 29, 22))),
        (
            {"time_expr": "yesterday", "after": "2026-03-30T12:00:00Z"},
            Window(at(2026, 3, 30, 12), at(2026, 3, 30, 22)),
        ),
        (
            {"time_expr": "yesterday", "before": "2026-03-30T12:00:00Z"},
            Window(at(2026, 3, 29, 22), at(2026, 3, 30, 12)),
        ),
        (
            {"time_expr": "yesterday", "after": "2020-01-01", "before": "2030-01-01"},
            Window(at(2026, 3, 29, 22), at(2026, 3, 30, 22)),
        ),
        ({"after": "0001-01-02T00:00:00Z"}, Window(at(1, 1, 2), None)),
    ],
    ids=str,
)
def test_times_are_meant_in_the_callers_zone(given: dict[str, str], wanted: Window) -> None:
    assert window(**given) == wanted


@pytest.mark.promise("recall.times")
@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"time_expr": "when the moon was full"}, "time_expr", "yesterday"),
        ({"time_expr": "last purple"}, "time_expr", "last week"),
        ({"after": "tomorrowish"}, "after", "2026-01-31"),
        ({"after": "2026-02-30"}, "after", "2026-02-30"),
        ({"before": "31.12.2026"}, "before", "2026-01-31"),
        ({"before": "2026-13-01T00:00:00Z"}, "before", "2026-13-01"),
        ({"after": "0001-01-01T00:00:00+14:00"}, "after", "0001-01-01"),
        ({"after": "2026-01-01T25:00:00Z"}, "after", "25:00"),
        ({"after": "\0"}, "after", "\\x00"),
    ],
    ids=str,
)
def test_a_time_that_is_not_understood_is_refused_with_examples(
    given: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(Refusal) as caught:
        window(**given)
    assert (caught.value.code, caught.value.details["field"]) == ("VALIDATION_ERROR", field)
    assert caught.value.sentence.startswith(f"{field}: ")
    assert words in caught.value.sentence


@pytest.mark.promise("recall.times")
@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "\0", "Europe", "localtime", "posixrules"],
)
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        time_zone(name)
    assert caught.value.details["field"] == "timezone"
    assert "Europe/Berlin" in caught.value.sentence


def test_without_a_name_it_is_the_machines_zone() -> None:
    assert time_zone(None)[1] == machine_zone()
    assert time_zone("America/New_York")[0] == zoneinfo.ZoneInfo("America/New_York")


# -- budgets -----------------------------------------------------------------------------------------

things = st.lists(st.text(max_size=60) | st.dictionaries(st.text(max_size=5), st.integers(), max_size=4))
budgets = st.integers(1, 60)


def numbered(thing: tuple[int, Any]) -> dict[str, int]:
    return {"version": thing[0]}


@pytest.mark.promise("recall.budget")
@given(things, budgets)
def test_from_page_to_page_everything_is_reached_or_named_once(some: list[Any], budget: int) -> None:
    left = list(enumerate(some))
    kept: list[tuple[int, Any]] = []
    large: list[int | None] = []
    while left:
        cut = base_budget.fit_to_budget(left, budget, numbered)
        assert cut.passed, "a reader who goes on always gets further"
        assert cut.tokens == sum(map(base_budget.tokens_of, cut.kept)) <= budget
        assert cut.left_out == len(left) - len(cut.kept)
        if cut.passed < len(left):  # as much as fits is given
            assert cut.tokens + base_budget.tokens_of(left[cut.passed]) > budget
        kept += cut.kept
        large += [] if cut.over_budget is msgspec.UNSET else [each.version for each in cut.over_budget]
        left = left[cut.passed :]
    wanted = list(enumerate(some))
    assert kept == [each for each in wanted if base_budget.tokens_of(each) <= budget]
    assert large == [number for number, thing in wanted if base_budget.tokens_of((number, thing)) > budget]


@pytest.mark.promise("recall.budget")
@given(things, budgets)
def test_a_budget_is_filled_as_far_as_it_goes(some: list[Any], budget: int) -> None:
    kept, spent = base_budget.take_fitting(some, budget)
    assert spent == sum(map(base_budget.tokens_of, kept)) <= budget
    left = iter(some)
    assert all(any(one is each for each in left) for one in kept), "the order is kept"
    if len(kept) < len(some):
        assert any(spent + base_budget.tokens_of(thing) > budget for thing in some)


def test_without_a_budget_nothing_is_cut_and_nothing_said() -> None:
    cut = base_budget.fit_to_budget([(1, "x" * 1_000)], None, numbered)
    assert cut == base_budget.BudgetedList([(1, "x" * 1_000)], 1)
    assert (cut.tokens, cut.left_out, cut.over_budget) == (msgspec.UNSET,) * 3
