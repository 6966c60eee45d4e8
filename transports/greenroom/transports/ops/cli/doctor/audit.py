"""The check of the audit log: whether known records are missing, and the newest one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from greenroom.actors.core.audit.record import JOURNAL
from greenroom.runtime import GreenroomError
from greenroom.runtime.journal.checkpoints import SUFFIX, CheckpointFile
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, warning
from greenroom.transports.ops.cli.support.open_store import encryption

_TOPIC: Final = "audit"
_MICROSECONDS: Final = 1_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """Compare the store's audit log with the checkpoints beside the store."""
    if facts.head is None:
        return
    seen = seen_of(facts)
    for gap in seen.breaks(JOURNAL):
        if not gap.restored:
            yield warning(
                _TOPIC,
                f"records {gap.first:,} to {gap.last:,} had been seen and were gone at a start on "
                f"{day(gap.time / _MICROSECONDS)}: someone had put an older store there, or cut the log",
                "see what there is: greenroom audit verify",
            )
    checkpoints = seen.checkpoints(JOURNAL)
    last = max((each.count for each in checkpoints), default=0)
    count = stored_count(facts)
    if count is not None and count < last and not seen.is_restored:
        yield warning(
            _TOPIC,
            f"the store ends with record {count:,}, and record {last:,} has been seen: an older store was "
            "put there other than with `greenroom restore`",
            "bring the newer store back, or take this one: greenroom restore FILE",
        )
    elif checkpoints:
        yield ok(_TOPIC, f"{last:,} records were seen up to {day(checkpoints[-1].time / _MICROSECONDS)}")
    else:
        yield ok(_TOPIC, "its end has not been recorded beside the store's secret yet")


def seen_of(facts: Facts) -> CheckpointFile:
    """Return the checkpoints of the store's journals."""
    assert facts.head is not None
    name = f"{facts.head.identity.store_id}{SUFFIX}"
    places = (facts.settings.secrets / name, facts.place.path / name)
    return CheckpointFile(next((each for each in places if each.exists()), places[0]))


def stored_count(facts: Facts) -> int | None:
    """Return the number of the last record in a stopped store; None if unreadable."""
    if facts.owner is not None or facts.head is None:
        return None
    try:
        with facts.survey() as found:
            return found.journal_head(JOURNAL, found.codec(encryption(facts.settings))).count
    except GreenroomError:
        return None  # other checks report the problem of the store or its key


def day(time: float) -> str:
    """Format seconds since 1970 as date and time in UTC."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
