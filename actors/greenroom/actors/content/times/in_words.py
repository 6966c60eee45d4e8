"""Lengths of time in words."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_UNITS: Final = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))


def in_words(length: timedelta) -> str | None:
    """Return "17 minutes", in the largest whole unit; None below a minute."""
    for unit, name in _UNITS:
        if length >= unit:
            number = length // unit
            return f"{number:,} {name}{'' if number == 1 else 's'}"
    return None
