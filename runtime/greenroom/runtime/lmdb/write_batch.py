"""Write batches, and the rule that decides whether there is room for one.

Pure: no store, no disk, no clock.
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
"""What is to become of rows of one table: the payload to put at a key, or None to delete what is there."""

JournalEntry = tuple[str, int, bytes]
"""A row to append: the journal's name, when (microseconds since 1970), and the row without its number."""


class Revocation(NamedTuple):
    """A staged fact for the revocation log; times in microseconds since 1970 UTC, ``value`` JSON."""

    when: int
    until: int
    kind: str
    key: str
    value: bytes


TABLE_COUNT: Final = 3
PAGE: Final = min(mmap.PAGESIZE, 1 << 15)  # LMDB's choice
RESERVE_PERCENT: Final = 5
RESERVE_PAGES: Final = 32  # at least; a delete of one row rewrites about eight pages before it frees one
_ROW_OVERHEAD: Final = 24  # node header, page pointer and record header, in bytes
_ENTRY_OVERHEAD: Final = _ROW_OVERHEAD + 64  # and key and link


class WriteBatch:
    """The effects of one message.

    Args:
        owner: Whose batch it is (hashable): when one fails, the owner's later ones in the group fail too.
        ops: The puts and deletes; of several for one key the last one counts.
        reserve: Whether the space reserve may be used. Batches that only delete may always.

    Attributes:
        changes: The puts and deletes, by table.
        entries: Rows to append to journals.
        revocations: What is to outlast a restored backup.
        error: Why it was not committed, set by `Store.commit`. One that has an error before is not tried.
    """

    __slots__ = ("changes", "entries", "error", "owner", "reserve", "revocations")

    def __init__(self, owner: object, ops: Iterable[Op] = (), reserve: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the kernel's works
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
        """Return whether anything is deleted; in the reserve that goes before everything else."""
        return any(None in changes.values() for changes in self.changes)

    def growth(self) -> int:
        """Return the bytes by which the puts may grow the store; 0 when it only deletes."""
        return growth(self.changes) + entries_growth(self.entries)


def entries_growth(entries: Iterable[JournalEntry]) -> int:
    """Return the bytes by which appending these rows may grow the store."""
    return sum(2 * (len(row) + _ENTRY_OVERHEAD) for _, _, row in entries)


def growth(tables: Iterable[Changes]) -> int:
    """Return the bytes by which these puts may grow the store; 0 when there are only deletes."""
    total = 0
    for changes in tables:
        for key, payload in changes.items():
            if payload is not None:
                size = len(key) + len(payload) + _ROW_OVERHEAD
                # Half a page and more gets pages of its own; less may split a page that was full.
                total += 2 * size if 2 * size < PAGE else PAGE * (2 + size // PAGE)
    return total


def merged(works: Sequence[WriteBatch]) -> Sequence[Changes]:
    """Return what all works together change, by table: of several changes of one row the last one counts."""
    if len(works) == 1:
        return works[0].changes
    tables: Sequence[Changes] = [{} for _ in range(TABLE_COUNT)]
    for work in works:
        for changes, own in zip(tables, work.changes, strict=False):
            changes.update(own)
    return tables


@dataclass(frozen=True, slots=True)
class Space:
    """How much room there is, in bytes.

    Attributes:
        map_bytes: The quota.
        used_bytes: Pages in use.
        disk_free: Free space of the disk.
        min_free: What is to stay free of it.
    """

    map_bytes: int
    used_bytes: int
    disk_free: int
    min_free: int

    def refusal(self, growth: int, *, from_reserve: bool) -> StorageFullError | None:
        """Return why puts of ``growth`` bytes are refused, or None; half of the reserve is for puts, too."""
        if not growth:
            return None
        share = 2 if from_reserve else 1
        if self.disk_free < self.min_free // share:
            return self._disk_full()
        reserve = max(self.map_bytes * RESERVE_PERCENT // 100, RESERVE_PAGES * PAGE)
        if growth > self.map_bytes - reserve // share - self.used_bytes:
            return self._map_full()
        return None

    def want_of_room(self) -> StorageFullError:
        """Return the refusal of a write that failed for want of room, by what there is less of."""
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
    works: Sequence[WriteBatch], space: Space, failed: dict[object, StoreError]
) -> list[WriteBatch]:
    """Return the works that may be tried; give the others their error and note their owners in ``failed``."""
    admitted = []
    planned = 0
    for work in works:
        if work.error is None:
            work.error = failed.get(work.owner)
        if work.error is None and not (work.reserve and work.deletes()):
            growth = work.growth()
            work.error = space.refusal(growth and planned + growth, from_reserve=work.reserve)
            planned += growth if work.error is None else 0
        if work.error is None:
            admitted.append(work)
        else:
            failed.setdefault(work.owner, work.error)
    return admitted
