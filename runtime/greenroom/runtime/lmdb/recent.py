"""Recent rows: changes of the newest commits, which are not in their tables yet.

A commit writes at least one page for each place that it changes, and the pages above it. So the changes of
small commits first go into one table, in the order of the commits, and later into their own tables, many at
once and in the order of their keys. This is the write-ahead log of a database, within its file: copies of the
file have it, and each view sees the rows of its own commit.

    RECENT   number     table, whether it is a put, size of the key, key, and the sealed record

In memory, the same rows lie over the tables: see `RecentRows`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from struct import Struct, error
from typing import Final, NamedTuple

from greenroom.runtime.lmdb.write_batch import TABLE_COUNT, Changes

MOST_ROWS: Final = 1_024
"""The most rows over the tables; each commit copies the table of their keys."""
MOST_BYTES: Final = 512 << 10
MOST_ROW_BYTES: Final = 3_500
"""A larger row goes into its table at once; a flipped bit is looked for in records of up to 4 KiB."""
NUMBER_BYTES: Final = 8
_TABLES: Final = (0x0F, 0x33, 0x55)
"""The marks of the tables; a flipped bit makes none of another."""
_HEAD: Final = Struct(">BBH")
_PUT: Final = 0xFF
_DELETE: Final = 0


class RecentRow(NamedTuple):
    """A stored change: table, key and sealed record; None for a deletion."""

    table: int
    key: bytes
    record: bytes | None


def pack(row: RecentRow) -> bytes:
    """Encode a change."""
    head = _HEAD.pack(_TABLES[row.table], _DELETE if row.record is None else _PUT, len(row.key))
    return head + row.key + (row.record or b"")


def unpack(payload: bytes) -> RecentRow | None:
    """Decode a change; None if it cannot be one."""
    try:
        mark, kind, size = _HEAD.unpack_from(payload)
    except error:
        return None
    key, record = payload[_HEAD.size : _HEAD.size + size], payload[_HEAD.size + size :]
    if mark not in _TABLES or kind not in {_PUT, _DELETE} or len(key) != size or not size:
        return None
    if kind == _DELETE:
        return None if record else RecentRow(_TABLES.index(mark), key, None)
    return RecentRow(_TABLES.index(mark), key, record)


class RecentRows:
    """The recent rows that one view of the store sees, by table; never changed.

    Attributes:
        changes: By table, the payload of each key; None for a deletion.
        size: Their bytes.
    """

    __slots__ = ("_order", "changes", "size")

    def __init__(
        self, changes: Sequence[Changes] = ({},) * TABLE_COUNT, order: Sequence[list[bytes]] = ()
    ) -> None:
        self.changes = changes
        self._order = order or [sorted(each) for each in changes]
        self.size = 0

    def __len__(self) -> int:
        return sum(map(len, self.changes))

    def with_changes(self, added: Sequence[Changes]) -> RecentRows:
        """Return these rows with newer ones over them."""
        changes, orders = [*self.changes], [*self._order]
        for table, rows in enumerate(added):
            if not rows:
                continue
            old, order = changes[table], orders[table].copy()
            changes[table] = old | rows
            for key in rows:
                if key not in old:
                    insort(order, key)
            orders[table] = order
        found = RecentRows(changes, orders)
        found.size = self.size + bytes_of(added)
        return found

    def among(
        self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes | None]] | None:
        """Return the rows of a scan in its order; None if there are none."""
        order = self._order[table]
        if not order:
            return None
        low, high = _bounds(order, prefix)
        if start is not None and reverse:
            high = min(high, bisect_right(order, start))
        elif start is not None:
            low = max(low, bisect_left(order, start))
        if low >= high:
            return None
        rows = self.changes[table]
        places = range(high - 1, low - 1, -1) if reverse else range(low, high)
        return ((key, rows[key]) for key in map(order.__getitem__, places))


def _bounds(order: list[bytes], prefix: bytes) -> tuple[int, int]:
    """Return where the keys with a prefix begin and end."""
    low = bisect_left(order, prefix)
    stem = prefix.rstrip(b"\xff")  # no key is above a prefix of 0xff bytes only
    if not stem:
        return low, len(order)
    return low, bisect_left(order, stem[:-1] + bytes([stem[-1] + 1]), low)


NONE: Final = RecentRows()


def bytes_of(changes: Iterable[Changes]) -> int:
    """Return the bytes of changes."""
    return sum(len(key) + len(payload or b"") for each in changes for key, payload in each.items())


def merge_over(
    stored: Iterator[tuple[bytes, bytes]],
    fresh: Iterator[tuple[bytes, bytes | None]],
    changes: Container[bytes],
    *,
    reverse: bool = False,
) -> Iterator[tuple[bytes, bytes]]:
    """Yield stored rows with newer ones over them, both in key order.

    Args:
        stored: The stored rows.
        fresh: The newer ones, None for a deletion.
        changes: The keys of the newer ones; other keys are allowed if they are not in the range.
        reverse: Whether both come in descending order.
    """
    waiting = next(fresh, None)
    for key, payload in stored:
        while waiting is not None and (waiting[0] > key if reverse else waiting[0] < key):
            if waiting[1] is not None:
                yield waiting[0], waiting[1]
            waiting = next(fresh, None)
        if key not in changes:
            yield key, payload
    while waiting is not None:
        if waiting[1] is not None:
            yield waiting[0], waiting[1]
        waiting = next(fresh, None)
