"""The clock: whether something lies in the future, and whether the clock was set while the owner ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors.core.audit.record import JOURNAL
from greenroom.transports.ops.cli.doctor.audit import day, seen_of
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, warning

_TOPIC: Final = "clock"
_TOLERANCE: Final = 60.0  # seconds
_MICROSECONDS: Final = 1_000_000
_REMEDY: Final = "set the clock right and keep it so, as with `timedatectl set-ntp true`"


def check(facts: Facts) -> Iterator[Finding]:
    """Compare the clock with what was written by it."""
    ahead = {what: time for what, time in _written(facts) if time > facts.now + _TOLERANCE}
    if ahead:
        what, time = max(ahead.items(), key=lambda found: found[1])
        yield warning(
            _TOPIC,
            f"{what} is of {day(time)}, and the clock says {day(facts.now)}: it was set back, or ran ahead",
            f"{_REMEDY}; what is written until then gets the time of what is there",
        )
    else:
        yield ok(_TOPIC, f"nothing is from the future; it is {day(facts.now)}")
    yield from _drift(facts)


def _written(facts: Facts) -> Iterator[tuple[str, float]]:
    if facts.place.modified:
        yield "the store's file", facts.place.modified
    if facts.head is not None:
        for each in seen_of(facts).checkpoints(JOURNAL)[-1:]:
            yield f"audit record {each.count:,}", each.time / _MICROSECONDS


def _drift(facts: Facts) -> Iterator[Finding]:
    """Compare how long the owner has run by the clock with how long it has run."""
    clock = (facts.figures or {}).get("clock") or {}
    if not {"started_at", "up_seconds"} <= clock.keys():
        return
    drift = facts.now - clock["started_at"] - clock["up_seconds"]
    if abs(drift) > _TOLERANCE:
        way = "forward" if drift > 0 else "back"
        yield warning(
            _TOPIC,
            f"the clock was set {way} by {abs(drift):,.0f} s since the owner of the folder was started",
            "nothing, if that set it right; else " + _REMEDY,
        )
