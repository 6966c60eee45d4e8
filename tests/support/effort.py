"""How much a test tries: what waits for nobody tries more."""

from __future__ import annotations

from hypothesis import settings


def by_night(count: int, *, by_day: int) -> int:
    """Return `count` under hypothesis's profile `nightly`, else `by_day`."""
    return count if settings.default == settings.get_profile("nightly") else by_day
