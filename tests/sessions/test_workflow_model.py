"""What comes next and what comes again and again, of steps that are written down here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.sessions.workflows.patterns import LONGEST, Match, Pattern, match_patterns, mine
from greenroom.actors.sessions.workflows.prediction import MOST_ORDER, Prediction, predict
from greenroom.actors.sessions.workflows.timeline import HALF_LIFE_DAYS, Step, Timeline
from greenroom.runtime import finish

T = TypeVar("T")
DAY = 86_400_000_000
Told = tuple[str, str, bool]
"""A command, its session, and whether it passed."""


def timeline_of(commands: str | Sequence[Told], *, at: int = 0, each: int = 0, **step: Any) -> Timeline:
    """Return a timeline of commands, written as words or told one by one."""
    told = [(word, "s", True) for word in commands.split()] if isinstance(commands, str) else commands
    timeline = Timeline()
    for number, (command, session, passed) in enumerate(told, 1):
        moment = at + number * each
        timeline.add(Step(number, command, session=session, passed=passed, at=moment, **step))
    return timeline


def suggested(timeline: Timeline, context: str, now: int = 0) -> list[Prediction]:
    return finish(predict(timeline, context.split(), now))


def commands_of(found: Sequence[Prediction]) -> list[str]:
    return [each.command for each in found]


def patterns_of(timeline: Timeline, now: int = 0) -> list[Pattern]:
    return finish(mine(timeline, now))


# -- what comes next ---------------------------------------------------------------------------------


@pytest.mark.promise("workflows.suggestions")
def test_the_longest_context_decides() -> None:
    timeline = timeline_of("a b x  c b y  a b x  c b y  b z b z b z b z")
    assert commands_of(suggested(timeline, "a b"))[0] == "x"
    assert commands_of(suggested(timeline, "c b"))[0] == "y"
    assert commands_of(suggested(timeline, "q b"))[0] == "z"
    orders = {each.command: each.order for each in suggested(timeline, "c b")}
    assert (orders["y"], orders["z"], orders["c"]) == (2, 1, 0)


@pytest.mark.promise("workflows.suggestions")
def test_probabilities_are_those_of_the_method_worked_out_by_hand() -> None:
    timeline = timeline_of("a b a c")
    # No context: of 4 steps a came twice, and there were 3 kinds, so (2, 1, 1) / (4 + 3).
    assert {each.command: each.probability for each in suggested(timeline, "")} == pytest.approx(
        {"a": 2 / 7, "b": 1 / 7, "c": 1 / 7}, rel=0.01
    )
    # After a came b and c: two steps, two kinds, so half of it is left to the above.
    assert {each.command: each.probability for each in suggested(timeline, "a")} == pytest.approx(
        {"a": 1 / 7, "b": 1 / 4 + 1 / 14, "c": 1 / 4 + 1 / 14}, rel=0.01
    )


@pytest.mark.promise("workflows.suggestions")
def test_what_failed_every_time_is_never_suggested_nor_what_did_so_after_the_last_command() -> None:
    told: list[Told] = []
    for _ in range(5):
        told += [("edit", "s", True), ("deploy", "s", False), ("test", "s", True), ("push", "s", False)]
    told += [("test", "s", True), ("push", "s", True)]
    timeline = timeline_of(told)
    for context in ("edit", "edit deploy test push", "", "deploy", "nothing known"):
        assert "deploy" not in commands_of(suggested(timeline, context))
    assert "push" in commands_of(suggested(timeline, "test"))
    told += [("edit", "s", True), ("push", "s", False)]
    assert "push" not in commands_of(suggested(timeline_of(told), "edit"))


@pytest.mark.promise("workflows.suggestions")
def test_a_program_without_a_name_is_no_suggestion() -> None:
    assert commands_of(suggested(timeline_of("ls <program> ls <program>"), "ls")) == ["ls"]


def test_sessions_that_are_interleaved_are_learned_each_by_itself() -> None:
    told = [("a", "1", True), ("x", "2", True), ("b", "1", True), ("y", "2", True)] * 3
    told = [(command, f"{session}", passed) for command, session, passed in told]
    assert commands_of(suggested(timeline_of(told), "a"))[0] == "b"
    assert commands_of(suggested(timeline_of(told), "x"))[0] == "y"


@pytest.mark.promise("workflows.forgetting")
def test_what_is_old_counts_less_by_time_and_by_steps() -> None:
    old = timeline_of("a x a x a x a x")
    new = HALF_LIFE_DAYS * 10 * DAY
    for number in (9, 10, 11, 12):
        old.add(Step(number, "ay"[number % 2 == 0], session="s", passed=True, at=int(new)))
    assert commands_of(suggested(old, "a", now=int(new)))[0] == "y"
    soon = timeline_of("a x " * 100 + "c " * 2_500 + "a y a y a y")
    assert [each.command for each in suggested(soon, "a")][:2] == ["x", "y"]
    later = timeline_of("a x " * 40 + "c " * 4_500 + "a y a y a y")
    assert commands_of(suggested(later, "a"))[0] == "y"
    (only,) = suggested(timeline_of("a"), "", now=int(HALF_LIFE_DAYS * DAY))
    assert only.probability == pytest.approx(0.5 / 1.5)


def test_a_clock_that_was_set_back_gives_no_step_more_than_its_weight() -> None:
    timeline = timeline_of("a b a b", at=100 * DAY)
    assert all(each.probability < 1 for each in suggested(timeline, "a", now=0))


told = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("12"), st.booleans()), max_size=60)
contexts = st.lists(st.sampled_from("abcdex"), max_size=6).map(" ".join)


@given(told, contexts)
def test_probabilities_are_shares_of_one(told: list[Told], context: str) -> None:
    timeline = timeline_of(told)
    found = suggested(timeline, context)
    assert sum(each.probability for each in found) <= 1
    assert all(0 < each.probability < 1 and 0 <= each.order <= MOST_ORDER for each in found)
    passed = {command for command, _, was_passed in told if was_passed}
    assert {each.command for each in found} <= passed


@pytest.mark.promise("workflows.forgetting")
@given(told, contexts, st.integers(0, 60))
def test_a_step_that_is_forgotten_might_never_have_been(told: list[Told], context: str, cut: int) -> None:
    timeline = timeline_of(told, each=DAY)
    for _ in range(min(cut, len(told))):
        timeline.forget_oldest()
    anew = Timeline()
    for number, (command, session, passed) in enumerate(told, 1):
        if number > cut:
            anew.add(Step(number, command, session=session, passed=passed, at=number * DAY))
    assert len(timeline) == len(anew)
    assert suggested(timeline, context, 90 * DAY) == suggested(anew, context, 90 * DAY)
    assert patterns_of(timeline, 90 * DAY) == patterns_of(anew, 90 * DAY)
    for session in "12":
        assert timeline.last_of(session) == anew.last_of(session)


# -- what comes again and again ------------------------------------------------------------------------


def shown(found: Sequence[Match]) -> list[str]:
    return [" ".join(each.pattern.commands) for each in found]


@pytest.mark.promise("workflows.patterns")
def test_a_routine_is_found_once_also_with_something_in_between() -> None:
    timeline = timeline_of("pull test commit push x w pull test ls commit push y v pull z test commit push")
    found = match_patterns(patterns_of(timeline), (), 10)
    assert shown(found)[0] == "pull test commit push"
    assert len(shown(found)) == 1
    (pattern,) = [each.pattern for each in found]
    assert (pattern.times, pattern.success_rate, pattern.duration_ms) == (3, 1, None)


@pytest.mark.promise("workflows.patterns")
def test_a_pattern_goes_on_from_what_is_done() -> None:
    patterns = patterns_of(timeline_of("pull test commit push " * 4))
    (match, *_) = match_patterns(patterns, ["x", "pull", "test"], 5)
    assert (match.pattern.commands, match.done) == (("pull", "test", "commit", "push"), 2)
    assert match_patterns(patterns, ["nothing known"], 5) == []


@pytest.mark.promise("workflows.patterns")
def test_a_pattern_knows_how_well_it_goes_and_how_long_it_takes() -> None:
    timeline = Timeline()
    number = 0
    for passed, duration in ((True, 10.0), (True, 30.0), (False, 20.0), (True, None)):
        for command in ("build", "ship"):
            number += 1
            took = None if command == "ship" and duration is None else duration
            step = Step(number, command, session="s", passed=passed, at=number, duration_ms=took)
            timeline.add(step)
    pattern = next(each for each in patterns_of(timeline) if each.commands == ("build", "ship"))
    assert (pattern.times, pattern.success_rate, pattern.duration_ms) == (4, 0.75, 40.0)
    assert pattern.last_seen == number
    assert 0 < pattern.chances[0] < 1


@pytest.mark.promise("workflows.patterns")
def test_what_never_went_through_is_no_pattern() -> None:
    told: list[Told] = [("build", "s", True), ("ship", "s", False)] * 5
    assert patterns_of(timeline_of(told)) == []


@pytest.mark.promise("workflows.patterns")
def test_steps_of_different_sessions_make_no_pattern() -> None:
    told = [(command, f"{command}{number}", True) for command in "ab" for number in range(5)]
    assert patterns_of(timeline_of(told)) == []


def test_an_id_is_that_of_the_commands() -> None:
    (one, *_), others = patterns_of(timeline_of("a b a b a b")), patterns_of(timeline_of("c a b " * 3))
    assert one.id in {each.id for each in others if each.commands == one.commands}
    assert len({each.id for each in others}) == len(others) > 1


@given(told)
def test_every_pattern_is_there_as_often_as_it_says(told: list[Told]) -> None:
    for pattern in patterns_of(timeline_of(told)):
        ends = 0
        for session in "12":
            commands = [command for command, of, _ in told if of == session]
            ends += sum(_ends_at(pattern.commands, commands, end) for end in range(len(commands)))
        assert pattern.times == ends >= 2
        assert len(set(pattern.commands)) == len(pattern.commands) <= LONGEST
        assert all(0 < chance <= 1 for chance in pattern.chances)


def _ends_at(pattern: Sequence[str], commands: Sequence[str], end: int, gaps: int = 1) -> bool:
    """Return whether a pattern ends at a place, with at most so many commands in between."""
    if commands[end] != pattern[-1]:
        return False
    if len(pattern) == 1:
        return True
    return any(
        end - 1 - skipped >= 0 and _ends_at(pattern[:-1], commands, end - 1 - skipped, gaps - skipped)
        for skipped in range(gaps + 1)
    )
