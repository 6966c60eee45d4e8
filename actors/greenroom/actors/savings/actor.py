"""The actor that keeps what was saved: one for each user, and one for everybody together.

    d day operation 0 baseline          a count

The newest `KEPT_DAYS` days on which something was counted are kept; how many rows a day has is bounded by
the operations and their baselines.
"""

from __future__ import annotations

from typing import ClassVar, Final

from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.actors.schemas.savings import KEPT_DAYS, AddSavings, ReadSavings, SavingsCount, SavingsRow
from greenroom.runtime import Actor, Address, Context, Slices, handles

KIND: Final = "savings"
EVERYBODY: Final = "all"
_ROW: Final = b"d"
_DAY_BYTES: Final = 4


def savings_address(owner: str) -> Address:
    """Return the actor of a namespace root, such as ``user:ada``, or of `EVERYBODY`."""
    return Address(KIND, owner)


class SavingsActor(Actor):
    """What one user's agents saved, or everybody's."""

    kind: ClassVar[str] = KIND

    @handles(AddSavings)
    def add(self, request: AddSavings, context: Context) -> None:
        """Add counts, and forget the oldest days."""
        for row in request.rows:
            key = _key(row)
            known = context.get(key, SavingsCount)
            context.put(key, row.count if known is None else known.plus(row.count))
        days: dict[bytes, list[bytes]] = {}
        for key, _ in context.scan(SavingsCount, prefix=_ROW):
            days.setdefault(key[: len(_ROW) + _DAY_BYTES], []).append(key)
        for day in sorted(days)[:-KEPT_DAYS]:
            for key in days[day]:
                context.delete(key)

    @handles(ReadSavings)
    def read(self, request: ReadSavings, context: Context) -> list[SavingsRow]:
        """Answer the counts since a day."""
        start = _ROW + max(0, request.since).to_bytes(_DAY_BYTES)
        return [_row(key, count) for key, count in context.scan(SavingsCount, prefix=_ROW, start=start)]

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Forget all of it, where it is a person's who is erased."""
        keys: list[bytes] = []
        if request.person.has_root(context.address.key):
            for key, _ in context.scan(SavingsCount, prefix=_ROW):
                keys.append(key)
                if context.should_yield():
                    yield
        if keys and not request.dry_run:
            context.use_reserve()
            for key in keys:
                context.delete(key)
        return ErasedPart(counts={"savings": len(keys)} if keys else {})


def _key(row: SavingsRow) -> bytes:
    return _ROW + row.day.to_bytes(_DAY_BYTES) + row.operation.encode() + b"\0" + row.baseline.encode()


def _row(key: bytes, count: SavingsCount) -> SavingsRow:
    at = len(_ROW) + _DAY_BYTES
    operation, _, baseline = key[at:].partition(b"\0")
    return SavingsRow(int.from_bytes(key[len(_ROW) : at]), operation.decode(), baseline.decode(), count)
