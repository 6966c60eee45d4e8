"""The actor that stores savings: one for each user, and one for the total.

    d day operation 0 baseline    a count
    h hour operation 0 baseline   the same by hours

The newest `KEPT_DAYS` days and `KEPT_HOURS` hours with counts are kept. Each of them has at most one row for
each operation and baseline.
"""

from __future__ import annotations

from typing import ClassVar, Final

from greenroom.actors.app.savings.requests import (
    KEPT_DAYS,
    KEPT_HOURS,
    AddSavings,
    ReadHours,
    ReadSavings,
    SavingsCount,
    SavingsRow,
)
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.runtime import Actor, Address, Context, Slices, handles

KIND: Final = "savings"
EVERYBODY: Final = "all"
_DAYS: Final = b"d"
_HOURS: Final = b"h"
_TIME_BYTES: Final = 4


def savings_address(owner: str) -> Address:
    """Return the actor of a namespace root, such as ``user:ada``, or of `EVERYBODY`."""
    return Address(KIND, owner)


class SavingsActor(Actor):
    """The savings of one user's agents, or the total."""

    kind: ClassVar[str] = KIND

    @handles(AddSavings)
    def add(self, request: AddSavings, context: Context) -> None:
        """Add counts, and delete the oldest days and hours."""
        _add(context, _DAYS, request.rows, KEPT_DAYS)
        _add(context, _HOURS, request.hours, KEPT_HOURS)

    @handles(ReadSavings)
    def read(self, request: ReadSavings, context: Context) -> list[SavingsRow]:
        """Return the counts since a day."""
        return _read(context, _DAYS, request.since)

    @handles(ReadHours)
    def read_hours(self, request: ReadHours, context: Context) -> list[SavingsRow]:
        """Return the counts since an hour."""
        return _read(context, _HOURS, request.since)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Delete everything, if it belongs to an erased person."""
        keys: list[bytes] = []
        if request.person.has_root(context.address.key):
            for key, _ in context.scan(SavingsCount):
                keys.append(key)
                yield
        if keys and not request.dry_run:
            context.use_reserve()
            for key in keys:
                context.delete(key)
        return ErasedPart(counts={"savings": len(keys)} if keys else {})


def _add(context: Context, prefix: bytes, rows: list[SavingsRow], most: int) -> None:
    """Add counts below a prefix, which keeps its newest days or hours."""
    for row in rows:
        key = prefix + row.day.to_bytes(_TIME_BYTES) + row.operation.encode() + b"\0" + row.baseline.encode()
        known = context.get(key, SavingsCount)
        context.put(key, row.count if known is None else known.plus(row.count))
    times: dict[bytes, list[bytes]] = {}
    for key, _ in context.scan(SavingsCount, prefix=prefix):
        times.setdefault(key[: len(prefix) + _TIME_BYTES], []).append(key)
    for time in sorted(times)[:-most]:
        for key in times[time]:
            context.delete(key)


def _read(context: Context, prefix: bytes, since: int) -> list[SavingsRow]:
    start = prefix + max(0, since).to_bytes(_TIME_BYTES)
    return [_row(key, count) for key, count in context.scan(SavingsCount, prefix=prefix, start=start)]


def _row(key: bytes, count: SavingsCount) -> SavingsRow:
    at = len(_DAYS) + _TIME_BYTES
    operation, _, baseline = key[at:].partition(b"\0")
    return SavingsRow(int.from_bytes(key[len(_DAYS) : at]), operation.decode(), baseline.decode(), count)
