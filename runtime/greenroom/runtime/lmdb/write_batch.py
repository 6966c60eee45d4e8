"""Write batches, and the rule for the space that they need.

The functions are pure: they use no store, no disk, no clock.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from greenroom.runtime.base.errors import StorageFullError, StoreError

Op = tuple[int, bytes, bytes | None]
"""Table, full key (1-511 bytes), and the payload to put there, or None to delete."""

Changes = dict[bytes, bytes | None]
"""The changes of one table: the payload to put at a key, or None to delete it."""

JournalEntry = tuple[str, int, bytes]
"""A row to append: the journal's name, the time (microseconds since 1970), and the row without its number."""


class Revocation(NamedTuple):
    """A fact for the revocation log; times in microseconds since 1970 UTC, ``value`` in JSON."""

    when: int
    until: int
    kind: str
    key: str
    value: bytes


TABLE_COUNT: Final = 3
PAGE: Final = min(mmap.PAGESIZE, 1 << 15)  # LMDB's choice
RESERVE_PERCENT: Final = 5
RESERVE_PAGES: Final = 32  # at least; a delete of one row rewrites about eight pages before it frees a page
_ROW_OVERHEAD: Final = 24  # node header, page pointer and record header, in bytes
_ENTRY_OVERHEAD: Final = _ROW_OVERHEAD + 64  # plus key and link


class WriteBatch:
    """The effects of one message.

    Args:
        owner: The owner (hashable). After a failure, later batches of this owner in the group fail, too.
        reserve: Whether the space reserve may be used. Batches that only delete may always use it.

    Attributes:
        error: Why `Store.commit` did not commit it. A batch that already has an error is not tried.
    """

    __slots__ = ("changes", "entries", "error", "owner", "reserve", "revocations")

    def __init__(self, owner: object, ops: Iterable[Op] = (), reserve: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the kernel's commit units
        self.owner = owner
        self.entries: Sequence[JournalEntry] = ()
        self.revocations: Sequence[Revocation] = ()
        self.reserve = reserve
        self.error: StoreError | None = None
        self.ops = ops

    @property
    def ops(self) -> Sequence[Op]:
        """The changes one by one."""
        return [
            (table, key, payload)
            for table, changes in enumerate(self.changes)
            for key, payload in changes.items()
        ]

    @ops.setter
    def ops(self, ops: Iterable[Op]) -> None:
        self.changes: Sequence[Changes] = [{} for _ in range(TABLE_COUNT)]
        for table, key, payload in ops:
            self.changes[table][key] = payload

    def deletes(self) -> bool:
        """Return whether the batch deletes; in the reserve, deletes have priority."""
        return any(None in changes.values() for changes in self.changes)

    def growth(self) -> int:
        """Return by how many bytes the batch may grow the store; 0 for deletes only."""
        return growth(self.changes) + entries_growth(self.entries)


def entries_growth(entries: Iterable[JournalEntry]) -> int:
    """Return the bytes by which appending these rows may grow the store."""
    return sum(2 * (len(row) + _ENTRY_OVERHEAD) for _, _, row in entries)


def growth(tables: Iterable[Changes]) -> int:
    """Return the bytes by which these changes may grow the store; 0 for deletes only."""
    total = 0
    for changes in tables:
        for key, payload in changes.items():
            if payload is not None:
                size = len(key) + len(payload) + _ROW_OVERHEAD
                # A row of half a page or more gets pages of its own; a smaller row may split a full page.
                total += 2 * size if 2 * size < PAGE else PAGE * (2 + size // PAGE)
    return total


def merge(units: Sequence[WriteBatch]) -> Sequence[Changes]:
    """Merge the changes of all units, by table; the last change of a row counts."""
    if len(units) == 1:
        return units[0].changes
    tables: Sequence[Changes] = [{} for _ in range(TABLE_COUNT)]
    for unit in units:
        for changes, own in zip(tables, unit.changes, strict=False):
            changes.update(own)
    return tables


@dataclass(frozen=True, slots=True)
class Space:
    """The free space, in bytes."""

    map_bytes: int
    used_bytes: int
    disk_free: int
    min_free: int

    def refusal(self, growth: int, *, from_reserve: bool) -> StorageFullError | None:
        """Return an error if ``growth`` bytes do not fit; puts may use half the reserve."""
        if not growth:
            return None
        share = 2 if from_reserve else 1
        if self.disk_free < self.min_free // share:
            return self._disk_full()
        reserve = max(self.map_bytes * RESERVE_PERCENT // 100, RESERVE_PAGES * PAGE)
        if growth > self.map_bytes - reserve // share - self.used_bytes:
            return self._map_full()
        return None

    def out_of_space_error(self) -> StorageFullError:
        """Return the error for a write without room on disk or in the map."""
        left_in_map = self.map_bytes - self.used_bytes
        return self._disk_full() if self.disk_free < left_in_map else self._map_full()

    def _disk_full(self) -> StorageFullError:
        return StorageFullError(
            f"the disk has {self.disk_free:,} bytes left and --min-free keeps {self.min_free:,}; make room "
            "on the disk or start with a smaller --min-free",
            {"disk_free": self.disk_free, "min_free": self.min_free},
        )

    def _map_full(self) -> StorageFullError:
        return StorageFullError(
            f"the store has {self.used_bytes:,} of the {self.map_bytes:,} bytes that --max-size allows; "
            "delete something or start with a larger --max-size",
            {"used_bytes": self.used_bytes, "max_size": self.map_bytes},
        )


def select_fitting(
    units: Sequence[WriteBatch], space: Space, failed: dict[object, StoreError]
) -> list[WriteBatch]:
    """Return the units to try; set the others' errors and add their owners to ``failed``."""
    admitted = []
    planned = 0
    for unit in units:
        if unit.error is None:
            unit.error = failed.get(unit.owner)
        if unit.error is None and not (unit.reserve and unit.deletes()):
            growth = unit.growth()
            unit.error = space.refusal(growth and planned + growth, from_reserve=unit.reserve)
            planned += growth if unit.error is None else 0
        if unit.error is None:
            admitted.append(unit)
        else:
            failed.setdefault(unit.owner, unit.error)
    return admitted
