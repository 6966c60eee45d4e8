"""What English expressions of time mean: a table, what daylight saving does to it, and any text at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.content.times import EXAMPLES, resolve
from greenroom.actors.content.times.days import FORMS as DAYS
from greenroom.actors.content.times.reader import (
    DAYTIMES,
    HOLIDAYS,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SEASONS,
    UNITS,
    VAGUE,
    WEEKDAYS,
)
from greenroom.actors.content.times.spans import FORMS as SPANS

pytestmark = pytest.mark.slow

BERLIN: Final = "Europe/Berlin"
THURSDAY: Final = "2026-11-19T14:20"
"""The present of the table, in Berlin, unless a case names another one."""

CASES: Final = [
    # days
    ("today", "2026-11-19", "2026-11-20"),
    ("Yesterday", "2026-11-18", "2026-11-19"),
    ("  the DAY before yesterday?", "2026-11-17", "2026-11-18"),
    ("tomorrow", "2026-11-20", "2026-11-21"),
    ("day after tomorrow", "2026-11-21", "2026-11-22"),
    ("all day yesterday", "2026-11-18T00:00", "2026-11-19T00:00"),
    # parts of days
    ("this morning", "2026-11-19T05:00", "2026-11-19T12:00"),
    ("in the morning", "2026-11-19T05:00", "2026-11-19T12:00"),
    ("yesterday in the afternoon", "2026-11-18T12:00", "2026-11-18T18:00"),
    ("yesterday evening", "2026-11-18T18:00", "2026-11-19T00:00"),
    ("last night", "2026-11-18T18:00", "2026-11-19T05:00"),
    ("tonight", "2026-11-19T18:00", "2026-11-20T05:00"),
    ("the night before last", "2026-11-17T18:00", "2026-11-18T05:00"),
    ("Monday night", "2026-11-16T18:00", "2026-11-17T05:00"),
    ("the morning of March 3", "2026-03-03T05:00", "2026-03-03T12:00"),
    ("evening of 3 March 2026", "2026-03-03T18:00", "2026-03-04T00:00"),
    ("earlier today", "2026-11-19T00:00", "now"),
    ("later today", "2026-11-19T14:20", "2026-11-20"),
    # times of day
    ("at noon", "2026-11-19T12:00", "2026-11-19T13:00"),
    ("yesterday at 3pm", "2026-11-18T15:00", "2026-11-18T16:00"),
    ("yesterday at 15:30", "2026-11-18T15:30", "2026-11-18T15:31"),
    ("3:30 p.m. yesterday", "2026-11-18T15:30", "2026-11-18T15:31"),
    ("12am on March 3", "2026-03-03T00:00", "2026-03-03T01:00"),
    ("March 3, 2026 at 12 pm", "2026-03-03T12:00", "2026-03-03T13:00"),
    ("at 2pm", "2026-11-19T14:00", "2026-11-19T15:00"),
    ("at 3pm", "2026-11-18T15:00", "2026-11-18T16:00"),  # today's has not come yet
    ("yesterday between 9 and 11", "2026-11-18T09:00", "2026-11-18T11:00"),
    ("yesterday from 9am to 11am", "2026-11-18T09:00", "2026-11-18T11:00"),
    ("between 9 and 11 am yesterday", "2026-11-18T09:00", "2026-11-18T11:00"),
    ("9-11am", "2026-11-19T09:00", "2026-11-19T11:00"),
    ("from 10pm to 2am", "2026-11-18T22:00", "2026-11-19T02:00"),
    ("between noon and 3pm", "2026-11-19T12:00", "2026-11-19T15:00"),
    ("from yesterday 3pm to 5pm", "2026-11-18T15:00", "2026-11-18T17:00"),
    # weeks, months, quarters, years
    ("this week", "2026-11-16", "2026-11-23"),
    ("last week", "2026-11-09", "2026-11-16"),
    ("next week", "2026-11-23", "2026-11-30"),
    ("the week before last", "2026-11-02", "2026-11-09"),
    ("last weekend", "2026-11-14", "2026-11-16"),
    ("this weekend", "2026-11-21", "2026-11-23"),
    ("this month", "2026-11-01", "2026-12-01"),
    ("last month", "2026-10-01", "2026-11-01"),
    ("month before last", "2026-09-01", "2026-10-01"),
    ("this quarter", "2026-10-01", "2027-01-01"),
    ("last quarter", "2026-07-01", "2026-10-01"),
    ("this year", "2026-01-01", "2027-01-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("earlier this week", "2026-11-16T00:00", "now"),
    ("so far this year", "2026-01-01T00:00", "now"),
    ("last decade", "2010-01-01", "2020-01-01"),
    # until now
    ("last 3 days", "2026-11-16", "now"),
    ("the past seven days", "2026-11-12", "now"),
    ("past week", "2026-11-12", "now"),
    ("in the last 2 weeks", "2026-11-05", "now"),
    ("last three months", "2026-08-19", "now"),
    ("past month", "2026-10-19", "now"),
    ("last 10 years", "2016-11-19", "now"),
    ("last 24 hours", "2026-11-18T14:20", "now"),
    ("within the past ninety minutes", "2026-11-19T12:50", "now"),
    ("the last hour", "2026-11-19T13:20", "now"),
    ("the last few days", "2026-11-14", "now"),
    ("recently", "2026-11-12", "now"),
    ("just now", "2026-11-19T14:05", "now"),
    ("less than 2 weeks ago", "2026-11-05", "now"),
    ("next 3 days", "2026-11-19T14:20", "2026-11-23"),
    # ago
    ("2 days ago", "2026-11-17", "2026-11-18"),
    ("a couple of days ago", "2026-11-17", "2026-11-18"),
    ("twenty-one days ago", "2026-10-29", "2026-10-30"),
    ("a week ago", "2026-11-09", "2026-11-16"),
    ("a fortnight ago", "2026-11-02", "2026-11-09"),
    ("three months ago", "2026-08-01", "2026-09-01"),
    ("2 quarters ago", "2026-04-01", "2026-07-01"),
    ("two years ago", "2024-01-01", "2025-01-01"),
    ("2 hours ago", "2026-11-19T11:50", "2026-11-19T12:50"),
    ("half an hour ago", "2026-11-19T13:35", "2026-11-19T14:05"),
    ("an hour and a half ago", "2026-11-19T12:20", "2026-11-19T13:20"),
    ("two and a half hours ago", "2026-11-19T11:20", "2026-11-19T12:20"),
    ("a quarter of an hour ago", "2026-11-19T13:57:30", "2026-11-19T14:12:30"),
    ("three quarters of an hour ago", "2026-11-19T13:12:30", "2026-11-19T13:57:30"),
    ("a year and a half ago", "2025-05-01", "2025-06-01"),
    ("a week and a half ago", "2026-11-02", "2026-11-16"),
    ("10 minutes ago", "2026-11-19T14:09:30", "2026-11-19T14:10:30"),
    ("a few days ago", "2026-11-14", "2026-11-18"),
    ("3 to 5 days ago", "2026-11-14", "2026-11-17"),
    ("between three and five days ago", "2026-11-14", "2026-11-17"),
    ("2 days ago at 5pm", "2026-11-17T17:00", "2026-11-17T18:00"),
    ("2 weeks ago on Monday", "2026-11-02", "2026-11-03"),
    ("2 days before yesterday", "2026-11-16", "2026-11-17"),
    ("the day before Christmas", "2025-12-24", "2025-12-25"),
    ("the week after March 3", "2026-03-09", "2026-03-16"),
    ("more than 3 days ago", None, "2026-11-16"),
    ("at least 3 days ago", None, "2026-11-17"),
    ("over a year ago", None, "2025-01-01"),
    ("in 3 days", "2026-11-22", "2026-11-23"),
    # weekdays
    ("Monday", "2026-11-16", "2026-11-17"),
    ("on Thursday", "2026-11-19", "2026-11-20"),  # today is one
    ("Fri", "2026-11-13", "2026-11-14"),
    ("last Monday", "2026-11-16", "2026-11-17"),  # the newest that is over
    ("last Thursday", "2026-11-12", "2026-11-13"),
    ("this Friday", "2026-11-20", "2026-11-21"),
    ("this Monday", "2026-11-16", "2026-11-17"),
    ("next Thursday", "2026-11-26", "2026-11-27"),
    ("Monday of last week", "2026-11-09", "2026-11-10"),
    ("last week's Friday", "2026-11-13", "2026-11-14"),
    ("Tuesday, March 3", "2026-03-03", "2026-03-04"),
    # named months and dates
    ("in March 2026", "2026-03-01", "2026-04-01"),
    ("March", "2026-03-01", "2026-04-01"),
    ("in December", "2025-12-01", "2026-01-01"),
    ("November", "2026-11-01", "2026-12-01"),  # the one we are in
    ("last March", "2026-03-01", "2026-04-01"),
    ("last November", "2025-11-01", "2025-12-01"),
    ("this December", "2026-12-01", "2027-01-01"),
    ("March of last year", "2025-03-01", "2025-04-01"),
    ("Sept '25", "2025-09-01", "2025-10-01"),
    ("March 3rd", "2026-03-03", "2026-03-04"),
    ("the 3rd of March, 2024", "2024-03-03", "2024-03-04"),
    ("Dec 24", "2025-12-24", "2025-12-25"),
    ("the 15th", "2026-11-15", "2026-11-16"),
    ("the 31st", "2026-10-31", "2026-11-01"),
    ("the 3rd of last month", "2026-10-03", "2026-10-04"),
    ("2026-03-03", "2026-03-03", "2026-03-04"),
    ("2026-03", "2026-03-01", "2026-04-01"),
    ("2025", "2025-01-01", "2026-01-01"),
    ("20260303", "2026-03-03", "2026-03-04"),
    ("25.12.2025", "2025-12-25", "2025-12-26"),
    ("12/25/2025", "2025-12-25", "2025-12-26"),  # there is no 25th month
    ("2026-W10", "2026-03-02", "2026-03-09"),
    ("2026-W10-3", "2026-03-04", "2026-03-05"),
    ("since 2026W107", "2026-03-08", None),
    ("2026-03-03T10:00:00Z", "2026-03-03T11:00:00", "2026-03-03T11:00:01"),
    ("2026-03-03 10:00", "2026-03-03T10:00", "2026-03-03T10:01"),
    ("2026-03-03T10:00:00.25-05:00", "2026-03-03T16:00:00.25", "2026-03-03T16:00:00.26"),
    ("29 February", "2024-02-29", "2024-03-01"),  # the newest year that has one
    # quarters, halves, seasons, holidays, parts
    ("Q2 2026", "2026-04-01", "2026-07-01"),
    ("2025-Q4", "2025-10-01", "2026-01-01"),
    ("first quarter of last year", "2025-01-01", "2025-04-01"),
    ("the second half of 2025", "2025-07-01", "2026-01-01"),
    ("last summer", "2026-06-01", "2026-09-01"),
    ("last autumn", "2025-09-01", "2025-12-01"),  # this one is not over
    ("this fall", "2026-09-01", "2026-12-01"),
    ("spring of 2025", "2025-03-01", "2025-06-01"),
    ("winter 2025", "2025-12-01", "2026-03-01"),
    ("winter 2025/26", "2025-12-01", "2026-03-01"),
    ("last Christmas", "2025-12-25", "2025-12-26"),
    ("New Year's Eve", "2025-12-31", "2026-01-01"),
    ("early March", "2026-03-01", "2026-03-11"),
    ("mid-June", "2026-06-11", "2026-06-21"),
    ("the end of last month", "2026-10-22", "2026-11-01"),
    ("the first week of March", "2026-03-01", "2026-03-08"),
    ("last day of February", "2026-02-28", "2026-03-01"),
    ("the first Monday of May 2026", "2026-05-04", "2026-05-05"),
    ("the last Friday of the month", "2026-11-27", "2026-11-28"),
    ("week of March 3", "2026-03-02", "2026-03-09"),
    ("the 1990s", "1990-01-01", "2000-01-01"),
    ("around March 3", "2026-03-02", "2026-03-05"),
    # ranges
    ("between Monday and Wednesday", "2026-11-16", "2026-11-19"),
    ("from Friday to Monday", "2026-11-13", "2026-11-17"),
    ("Monday to Friday", "2026-11-09", "2026-11-14"),  # this Friday has not begun
    ("between today and last Monday", "2026-11-16", "2026-11-20"),
    ("from yesterday until now", "2026-11-18", "now"),
    ("from March 3 to March 10, 2025", "2025-03-03", "2025-03-11"),
    ("from December 20, 2024 to January 5", "2024-12-20", "2025-01-06"),
    ("March 3-5", "2026-03-03", "2026-03-06"),
    ("3 to 5 March 2026", "2026-03-03", "2026-03-06"),
    ("November through February", "2025-11-01", "2026-03-01"),
    ("January \u2013 March 2025", "2025-01-01", "2025-04-01"),
    ("2026-03-03..2026-03-05", "2026-03-03", "2026-03-06"),
    ("2026-03-03/2026-03-05", "2026-03-03", "2026-03-06"),
    ("between 2026-03-03 and 2026-03-05", "2026-03-03", "2026-03-06"),
    ("after March 3 and before March 10", "2026-03-04", "2026-03-10"),
    ("since last Monday until yesterday", "2026-11-16", "2026-11-19"),
    ("since Monday", "2026-11-16", None),
    ("from March onwards", "2026-03-01", None),
    ("after Monday", "2026-11-17", None),
    ("since two hours ago", "2026-11-19T12:20", None),
    ("since yesterday morning", "2026-11-18T05:00", None),
    ("before Monday", None, "2026-11-16"),
    ("until Monday", None, "2026-11-17"),
    ("before 2020", None, "2020-01-01"),
    ("until yesterday 3pm", None, "2026-11-18T15:00"),
    ("2025 or earlier", None, "2026-01-01"),
    ("between 9am and 11am on March 3", "2026-03-03T09:00", "2026-03-03T11:00"),
]

ELSEWHEN: Final = [
    # (zone, present, expression, after, before); times with an offset where clocks are ambiguous
    # the year's ends
    (BERLIN, "2027-01-01T09:00", "yesterday", "2026-12-31", "2027-01-01"),
    (BERLIN, "2027-01-01T09:00", "last week", "2026-12-21", "2026-12-28"),
    (BERLIN, "2027-01-01T09:00", "this week", "2026-12-28", "2027-01-04"),
    (BERLIN, "2027-01-01T09:00", "last month", "2026-12-01", "2027-01-01"),
    (BERLIN, "2027-01-01T09:00", "last quarter", "2026-10-01", "2027-01-01"),
    (BERLIN, "2027-01-01T09:00", "this winter", "2026-12-01", "2027-03-01"),
    (BERLIN, "2027-01-01T09:00", "New Year's Eve", "2026-12-31", "2027-01-01"),
    (BERLIN, "2027-01-01T09:00", "week 53", "2026-12-28", "2027-01-04"),
    (BERLIN, "2026-12-31T23:59", "tomorrow", "2027-01-01", "2027-01-02"),
    # leap days, and months of other lengths
    (BERLIN, "2024-02-29T12:00", "a year ago", "2023-01-01", "2024-01-01"),
    (BERLIN, "2024-02-29T12:00", "last 12 months", "2023-02-28", "now"),
    (BERLIN, "2024-03-01T12:00", "yesterday", "2024-02-29", "2024-03-01"),
    (BERLIN, "2024-03-31T12:00", "past month", "2024-02-29", "now"),
    (BERLIN, "2024-02-29T12:00", "29 February", "2024-02-29", "2024-03-01"),
    (BERLIN, "2024-02-29T12:00", "last February 29", "2020-02-29", "2020-03-01"),
    (BERLIN, "1900-03-01T12:00", "29 February", "1896-02-29", "1896-03-01"),
    # who asks at night
    (BERLIN, "2026-11-19T02:00", "last night", "2026-11-18T18:00", "2026-11-19T05:00"),
    (BERLIN, "2026-11-19T02:00", "tonight", "2026-11-18T18:00", "2026-11-19T05:00"),
    (BERLIN, "2026-11-19T02:00", "this morning", "2026-11-19T05:00", "2026-11-19T12:00"),
    # weekdays on a Monday, in the middle of what is named
    (BERLIN, "2026-11-16T08:00", "Monday", "2026-11-16", "2026-11-17"),
    (BERLIN, "2026-11-16T08:00", "last Monday", "2026-11-09", "2026-11-10"),
    (BERLIN, "2026-11-17T08:00", "between Monday and Wednesday", "2026-11-09", "2026-11-12"),
    (BERLIN, "2026-11-22T08:00", "last weekend", "2026-11-14", "2026-11-16"),
    (BERLIN, "2026-07-05T08:00", "last summer", "2025-06-01", "2025-09-01"),
    (BERLIN, "2026-03-05T08:00", "this winter", "2025-12-01", "2026-03-01"),
    # clocks put forward on 2026-03-29 at 2:00 and back on 2026-10-25 at 3:00
    (BERLIN, "2026-03-30T12:00", "yesterday", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"),
    (BERLIN, "2026-10-26T12:00", "yesterday", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),
    (BERLIN, "2026-10-25T12:00", "last night", "2026-10-24T18:00+02:00", "2026-10-25T05:00+01:00"),
    (BERLIN, "2026-10-25T12:00", "last 24 hours", "2026-10-24T13:00+02:00", "now"),
    (BERLIN, "2026-10-25T12:00", "last 1 day", "2026-10-24T00:00+02:00", "now"),
    (BERLIN, "2026-10-25T04:00", "3 hours ago", "2026-10-25T01:30+02:00", "2026-10-25T02:30+02:00"),
    (BERLIN, "2026-10-26T12:00", "yesterday at 2am", "2026-10-25T02:00+02:00", "2026-10-25T03:00+01:00"),
    (BERLIN, "2026-10-26T12:00", "yesterday at 2:30am", "2026-10-25T02:30+02:00", "2026-10-25T02:31+01:00"),
    (BERLIN, "2026-03-30T12:00", "yesterday at 2am", "2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"),
    (BERLIN, "2026-03-30T12:00", "yesterday at 2:30am", "2026-03-29T03:30+02:00", "2026-03-29T03:31+02:00"),
    (
        BERLIN,
        "2026-03-30T12:00",
        "yesterday from 1am to 4am",
        "2026-03-29T01:00+01:00",
        "2026-03-29T04:00+02:00",
    ),
    (BERLIN, "2026-03-30T12:00", "last week", "2026-03-23T00:00+01:00", "2026-03-30T00:00+02:00"),
    (
        "America/New_York",
        "2026-11-02T08:00",
        "last weekend",
        "2026-10-31T00:00-04:00",
        "2026-11-02T00:00-05:00",
    ),
    # midnight is left out, midnight comes twice
    (
        "America/Sao_Paulo",
        "2018-11-05T12:00",
        "yesterday",
        "2018-11-04T01:00-02:00",
        "2018-11-05T00:00-02:00",
    ),
    ("America/Havana", "2026-11-02T12:00", "yesterday", "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"),
    ("America/Havana", "2026-11-02T12:00", "2 days ago", "2026-10-31T00:00-04:00", "2026-11-01T00:00-04:00"),
    # a day that was left out, half an hour of daylight saving, far zones
    ("Pacific/Apia", "2012-01-01T12:00", "2 days ago", "2011-12-31T00:00+14:00", "2011-12-31T00:00+14:00"),
    (
        "Australia/Lord_Howe",
        "2026-04-06T12:00",
        "yesterday",
        "2026-04-05T00:00+11:00",
        "2026-04-06T00:00+10:30",
    ),
    ("Asia/Kathmandu", "2026-11-19T01:00", "today", "2026-11-19T00:00+05:45", "2026-11-20T00:00+05:45"),
    (
        "Pacific/Kiritimati",
        "2026-11-19T01:00",
        "yesterday",
        "2026-11-18T00:00+14:00",
        "2026-11-19T00:00+14:00",
    ),
    ("UTC", "2026-11-19T00:00", "today", "2026-11-19", "2026-11-20"),
    ("UTC", "2026-11-19T00:00", "so far this week", "2026-11-16", "now"),
]


def _instant(text: str | None, zone: ZoneInfo, now: datetime) -> datetime | None:
    if text is None:
        return None
    if text == "now":
        return now + timedelta(microseconds=1)
    read = datetime.fromisoformat(text)
    return read if read.tzinfo is not None else read.replace(tzinfo=zone)


def _check(zone_name: str, present: str, expression: str, after: str | None, before: str | None) -> None:
    zone = ZoneInfo(zone_name)
    now = datetime.fromisoformat(present).replace(tzinfo=zone)
    expected = (_instant(after, zone, now), _instant(before, zone, now))
    found = resolve(expression, now.astimezone(UTC), zone)
    in_utc = tuple(end and end.astimezone(UTC) for end in expected)
    assert found == in_utc, [end and end.astimezone(zone).isoformat() for end in found]


@pytest.mark.quick
@pytest.mark.promise("exchange.time-expressions")
@pytest.mark.parametrize(("expression", "after", "before"), CASES)
def test_an_expression_means_what_the_table_says(
    expression: str, after: str | None, before: str | None
) -> None:
    _check(BERLIN, THURSDAY, expression, after, before)


@pytest.mark.promise("exchange.time-expressions")
@pytest.mark.parametrize(("zone", "present", "expression", "after", "before"), ELSEWHEN)
def test_so_it_does_at_other_times_and_places(
    zone: str, present: str, expression: str, after: str | None, before: str | None
) -> None:
    _check(zone, present, expression, after, before)


def test_the_table_has_more_than_150_cases() -> None:
    assert len({case[0] for case in CASES}) == len(CASES)
    assert len(CASES) + len(ELSEWHEN) >= 150


@pytest.mark.promise("exchange.time-expressions")
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", None),
        ("the other day", None),
        ("a while ago", None),
        ("not a time", None),
        ("yesterdayish", None),
        ("25:00", None),
        ("13pm", None),
        ("Mondays in general", None),
        ("3/4/2026", "write 2026-03-04"),
        ("2026-02-30", "no day 2026-02-30"),
        ("2026-13-01", "no day 2026-13-01"),
        ("29 February 2025", "no such day"),
        ("Monday, 2026-03-03", "not a monday"),
        ("from 2026-03-05 to 2026-03-03", "ends before it begins"),
        ("2026-W60", "no such week"),
        ("900000 years ago", "no such year"),
        ("9" * 40 + " days ago", None),
        ("week of week of week of week of week of week of week of week of week of Monday", None),
    ],
)
def test_what_is_not_understood_says_so_with_examples(expression: str, reason: str | None) -> None:
    now = datetime(2026, 11, 19, 13, 20, tzinfo=UTC)
    with pytest.raises(ValueError, match="is not understood as a time") as refused:
        resolve(expression, now, UTC)
    assert '"last week"' in str(refused.value)
    assert reason is None or reason in str(refused.value)


def test_the_examples_are_understood() -> None:
    for example in EXAMPLES:
        resolve(example, datetime(2026, 11, 19, 13, 20, tzinfo=UTC), UTC)


def test_a_text_that_is_too_long_is_refused_with_its_length() -> None:
    with pytest.raises(ValueError, match="at most 200 characters, this 205"):
        resolve("today" * 41, datetime(2026, 11, 19, tzinfo=UTC), UTC)


def test_a_time_without_a_zone_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError):
        resolve("today", datetime(2026, 11, 19), UTC)  # noqa: DTZ001  what is refused


_WORDS = st.sampled_from(
    [
        *(*WEEKDAYS, *MONTHS, *SEASONS, *HOLIDAYS, *DAYTIMES, *UNITS, *ORDINALS, *NUMBERS, *VAGUE),
        *("last", "this", "next", "ago", "since", "before", "after", "between", "and", "from", "to", "until"),
        *("-", "/", "..", ",", "3", "31", "0", "2026", "0001", "9999", "2026-03-03", "3pm", "15:30", "now"),
        *("yesterday", "today", "tonight", "so far", "around", "more than", "week", "of", "q3", "'s", "in"),
    ]
)
_INSTANTS = st.datetimes(timezones=st.just(UTC)) | st.just(datetime.min.replace(tzinfo=UTC))
_ZONES = st.sampled_from(
    [ZoneInfo(name) for name in ("UTC", BERLIN, "America/Havana", "Pacific/Apia", "Asia/Kathmandu")]
)


@pytest.mark.promise("exchange.time-expressions")
@given(st.text() | st.lists(_WORDS, max_size=8).map(" ".join), _INSTANTS, _ZONES)
def test_any_text_means_an_interval_or_is_refused(text: str, now: datetime, zone: ZoneInfo) -> None:
    try:
        after, before = resolve(text, now, zone)
    except ValueError:
        return
    assert after is not None or before is not None
    assert after is None or before is None or after <= before
    assert all(end is None or end.utcoffset() == timedelta(0) for end in (after, before))


def test_every_pattern_of_the_grammar_is_different() -> None:
    for forms in (DAYS, SPANS):
        patterns = [pattern for pattern, _ in forms]
        assert len(set(patterns)) == len(patterns)


def test_where_days_come_first_a_date_with_slashes_is_one_day() -> None:
    now = datetime(2026, 11, 19, tzinfo=UTC)
    for text, month, day in (("3/4/2026", 4, 3), ("3/14/2026", 3, 14), ("14/3/2026", 3, 14)):
        assert resolve(text, now, UTC, day_first=True)[0] == datetime(2026, month, day, tzinfo=UTC)
    with pytest.raises(ValueError, match="2026-16-16"):
        resolve("16/16/2026", now, UTC, day_first=True)
