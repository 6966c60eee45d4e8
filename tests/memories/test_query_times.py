"""Times in the query's own words: which words name one, and that it ranks without leaving anything out."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedding import WAITS, Loaded

from greenroom.actors import MemorySearch, RecallContext, RetrieveMemory, StoreMemory
from greenroom.actors.content.times import finder, remove_times, times_in
from greenroom.testing import DAY, HOUR

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import Agent

NOW: Final = dt.datetime(2026, 11, 18, 15, tzinfo=dt.UTC)
"""A Wednesday."""
WORDS: Final = (
    "ago",
    "last",
    "the",
    "of",
    "March",
    "two",
    "weeks",
    "Monday",
    "in",
    "9999",
    "years",
    "q2",
    "May",
)


def read(text: str, **more: Any) -> list[tuple[str, str, str]]:
    """Return each time's words and where it begins and ends, short."""
    return [
        (text[each.start : each.end], _short(each.after), _short(each.before))
        for each in times_in(text, NOW, dt.UTC, **more)
    ]


def _short(time: dt.datetime | None) -> str:
    return "" if time is None else f"{time:%m-%d}" + (f"T{time:%H}" if time.hour else "")


@pytest.mark.promise("recall.times-in-words")
@pytest.mark.parametrize(
    ("text", "words", "after", "before"),
    [
        ("what did we decide two weeks ago about the deploy?", "two weeks ago", "11-04", "11-05"),
        ("What broke last Tuesday?", "last Tuesday", "11-17", "11-18"),
        ("yesterday's backup failure", "yesterday's", "11-17", "11-18"),
        ("what did we decide today", "today", "11-18", "11-19"),
        ("who called this morning, and why", "this morning", "11-18T05", "11-18T12"),
        ("notes from last month", "last month", "10-01", "11-01"),
        ("In the past three days, what changed?", "In the past three days", "11-15", "11-18T15"),
        ("the incident in Q2", "in Q2", "04-01", "07-01"),
        ("what did Ann plant last spring", "last spring", "03-01", "06-01"),
        ("who was at the dinner a year ago", "a year ago", "11-18", "11-19"),
        ("who ate with us at the weekend?", "at the weekend", "11-14", "11-16"),
        ("what was decided between March and May", "between March and May", "03-01", "06-01"),
        ("the retro of the week before last", "the week before last", "11-02", "11-09"),
        ("what changed since Monday", "since Monday", "11-16", ""),
        ("what we tried half a year ago", "half a year ago", "05-18", "05-19"),
        ("what broke an hour and a half ago?", "an hour and a half ago", "11-18T13", "11-18T13"),
        ("the crash a quarter of an hour ago", "a quarter of an hour ago", "11-18T14", "11-18T14"),
        ("who called three quarters of an hour ago", "three quarters of an hour ago", "11-18T14", "11-18T14"),
        ("notes of two and a half weeks ago", "two and a half weeks ago", "11-01", "11-02"),
        ("what we bought a year and a half ago", "a year and a half ago", "05-18", "05-19"),
        ("the build 1.5 hours ago", "1.5 hours ago", "11-18T13", "11-18T13"),
        ("which delivery came the day before yesterday", "the day before yesterday", "11-16", "11-17"),
        ("the outage of 16.01.2026, its cause", "16.01.2026", "01-16", "01-17"),
        ("bill of 16/01/2026", "16/01/2026", "01-16", "01-17"),
        ("bill of 01/16/2026", "01/16/2026", "01-16", "01-17"),
    ],
)
def test_a_question_names_a_time(text: str, words: str, after: str, before: str) -> None:
    assert read(text) == [(words, after, before)]


@pytest.mark.promise("recall.times-in-words")
@pytest.mark.parametrize(
    "text",
    [
        "last minute changes to the deck",
        "which database do we use today?",
        "restart the worker in 5 minutes",
        "a refund within 30 days",
        "the standup every Monday",
        "what is due by Friday",
        "what happens next week, or tomorrow",
        "Spring Boot on the second host",
        "may 2 users log in, and march on",
        "version 1.2.3 at 10.1.2026.7 and 1/2/3",
        "the 31.02.2026 and 16.13.2026 and 0.0.0000",
        "What was the last deploy?",
        "in March",  # a plain date, which the ranking reads itself
        "on 3 June 2026",
        "what was done the week before 3 June 2023",
        "who came before April 10, 2023",
        "99999 years ago",
        "dec 10 to hex",
        "may 5 users log in",
        "the talk two weeks and three days ago",  # no form of ours, and not three days ago
        "the last three releases",
        "",
    ],
)
def test_what_is_no_time_is_left_to_the_words(text: str) -> None:
    assert read(text) == []


def test_a_date_with_slashes_is_either_of_two_unless_the_language_tells() -> None:
    both = [("3/4/2026", "03-04", "03-05"), ("3/4/2026", "04-03", "04-04")]
    assert sorted(read("on 3/4/2026")) == both
    assert read("on 3/4/2026", day_first=True) == both[1:]


