"""The vocabulary of `greenroom.actors.timeexpr`, as tables."""

from __future__ import annotations

import re
from typing import Final

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tues tue",
            "wednesday weds wed",
            "thursday thurs thur thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month in which a season begins; each has three. Those of the northern half of the globe."""
HOLIDAYS: Final = {
    "new year": (1, 1),
    "new years": (1, 1),
    "new years day": (1, 1),
    "valentines day": (2, 14),
    "halloween": (10, 31),
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
    "new years eve": (12, 31),
}
DAYTIMES: Final = {
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 29),
}
"""From which hour to which; a night goes on until five on the next day."""
UNITS: Final = {
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "second"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "minute"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("week", "weeks", "wk", "wks"), "week"),
    **dict.fromkeys(("fortnight", "fortnights"), "fortnight"),
    **dict.fromkeys(("weekend", "weekends"), "weekend"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("quarter", "quarters"), "quarter"),
    **dict.fromkeys(("year", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("decade", "decades"), "decade"),
}
ORDINALS: Final = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "5th": 5,
    "last": -1,
    "final": -1,
}
_SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS: Final = {
    **{word: number for number, word in enumerate(_SMALL)},
    **{word: number * 10 for number, word in enumerate(_TENS, start=2)},
    **{
        f"{tens} {ones}": number * 10 + one
        for number, tens in enumerate(_TENS, start=2)
        for one, ones in enumerate(_SMALL[1:10], start=1)
    },
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "a couple": 2,
    "couple of": 2,
    "couple": 2,
    "a dozen": 12,
    "half a": 0.5,
    "half an": 0.5,
}
VAGUE: Final = {"a few": (2, 5), "few": (2, 5), "several": (3, 7)}
"""Counts that are not one number: at least and at most."""


def alternatives(words: object) -> str:
    """Return a pattern that matches one of the words of a table, the longest first."""
    assert isinstance(words, dict)
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))