def test_a_text_of_nothing_but_a_time_stays_as_it_is() -> None:
    text = "What happened on 3/4/2026, or two weeks ago?"
    assert remove_times(text, times_in(text, NOW, dt.UTC)) == "What happened on , or ?"
    assert remove_times("yesterday?", times_in("yesterday?", NOW, dt.UTC)) == "yesterday?"


@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join) | st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    found = times_in(text, NOW, dt.UTC)
    assert len(found) <= finder.MOST
    assert all(0 <= each.start < each.end <= len(text) for each in found)
    assert all(each.fading > dt.timedelta(0) for each in found)


# -- through the searches -------------------------------------------------------------------------


async def _keep(at: House) -> Agent:
    """Store notes of the same kind some months, a month, two weeks and four days ago."""
    ann = at.agent("alice", user="ann")
    for key, days, text in (
        ("spring", 200, "Database maintenance: reindexed the texts, two weeks of work."),
        ("month", 20, "Database maintenance: vacuum of the audit log."),
        ("fortnight", 10, "Database maintenance: moved the log to another disk."),
        ("day", 4, "Database maintenance: raised the number of connections."),
    ):
        await ann.ask(StoreMemory(key=key, content=text))
        at.clock.jump(days * DAY)
    return ann


@pytest.mark.promise("recall.times-in-words")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("which database maintenance was there two weeks ago?", "fortnight"),
        ("database maintenance 4 days ago", "day"),
        ("database maintenance a month ago", "month"),
        ("what database maintenance did we do eight months ago", "spring"),
    ],
)
async def test_what_was_made_at_that_time_comes_first_and_nothing_is_left_out(
    enter: Enter, query: str, first: str
) -> None:
    async with enter(embedder="none") as at:
        ann = await _keep(at)
        searched = (await ann.ask(MemorySearch(query=query, timezone="UTC"))).memories
        retrieved = (await ann.ask(RetrieveMemory(query=query))).memories
        recalled = (await ann.ask(RecallContext(task=query))).memories
        for found in (searched, retrieved, recalled):
            assert found[0].key == first
            assert len(found) == 4


async def test_the_words_of_a_time_are_looked_for_only_letter_by_letter(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = await _keep(at)
        found = await ann.ask(MemorySearch(query="two weeks of", mode="exact"))
        assert [each.key for each in found.memories] == ["spring"]


@pytest.mark.promise("recall.times-in-words")
@pytest.mark.parametrize("embedder", ["none", "static"])
@pytest.mark.parametrize(
    ("query", "notes"),
    [
        (
            "what is the Q1 budget",
            ["The Q1 budget is 10k.", "The Q2 budget is 20k.", "The Q3 budget is 30k."],
        ),
        (
            "when is the standup on Monday?",
            ["The standup on Monday begins at nine.", "The standup on Friday begins at ten."],
        ),
        ("christmas dinner recipe", ["Recipe of the christmas dinner.", "Recipe of the easter dinner."]),
        ("changes in 1.2.2024", ["Changes in 1.2.2024: the parser.", "Changes in 1.3.2024: the printer."]),
    ],
)
async def test_what_may_be_the_subject_is_looked_for_too(
    enter: Enter, query: str, notes: list[str], embedder: str
) -> None:
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        for number, text in enumerate(notes):
            await ann.ask(StoreMemory(key=f"n{number}", content=text))
            at.clock.jump(HOUR)
        found = (await ann.ask(MemorySearch(query=query, timezone="UTC"))).memories
        assert found[0].key == "n0"


def test_hours_are_counted_back_when_the_clock_was_put_forward() -> None:
    now = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)  # half an hour after that
    (found,) = times_in("one hour ago", now, ZoneInfo("Europe/Berlin"))
    assert found.after == found.before == now - dt.timedelta(hours=1)


async def test_days_begin_in_the_callers_time_zone(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        at.clock.jump(-at.clock.now() % DAY + DAY // 2)  # noon in Greenwich
        for key, hours in (
            ("noon", 15),
            ("night", 12),
        ):  # at three in the night it is the day before in New York
            await ann.ask(StoreMemory(key=key, content="Report of the pump."))
            at.clock.jump(hours * HOUR)
        first = {}
        for zone in ("UTC", "America/New_York"):
            found = await ann.ask(MemorySearch(query="report of the pump yesterday", timezone=zone))
            first[zone] = found.memories[0].key
        assert first == {"UTC": "noon", "America/New_York": "night"}


@pytest.mark.parametrize(
    "query",
    ["two weeks ago " * 700, "1.1.2020 " * 1_100, "last of the early few " * 450, "9999 years ago " * 600],
)
async def test_a_query_of_very_many_times_is_answered(enter: Enter, query: str) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        await ann.ask(StoreMemory(key="k", content="early few weeks"))
        reply = await ann.ask(MemorySearch(query=query[:10_000], include_debug=True))
        assert reply.total <= 1
